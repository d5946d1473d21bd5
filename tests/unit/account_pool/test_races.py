"""Single races, each in the one order in which a missing look would give an account away or tell a wrong end.

What `test_explorer.py` finds among all orders is shown here in milliseconds.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.account_pool.core import changes, cleaning, held_claims, protocol
from components.account_pool.core.calls import Create, Found, Kind, ListPage, Parallel, Patch, Replace, Steps
from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import CLAIM_TOKEN, POOL_STATE
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.records import Claimed
from components.account_pool.core.sweeping import SweepReport, sweep
from components.account_pool.core.tokens import Token
from components.errors import Exhausted, LimitReached, Restored
from components.labels import TENANT_NAME
from tests.support.memory_pool import POOL, Claims, MemoryServer, Releases, Sweeps, is_free, run
from tests.support.paused import Paused
from tests.support.pool import server_of

A, A2, B = Claims("a", "h1"), Claims("a", "h2"), Claims("b", "h4")


@pytest.fixture
def server() -> MemoryServer:
    return server_of("m0")


def only(claim: Claims, member: str) -> ClaimRequest:
    return replace(claim.wanted, only=member)


def claim(server: MemoryServer, wanted: ClaimRequest) -> Claimed:
    return run(protocol.claim(wanted), server)


def paused(server: MemoryServer, wanted: ClaimRequest) -> Paused:
    return Paused(protocol.claim(wanted), server)


def swept() -> Steps[SweepReport]:
    return sweep(POOL, PoolConfigMap(), most=5, write=True, pending={})


def test_who_finds_nothing_looks_whether_a_helper_took_the_last_account_for_this_claim(
    server: MemoryServer,
) -> None:
    claim(server, B.wanted)
    slow = paused(server, A2.wanted).until(ListPage).go_on()  # its own: none
    run(Releases(B).start({}), server)
    claim(server, A.wanted)
    assert slow.end().secret_name == "m0"


def test_who_took_an_account_for_a_claim_that_was_ended_gives_it_back(server: MemoryServer) -> None:
    slow = paused(server, A.wanted).until(Patch)
    run(Sweeps().start({}), server)
    server.add_member("m1")
    claim(server, only(A2, "m1"))
    assert slow.end().secret_name == "m1"
    assert is_free(server.member("m0"))


def test_who_helps_a_claim_that_was_bound_and_came_back_from_a_backup_leaves_its_account(
    server: MemoryServer,
) -> None:
    first = paused(server, A.wanted).until(Replace)
    helper = paused(server, A2.wanted).until(Replace)
    first.end()
    server.restore()
    before = server.member("m0")
    with pytest.raises(Restored):
        helper.end()
    assert server.member("m0") == before


def test_a_claim_that_is_ended_and_made_anew_between_two_looks_came_back_from_no_backup(
    server: MemoryServer,
) -> None:
    slow = paused(server, A2.wanted).go_on()  # no record
    claim(server, A.wanted)
    slow.until(Parallel).go_on()  # the tenant's own: its account, by the first claim
    run(Releases(A).start({}), server)
    claim(server, A.wanted)
    assert slow.end().secret_name == "m0"


def test_an_account_whose_claim_is_made_anew_between_two_looks_came_back_from_no_backup(
    server: MemoryServer,
) -> None:
    server.add_member("m1")
    slow = paused(server, only(A2, "m0")).until(Patch)
    other = replace(A, slot="1")
    claim(server, only(other, "m0"))
    slow.go_on().go_on()  # it is taken: by the first claim of another slot
    run(Releases(other).start({}), server)
    claim(server, only(other, "m0"))
    with pytest.raises(Exhausted):
        slow.end()


def test_a_claim_whose_account_changes_between_two_looks_is_looked_at_again(server: MemoryServer) -> None:
    server.add_member("m1")
    claim(server, only(A, "m0"))
    joining = paused(server, A2.wanted).go_on()
    reading = Paused(held_claims.read_claim(A.wanted.record, A.holder), server).go_on()
    run(Releases(A).start({}), server)
    claim(server, only(A, "m1"))
    assert joining.end().secret_name == "m1"
    assert reading.end().secret_name == "m1"


def test_a_release_that_somebody_finished_leaves_the_next_claim_alone(server: MemoryServer) -> None:
    claimed = claim(server, A.wanted)
    slow = Paused(held_claims.release(claimed.record, A.holder, POOL), server).until(Replace).go_on()
    run(Releases(A).start({}), server)
    claim(server, B.wanted)
    before = server.member("m0")
    slow.end()
    assert server.member("m0") == before


def test_an_account_is_taken_only_as_it_was_seen(server: MemoryServer) -> None:
    slow = paused(server, A.wanted).until(Patch)
    claim(server, B.wanted)
    with pytest.raises(Exhausted):
        slow.end()
    assert server.member("m0").tenant == "b"


def test_a_claim_that_finds_the_account_it_names_already_keeps_its_attempt(server: MemoryServer) -> None:
    slow = paused(server, A.wanted).until(Patch)
    claim(server, B.wanted)
    slow.go_on().until(Parallel)
    run(Releases(B).start({}), server)
    slow.end()
    assert [record.attempt for record in server.records] == [1]


def test_who_helps_a_claim_that_is_full_binds_it_and_does_not_join(server: MemoryServer) -> None:
    paused(server, replace(A.wanted, limit=1)).until(Replace)
    with pytest.raises(LimitReached):
        claim(server, replace(A2.wanted, limit=1))
    assert [list(record.holders) for record in server.records] == [["h1"]]


def test_a_sweep_leaves_a_claim_that_was_made_after_it_began(server: MemoryServer) -> None:
    slow = Paused(swept(), server).go_on()
    claimed = claim(server, A.wanted)
    assert slow.end().freed == ()
    record = server.record(claimed.record)
    assert record is not None
    assert record.is_carried_by(server.member("m0"))


def test_a_sweep_leaves_a_claim_in_progress_that_it_has_not_seen_before(server: MemoryServer) -> None:
    slow = paused(server, A.wanted).until(Patch)
    assert run(swept(), server).aborted == ()
    assert slow.end().secret_name == "m0"


def test_a_sweep_takes_the_token_of_an_earlier_attempt_off(server: MemoryServer) -> None:
    claimed = claim(server, A.wanted)
    record = server.record(claimed.record)
    assert record is not None
    left = Token(record.name, record.uid, record.attempt + 1)
    server.add_member("m1", {TENANT_NAME: "a"}, {CLAIM_TOKEN: str(left)})
    assert [*run(swept(), server).freed] == ["m1"]


def test_a_cleaner_leaves_what_another_took_or_took_over(server: MemoryServer) -> None:
    server.by_hand("m0", {POOL_STATE: "dirty"})
    (listed,) = run(cleaning.survey("k"), server)[0]
    taken = run(cleaning.begin(listed, "k/1"), server)
    assert run(cleaning.begin(listed, "other/1"), server) is None
    (left,) = run(cleaning.survey("other", frozenset({"m0"})), server)[0]
    over = run(cleaning.begin(left, "other/2"), server)
    assert run(cleaning.succeed(taken, "k/1"), server) is Wiped.OVERTAKEN
    assert server.member("m0") == over


def test_a_cleaner_leaves_a_dirty_account_that_somebody_claims(server: MemoryServer) -> None:
    claim(server, A.wanted)
    server.by_hand("m0", {POOL_STATE: "dirty"})
    assert run(cleaning.survey("k"), server)[0] == []


def test_a_pending_claim_leaves_an_account_that_is_dirty_by_now(server: MemoryServer) -> None:
    slow = paused(server, A.wanted).until(Replace)
    server.by_hand("m0", {POOL_STATE: "dirty"})
    with pytest.raises(Exhausted):
        claim(server, A2.wanted)
    with pytest.raises(Exhausted):
        slow.end()
    assert server.member("m0").state == "dirty"


def test_who_meets_its_own_account_taken_by_a_helper_looks_at_its_record_before_anything_else(
    server: MemoryServer,
) -> None:
    paused(server, A.wanted).until(Patch)  # left half-way: the record is there, the account is not taken
    slow = paused(server, A2.wanted).go_on()
    (record,) = server.records
    moved = replace(record, attempt=3)
    server.replace(Kind.RECORD, moved.render(POOL))
    taken = changes.take(server.member("m0"), moved)
    assert isinstance(server.patch(taken.kind, taken.name, taken.body), Found)
    asked = slow.asked_to_its_end()
    assert not any(isinstance(each, ListPage | Parallel) for each in asked)
    assert server.member("m0").bears(moved.token)


def test_who_finds_its_own_account_taken_by_a_helper_makes_no_second_record(server: MemoryServer) -> None:
    slow = paused(server, A2.wanted).go_on()
    server.add_member("m1")
    claim(server, only(A, "m0"))
    assert not any(isinstance(each, Create) for each in slow.asked_to_its_end())
    assert is_free(server.member("m1"))
