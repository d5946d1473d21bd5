"""What `credfleet pool release` lets go by hand: shared claims, and all of a stack that is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.account_pool.core.keys import SHARED_CAPACITY, SHARED_CLAIMS
from components.labels import SHARED
from components.naming import stack_holder
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer
from tests.support.pool import fill

DEAD = ("organization", "credfleet", "dev")


@pytest.fixture
def server(server: MemoryServer) -> MemoryServer:
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "3"})
    return fill(server, "m0", "m1", "m2")


def claim(tenant: str, holder: str, *more: str) -> str:
    claimed = answer("claim", "--type", "aws", "--tenant", tenant, "--holder", holder, *more)
    return claimed["secretName"]


def held(server: MemoryServer) -> set[str]:
    return {holder for record in server.records for holder in record.holders}


def test_a_claim_on_a_shared_account_is_released_by_hand(server: MemoryServer) -> None:
    assert claim("acme", "cli", "--shared", "--slot", "web") == "s0"
    asked = ("--type", "aws", "--tenant", "acme", "--slot", "web")
    refused = credfleet("pool", "release", "-n", NAMESPACE, *asked)
    assert (refused.exit_code, "cli holds s0 under another partition" in refused.stdout) == (1, True)
    assert answer("release", *asked, "--shared")["outcome"] == "released"
    assert server.member("s0").shared_claims == {}


@pytest.fixture
def of_stacks(server: MemoryServer) -> MemoryServer:
    """Let stack dev hold a dedicated and a shared account, beside another holder, and stack prod one."""
    claim("acme", stack_holder(*DEAD, "acme", "0"))
    claim("acme", "ci")
    claim("umbrella", stack_holder(*DEAD, "umbrella", "web"), "--shared", "--slot", "web")
    claim("globex", stack_holder("organization", "credfleet", "prod", "globex", "0"))
    return server


@pytest.mark.parametrize("name", ["dev", "credfleet/dev", "organization/credfleet/dev"])
def test_all_that_a_stack_holds_which_is_gone_is_told_and_then_released(
    of_stacks: MemoryServer, name: str
) -> None:
    before = held(of_stacks)
    told = answer("release", "--stack-gone", name)
    assert (told["stack"], [each["tenant"] for each in told["held"]]) == (
        "/".join(DEAD),
        ["acme", "umbrella"],
    )
    assert {each["outcome"] for each in told["held"]} == {None}
    assert held(of_stacks) == before
    done = answer("release", "--stack-gone", name, "--yes")
    assert [each["outcome"] for each in done["held"]] == ["released", "released"]
    assert held(of_stacks) == {"ci", stack_holder("organization", "credfleet", "prod", "globex", "0")}
    again = credfleet("pool", "release", "--stack-gone", name, "--yes", "-n", NAMESPACE)
    assert (again.exit_code, "holds a claim" in again.stdout) == (1, True)


def test_one_account_that_makes_no_sense_keeps_no_other_of_a_stack_from_being_released(
    of_stacks: MemoryServer,
) -> None:
    claim("aaa", stack_holder(*DEAD, "aaa", "web"), "--shared", "--slot", "web")
    of_stacks.by_hand("s0", {}, {SHARED_CLAIMS: "?"})
    result = credfleet("pool", "release", "--stack-gone", "dev", "--yes", "-n", NAMESPACE, "--output", "json")
    ended = json.loads(result.stdout)["held"]
    assert [(each["tenant"], each["outcome"]) for each in ended] == [
        ("aaa", "misconfigured"),
        ("acme", "released"),
        ("umbrella", "misconfigured"),
    ]
    assert result.exit_code == 1
    assert "is not a JSON object" in ended[0]["problem"]


def test_what_others_hold_under_the_name_of_a_stack_that_is_gone_is_not_released_with_it(
    of_stacks: MemoryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.dev-2.yaml").write_text("config: {credfleet:heldAs: dev}\n")
    monkeypatch.chdir(tmp_path)
    before = held(of_stacks)
    refused = credfleet("pool", "release", "-n", NAMESPACE, "--stack-gone", "dev", "--yes")
    assert refused.exit_code == 2
    assert "Pulumi.dev-2.yaml hold accounts under its name" in refused.output
    assert held(of_stacks) == before
    assert answer("release", "--stack-gone", "prod", "--yes")["held"]


def test_stacks_of_one_name_are_told_apart(of_stacks: MemoryServer) -> None:
    claim("initech", stack_holder("organization", "other", "dev", "initech", "0"))
    before = held(of_stacks)
    refused = credfleet("pool", "release", "-n", NAMESPACE, "--stack-gone", "dev", "--yes")
    assert refused.exit_code == 2
    assert "organization/credfleet/dev, organization/other/dev" in refused.output
    assert held(of_stacks) == before
    answer("release", "--stack-gone", "other/dev", "--yes")
    assert held(of_stacks) == before - {stack_holder("organization", "other", "dev", "initech", "0")}


def test_a_stack_that_holds_nothing_is_told_beside_those_that_do(of_stacks: MemoryServer) -> None:
    told = credfleet("pool", "release", "-n", NAMESPACE, "--stack-gone", "ev")
    assert told.exit_code == 1
    assert "No stack ev holds a claim" in told.output
    assert "organization/credfleet/dev, organization/credfleet/prod" in " ".join(told.output.split())


@pytest.mark.parametrize(
    "arguments", [["--type", "aws"], ["--stack-gone", "dev", "--tenant", "acme"]], ids=["no tenant", "both"]
)
def test_one_account_or_all_of_a_stack_is_named(of_stacks: MemoryServer, arguments: list[str]) -> None:
    before = held(of_stacks)
    assert credfleet("pool", "release", "-n", NAMESPACE, "--yes", *arguments).exit_code == 2
    assert held(of_stacks) == before
