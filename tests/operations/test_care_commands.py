from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from components.account_pool.adoption import Adoption
from components.account_pool.cleaning import Wiped
from components.account_pool.errors import NotAllowed
from components.account_pool.keys import POOL_STATE
from components.account_pool.model import Claimed, Member, Partition, Policy, Token
from components.account_pool.pool import Cleaned, Pool
from components.account_pool.pool_settings import PoolSettings
from components.account_pool.recovery import RecoveryReport
from components.account_pool.status import PoolStatus, status_of
from components.account_pool.sweeping import Orphan, SweepReport
from components.connection import ClusterTarget
from operations import care
from operations.main import app
from operations.pool_access import Where


def member(name: str, type_: str = "aws", state: str | None = None) -> Member:
    labels = {"hyperscaler-type": type_} | ({POOL_STATE: state} if state else {})
    return Member(name, f"uid-of-{name}", "1", labels, {})


@dataclass
class FakePool:
    """A pool in which everything goes as told."""

    members: tuple[Member, ...] = ()
    swept: SweepReport = field(default_factory=SweepReport)
    found: tuple[Adoption, ...] = ()
    asked: list[str] = field(default_factory=list[str])
    flushed: int = 0

    def status(self) -> PoolStatus:
        return status_of(self.members, (), PoolSettings())

    def sweep(self, *, dry_run: bool, most: int) -> SweepReport:
        self.asked.append(f"sweep {'dry' if dry_run else 'wet'} {'any' if most > 1000 else most}")
        return self.swept

    def clean(
        self, cleaner: str, wipe: Callable[[Member], str | None], *, take_over: frozenset[str]
    ) -> tuple[Cleaned, ...]:
        self.asked.append(f"clean as {cleaner}, taking over {sorted(take_over)}")
        reasons = [(each.name, wipe(each)) for each in self.members if each.state]
        return tuple(
            Cleaned(name, Wiped.QUARANTINED if reason else Wiped.CLEANED, reason) for name, reason in reasons
        )

    def quarantine(self, name: str, reason: str) -> Member:
        self.asked.append(f"quarantine {name}: {reason}")
        return member(name, state="quarantined")

    def unquarantine(self, name: str) -> Member:
        self.asked.append(f"unquarantine {name}")
        return member(name)

    def decommission(self, name: str) -> Member:
        raise NotAllowed(place=f"Secret {name}", cause="it is claimed", mend="release it")

    def adoptable(self) -> tuple[Adoption, ...]:
        return self.found

    def adopt(self, adoption: Adoption, holder: str) -> Claimed:
        self.asked.append(f"adopt {adoption.member} for {holder}")
        return Claimed(
            tenant=adoption.tenant,
            type="aws",
            slot=adoption.slot,
            secret_name=adoption.member,
            member_uid="uid",
            account_id=None,
            record="claim-0",
            record_uid="uid-of-claim",
            holder=holder,
            sequence=1,
            holders=1,
            policy=Policy.CLEAN,
            limit=None,
            reused=False,
        )

    def flush(self) -> bool:
        self.flushed += 1
        return True


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> FakePool:
    fake = FakePool()

    def open_pool(where: Where, *, manager: str) -> FakePool:
        assert manager in ("credfleet-cleaner", "credfleet-operator")
        return fake

    monkeypatch.setattr(care, "open_pool", open_pool)
    return fake


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["pool", *arguments])


def cleaner(folder: Path, script: str) -> str:
    path = folder / "clean.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_cleaner_gets_the_accounts_name_and_its_exit_code_decides(pool: FakePool, tmp_path: Path) -> None:
    pool.members = (
        member("aws-1", state="dirty"),
        member("gcp-1", "gcp_cf-sa30", state="dirty"),
        member("aws-2"),
    )
    program = cleaner(tmp_path, f'echo "$@" >> {tmp_path}/seen; test "$1" != gcp-1')
    commands = ["--command", f"aws={program}", "--command", f"gcp={program}"]
    result = run("clean", *commands, "--cleaner", "me", "--yes", "--output", "json")
    assert (tmp_path / "seen").read_text().split() == ["aws-1", "gcp-1"]
    assert json.loads(result.stdout) == {
        "cleaned": [
            {"secretName": "aws-1", "outcome": "cleaned", "reason": None},
            {
                "secretName": "gcp-1",
                "outcome": "quarantined",
                "reason": "clean.sh ended with exit code 1",
            },
        ]
    }
    assert result.exit_code == 1
    assert pool.asked == ["clean as me, taking over []"]


def test_what_a_cleaner_prints_is_kept_nowhere(pool: FakePool, tmp_path: Path) -> None:
    pool.members = (member("aws-1", state="dirty"),)
    program = cleaner(tmp_path, "echo sEcrEt; exit 3")
    result = run("clean", "--command", f"aws={program}", "--yes", "--output", "json")
    assert "sEcrEt" not in result.stdout


def test_nothing_is_wiped_while_a_dirty_account_has_no_program(pool: FakePool, tmp_path: Path) -> None:
    pool.members = (member("aws-1", state="dirty"), member("azure-1", "azure", state="dirty"))
    program = cleaner(tmp_path, f"touch {tmp_path}/ran")
    result = run("clean", "--command", f"aws={program}", "--yes")
    assert result.exit_code == 4
    assert "account azure-1" in result.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("term", ["aws", "=x", "aws=/no/such/program"])
def test_a_cleaner_that_is_not_there_is_named(pool: FakePool, term: str) -> None:
    result = run("clean", "--command", term)
    assert result.exit_code == 4
    assert f"--command {term}" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["unquarantine", "aws-1"],
        ["decommission", "aws-1"],
        ["recover"],
        ["adopt"],
        ["clean", "--command", "aws=/bin/true"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_takes_something_away_is_asked_about_first(pool: FakePool, arguments: list[str]) -> None:
    pool.members = (member("aws-9", state="dirty"),)
    pool.found = (Adoption("aws-1", "acme", Partition("aws"), "0"),)
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
        findings=("Secret aws-3: its state is not known",),
    )
    assert json.loads(run("sweep", "--output", "json").stdout) == {
        "freed": ["aws-1"],
        "withheld": ["aws-2"],
        "finished": ["claim-1"],
        "aborted": [],
        "findings": ["Secret aws-3: its state is not known"],
    }
    assert "add --yes" in run("sweep").stdout


def test_adoption_makes_the_claims_that_can_be_made_and_reports_the_rest(pool: FakePool) -> None:
    pool.found = (
        Adoption("aws-1", "acme", Partition("aws"), "0"),
        Adoption("aws-2", "acme", Partition("aws"), "1", problem="its owner is unknown"),
    )
    result = run("adopt", "--holder", "broker", "--yes", "--output", "json")
    assert json.loads(result.stdout) == {
        "adopted": [{"secretName": "aws-1", "tenant": "acme", "slot": "0"}],
        "problems": [{"secretName": "aws-2", "tenant": "acme", "problem": "its owner is unknown"}],
    }
    assert pool.asked == ["adopt aws-1 for broker"]


def test_recovery_tells_which_claims_found_their_account_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def recover(cluster: ClusterTarget, namespace: str, *, dry_run: bool) -> RecoveryReport:
        return RecoveryReport(("claim-1",), ("claim-2",), (namespace,) if dry_run else ())

    monkeypatch.setattr(Pool, "recover", staticmethod(recover))
    result = run("recover", "--dry-run", "--kubeconfig", "mine", "--output", "json")
    assert json.loads(result.stdout) == {
        "rebound": ["claim-1"],
        "intact": ["claim-2"],
        "lost": ["account-pool"],
    }
