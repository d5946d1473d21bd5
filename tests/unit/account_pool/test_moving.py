"""A claim that gets another name, stopped between any two of its calls: both names lead to its account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Final

import pytest

from components.account_pool.core.calls import Answer, Steps
from components.account_pool.core.held_claims import read_claim
from components.account_pool.core.keys import POOL_STATE, SHARED_CAPACITY, STATE_REASON
from components.account_pool.core.model import ClaimRequest, Member, Origin, Policy, State
from components.account_pool.core.moving import as_moved, move
from components.account_pool.core.records import Claimed
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast.claims import ClaimForecast, ForecastKind, forecast_claims, leaving
from components.errors import NotAllowed, Withheld
from components.labels import SHARED
from tests.support.memory_pool import Claims, MemoryServer, Releases, Sweeps, answer_to, run

BEFORE: Final = Claims("globex", "h/globex/main", slot="main", policy=Policy.CLEAN)
AFTER: Final = Claims("globexinc", "h/globexinc/first", slot="first", policy=Policy.CLEAN)


def claimed(*, shared: bool = False) -> tuple[MemoryServer, Claims, Claims]:
    """Let a tenant hold one of two accounts, and say what it is called before and after."""
    server = MemoryServer()
    for name in ("m0", "m1"):
        server.add_member(name, {SHARED: "true"} if shared else {}, {SHARED_CAPACITY: "2"} if shared else {})
    before, after = replace(BEFORE, shared=shared), replace(AFTER, shared=shared)
    run(before.start({}), server)
    return server, before, after


def moves(before: Claims, after: Claims) -> Steps[Claimed | None]:
    return move(after.wanted, before.wanted.record, before.holder)


def stopped(steps: Steps[object], server: MemoryServer, calls: int) -> bool:
    """Do so many calls of an operation, of which the last answer is lost; False if it was over before."""
    answer: Answer = None
    try:
        for _ in range(calls):
            asked = steps.send(answer)
            answer = answer_to(asked, server)
    except StopIteration:
        return False
    return True


def forecast(server: MemoryServer, claim: Claims, *previously: str) -> Sequence[ClaimForecast]:
    """Return what a preview says of a claim that had other names."""
    request = ClaimRequest(
        claim.tenant, "aws", claim.slot, shared=claim.shared, holder=claim.holder, previously=previously
    )
    keys = [key for key, _ in claim.wanted.place.values]
    snapshot = PoolSnapshot(tuple(server.members), tuple(server.records))
    moved = as_moved(snapshot, [request], keys)
    assert [*leaving(moved.records, [request])] == []
    return forecast_claims(moved, [request], keys)


def in_use(server: MemoryServer) -> list[Member]:
    return [member for member in server.members if member.tokens]


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_move_stopped_anywhere_keeps_the_account_and_is_finished_by_the_next(*, shared: bool) -> None:
    for calls in count(1):
        server, before, after = claimed(shared=shared)
        (account,) = in_use(server)
        is_stopped = stopped(moves(before, after), server, calls)

        swept = run(Sweeps().start({}), server)
        assert (swept.freed, swept.aborted) == ((), ())
        assert all("half-way" in each.problem for each in swept.findings)
        names = [
            run(read_claim(each.wanted.record, each.holder), server)
            for each in (before, after)
            if server.record(each.wanted.record) is not None
        ]
        assert names
        assert shared or all(each and each.secret_name == account.name for each in names)
        (foreseen,) = forecast(server, after, before.holder)
        assert (foreseen.kind, foreseen.member) == (ForecastKind.HELD, account.name)
        again = run(moves(before, after), server)

        (now,) = in_use(server)
        (record,) = server.records
        assert again is None or again.secret_name == account.name
        assert (now.name, now.uid, now.state, now.origin) == (account.name, account.uid, None, account.origin)
        assert record.is_carried_by(now)
        assert (record.tenant, record.slot, *record.holders) == ("globexinc", "first", after.holder)
        if not is_stopped:
            assert calls > 5
            return


@pytest.mark.parametrize("calls", range(1, 8))
def test_claim_under_the_new_name_while_it_moves_never_gets_another_account(calls: int) -> None:
    server, before, after = claimed()
    (account,) = in_use(server)
    stopped(moves(before, after), server, calls)
    other = replace(after, holder="cli")
    if server.record(after.wanted.record) is None:
        return
    joined = run(other.start({}), server)
    run(moves(before, after), server)

    assert joined.secret_name == account.name
    (record,) = server.records
    assert {*record.holders} == {"cli", after.holder}


@pytest.mark.parametrize("calls", range(1, 8))
def test_former_name_released_while_it_moves_never_frees_an_account_in_use(calls: int) -> None:
    server, before, after = claimed()
    stopped(moves(before, after), server, calls)
    run(Releases(before).start({}), server)
    for member in server.members:
        assert (member.state, member.tenant) != (None, "globexinc") or member.tokens
        assert member.tokens or member.state == State.DIRTY or member.origin is None


def test_quarantined_account_in_use_moves_and_stays_quarantined() -> None:
    server, before, after = claimed()
    (account,) = in_use(server)
    server.by_hand(account.name, {POOL_STATE: "quarantined"}, {STATE_REASON: "odd"})
    run(moves(before, after), server)
    (now,) = in_use(server)
    assert (now.state, now.tenant, now.origin) == (State.QUARANTINED, "globexinc", Origin.POOL)


def test_account_others_hold_by_the_name_is_not_moved() -> None:
    server, before, after = claimed()
    run(replace(before, holder="pulumi/org/other/prod/globex/main").start({}), server)
    was = list(server.records)
    with pytest.raises(NotAllowed, match="stack org/other/prod holds account"):
        forecast(server, after, before.holder)
    with pytest.raises(NotAllowed, match="stack org/other/prod holds account"):
        run(moves(before, after), server)
    assert list(server.records) == was


def test_name_that_has_an_account_takes_no_other() -> None:
    server, before, after = claimed()
    run(replace(after, holder="cli").start({}), server)
    with pytest.raises(Withheld, match="has account"):
        run(moves(before, after), server)
    assert len(in_use(server)) == 2


def test_claim_that_is_gone_or_of_another_holder_is_not_moved() -> None:
    server, before, after = claimed()
    assert run(moves(replace(before, holder="h/globex/other"), after), server) is None
    run(Releases(before).start({}), server)
    assert run(moves(before, after), server) is None
    assert list(server.records) == []


def test_claim_that_lost_its_account_is_not_moved() -> None:
    server, before, after = claimed()
    (account,) = in_use(server)
    server.remove_member(account.name)
    assert run(moves(before, after), server) is None
    assert [record.tenant for record in server.records] == ["globex"]


@pytest.mark.parametrize("calls", [4, 99], ids=["half-way", "at its end"])
def test_renamed_claim_of_a_lost_state_goes_over_to_the_one_that_says_so(calls: int) -> None:
    server, before, after = claimed()
    stopped(moves(before, replace(after, state="lost")), server, calls)
    assert server.record(after.wanted.record) is not None
    with pytest.raises(NotAllowed, match="another Pulumi state"):
        run(moves(before, replace(after, state="new")), server)
    wanted = replace(after.wanted, state="new", takes_over=True)
    moved = run(move(wanted, before.wanted.record, before.holder), server)

    (record,) = server.records
    assert (moved and moved.record) == record.name
    assert record.states == {after.holder: "new"}
