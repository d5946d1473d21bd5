"""Two Secrets of one cloud account: it is given to nobody new, wiped under nobody, and told by every look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.account_pool.core.declared import Declaration, DeclaredMember, list_new_twins
from components.account_pool.core.keys import POOL_STATE
from components.account_pool.core.pool import Pool
from components.connection import ClusterTarget
from components.labels import ACCOUNT_ID, HYPERSCALER_TYPE, TENANT_NAME
from tests.support.cases import tabled
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer

GUID = "0000000a-0000-4000-8000-00000000000b"
AZURE = ("--type", "azure")


@pytest.fixture
def server(server: MemoryServer) -> MemoryServer:
    """A pool in which m0 and m1 are one account, written in two ways."""
    for name, account in (("m0", GUID), ("m1", GUID.upper())):
        server.add_member(name, {HYPERSCALER_TYPE: "azure"}, {ACCOUNT_ID: account})
    return server


def said(*arguments: str) -> str:
    result = credfleet("pool", *arguments, "-n", NAMESPACE)
    return f"{result.exit_code} {' '.join((result.stdout + result.stderr).split())}"


def test_account_behind_two_secrets_is_claimed_by_nobody_until_one_is_kept_away(server: MemoryServer) -> None:
    refused = said("claim", *AZURE, "--tenant", "acme")

    assert refused.startswith("4 ")
    assert f"account {GUID}" in refused
    assert "so is Secret m1" in refused
    assert not [member for member in server.members if member.tokens]
    explained = answer("explain", *AZURE, "--tenant", "acme")
    assert {each["taken"] for each in explained["candidates"]} == {False}
    status = answer("status")
    assert {each["state"] for each in status["accounts"]} == {"misconfigured"}
    (problem,) = status["problems"]
    assert "Secrets m0, m1 are one account" in problem["problem"]
    answer("quarantine", "m1", "--reason", "the account of m0")
    assert answer("claim", *AZURE, "--tenant", "acme")["secretName"] == "m0"
    assert answer("status")["problems"] == []


def test_second_secret_of_a_claimed_account_goes_to_no_other_tenant(server: MemoryServer) -> None:
    server.by_hand("m1", {}, {ACCOUNT_ID: "another"})
    used = answer("claim", *AZURE, "--tenant", "acme")["secretName"]
    (other,) = {"m0", "m1"} - {used}
    account = server.member(used).account_id
    server.by_hand(other, {}, {ACCOUNT_ID: account})

    assert said("claim", *AZURE, "--tenant", "globex").startswith("4 ")
    assert server.member(other).tenant is None
    assert answer("claim", *AZURE, "--tenant", "acme")["secretName"] == used
    (standing,) = [each["state"] for each in answer("status")["accounts"] if each["secretName"] == used]
    assert standing == "claimed"


@pytest.mark.parametrize("named", [(), ("--take-over", "m0")], ids=["dirty", "left by another"])
def test_account_is_not_wiped_while_it_has_another_secret(
    server: MemoryServer, tmp_path: Path, named: tuple[str, ...]
) -> None:
    state = "cleaning" if named else "dirty"
    server.by_hand("m0", {POOL_STATE: state}, {"credfleet.io/cleaning-token": "gone/1"} if named else {})
    touched = tmp_path / "wiped"

    cleaned = said("clean", "--command", f"azure=touch {touched}", "--yes", *named)

    assert cleaned.startswith("1 ")
    assert "so is Secret m1" in cleaned
    assert not touched.exists()
    assert server.member("m0").state == state
    server.by_hand("m1", {POOL_STATE: "quarantined"})
    assert said("clean", "--command", f"azure=sh -c 'touch {touched}'", "--yes", *named).startswith("0 ")
    assert touched.exists()


def test_account_that_the_pool_has_is_neither_brought_nor_imported(
    server: MemoryServer, tmp_path: Path
) -> None:
    server.by_hand("m1", {}, {ACCOUNT_ID: "another"})
    before = {member.name for member in server.members}
    (tmp_path / "key.json").write_text(json.dumps({"clientSecret": "x"}))
    (tmp_path / "members.csv").write_text(f"name,type,accountId\nn,azure,{GUID.upper()}\n")
    key, values = ("--values", str(tmp_path / "key.json")), ("--values", str(tmp_path))

    brought = said("bring", "--tenant", "acme", *AZURE, "--account-id", GUID, *key, "--yes")
    imported = said("import", str(tmp_path / "members.csv"), *values, "--yes")

    assert brought.startswith("4 ")
    assert "Secret m0 of the pool is this account already" in brought
    assert imported.startswith("2 ")
    assert "account m0 of the pool has it" in imported
    assert {member.name for member in server.members} == before


@tabled("known, declared, is_told")
def test_new_entry_for_an_account_that_a_tenant_brought_is_told(
    server: MemoryServer, known: dict[str, str], declared: dict[str, str], *, is_told: bool
) -> None:
    server.by_hand("m0", {TENANT_NAME: "acme"})
    server.by_hand("m1", {}, {ACCOUNT_ID: "another"})
    former, members = (
        {name: DeclaredMember("azure", account) for name, account in each.items()}
        for each in (known, declared)
    )

    problems = [
        *list_new_twins(former, Declaration(NAMESPACE, members), Pool.snapshot(ClusterTarget(), NAMESPACE))
    ]

    assert ["Secret m0 of tenant acme" in each.problem for each in problems] == [True] * is_told
