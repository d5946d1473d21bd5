"""How cleaners are run, and what `credfleet pool` says when operators clean, sweep, adopt and recover.

The pool is a stand-in that answers as it is told.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pulumi_sandbox.services.processes import first_ended
from typer.testing import CliRunner, Result

from components.account_pool.core.adoption import Adoption, SlotNames, adoptions
from components.account_pool.core.calls import Kind
from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import POOL_STATE
from components.account_pool.core.model import Claimed, ClaimRequest, Member, Token
from components.account_pool.core.pool import Cleaned, Hold, Pool
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import PoolStatus, status_of
from components.account_pool.core.sweeping import Orphan, RecoveryReport, SweepReport
from components.connection import ClusterTarget
from components.errors import NotAllowed, Problem
from components.labels import TENANT_NAME
from operations.main import app
from operations.pool.access import PoolTarget
from tests.support.memory_cluster import NAMESPACE, memory_cluster
from tests.support.records import claimed


def member(name: str, type_: str = "aws", state: str | None = None) -> Member:
    labels = {"hyperscaler-type": type_} | ({POOL_STATE: state} if state else {})
    return Member(name, f"uid-of-{name}", "1", labels, {})


@dataclass
class FakePool:
    """A pool in which everything goes as told."""

    members: tuple[Member, ...] = ()
    swept: SweepReport = field(default_factory=SweepReport)
    asked: list[str] = field(default_factory=list[str])
    flushed: int = 0

    def is_declared(self) -> bool:
        return True

    def status(self) -> PoolStatus:
        return status_of(PoolSnapshot(tuple(self.members), ()), PoolConfigMap())

    def sweep(self, *, dry_run: bool, most: int) -> SweepReport:
        self.asked.append(f"sweep {'dry' if dry_run else 'wet'} {'any' if most > 1000 else most}")
        return self.swept

    def cleanable(self, _cleaner: str, *, account_type: str | None, **_other: object) -> tuple[Member, ...]:
        return tuple(each for each in self.members if each.state and account_type in (None, each.type))

    def clean(
        self,
        cleaner: str,
        wipe: Callable[[Member], str | None],
        *,
        take_over: frozenset[str],
        account_type: str | None,
        hold: Hold,
        **_care: object,
    ) -> tuple[Cleaned, ...]:
        self.asked.append(f"clean as {cleaner}, taking over {sorted(take_over)}")
        listed = self.cleanable(cleaner, take_over=take_over, account_type=account_type)
        reasons: list[tuple[str, str | None]] = []
        for each in listed:
            with hold(each):
                reasons.append((each.name, wipe(each)))
        return tuple(
            Cleaned(name, Wiped.QUARANTINED if reason else Wiped.CLEANED, reason) for name, reason in reasons
        )

    def quarantine(self, name: str, reason: str) -> Member:
        self.asked.append(f"quarantine {name}: {reason}")
        return member(name, state="quarantined")

    def unquarantine(self, name: str, *, decommissioned: bool) -> Member:
        self.asked.append(f"unquarantine {name}" + (" decommissioned" if decommissioned else ""))
        return member(name)

    def decommission(self, name: str) -> Member:
        raise NotAllowed(place=f"Secret {name}", problem="it is claimed", fix="release it")

    def adoptable(self, names: SlotNames) -> tuple[Adoption, ...]:
        return tuple(adoptions(PoolSnapshot(self.members, ()), (), names))

    def adopt(self, member: str, request: ClaimRequest) -> Claimed:
        self.asked.append(f"adopt {member} as {request.slot} for {request.holder}")
        return claimed(request, member)

    def flush(self) -> bool:
        self.flushed += 1
        return True


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> FakePool:
    fake = FakePool()

    def opened(where: PoolTarget, manager: str) -> FakePool:
        assert manager in ("credfleet-cleaner", "credfleet-operator")
        return fake

    monkeypatch.setattr(PoolTarget, "open", opened)
    return fake


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["pool", *arguments])


def cleaner(folder: Path, script: str) -> str:
    path = folder / "clean.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a kubeconfig, and run in a folder of the test's own, where logs are written."""
    kubeconfig = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.chdir(tmp_path)
    return kubeconfig


def clean(*arguments: str) -> Result:
    return run("clean", "--yes", "--output", "json", *arguments)


def outcomes(result: Result) -> list[tuple[str, str, str | None]]:
    return [
        (each["secretName"], each["outcome"], each["reason"]) for each in json.loads(result.stdout)["cleaned"]
    ]


def test_a_cleaner_is_found_by_the_cloud_of_a_type_and_its_exit_code_decides(
    pool: FakePool, cluster: Path, tmp_path: Path
) -> None:
    pool.members = (
        member("aws-1", state="dirty"),
        member("gcp-1", "gcp_cf-sa30", state="dirty"),
        member("aws-2"),
    )
    program = cleaner(tmp_path, f'echo "$@" >> {tmp_path}/seen; test "$2" != gcp-1')
    result = clean("--command", f"aws={program} -x", "--command", f"gcp={program} -y", "--cleaner", "me")
    assert (tmp_path / "seen").read_text().splitlines() == ["-x aws-1", "-y gcp-1"]
    assert outcomes(result) == [
        ("aws-1", "cleaned", None),
        ("gcp-1", "quarantined", "clean.sh ended with exit code 1"),
    ]
    assert result.exit_code == 1
    assert pool.asked == ["clean as me, taking over []"]


def test_an_account_of_a_type_without_a_cleaner_is_quarantined_with_the_reason(
    pool: FakePool, cluster: Path
) -> None:
    pool.members = (member("azure-1", "azure", state="dirty"), member("aws-1", state="dirty"))
    result = clean("--command", "aws=true")
    assert outcomes(result) == [
        ("azure-1", "quarantined", "no cleaner is configured for type azure"),
        ("aws-1", "cleaned", None),
    ]


def test_only_accounts_of_the_type_named_are_cleaned(pool: FakePool, cluster: Path) -> None:
    pool.members = (member("azure-1", "azure", state="dirty"), member("aws-1", state="dirty"))
    assert outcomes(clean("--command", "aws=true", "--type", "aws")) == [("aws-1", "cleaned", None)]


def test_what_a_cleaner_prints_goes_to_a_log_that_only_its_owner_reads(
    pool: FakePool, cluster: Path, tmp_path: Path
) -> None:
    pool.members = (member("aws-1", state="dirty"),)
    program = cleaner(tmp_path, "echo sEcrEt; echo oops >&2; exit 3")
    result = clean("--command", f"aws={program}")
    log = Path(json.loads(result.stdout)["cleaned"][0]["log"])
    assert log.read_text() == "sEcrEt\noops\n"
    assert log.stat().st_mode & 0o077 == 0
    assert "sEcrEt" not in result.output
    assert f"· aws-1: clean.sh, which writes to {log}" in result.stderr


def test_a_cleaner_is_told_where_the_account_is_and_no_variable_that_could_hold_a_credential(
    pool: FakePool, cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "pAssphrAse")
    pool.members = (member("aws-1", state="dirty"),)
    program = cleaner(tmp_path, f"env > {tmp_path}/env")
    clean("--command", f"aws={program}", "--kubeconfig", "mine", "--context", "prod", "-n", "accounts")
    told = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert told["KUBECONFIG"] == str(tmp_path / "mine")
    assert told["CREDFLEET_CONTEXT"] == "prod"
    assert told["CREDFLEET_NAMESPACE"] == "accounts"
    assert told["CREDFLEET_TYPE"] == "aws"
    assert "PULUMI_CONFIG_PASSPHRASE" not in told


def test_no_shell_reads_what_a_cleaner_is_given(pool: FakePool, cluster: Path, tmp_path: Path) -> None:
    pool.members = (member(r"$(touch\ made)", state="dirty"),)
    clean("--command", "aws=true ; touch made")
    assert not (tmp_path / "made").exists()


def test_a_cleaner_that_does_not_end_is_ended_with_all_it_started_and_the_account_quarantined(
    pool: FakePool, cluster: Path, tmp_path: Path
) -> None:
    pool.members = (member("aws-1", state="dirty"),)
    program = cleaner(tmp_path, f"setsid sleep 600 & echo $! > {tmp_path}/child; wait")
    result = clean("--command", f"aws={program}", "--timeout", "1s")
    assert outcomes(result) == [("aws-1", "quarantined", "clean.sh was not done after 1 s")]
    child = int((tmp_path / "child").read_text())
    assert first_ended([child], 10) == child


def test_the_commands_of_the_stack_run_in_the_folder_of_the_project(
    pool: FakePool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "mine")
    (project / "members.csv").write_text("name,type,accountId\naws-1,aws,111111111111\n")
    (project / "Pulumi.dev.yaml").write_text(
        "config:\n"
        "  credfleet:cluster: {context: here}\n"
        "  credfleet:accountPool: {membersFrom: members.csv, cleaning: {aws: [./clean.sh, --all]}}\n"
    )
    cleaner(project, 'echo "$PWD $@"')
    pool.members = (member("aws-1", state="dirty"),)
    done = json.loads(clean().stdout)["cleaned"][0]
    assert (done["outcome"], Path(done["log"]).read_text()) == ("cleaned", f"{project} --all aws-1\n")


def test_a_stack_that_names_no_cleaner_costs_no_account_its_place(pool: FakePool, project: Path) -> None:
    pool.members = (member("aws-1", state="dirty"),)
    result = clean()
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (4, "misconfigured")
    assert pool.asked == []


@pytest.mark.parametrize("term", ["aws", "=x", "aws=", "aws='", "aws=/no/such/program"])
def test_a_cleaner_that_is_not_there_costs_no_account_its_place(
    pool: FakePool, cluster: Path, term: str
) -> None:
    pool.members = (member("aws-1", state="dirty"),)
    result = run("clean", "--yes", "--command", term)
    assert result.exit_code == (4 if "/" in term else 2)
    assert pool.asked == []


def test_nothing_dirty_is_nothing_to_do(pool: FakePool, cluster: Path) -> None:
    result = run("clean", "--command", "aws=true")
    assert (result.exit_code, result.stdout) == (0, "Nothing is dirty.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["unquarantine", "aws-1"],
        ["decommission", "aws-1"],
        ["recover"],
        ["clean", "--command", "aws=true"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_takes_something_away_is_asked_about_first(pool: FakePool, arguments: list[str]) -> None:
    pool.members = (member("aws-9", state="dirty"),)
    result = run(*arguments)
    assert result.exit_code == 1
    assert "--yes" in result.stderr
    assert pool.asked == []


def test_an_account_is_quarantined_with_a_reason_without_asking(pool: FakePool) -> None:
    result = run("quarantine", "aws-1", "--reason", "key leaked", "--output", "json")
    assert json.loads(result.stdout) == {"secretName": "aws-1", "tenant": None, "state": "quarantined"}
    assert pool.asked == ["quarantine aws-1: key leaked"]
    assert pool.flushed == 1


def test_a_refusal_keeps_its_exit_code_and_its_event(pool: FakePool) -> None:
    assert run("decommission", "aws-1", "--yes").exit_code == 5
    assert pool.flushed == 1


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [([], "sweep wet 5"), (["--dry-run"], "sweep dry 5"), (["--yes"], "sweep wet any")],
)
def test_a_sweep_frees_more_than_a_few_accounts_only_when_told_so(
    pool: FakePool, arguments: list[str], asked: str
) -> None:
    run("sweep", *arguments)
    assert pool.asked == [asked]


def test_a_sweep_tells_what_it_did_and_what_it_left(pool: FakePool) -> None:
    token = Token("claim-0", "uid", 1)
    pool.swept = SweepReport(
        freed=(Orphan("aws-1", token),),
        withheld=(Orphan("aws-2", token),),
        finished=("claim-1",),
        findings=(Problem("Secret aws-3", "its state is not known", "correct it"),),
    )
    assert json.loads(run("sweep", "--output", "json").stdout) == {
        "freed": ["aws-1"],
        "withheld": ["aws-2"],
        "finished": ["claim-1"],
        "aborted": [],
        "findings": [{"place": "Secret aws-3", "problem": "its state is not known", "fix": "correct it"}],
    }
    assert "add --yes" in run("sweep").stdout


ADOPTABLE = (
    Member("aws-1", "u", "1", {"hyperscaler-type": "aws", TENANT_NAME: "acme"}, {}),
    Member("aws-2", "u", "1", {"hyperscaler-type": "aws", TENANT_NAME: "acme"}, {}),
    Member("gcp-1", "u", "1", {"hyperscaler-type": "gcp", TENANT_NAME: "globex"}, {}),
)
TAKEN = "every slot named for it has an account already: main (aws-1)"


def test_adoption_only_reports_until_it_is_told_to_go_on(pool: FakePool) -> None:
    pool.members = ADOPTABLE
    result = run("adopt", "--map", "acme/aws=main", "--output", "json")
    found = json.loads(result.stdout)["found"]
    assert [(each["secretName"], each["slot"]) for each in found] == [
        ("aws-1", "main"),
        ("aws-2", None),
        ("gcp-1", None),
    ]
    assert found[1]["problem"] == TAKEN
    assert found[2]["problem"].startswith("nothing names its slot")
    assert (result.exit_code, pool.asked) == (0, [])
    assert "--yes claims 1 of them" in run("adopt", "--map", "acme/aws=main").stdout


def test_adoption_makes_the_claims_that_can_be_made_and_reports_the_rest(pool: FakePool) -> None:
    pool.members = ADOPTABLE
    result = run("adopt", "--slot", "main", "--holder", "broker", "--yes", "--output", "json")
    assert json.loads(result.stdout)["adopted"] == [
        {"secretName": "aws-1", "tenant": "acme", "slot": "main", "holder": "broker"},
        {"secretName": "gcp-1", "tenant": "globex", "slot": "main", "holder": "broker"},
    ]
    assert pool.asked == ["adopt aws-1 as main for broker", "adopt gcp-1 as main for broker"]


def test_one_claim_that_nobody_can_read_keeps_no_other_from_being_adopted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ClaimRequest("acme", "aws", "main").placed(NAMESPACE, ())
    with memory_cluster(monkeypatch) as server:
        for name, tenant in (("m0", "acme"), ("m1", "globex")):
            server.add_member(name, {TENANT_NAME: tenant})
        server.create(Kind.RECORD, {"metadata": {"name": asked.record, "namespace": NAMESPACE}, "data": {}})
        done = run("adopt", "--slot", "main", "--yes", "-n", NAMESPACE, "--output", "json")
    document = json.loads(done.stdout)
    assert [each["secretName"] for each in document["adopted"]] == ["m1"]
    assert f"ConfigMap {asked.record}" in document["found"][0]["problem"]
    assert done.exit_code == 1


@pytest.mark.parametrize("term", ["acme", "acme/aws", "acme/aws=", "/aws=main", "acme/=main"])
def test_a_map_without_a_tenant_a_type_or_a_slot_is_refused(pool: FakePool, term: str) -> None:
    result = run("adopt", "--map", term)
    assert (result.exit_code, pool.asked) == (2, [])
    assert f"--map {term}" in result.stderr


def test_recovery_tells_which_claims_found_their_account_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def recover(cluster: ClusterTarget, namespace: str, *, dry_run: bool) -> RecoveryReport:
        return RecoveryReport(("claim-1",), ("claim-2",), (namespace,) if dry_run else ())

    monkeypatch.setattr(Pool, "recover", staticmethod(recover))
    result = run("recover", "--dry-run", "--kubeconfig", "mine", "--output", "json")
    assert json.loads(result.stdout) == {
        "rebound": ["claim-1"],
        "intact": ["claim-2"],
        "lost": ["account-pool"],
        "problems": [],
    }
