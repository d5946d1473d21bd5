"""What a pool does for its tenants, case by case; the numbers are those of the pools that came before it.

C: claims, E: releases, F: cleaning, H: concurrency, I: labels; S1-S8, K1-K13: races of its predecessors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from components.account_pool.core import cleaning, held_claims, protocol, sweeping
from components.account_pool.core.calls import (
    ApiRefusal,
    Call,
    Create,
    Delete,
    Found,
    Kind,
    ListPage,
    Patch,
    Refused,
    Replace,
    Yielded,
)
from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.config_map import CONFIG_MAP, POOL_UID, PoolConfigMap
from components.account_pool.core.declared import blocked_reason
from components.account_pool.core.held_claims import Amendment, Outcome
from components.account_pool.core.holders import Holder, cleaning_token
from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    INTERNAL,
    POOL_STATE,
    SHARED_CAPACITY,
    STATE_BEFORE,
    STATE_REASON,
)
from components.account_pool.core.model import ClaimRequest, Partition, Phase, Policy, State
from components.account_pool.core.records import Claimed
from components.account_pool.core.selection import MEMBERS
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import AccountUse, status_of
from components.account_pool.core.steps import list_all
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.errors import Exhausted, LimitReached, LostMember, Misconfigured, NotAllowed, Restored
from components.labels import ACCOUNT_ID, SHARED, TENANT_NAME
from tests.support.cases import tabled
from tests.support.memory_pool import (
    POOL,
    Claims,
    MemoryServer,
    Releases,
    Sweeps,
    answer_to,
    decides,
    is_free,
    run,
)
from tests.support.paused import Paused
from tests.support.pool import server_of

A, A2, B = Claims("a", "h1"), Claims("a", "h2"), Claims("b", "h3")
EU, NOT_EU = (Partition.of("aws", values, ["eu-access"]) for values in ({"eu-access": "true"}, {}))


def claim(server: MemoryServer, wanted: Claims = A, **changes: Any) -> Claimed:
    return run(protocol.claim(replace(wanted.wanted, **changes)), server)


def release(server: MemoryServer, wanted: Claims = A) -> Any:
    return run(Releases(wanted).start({}), server)


def token_of(cleaner: str, pid: str) -> str:
    return cleaning_token(cleaner, pid, Holder("host", "boot", "spaces", pid, "1"))


def labels_of(server: MemoryServer) -> list[Any]:
    return [(member.name, dict(member.labels), dict(member.annotations)) for member in server.members]


def cleaned(server: MemoryServer, failing: dict[str, str] | None = None) -> dict[str, Wiped]:
    outcomes: dict[str, Wiped] = {}
    for listed in run(cleaning.survey("k", look=lambda holder: holder.pid != "1"), server)[0]:
        member = run(cleaning.begin(listed, "k/1"), server)
        reason = (failing or {}).get(listed.name)
        settle = cleaning.succeed(member, "k/1") if reason is None else cleaning.fail(member, "k/1", reason)
        outcomes[listed.name] = run(settle, server)
    return outcomes


# C: claims.


def test_an_eu_request_gets_the_eu_account_and_any_other_the_other() -> None:
    server = server_of(eu={TENANT_NAME: "a", "eu-access": "true"}, plain={TENANT_NAME: "a"})
    assert claim(server, place=EU).secret_name == "eu"
    assert claim(server, place=NOT_EU).secret_name == "plain"


def test_shared_accounts_fill_evenly_and_get_no_owner() -> None:
    server = MemoryServer()
    for name in ("s0", "s1", "s2"):
        server.add_member(name, {SHARED: "true"}, {SHARED_CAPACITY: "2"})
    used = [claim(server, Claims(f"t{n}", "h", slot="x", shared=True)).secret_name for n in range(6)]
    assert sorted(used[:3]) == sorted(used[3:]) == ["s0", "s1", "s2"]
    assert {member.tenant for member in server.members} == {None}


def test_of_a_type_the_pool_has_none_of_it_is_exhausted_and_says_so() -> None:
    with pytest.raises(Exhausted, match=r"no free gcp account .*: the pool has no account of this type;"):
        claim(server_of("m0"), place=Partition("gcp"))


def test_an_exhausted_pool_says_how_many_stand_how_and_changes_nothing() -> None:
    server = server_of("m0")
    claim(server, B)
    server.add_member("dirty", {POOL_STATE: "dirty"})
    server.add_member("away", {POOL_STATE: "quarantined"})
    before = labels_of(server)
    with pytest.raises(Exhausted, match="1 owned, 1 dirty, 0 cleaning, 1 quarantined; nothing was claimed"):
        claim(server)
    assert labels_of(server) == before
    assert len(list(server.records)) == 1


def test_an_unusable_account_is_named_when_no_other_is_free() -> None:
    server = server_of(odd={POOL_STATE: "foo"})
    with pytest.raises(Misconfigured, match=r"Secret odd: .*'foo' is not known"):
        claim(server)


def test_an_internal_account_is_never_handed_out_but_its_tenant_may_claim_it() -> None:
    server = server_of(kept={INTERNAL: "true"})
    with pytest.raises(Exhausted):
        claim(server)
    server.by_hand("kept", {TENANT_NAME: "a"})
    assert claim(server).secret_name == "kept"


def test_the_limit_is_never_exceeded_and_a_new_slot_is_a_way_out() -> None:
    server = server_of("m0", "m1")
    claim(server, Claims("a", "h1", limit=1))
    with pytest.raises(LimitReached, match="with 1 of 1 consumers"):
        claim(server, A2)
    assert claim(server, Claims("a", "h2", slot="1")).secret_name != claim(server).secret_name


def test_an_account_of_ones_own_comes_before_one_from_the_pool() -> None:
    server = server_of("m0", own={TENANT_NAME: "a"})
    assert claim(server).secret_name == "own"


def test_a_claim_of_many_members_takes_one_beyond_the_first_page() -> None:
    server = server_of(*(f"m{n:04}" for n in range(1100)))
    for n in range(1000):
        server.by_hand(f"m{n:04}", {}, {CLAIM_TOKEN: "claim-x.uid.1"})
    assert claim(server).secret_name >= "m1000"


def test_an_expired_page_starts_the_list_over() -> None:
    server = server_of(*(f"m{n:04}" for n in range(600)))
    steps = list_all(Kind.MEMBER, MEMBERS)
    asked = steps.send(None)
    asked = steps.send(answer_to(asked, server))
    assert isinstance(asked, ListPage)
    assert asked.cursor
    server.expire_cursors()
    assert len(go_on(server, steps, asked)) == 600


# H: lost races and lost members.


def paused_before(kind: type[Call], server: MemoryServer, steps: Any) -> Any:
    """Run until it is about to make a call of this kind; answer that call."""
    asked = steps.send(None)
    while not isinstance(asked, kind):
        asked = steps.send(answer_to(asked, server))
    return asked


def go_on(server: MemoryServer, steps: Any, asked: Any) -> Any:
    """Run to the end from a call it was paused at."""
    try:
        while True:
            asked = steps.send(answer_to(asked, server))
    except StopIteration as end:
        return end.value


@pytest.mark.parametrize("change", ["relabelled", "deleted"])
def test_an_account_taken_away_between_list_and_write_leads_to_the_next(change: str) -> None:
    server = server_of("m0", "m1")
    steps = protocol.claim(A.wanted)
    asked = paused_before(Patch, server, steps)
    assert isinstance(asked, Patch)
    if change == "deleted":
        server.remove_member(asked.name)
    else:
        server.by_hand(asked.name, {TENANT_NAME: "thief"})
    claimed = go_on(server, steps, asked)
    assert claimed.secret_name != asked.name
    assert server.member(claimed.secret_name).tenant == "a"


def test_a_release_between_two_claims_never_makes_a_held_account_dirty() -> None:
    server = server_of("m0")
    other = Claims("a", "h2", policy=Policy.CLEAN)
    claim(server, other)
    claim(server, A)
    release(server, other)
    assert server.member("m0").state is None
    assert run(held_claims.read_claim(A.wanted.record, "h1"), server) is not None


def test_a_deleted_account_is_lost_and_never_replaced_silently() -> None:
    server = server_of("m0", "m1")
    claimed = claim(server)
    server.remove_member(claimed.secret_name)
    with pytest.raises(LostMember):
        claim(server)
    with pytest.raises(LostMember):
        run(held_claims.read_claim(claimed.record, "h1"), server)
    assert release(server).outcome is Outcome.RELEASED
    assert claim(server).secret_name != claimed.secret_name


def test_a_relabelled_account_is_lost_to_one_and_after_its_release_the_others() -> None:
    server = server_of("m0")
    claim(server)
    server.by_hand("m0", {TENANT_NAME: "b"})
    with pytest.raises(LostMember, match="owned by b"):
        claim(server)
    with pytest.raises(Exhausted):
        claim(server, B)
    release(server)
    assert claim(server, B).secret_name == "m0"


def test_a_stripped_label_is_healed_by_the_next_claim_of_its_tenant() -> None:
    server = server_of("m0")
    claim(server)
    server.by_hand("m0", {TENANT_NAME: None})
    assert claim(server).secret_name == "m0"
    assert server.member("m0").tenant == "a"


def test_a_quarantined_account_stays_with_its_holders_and_takes_no_new_ones() -> None:
    server = server_of("m0")
    claim(server)
    run(decides("quarantine", "m0", "leaked key"), server)
    assert claim(server).secret_name == "m0"
    with pytest.raises(NotAllowed, match="leaked key"):
        claim(server, A2)


# Update.


def test_an_update_changes_policy_limit_and_holder_and_keeps_the_account() -> None:
    server = server_of("m0")
    claimed = claim(server)
    amended = Amendment("h9", Policy.RETAIN, 3)
    updated = run(held_claims.update(claimed.record, "h1", amended, POOL), server)
    assert (updated.secret_name, updated.holder, updated.policy, updated.limit) == (
        "m0",
        "h9",
        Policy.RETAIN,
        3,
    )
    assert run(held_claims.read_claim(claimed.record, "h1"), server) is None


@pytest.mark.parametrize("before", Policy)
@pytest.mark.parametrize("after", Policy)
def test_an_account_whose_record_is_lost_is_left_as_the_policy_says_that_it_has_now(
    before: Policy, after: Policy
) -> None:
    def left(policy: Policy, then: Policy) -> object:
        server = server_of("m0")
        claimed = claim(server, replace(A, policy=policy))
        run(held_claims.update(claimed.record, "h1", Amendment("h1", then, None), POOL), server)
        server.remove(Kind.RECORD, claimed.record)
        run(Sweeps().start({}), server)
        member = server.member("m0")
        return member.tenant, member.state, member.origin

    # What is in use when it is changed to `release` was used under another policy: it is left by that one.
    expected = before if after is Policy.RELEASE else after
    assert left(before, after) == left(expected, expected)


def test_an_update_that_ends_between_its_writes_leaves_no_account_free_that_is_to_be_cleaned() -> None:
    server = server_of("m0")
    claimed = claim(server)
    steps = held_claims.update(claimed.record, "h1", Amendment("h1", Policy.CLEAN, None), POOL)
    Paused(steps, server).until(Replace)
    server.remove(Kind.RECORD, claimed.record)
    run(Sweeps().start({}), server)
    assert server.member("m0").state == State.DIRTY


def test_an_update_does_not_change_what_the_holder_must_show_at_its_release() -> None:
    server = server_of("m0")
    claimed = claim(server)
    run(held_claims.update(claimed.record, "h1", Amendment("h1", Policy.RETAIN, None), POOL), server)
    steps = held_claims.release(claimed.record, "h1", POOL, claimed.fence)
    assert run(steps, server).outcome is Outcome.RELEASED


def test_a_limit_below_the_number_of_holders_is_refused_and_nothing_changes() -> None:
    server = server_of("m0")
    claim(server)
    claimed = claim(server, A2)
    with pytest.raises(LimitReached):
        run(held_claims.update(claimed.record, "h1", Amendment("h1", Policy.RELEASE, 1), POOL), server)
    assert run(held_claims.read_claim(claimed.record, "h1"), server).limit is None


# E: releases.


@tabled("policy, tenant, state")
def test_the_last_release_leaves_the_account_as_the_policy_says(
    policy: str, tenant: str | None, state: str | None
) -> None:
    server = server_of("m0")
    claim(server, policy=Policy(policy))
    assert release(server).last
    member = server.member("m0")
    assert (member.tenant, member.state, member.token) == (tenant, state, None)
    assert list(server.records) == []


@pytest.mark.parametrize("policy", list(Policy))
def test_a_shared_account_and_one_of_the_tenants_own_only_lose_the_claim(policy: Policy) -> None:
    server = server_of(own={TENANT_NAME: "a"})
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "1"})
    sharing = Claims("a", "h1", slot="x", shared=True, policy=policy)
    claim(server, policy=policy)
    claim(server, sharing)
    release(server)
    release(server, sharing)
    own, shared = server.member("own"), server.member("s0")
    assert (own.tenant, own.state, own.tokens) == ("a", None, ())
    assert (shared.tenant, shared.state, shared.tokens) == (None, None, ())


def test_a_fence_of_before_lets_a_holder_keep_what_it_claimed_since() -> None:
    server = server_of("m0")
    old = claim(server)
    claim(server)
    assert run(held_claims.release(old.record, "h1", POOL, old.fence), server).outcome is Outcome.OVERTAKEN


# F: cleaning.


def test_a_cleaned_account_is_free_and_keeps_its_other_labels() -> None:
    server = server_of(m0={"region": "eu-1"})
    claim(server, policy=Policy.CLEAN)
    release(server)
    assert cleaned(server) == {"m0": Wiped.CLEANED}
    assert is_free(server.member("m0"))
    assert server.member("m0").labels["region"] == "eu-1"
    assert not {CLAIM_ORIGIN, CLEANING_TOKEN} & server.member("m0").annotations.keys()


def test_one_account_that_cannot_be_cleaned_is_quarantined_and_stops_no_other() -> None:
    server = server_of(m0={POOL_STATE: "dirty"}, m1={POOL_STATE: "dirty"})
    assert cleaned(server, {"m0": "no cleaner for aws"}) == {"m0": Wiped.QUARANTINED, "m1": Wiped.CLEANED}
    assert blocked_reason(server.member("m0"), POOL) is None
    assert server.member("m0").state == "quarantined"
    assert is_free(server.member("m1"))


def test_an_account_its_tenant_brought_stays_its_tenants_when_cleaned() -> None:
    server = server_of(own={TENANT_NAME: "a", POOL_STATE: "dirty"})
    cleaned(server)
    assert (server.member("own").tenant, server.member("own").state) == ("a", None)


@pytest.mark.parametrize("cleaner", ["other", "kk"])
def test_another_cleaners_work_is_left_alone(cleaner: str) -> None:
    server = MemoryServer()
    server.add_member("m0", {POOL_STATE: "cleaning"}, {CLEANING_TOKEN: token_of(cleaner, "1")})
    assert cleaned(server) == {}


def test_a_cleaner_goes_on_with_what_its_crashed_run_left_and_with_nothing_else() -> None:
    server = MemoryServer()
    for pid in ("1", "2"):
        server.add_member(f"m{pid}", {POOL_STATE: "cleaning"}, {CLEANING_TOKEN: token_of("k", pid)})
    server.add_member("m3", {POOL_STATE: "cleaning"}, {CLEANING_TOKEN: "k/of-an-earlier-version"})
    assert cleaned(server) == {"m1": Wiped.CLEANED}
    assert is_free(server.member("m1"))
    _, left = run(cleaning.survey("k", frozenset(), lambda _: True), server)
    assert {each.name: why for each, why, _ in left} == {"m2": Wiped.RUNNING, "m3": Wiped.UNSEEN}
    taken = run(cleaning.survey("k", frozenset({"m2", "m3"}), lambda _: True), server)[0]
    assert [each.name for each in taken] == ["m3"]


# Operators.


@pytest.mark.parametrize(("policy", "state"), [(Policy.QUARANTINE, "dirty"), (None, None)])
def test_an_account_comes_back_to_the_cleaner_if_a_tenant_had_it_and_into_use_if_not(
    policy: Policy | None, state: str | None
) -> None:
    server = server_of("m0")
    if policy is None:
        run(decides("quarantine", "m0", "to be looked at"), server)
    else:
        claim(server, policy=policy)
        release(server)
    assert run(decides("unquarantine", "m0"), server).state == state


@pytest.mark.parametrize("labels", [{}, {TENANT_NAME: "a"}], ids=["nobody's", "its tenant's own"])
@pytest.mark.parametrize("state", ["dirty", "cleaning", "unknown"])
def test_an_account_that_was_not_clean_is_not_clean_after_a_quarantine(
    labels: dict[str, str], state: str
) -> None:
    server = MemoryServer()
    wiped = {CLEANING_TOKEN: token_of("k", "1")}
    server.add_member("m0", {**labels, POOL_STATE: state}, wiped)
    run(decides("quarantine", "m0", "odd bills"), server)
    run(decides("quarantine", "m0", "odder bills"), server)
    assert server.member("m0").state == "quarantined"
    back = run(decides("unquarantine", "m0"), server)
    assert (back.state, dict(back.annotations)) == ("dirty", wiped)
    with pytest.raises(Exhausted):
        claim(server)
    assert cleaned(server) == {"m0": Wiped.CLEANED}
    run(decides("quarantine", "m0", "looked at once more"), server)
    assert run(decides("unquarantine", "m0"), server).state is None


@pytest.mark.parametrize("is_of_before", [False, True], ids=["remembered", "given up before that"])
def test_a_decommissioned_account_comes_back_only_when_that_is_meant_and_is_cleaned(
    *, is_of_before: bool
) -> None:
    server = server_of("m0")
    given_up = run(decides("decommission", "m0"), server)
    assert given_up.annotations[STATE_REASON] == "decommissioned by an operator; never used again"
    if is_of_before:
        server.by_hand("m0", {}, {STATE_BEFORE: None})
    else:
        run(decides("quarantine", "m0", "found again"), server)
    before = labels_of(server)
    with pytest.raises(NotAllowed, match="it was decommissioned") as refused:
        run(decides("unquarantine", "m0"), server)
    assert "--decommissioned" in refused.value.fix
    assert labels_of(server) == before
    assert run(decides("unquarantine", "m0", decommissioned=True), server).state == "dirty"


def test_an_account_given_up_long_ago_stays_so_when_it_is_quarantined_again() -> None:
    server = server_of("m0")
    run(decides("decommission", "m0"), server)
    server.by_hand("m0", {}, {STATE_BEFORE: None})
    run(decides("quarantine", "m0", "found again"), server)
    with pytest.raises(NotAllowed, match="it was decommissioned"):
        run(decides("unquarantine", "m0"), server)


def test_what_is_not_quarantined_cannot_come_back() -> None:
    with pytest.raises(NotAllowed, match="not quarantined"):
        run(decides("unquarantine", "m0"), server_of("m0"))


DECISIONS: dict[str, tuple[dict[str, str], Callable[[], Any], str | None]] = {
    "quarantine": ({}, lambda: decides("quarantine", "m0", "odd"), "quarantined"),
    "unquarantine": ({POOL_STATE: "quarantined"}, lambda: decides("unquarantine", "m0"), None),
    "decommission": ({}, lambda: decides("decommission", "m0"), "quarantined"),
    "mark dirty": ({}, lambda: decides("mark_dirty", "m0", "used"), "dirty"),
    "return": ({TENANT_NAME: "a"}, lambda: decides("take_back", "m0"), "dirty"),
}


@pytest.mark.parametrize("meanwhile", ["nothing", "a cleaner began, or a tenant claimed"])
@pytest.mark.parametrize(("labels", "decide", "state"), DECISIONS.values(), ids=DECISIONS.keys())
def test_a_decision_whose_answer_was_lost_was_made(
    labels: dict[str, str], decide: Callable[[], Any], state: str | None, meanwhile: str
) -> None:
    server = MemoryServer()
    server.add_member("m0", labels)
    deciding = Paused(decide(), server).until(Patch)
    deciding.go_on(lost=True)
    if meanwhile != "nothing" and state == "dirty":
        [dirty] = run(cleaning.survey("k"), server)[0]
        run(cleaning.begin(dirty, "k/1"), server)
        state = "cleaning"
    if meanwhile != "nothing" and state is None:
        claim(server)
    assert deciding.end().state == state
    assert server.member("m0").state == state


def test_an_account_that_does_not_exist_is_named() -> None:
    with pytest.raises(Misconfigured, match="Secret nobody"):
        run(decides("quarantine", "nobody", "why"), server_of("m0"))


def test_a_decommissioned_account_may_be_removed_and_a_claimed_one_may_not_be_decommissioned() -> None:
    server = server_of("m1", m0={POOL_STATE: "dirty"})
    assert blocked_reason(server.member("m0"), POOL)
    assert blocked_reason(run(decides("decommission", "m0"), server), POOL) is None
    claim(server)
    with pytest.raises(NotAllowed):
        run(decides("decommission", "m1"), server)


def retained(server: MemoryServer) -> MemoryServer:
    claim(server, policy=Policy.RETAIN)
    release(server)
    assert (server.member("m0").tenant, server.member("m0").state) == ("a", None)
    return server


@tabled("policy, owner, state")
def test_a_retained_account_ends_its_next_claim_as_the_policy_of_that_claim_says(
    policy: str, owner: str | None, state: str | None
) -> None:
    server = retained(server_of("m0"))
    claim(server, policy=Policy(policy))
    release(server)
    assert (server.member("m0").tenant, server.member("m0").state) == (owner, state)


def given_back_in_vain(server: MemoryServer, policy: Policy) -> None:
    slow = Paused(protocol.claim(replace(A.wanted, policy=policy)), server).until(Patch)
    run(Sweeps().start({}), server)
    slow.go_on().until(Create)  # C3, C5, C7: the token was dead when it came onto the account


def left_for_a_sweep(server: MemoryServer, policy: Policy) -> None:
    slow = Paused(protocol.claim(replace(A.wanted, policy=policy)), server).until(Patch)
    run(Sweeps().start({}), server)
    slow.go_on()
    run(Sweeps().start({}), server)


def begun(server: MemoryServer, policy: Policy) -> None:
    Paused(protocol.claim(replace(A.wanted, policy=policy)), server).until(Replace)


def aborted(server: MemoryServer, policy: Policy) -> None:
    begun(server, policy)
    run(Sweeps().start({}), server)


def released_while_pending(server: MemoryServer, policy: Policy) -> None:
    begun(server, policy)
    release(server)


def recorded_no_more(server: MemoryServer, policy: Policy) -> None:
    claim(server, policy=policy)
    server.remove(Kind.RECORD, A.wanted.record)
    run(Sweeps().start({}), server)


@pytest.mark.parametrize(
    "ends_unbound",
    [given_back_in_vain, left_for_a_sweep, aborted, released_while_pending, recorded_no_more],
    ids=lambda ends: ends.__name__,
)
@pytest.mark.parametrize("policy", list(Policy))
def test_a_retained_account_stays_so_until_a_claim_of_it_was_bound_and_released(
    policy: Policy, ends_unbound: Callable[[MemoryServer, Policy], None]
) -> None:
    server = retained(server_of("m0"))
    before = labels_of(server)
    ends_unbound(server, policy)
    assert [*server.records] == []
    assert labels_of(server) == before


@pytest.mark.parametrize("policy", list(Policy))
def test_a_claim_of_a_retained_account_that_a_former_version_began_is_understood(policy: Policy) -> None:
    server = retained(server_of("m0"))
    claim(server, policy=policy)
    server.by_hand("m0", {}, {CLAIM_ORIGIN: "pool"})
    release(server)
    left = {Policy.RELEASE: (None, None), Policy.RETAIN: ("a", None), Policy.CLEAN: ("a", "dirty")}
    member = server.member("m0")
    assert (member.tenant, member.state) == left.get(policy, ("a", "quarantined"))


@pytest.mark.parametrize("meanwhile", ["nothing", "quarantined", "marked dirty"])
def test_a_retained_account_is_returned_by_way_of_the_cleaner_and_is_anybodys_then(meanwhile: str) -> None:
    server = retained(server_of("m0"))
    if meanwhile == "quarantined":
        run(decides("quarantine", "m0", "odd bills"), server)
    if meanwhile == "marked dirty":
        run(decides("mark_dirty", "m0", "used by hand"), server)
    run(decides("take_back", "m0"), server)
    if meanwhile == "quarantined":
        run(decides("unquarantine", "m0"), server)
    for tenant in ("a", "b"):
        with pytest.raises(Exhausted):
            claim(server, Claims(tenant, "h1"))
    assert cleaned(server) == {"m0": Wiped.CLEANED}
    assert is_free(server.member("m0"))
    assert claim(server, B).secret_name == "m0"


def test_a_retained_account_that_was_only_quarantined_or_cleaned_stays_with_its_tenant() -> None:
    server = retained(server_of("m0"))
    run(decides("quarantine", "m0", "odd bills"), server)
    assert run(decides("unquarantine", "m0"), server).state is None
    run(decides("mark_dirty", "m0", "used by hand"), server)
    assert cleaned(server) == {"m0": Wiped.CLEANED}
    assert (server.member("m0").tenant, server.member("m0").origin) == ("a", "retained")


@tabled("labels, annotations, problem")
def test_what_is_no_retained_account_is_not_returned(
    labels: dict[str, str], annotations: dict[str, str], problem: str
) -> None:
    server = MemoryServer()
    server.add_member("m0", labels, annotations)
    before = labels_of(server)
    with pytest.raises(NotAllowed, match=problem):
        run(decides("take_back", "m0"), server)
    assert labels_of(server) == before


def test_an_account_that_is_marked_dirty_is_claimed_by_nobody_before_it_was_cleaned() -> None:
    server = server_of("m0")
    marked = run(decides("mark_dirty", "m0", "used by hand"), server)
    assert (marked.state, marked.annotations[STATE_REASON]) == ("dirty", "used by hand")
    with pytest.raises(Exhausted):
        claim(server)
    assert cleaned(server) == {"m0": Wiped.CLEANED}
    assert is_free(server.member("m0"))
    claim(server)
    with pytest.raises(NotAllowed, match="it is claimed"):
        run(decides("mark_dirty", "m0", "used by hand"), server)


def test_an_account_given_up_is_not_marked_dirty() -> None:
    server = server_of("m0")
    run(decides("decommission", "m0"), server)
    with pytest.raises(NotAllowed, match="it was decommissioned"):
        run(decides("mark_dirty", "m0", "used by hand"), server)
    assert server.member("m0").state == "quarantined"


# Sweep, recovery, status.


def sweep(server: MemoryServer, *, most: int = 5, write: bool = True) -> sweeping.SweepReport:
    pending = run(sweeping.pending_records(), server)
    return run(sweeping.sweep(POOL, PoolConfigMap(), most=most, write=write, pending=pending), server)


def forget(server: MemoryServer, claimed: Claimed) -> None:
    """Delete a record by hand, as nobody should."""
    server.remove(Kind.RECORD, claimed.record)


def test_an_account_whose_claim_is_gone_is_found_and_freed_by_its_own_policy() -> None:
    server = server_of("m0")
    forget(server, claim(server, policy=Policy.CLEAN))
    assert [*sweep(server, write=False).withheld] == ["m0"]
    assert server.member("m0").token is not None
    assert [*sweep(server).freed] == ["m0"]
    assert server.member("m0").state == "dirty"


def test_a_sweep_that_finds_more_than_it_may_free_frees_none() -> None:
    server = server_of(*(f"m{n}" for n in range(6)))
    for n in range(6):
        forget(server, claim(server, Claims(f"t{n}", "h")))
    report = sweep(server)
    assert (len(report.withheld), report.freed) == (6, ())
    assert all(member.tokens for member in server.members)
    assert len(sweep(server, most=6).freed) == 6


def test_a_relabelled_orphan_keeps_the_label_an_operator_gave_it() -> None:
    server = server_of("m0")
    forget(server, claim(server))
    server.by_hand("m0", {TENANT_NAME: "b"})
    sweep(server)
    assert (server.member("m0").tenant, server.member("m0").token) == ("b", None)


def test_a_record_nobody_can_read_is_reported_and_its_account_is_not_judged() -> None:
    server = server_of("m0")
    claimed = claim(server)
    body = server.get(Kind.RECORD, claimed.record)
    assert isinstance(body, Found)
    server.replace(Kind.RECORD, {**body.body, "data": {"phase": "?"}})
    report = sweep(server)
    assert report.freed == ()
    assert any(claimed.record in finding.place for finding in report.findings)


@tabled("ids")
def test_two_accounts_with_one_id_and_a_lost_account_are_reported(ids: list[str]) -> None:
    server = MemoryServer()
    for name, account_id in zip(("m0", "m1"), ids, strict=True):
        server.add_member(name, annotations={ACCOUNT_ID: account_id})
    claimed = claim(server)
    server.by_hand(claimed.secret_name, {TENANT_NAME: "b"})
    findings = sweep(server).findings
    assert any("m0, m1 are one account" in finding.problem for finding in findings)
    assert any(f"account {claimed.secret_name} does not carry it" in finding.problem for finding in findings)


def test_a_claim_that_may_write_to_no_account_leaves_no_record_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = server_of("m0")

    def patch(_kind: Kind, _name: str, _body: object) -> Refused:
        return Refused(ApiRefusal.FORBIDDEN, "not you")

    monkeypatch.setattr(server, "patch", patch)
    with pytest.raises(NotAllowed):
        claim(server)
    assert [*server.records] == []


def restore(server: MemoryServer, claimed: Claimed) -> None:
    """Delete a record and create it again with the same text, as a restored backup has it."""
    found = server.get(Kind.RECORD, claimed.record)
    assert isinstance(found, Found)
    server.remove(Kind.RECORD, claimed.record)
    server.create(Kind.RECORD, found.body)


@pytest.mark.parametrize("shared", [False, True])
def test_recovery_binds_a_restored_claim_and_old_fences_still_release_it(*, shared: bool) -> None:
    server = server_of("m0")
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "1"})
    wanted = Claims("a", "h1", slot="x", shared=shared)
    claimed = claim(server, wanted)
    restore(server, claimed)
    with pytest.raises(LostMember):
        run(held_claims.read_claim(claimed.record, "h1"), server)
    assert run(sweeping.recover(POOL, dry_run=True), server).rebound == (claimed.record,)
    assert run(sweeping.recover(POOL, dry_run=False), server).rebound == (claimed.record,)
    assert run(sweeping.recover(POOL, dry_run=False), server).intact == (claimed.record,)
    assert run(held_claims.read_claim(claimed.record, "h1"), server).secret_name == claimed.secret_name
    released = run(held_claims.release(claimed.record, "h1", POOL, claimed.fence), server)
    assert released.outcome is Outcome.RELEASED


def test_recovery_leaves_an_account_that_a_living_claim_of_its_tenant_is_on() -> None:
    server = server_of("m0", "m1")
    living = claim(server, Claims("a", "h1", slot="x"))
    other = claim(server, Claims("a", "h2", slot="y"))
    found = server.get(Kind.RECORD, other.record)
    assert isinstance(found, Found)
    server.remove(Kind.RECORD, other.record)
    named = {"member": living.secret_name, "memberUid": living.member_uid}
    server.create(Kind.RECORD, {**found.body, "data": {**found.body["data"], **named}})
    token = server.member(living.secret_name).annotations[CLAIM_TOKEN]
    report = run(sweeping.recover(POOL, dry_run=False), server)
    assert (report.intact, report.lost) == ((living.record,), (other.record,))
    assert server.member(living.secret_name).annotations[CLAIM_TOKEN] == token


def test_a_recovery_that_only_tells_leaves_the_settings_as_they_were_restored() -> None:
    server = server_of("m0")
    restored = {**PoolConfigMap().render(), POOL_UID: "of-before"}
    server.create(Kind.RECORD, {"metadata": {"name": CONFIG_MAP}, "data": restored})
    written = []
    for dry_run in (True, False):
        run(sweeping.recover(POOL, dry_run=dry_run), server)
        found = server.get(Kind.RECORD, CONFIG_MAP)
        assert isinstance(found, Found)
        written.append(found.body["data"] != restored)
    assert written == [False, True]


def test_recovery_leaves_an_account_that_is_somebody_elses_now() -> None:
    server = server_of("m0")
    claimed = claim(server)
    restore(server, claimed)
    server.by_hand("m0", {TENANT_NAME: "b"})
    assert run(sweeping.recover(POOL, dry_run=False), server).lost == (claimed.record,)
    assert server.member("m0").tenant == "b"


@pytest.mark.parametrize("shared", [False, True])
def test_a_sweep_leaves_an_account_in_use_whose_claim_came_back_from_a_backup(*, shared: bool) -> None:
    server = server_of("m0")
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "1"})
    claimed = claim(server, Claims("a", "h1", slot="x", shared=shared, policy=Policy.CLEAN))
    restore(server, claimed)
    before = labels_of(server)
    report = sweep(server)
    assert labels_of(server) == before
    assert (report.freed, report.withheld) == ((), ())
    assert [(each.place, each.fix) for each in report.findings] == [
        (
            f"claim {claimed.record}",
            f"run `credfleet pool recover --namespace {POOL}`, which binds them again",
        )
    ]
    assert run(sweeping.recover(POOL, dry_run=False), server).rebound == (claimed.record,)
    assert sweep(server) == sweeping.SweepReport()


def test_a_claim_that_came_back_from_before_it_was_bound_keeps_no_account() -> None:
    server = server_of("m0")
    record = server.record(claim(server).record)
    assert record is not None
    server.remove(Kind.RECORD, record.name)
    server.create(Kind.RECORD, replace(record, phase=Phase.PENDING).render(POOL))
    assert [*sweep(server).freed] == ["m0"]


@pytest.mark.parametrize("slot", ["0", "1"], ids=["the same slot", "another slot"])
def test_a_claim_leaves_an_account_in_use_whose_claim_came_back_from_a_backup(slot: str) -> None:
    server = server_of("m0")
    restore(server, claim(server, Claims("a", "h1")))
    before = labels_of(server)
    request = ClaimRequest(tenant="a", type="aws", slot=slot, holder="h2")
    (expected,) = forecast_claims(PoolSnapshot(tuple(server.members), tuple(server.records)), [request], ())
    with pytest.raises(Restored, match="account m0: its claim came back from a backup"):
        claim(server, Claims("a", "h2", slot=slot))
    assert labels_of(server) == before
    assert expected.kind is ForecastKind.REFUSED


def test_a_claim_in_progress_leaves_an_account_in_use_whose_claim_came_back_from_a_backup() -> None:
    server = server_of("m0")
    server.add_member("m1", {TENANT_NAME: "a"})
    steps = protocol.claim(replace(Claims("a", "h2", slot="1").wanted, only="m1"))
    asked = paused_before(Patch, server, steps)
    restore(server, claim(server, Claims("a", "h1", policy=Policy.CLEAN)))
    before = labels_of(server)
    with pytest.raises(Restored):
        go_on(server, steps, asked)
    assert labels_of(server) == before


def test_status_tells_each_account_once_and_counts_zeros() -> None:
    server = server_of("free", "taken")
    server.add_member("own", {TENANT_NAME: "b"})
    server.add_member("odd", {POOL_STATE: "foo"})
    server.add_member("kept", {INTERNAL: "true"})
    claim(server, only="taken")
    status = status_of(PoolSnapshot(tuple(server.members), tuple(server.records)), PoolConfigMap())
    assert {account.secret_name: account.standing for account in status.accounts} == {
        "free": AccountUse.FREE,
        "kept": AccountUse.INTERNAL,
        "odd": AccountUse.MISCONFIGURED,
        "own": AccountUse.OWNED,
        "taken": AccountUse.CLAIMED,
    }
    ((key, counts),) = status.counts.items()
    assert key == ("aws", "hyperscaler-type=aws")
    assert counts == {**dict.fromkeys(AccountUse, 0), AccountUse.FREE: 1, AccountUse.INTERNAL: 1} | {
        AccountUse.MISCONFIGURED: 1,
        AccountUse.OWNED: 1,
        AccountUse.CLAIMED: 1,
    }
    taken = next(account for account in status.accounts if account.secret_name == "taken")
    assert (taken.tenant, taken.slot, taken.holders) == ("a", "0", ("h1",))


def test_every_write_to_a_member_names_the_version_it_changes() -> None:
    """A merge patch without one silently overwrites an owner."""
    server = server_of("m0")
    seen: list[Yielded] = []
    for steps in (protocol.claim(A.wanted), Releases(A).start({})):
        asked = steps.send(None)
        try:
            while True:
                seen.append(asked)
                asked = steps.send(answer_to(asked, server))
        except StopIteration:
            continue
    writes = [call for call in seen if isinstance(call, Patch | Delete)]
    versions = [
        call.resource_version if isinstance(call, Delete) else call.body["metadata"]["resourceVersion"]
        for call in writes
    ]
    assert len(versions) == 3
    assert all(versions)
