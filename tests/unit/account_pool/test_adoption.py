"""Under which slot an account that bears an owner only becomes a claim, and that its stack then finds it."""

from dataclasses import replace
from typing import Any

import pytest

from components.account_pool.core.adoption import SlotNames, adoptions
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import TENANT_ID
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import AccountUse
from components.errors import Withheld
from components.labels import TENANT_NAME
from components.naming import tenant_label
from tests.support.cases import tabled
from tests.support.memory_pool import POOL, MemoryServer
from tests.support.pool import server_of

KEYS = ("eu-access",)
LONG = "a tenant whose name is not a label value"


def proposed(server: MemoryServer, names: SlotNames) -> dict[str, Any]:
    snapshot = PoolSnapshot(tuple(server.members), tuple(server.records))
    return {
        each.member: (each.claim.tenant, each.claim.slot) if each.claim else each.problem
        for each in adoptions(snapshot, KEYS, names)
    }


def stack(slot: str, tenant: str = "acme", **options: Any) -> ClaimRequest:
    return ClaimRequest(tenant, "aws", slot, holder=f"pulumi/o/p/s/{tenant}/{slot}", **options)


def owned(*names: str, tenant: str = "acme", **labels: str) -> MemoryServer:
    server = MemoryServer()
    for name in names:
        server.add_member(name, {TENANT_NAME: tenant_label(tenant), **labels})
    return server


def test_a_stack_that_names_its_slot_finds_the_account_its_tenant_had_and_takes_no_second() -> None:
    server = owned("own")
    server.add_member("free")
    pool, claim = PoolOperator(server, POOL, PoolConfigMap(KEYS)), stack("aws", policy=Policy.RETAIN, limit=1)
    (adoption,) = pool.adoptable(SlotNames(claims=[claim]))
    assert adoption.claim is not None
    adopted = pool.adopt(adoption.member, adoption.claim)
    assert (adopted.secret_name, adopted.policy, adopted.limit) == ("own", Policy.RETAIN, 1)

    again = pool.claim(claim)

    assert (again.secret_name, again.holders, again.reused) == ("own", 1, True)
    standings = {each.secret_name: each.standing for each in pool.status().accounts}
    assert standings == {"own": AccountUse.CLAIMED, "free": AccountUse.FREE}
    assert pool.adoptable(SlotNames(claims=[claim])) == ()


@tabled("names, expected")
def test_the_slot_of_an_account_is_the_most_particular_that_is_named(
    names: dict[str, Any], expected: list[str | None]
) -> None:
    server = owned("m0", "m1")
    said = SlotNames(
        mapped={("acme", "aws"): names["mapped"]} if "mapped" in names else {},
        claims=[stack(slot) for slot in names.get("claims", ())],
        slot=names.get("slot"),
    )
    found = proposed(server, said)
    assert [each[1] if isinstance(each, tuple) else None for each in found.values()] == expected


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (SlotNames(), "nothing names its slot, and a claim under another one would take a second account"),
        (SlotNames(claims=[stack("main")]), "every slot named for it has an account already: main (taken)"),
    ],
    ids=["no slot is named", "the slot has an account"],
)
def test_an_account_that_cannot_be_adopted_is_told_with_the_reason(names: SlotNames, why: str) -> None:
    server = server_of("taken")
    PoolOperator(server, POOL, PoolConfigMap(KEYS)).claim(stack("main"))
    server.add_member("own", {TENANT_NAME: "acme"})
    assert str(proposed(server, names)["own"]).startswith(why)


@tabled("labels, notes, why")
def test_an_account_that_makes_no_sense_keeps_no_other_from_being_adopted(
    labels: dict[str, str], notes: dict[str, str], why: str
) -> None:
    server = owned("own")
    server.add_member("odd", {TENANT_NAME: "acme", **labels}, notes)
    found = proposed(server, SlotNames(slot="main"))
    assert found["own"] == ("acme", "main")
    assert why in found["odd"]


def test_accounts_of_other_parts_of_the_pool_have_slots_of_their_own() -> None:
    server = owned("eu", **{"eu-access": "true"})
    server.add_member("plain", {TENANT_NAME: "acme"})
    claims = [stack("a", partition={"eu-access": "true"}), stack("b")]
    assert proposed(server, SlotNames(claims=claims)) == {"eu": ("acme", "a"), "plain": ("acme", "b")}
    assert proposed(server, SlotNames(slot="0")) == {"eu": ("acme", "0"), "plain": ("acme", "0")}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (SlotNames(claims=[stack("main", LONG)]), (LONG, "main")),
        (SlotNames(mapped={(LONG, "aws"): ["main"]}), (LONG, "main")),
        (
            SlotNames(slot="main"),
            f"its owner {tenant_label(LONG)} is encoded, and annotation {TENANT_ID} does not say of whom",
        ),
    ],
    ids=["a stack names the tenant", "a map names the tenant", "nobody does"],
)
def test_an_encoded_owner_is_known_by_whoever_names_the_tenant(names: SlotNames, expected: Any) -> None:
    assert proposed(owned("own", tenant=LONG), names) == {"own": expected}


def test_what_nobody_could_claim_is_not_adopted() -> None:
    server = owned("odd", **{"eu-access": "false"})
    assert str(proposed(server, SlotNames(slot="0"))["odd"]).startswith("misconfigured: eu-access")


def test_an_account_is_not_adopted_for_a_slot_that_has_another_one_meanwhile() -> None:
    server = owned("first", "second")
    pool, names = PoolOperator(server, POOL, PoolConfigMap(KEYS)), SlotNames(slot="0")
    adoption = next(each for each in pool.adoptable(names) if each.claim is not None)
    assert adoption.claim is not None
    other = ({"first", "second"} - {adoption.member}).pop()
    claimed = pool.adopt(other, replace(adoption.claim, holder="a stack"))
    assert claimed.secret_name == other

    with pytest.raises(Withheld, match=f"has account {other} already"):
        pool.adopt(adoption.member, adoption.claim)

    (record,) = server.records
    assert {*record.holders} == {"a stack"}
