"""What a new configuration may not take away from those who use an account; nothing of previews."""

from __future__ import annotations

import pytest

from components.account_pool import protocol
from components.account_pool.calls import Kind
from components.account_pool.census import Census
from components.account_pool.declared import Declaration, DeclaredMember, is_touched, refusals
from components.account_pool.keys import SHARED_CAPACITY, SHARED_CLAIMS
from components.labels import SHARED
from tests.support.memory_pool import Claims, MemoryServer, run


def declared(capacity: int | None) -> Declaration:
    member = DeclaredMember.of(
        "aws", "111", tenant=None, partition={}, shared_capacity=capacity, internal=False
    )
    return Declaration("pool", (), {"s0": member})


def used_by(*tenants: str) -> MemoryServer:
    server = MemoryServer()
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "3"})
    for tenant in tenants:
        run(protocol.claim(Claims(tenant, "h", slot="web", shared=True).wanted), server)
    return server


def refused(server: MemoryServer, before: Declaration, after: Declaration) -> list[str]:
    if not is_touched(before, after):
        return []
    return [str(each) for each in refusals(before, after, Census(tuple(server.members), (*server.records,)))]


@pytest.mark.parametrize(("capacity", "is_refused"), [(4, False), (3, False), (2, False), (1, True)])
def test_a_shared_account_keeps_room_for_the_claims_on_it(capacity: int, *, is_refused: bool) -> None:
    told = refused(used_by("acme", "globex"), declared(3), declared(capacity))
    assert told == (
        [
            "credfleet:accountPool.members.s0.sharedCapacity: it would take 1 at most, but 2 claims are on"
            " it: acme/web, globex/web → leave it at 2 or more, or release some of them first"
        ]
        if is_refused
        else []
    )


def test_a_claim_whose_record_is_gone_holds_its_place_and_is_named_by_its_record() -> None:
    server = used_by("acme", "globex")
    gone = next(iter(server.records))
    server.remove(Kind.RECORD, gone.name)
    (told,) = refused(server, declared(3), declared(1))
    assert f"unknown ({gone.name})" in told


def test_claims_that_nobody_can_count_keep_their_places() -> None:
    server = used_by("acme")
    server.by_hand("s0", {}, {SHARED_CLAIMS: "?"})
    (told,) = refused(server, declared(3), declared(2))
    assert "is not a JSON object" in told
