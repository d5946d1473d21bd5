"""Which slot is meant where none is named: the one that the tenant's file calls so, and no second account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool import Pool
from components.connection import ClusterTarget
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer
from tests.support.pool import fill

ACME = ("--type", "aws", "--tenant", "acme")
STACK = """config:
  credfleet:cluster: {{context: here}}
  credfleet:accountPool: {{namespace: accounts, membersFrom: members.csv}}
  credfleet:tenants:
    acme: {{namespace: acme, accounts: {{{accounts}}}}}
"""


@pytest.fixture(autouse=True)
def server(server: MemoryServer, project: Path) -> MemoryServer:
    del project
    return fill(server, "m0", "m1", "m2")


def declare(project: Path, *slots: str) -> None:
    """Write a stack whose tenant has these slots of type aws, and another of another type."""
    accounts = ", ".join([*(f"{slot}: {{type: aws}}" for slot in slots), "other: {type: gcp}"])
    (project / "members.csv").write_text("name,type,accountId\nm0,aws,111111111111\ng0,gcp,some-project\n")
    (project / "Pulumi.dev.yaml").write_text(STACK.format(accounts=accounts), encoding="utf-8")


def claimed(*words: str) -> Any:
    return answer("claim", *ACME, *words)["slot"]


def by_program(slot: str) -> str:
    """Claim as the stack's own update does."""
    request = ClaimRequest(tenant="acme", type="aws", slot=slot, holder="pulumi/organization/p/dev/acme")
    return Pool.open(ClusterTarget(), NAMESPACE).claim(request).secret_name


def test_account_claimed_by_hand_is_the_one_that_the_tenants_file_asks_for_afterwards() -> None:
    by_hand = answer("claim", *ACME)["secretName"]

    assert by_program("main") == by_hand
    assert answer("release", *ACME)["outcome"] == "released"


def test_account_of_a_slot_0_is_found_where_no_slot_is_named() -> None:
    assert claimed("--slot", "0") == "0"

    assert claimed() == "0"
    assert answer("explain", *ACME)["slot"] == "0"
    assert answer("release", *ACME)["outcome"] == "released"
    assert claimed() == "main"


def test_slot_is_the_one_that_the_stack_declares(project: Path) -> None:
    declare(project, "eu")

    by_hand = answer("claim", *ACME, "--stack", "dev")

    assert by_hand["slot"] == "eu"
    assert by_program("eu") == by_hand["secretName"]
    declare(project, "eu", "us")
    refused = credfleet("pool", "claim", *ACME, "--stack", "dev", "-n", NAMESPACE)
    assert (refused.exit_code, "slots eu, us" in refused.stderr) == (2, True)
    assert claimed("--stack", "dev", "--slot", "us") == "us"


def test_tenant_that_the_stack_does_not_know_claims_nothing_and_releases_what_it_has(
    project: Path, server: MemoryServer
) -> None:
    declare(project)
    words = ("--type", "aws", "--tenant", "umbrella")

    refused = credfleet("pool", "claim", *words, "--stack", "dev")

    assert refused.exit_code == 2
    assert "stack dev has no tenant umbrella" in refused.stderr
    assert not [member for member in server.members if member.tokens]
    answer("claim", *words)
    assert answer("release", *words, "--stack", "dev")["outcome"] == "released"
