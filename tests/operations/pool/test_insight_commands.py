"""`credfleet pool explain` and `credfleet doctor`, on a pool in memory."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from components.account_pool.core.calls import Kind
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import POOL_STATE
from components.connection import ClusterTarget
from components.errors import ClusterError
from components.labels import TENANT_NAME
from operations.pool import doctor
from tests.support.cases import cases, table
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer
from tests.support.pool import fill, settle

KEYS = ("eu-access",)
STACK = """\
config:
  credfleet:cluster: {context: here, kubeconfig: mine}
  credfleet:tenants:
    acme: {namespace: tenant-acme, accounts: {main: {type: aws}, spare: {type: aws}}}
    globex: {namespace: tenant-globex, accounts: {main: {plan: gcp, region: cf-sa30}}}
  credfleet:accountPool:
    namespace: accounts
    partitionKeys: [eu-access]
    rules: [aws, "gcp(PR=cf-sa30) -> PR", "trial -> S", "azure -> EU"]
    membersFrom: members.csv
"""
MEMBERS = "name,type,accountId\naws-1,aws,111111111111\ngcp-1,gcp_cf-sa30,acme-prod-2\n"


@pytest.fixture
def stack(project: Path) -> Path:
    """Write a stack `dev` that claims three accounts."""
    (project / "Pulumi.dev.yaml").write_text(STACK)
    (project / "members.csv").write_text(MEMBERS)
    return project


def explain(*arguments: str) -> Result:
    return credfleet("pool", "explain", "--tenant", "acme", *arguments, "-n", NAMESPACE)


def explained(*arguments: str) -> dict[str, Any]:
    return answer("explain", "--tenant", "acme", *arguments)


def claim(*arguments: str) -> str:
    return answer("claim", "--tenant", "acme", "--type", "aws", *arguments)["secretName"]


def test_explanation_in_json_tells_the_claim_and_every_account_with_its_reason(server: MemoryServer) -> None:
    settle(server, PoolConfigMap(KEYS, limits={"aws": 3}))
    fill(server, "aws-2")
    claim("--slot", "0", "--holder", "ci")
    (record,) = server.records
    server.objects[Kind.RECORD, record.name]["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    fill(server, **{"aws-1": {POOL_STATE: "dirty"}})
    assert explained("--type", "aws") == table(__file__, "EXPLAINED") | {"record": record.name}


def test_explanation_names_what_the_tenant_has_under_other_slots(server: MemoryServer) -> None:
    settle(server, PoolConfigMap(KEYS))
    fill(server, "aws-2")
    claim("--slot", "eu")
    told = explained("--type", "aws", "--slot", "0")
    assert told["claim"] is None
    assert told["otherSlots"] == [
        {"slot": "eu", "partition": "!eu-access,hyperscaler-type=aws", "secretName": "aws-2"}
    ]
    assert "The tenant has aws-2 under slot eu" in explain("--type", "aws", "--slot", "0").stdout
    assert explained("--type", "aws")["claim"]["secretName"] == "aws-2"  # the one slot it names
    fill(server, "aws-3")
    claim("--slot", "spare")
    refused = explain("--type", "aws")
    assert (refused.exit_code, "slots eu, spare" in refused.stderr) == (2, True)


@pytest.mark.usefixtures("stack")
@cases("asked, chosen", table(__file__, "RULES"))
def test_explanation_names_the_rule_that_chose_the_pool(
    server: MemoryServer, asked: str, chosen: dict[str, Any]
) -> None:
    settle(server, PoolConfigMap(KEYS))
    told = explained(*asked.split())
    assert {key: told[key] for key in chosen} == chosen
    assert f"`{chosen['rule']}`" in explain(*asked.split()).stdout


def test_table_marks_the_account_that_is_taken_and_tells_only_the_nearest(server: MemoryServer) -> None:
    fill(server, *(f"aws-{n:02}" for n in range(30)))
    lines = explain("--type", "aws").stdout.splitlines()
    marked = [line for line in lines if line.startswith("→")]
    assert len(marked) == 1
    assert sum("aws-" in line for line in lines) == 20
    assert lines[-1] == "… and 10 more; --output json lists all"


@pytest.mark.usefixtures("server")
def test_type_the_pool_does_not_have_says_so() -> None:
    assert "The pool has no accounts of this type." in explain("--type", "gdch").stdout


@pytest.mark.usefixtures("server")
@cases("arguments", [[], ["--type", "aws", "--plan", "aws"], ["--type", "AWS"]])
def test_a_request_that_makes_no_sense_is_not_explained(arguments: list[str]) -> None:
    assert explain(*arguments).exit_code == (4 if arguments == ["--type", "AWS"] else 2)


@pytest.mark.usefixtures("stack")
def test_adoption_takes_slots_and_holders_of_the_stack_it_is_told(server: MemoryServer) -> None:
    settle(server, PoolConfigMap(KEYS))
    fill(server, **{name: {TENANT_NAME: "acme"} for name in ("aws-1", "aws-2", "aws-3")})
    told = json.loads(credfleet("pool", "adopt", "--stack", "dev", "--yes", "--output", "json").stdout)
    assert [(each["secretName"], each["slot"], each["holder"]) for each in told["adopted"]] == [
        ("aws-1", "main", "pulumi/organization/credfleet/dev/acme/main"),
        ("aws-2", "spare", "pulumi/organization/credfleet/dev/acme/spare"),
    ]
    assert [each["problem"] for each in told["found"]][2].startswith("every slot named for it has an account")


def examined(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    result = credfleet("doctor", "--output", "json", *arguments)
    told = json.loads(result.stdout)
    assert told["well"] == (result.exit_code == 0)
    return result.exit_code, told["findings"]


@pytest.mark.usefixtures("project")
def test_the_doctor_says_that_there_is_no_cluster_and_how_to_get_one() -> None:
    assert examined() == (1, [table(__file__, "NO_CLUSTER")])


def test_the_doctor_of_a_stack_takes_what_is_named_beside_it(
    stack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: ClusterTarget) -> None:
        raise ClusterError(
            code="unreachable", place=str(target.context), problem="it is down", fix="start it"
        )

    monkeypatch.setattr(doctor, "connect", refuse)
    _, (found,) = examined("--stack", "dev", "--kubeconfig", str(stack), "--context", "theirs")
    assert found["text"] == "theirs: it is down"


def test_the_doctor_of_a_stack_begins_with_its_configuration(stack: Path) -> None:
    (stack / "members.csv").write_text("name,type,accountId\naws-1,aws,111111111111\n")
    exit_code, findings = examined("--stack", "dev")
    assert exit_code == 1
    assert [each["subject"] for each in findings] == ["configuration"]
    assert "globex" in findings[0]["text"]


def test_a_kubeconfig_that_leads_nowhere_is_a_finding_and_no_traceback(tmp_path: Path) -> None:
    exit_code, findings = examined("--kubeconfig", str(tmp_path / "none"))
    assert (exit_code, [each["subject"] for each in findings]) == (1, ["cluster"])


def test_a_table_tells_the_fix_below_what_is_wrong(tmp_path: Path) -> None:
    lines = credfleet("doctor", "--kubeconfig", str(tmp_path / "none")).stdout.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("✗")]
    assert lines[at + 1].strip().startswith("→ name another")
    assert lines[-1] == "1 wrong"
