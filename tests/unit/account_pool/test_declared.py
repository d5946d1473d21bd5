"""What a new configuration may not take away from those who use an account; nothing of previews."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.account_pool.admission.member_transitions import build_member_machine
from components.account_pool.admission.state_machine import Verb
from components.account_pool.core import protocol
from components.account_pool.core.calls import Kind
from components.account_pool.core.declared import (
    Declaration,
    DeclaredMember,
    is_touched,
    list_blocked,
    refusals,
)
from components.account_pool.core.keys import POOL_STATE, SHARED_CAPACITY, SHARED_CLAIMS
from components.account_pool.core.model import State
from components.account_pool.core.snapshot import PoolSnapshot
from components.labels import BRING_YOUR_OWN, SHARED, TENANT_NAME
from tests.support.admission_twin import Write, allows
from tests.support.cases import tabled
from tests.support.guarded_pool import merged, secret
from tests.support.memory_pool import Claims, MemoryServer, run


def declared(capacity: int | None) -> Declaration:
    member = DeclaredMember.of(
        "aws", "111", tenant=None, partition={}, shared_capacity=capacity, internal=False
    )
    return Declaration("pool", {"s0": member})


def used_by(*tenants: str) -> MemoryServer:
    server = MemoryServer()
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "3"})
    for tenant in tenants:
        run(protocol.claim(Claims(tenant, "h", slot="web", shared=True).wanted), server)
    return server


def refused(server: MemoryServer, before: Declaration, after: Declaration) -> list[str]:
    if not is_touched(before, after):
        return []
    return [
        str(each) for each in refusals(before, after, PoolSnapshot(tuple(server.members), (*server.records,)))
    ]


@pytest.mark.parametrize(("capacity", "is_refused"), [(4, False), (3, False), (2, False), (1, True)])
def test_a_shared_account_keeps_room_for_the_claims_on_it(capacity: int, *, is_refused: bool) -> None:
    told = refused(used_by("acme", "globex"), declared(3), declared(capacity))
    assert told == (
        [
            "credfleet:accountPool.members.s0.sharedCapacity: it would take 1 at most, but 2 claims took"
            " a place: acme/web, globex/web → leave it at 2 or more, or release some of them first"
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


def brought(tenant: str | None) -> Declaration:
    member = DeclaredMember.of("aws", "1", tenant=tenant, partition={}, shared_capacity=None, internal=False)
    return Declaration("pool", {"m0": member})


@tabled("labels, other, why")
def test_what_a_tenant_brought_along_is_taken_from_it_only_to_be_cleaned(
    labels: dict[str, str], other: str | None, why: str | None
) -> None:
    server = MemoryServer()
    server.add_member("m0", labels, {BRING_YOUR_OWN: "true"})
    told = refused(server, brought("acme"), brought(other))
    assert [each for each in told if why is None or why not in each] == []
    assert len(told) == (0 if why is None else 1)


@tabled("labels, annotations, is_refused")
def test_what_a_tenant_brought_along_goes_with_its_claim_when_that_is_renamed(
    *, labels: dict[str, str], annotations: dict[str, str], is_refused: bool
) -> None:
    server = MemoryServer()
    server.add_member("m0", labels, {BRING_YOUR_OWN: "true", **annotations})
    renamed = replace(brought("acmeinc"), renamed={"acme": "acmeinc"})
    assert ["no slot of acme claims it" in each for each in refused(server, brought("acme"), renamed)] == (
        [True] if is_refused else []
    )


def test_what_a_preview_lets_a_tenant_lose_the_api_server_lets_the_program_take() -> None:
    manifest = {
        name: secret({TENANT_NAME: "acme", POOL_STATE: name}, {BRING_YOUR_OWN: "true"}) for name in State
    }
    for state, before in manifest.items():
        after = merged(
            before, {"metadata": {"labels": {TENANT_NAME: None}, "annotations": {BRING_YOUR_OWN: None}}}
        )
        write = Write(before, after, frozenset({Verb.OPERATE}))
        assert allows(build_member_machine(()), write) is (state == State.DIRTY)


@tabled("holder, why")
def test_account_in_use_is_named_with_its_stack_or_the_command_that_releases_it(
    holder: str, why: str
) -> None:
    server = MemoryServer()
    server.add_member("m0")
    run(protocol.claim(Claims("acme", holder, slot="0").wanted), server)
    snapshot = PoolSnapshot(tuple(server.members), (*server.records,))
    assert [*list_blocked(snapshot, "pool", allow_destroy=False)] == [
        ("m0", f"it is claimed by tenant acme; release the claim first; {why}")
    ]
