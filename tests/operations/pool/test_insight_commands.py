"""`credfleet pool explain` and `credfleet doctor`, on pools that are as told."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import CLAIM_TOKEN, POOL_STATE
from components.account_pool.core.model import Member, Partition, Record, record_name
from components.account_pool.core.pool import Pool
from components.account_pool.core.snapshot import PoolSnapshot
from components.connection import ClusterTarget
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME
from operations.main import app
from operations.pool.access import PoolTarget
from tests.support.memory_pool import POOL, MemoryServer
from tests.support.records import BOUND

KEYS = ("eu-access",)
STACK = """\
config:
  credfleet:cluster: {context: here, kubeconfig: mine}
  credfleet:tenants:
    acme: {namespace: tenant-acme, accounts: {main: {type: aws}, spare: {type: aws}}}
    globex: {namespace: tenant-globex, accounts: {main: {plan: gcp, region: cf-sa30}}}
  credfleet:accountPool:
    partitionKeys: [eu-access]
    rules: [aws, "gcp(PR=cf-sa30) -> PR", "trial -> S", "azure -> EU"]
    membersFrom: members.csv
"""
MEMBERS = "name,type,accountId\naws-1,aws,1\ngcp-1,gcp_cf-sa30,2\n"


def member(name: str, account_type: str = "aws", **labels: str) -> Member:
    named = {HYPERSCALER_TYPE: account_type} | {
        {"state": POOL_STATE, "tenant": TENANT_NAME, "shared": SHARED}[key]: value
        for key, value in labels.items()
    }
    return Member(name, f"uid-of-{name}", "1", named, {})


def claim_of(tenant: str, slot: str, account: str, holder: str) -> tuple[Member, Record]:
    partition = Partition("aws", (("eu-access", None),))
    record = replace(
        BOUND,
        name=record_name(partition, tenant, slot),
        tenant=tenant,
        partition=partition,
        slot=slot,
        member=account,
        member_uid=f"uid-of-{account}",
        limit=3,
        holders={holder: 1},
        since="2026-11-21T10:00:00Z",
    )
    carrier = member(account, tenant=tenant)
    return Member(account, carrier.uid, "1", carrier.labels, {CLAIM_TOKEN: str(record.token)}), record


@dataclass
class FakePool:
    """A pool with these members and records."""

    all_members: tuple[Member, ...] = ()
    all_records: tuple[Record, ...] = ()
    settings: PoolConfigMap = field(default_factory=lambda: PoolConfigMap(partition_keys=KEYS))

    def look(self) -> PoolSnapshot:
        return PoolSnapshot(self.all_members, self.all_records)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> FakePool:
    fake = FakePool()

    def opened(_where: PoolTarget) -> FakePool:
        return fake

    def snapshot(target: ClusterTarget, namespace: str) -> PoolSnapshot:
        assert (target.kubeconfig, target.context, namespace) == ("mine", "here", "account-pool")
        return PoolSnapshot(fake.all_members, fake.all_records)

    monkeypatch.setattr(PoolTarget, "open", opened)
    monkeypatch.setattr(Pool, "snapshot", staticmethod(snapshot))
    return fake


@pytest.fixture
def stack(project: Path) -> Path:
    """Write a stack `dev` that claims three accounts."""
    (project / "Pulumi.dev.yaml").write_text(STACK)
    (project / "members.csv").write_text(MEMBERS)
    return project


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def explain(*arguments: str) -> Result:
    return run("pool", "explain", "--tenant", "acme", *arguments)


def explained(*arguments: str) -> dict[str, Any]:
    result = explain(*arguments, "--output", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_an_explanation_in_json_tells_the_claim_and_every_account_with_its_reason(pool: FakePool) -> None:
    carrier, record = claim_of("acme", "0", "aws-2", "ci")
    pool.all_members = (member("aws-1", state="dirty"), carrier)
    pool.all_records = (record,)
    assert explained("--type", "aws") == {
        "namespace": "account-pool",
        "tenant": "acme",
        "type": "aws",
        "slot": "0",
        "partition": {},
        "shared": False,
        "holder": "cli",
        "rule": None,
        "expected": {
            "prospect": "reuse",
            "secretName": "aws-2",
            "text": "expected to reuse aws-2, which its tenant has",
        },
        "record": record.name,
        "claim": {
            "phase": "Bound",
            "secretName": "aws-2",
            "holders": ["ci"],
            "releasePolicy": "clean",
            "limit": 3,
            "since": "2026-11-21T10:00:00Z",
        },
        "otherSlots": [],
        "candidates": [
            {"secretName": "aws-2", "taken": True, "reason": "the account of this claim (Bound)"},
            {"secretName": "aws-1", "taken": False, "reason": "dirty, waits to be cleaned"},
        ],
    }


def test_an_explanation_names_what_the_tenant_has_under_other_slots(pool: FakePool) -> None:
    carrier, record = claim_of("acme", "eu", "aws-2", "ci")
    pool.all_members, pool.all_records = (carrier,), (record,)
    told = explained("--type", "aws", "--slot", "0")
    assert told["claim"] is None
    assert told["otherSlots"] == [
        {"slot": "eu", "partition": "!eu-access,hyperscaler-type=aws", "secretName": "aws-2"}
    ]
    assert "The tenant has aws-2 under slot eu" in explain("--type", "aws", "--slot", "0").stdout
    assert explained("--type", "aws")["claim"]["secretName"] == "aws-2"  # the one slot it names
    second, of_second = claim_of("acme", "spare", "aws-3", "ci")
    pool.all_members, pool.all_records = (carrier, second), (record, of_second)
    refused = explain("--type", "aws")
    assert (refused.exit_code, "slots eu, spare" in refused.stderr) == (2, True)


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        pytest.param(
            ["--plan", "gcp", "--region", "cf-sa30"],
            ("gcp_cf-sa30", {}, False, "gcp(PR=cf-sa30) -> PR"),
            id="region",
        ),
        pytest.param(
            ["--plan", "trial", "--hyperscaler", "aws"], ("aws", {}, True, "trial -> S"), id="shared"
        ),
        pytest.param(["--plan", "azure"], ("azure", {"eu-access": "true"}, False, "azure -> EU"), id="eu"),
    ],
)
def test_an_explanation_names_the_rule_that_chose_the_pool(
    pool: FakePool, arguments: list[str], chosen: tuple[str, dict[str, str], bool, str]
) -> None:
    told = explained(*arguments)
    assert (told["type"], told["partition"], told["shared"], told["rule"]) == chosen
    assert f"`{chosen[3]}`" in explain(*arguments).stdout


def test_a_table_marks_the_account_that_is_taken_and_tells_only_the_nearest(pool: FakePool) -> None:
    pool.all_members = tuple(member(f"aws-{n:02}") for n in range(30))
    lines = explain("--type", "aws").stdout.splitlines()
    marked = [line for line in lines if line.startswith("→")]
    assert len(marked) == 1
    assert sum("aws-" in line for line in lines) == 20
    assert lines[-1] == "… and 10 more; --output json lists all"


def test_a_type_the_pool_does_not_have_says_so(pool: FakePool) -> None:
    assert "The pool has no accounts of this type." in explain("--type", "gdch").stdout


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize("arguments", [[], ["--type", "aws", "--plan", "aws"], ["--type", "AWS"]])
def test_a_request_that_makes_no_sense_is_not_explained(arguments: list[str]) -> None:
    assert explain(*arguments).exit_code == (4 if arguments == ["--type", "AWS"] else 2)


@pytest.mark.usefixtures("stack")
def test_adoption_takes_slots_and_holders_of_the_stack_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    server = MemoryServer()
    for name in ("aws-1", "aws-2", "aws-3"):
        server.add_member(name, {TENANT_NAME: "acme"})
    real, opened = Pool(server, POOL, PoolConfigMap(KEYS)), list[tuple[str, str | None]]()

    def open_(where: PoolTarget, _manager: str) -> Pool:
        opened.append((where.namespace, where.context))
        return real

    monkeypatch.setattr(PoolTarget, "open", open_)
    result = run("pool", "adopt", "--stack", "dev", "--yes", "--output", "json")
    told = json.loads(result.stdout)
    assert opened == [("account-pool", "here")]
    assert [(each["secretName"], each["slot"], each["holder"]) for each in told["adopted"]] == [
        ("aws-1", "main", "pulumi/organization/credfleet/dev/acme/main"),
        ("aws-2", "spare", "pulumi/organization/credfleet/dev/acme/spare"),
    ]
    assert [each["problem"] for each in told["found"]][2].startswith("every slot named for it has an account")


def examined(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    result = run("doctor", "--output", "json", *arguments)
    told = json.loads(result.stdout)
    assert told["well"] == (result.exit_code == 0)
    return result.exit_code, told["findings"]


@pytest.mark.usefixtures("project")
def test_the_doctor_says_that_there_is_no_cluster_and_how_to_get_one() -> None:
    assert examined() == (
        1,
        [
            {
                "subject": "cluster",
                "health": "wrong",
                "text": "--kubeconfig: no cluster is named, KUBECONFIG is not set, and no sandbox runs here",
                "fix": "name a kubeconfig file, or start the sandbox with `credfleet sandbox up`",
            }
        ],
    )


def test_the_doctor_of_a_stack_begins_with_its_configuration(stack: Path) -> None:
    (stack / "members.csv").write_text("name,type,accountId\naws-1,aws,1\n")
    exit_code, findings = examined("--stack", "dev")
    assert exit_code == 1
    assert [each["subject"] for each in findings] == ["configuration"]
    assert "globex" in findings[0]["text"]


def test_a_kubeconfig_that_leads_nowhere_is_a_finding_and_no_traceback(tmp_path: Path) -> None:
    exit_code, findings = examined("--kubeconfig", str(tmp_path / "none"))
    assert (exit_code, [each["subject"] for each in findings]) == (1, ["cluster"])


def test_a_table_tells_the_fix_below_what_is_wrong(tmp_path: Path) -> None:
    lines = run("doctor", "--kubeconfig", str(tmp_path / "none")).stdout.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("✗")]
    assert lines[at + 1].strip().startswith("→ name another")
    assert lines[-1] == "1 wrong"
