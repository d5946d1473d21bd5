"""What claim, release and status of `credfleet pool` answer, and with which exit codes.

The pool is a stand-in that answers as it is told; tests/cluster/test_pool_commands.py has a real one.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox.services.progress import Step
from pulumi_sandbox.stack_cluster import StackCluster
from typer.testing import CliRunner, Result

from components import connection
from components.account_pool.core import protocol
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.model import Claimed, ClaimRequest, Member, Partition, Record
from components.account_pool.core.pool import Pool
from components.account_pool.core.protocol import Outcome, Released
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import PoolStatus, status_of
from components.account_pool.core.sweeping import sweep
from components.connection import ClusterTarget
from components.errors import (
    CredfleetError,
    Exhausted,
    LimitReached,
    Misconfigured,
    NotAllowed,
    PoolError,
    Unreachable,
)
from operations.cli.failures import exit_code
from operations.folders import Folders
from operations.main import app
from operations.pool import access
from operations.pool.access import PoolOptions, PoolTarget
from operations.pool.claims import claim_within
from operations.pool.claims import seconds as seconds_of
from tests.support.memory_pool import Claims, MemoryServer
from tests.support.memory_pool import run as perform
from tests.support.records import BOUND, claimed

EXHAUSTED = Exhausted(
    pool="account-pool", account_type="aws", partition="hyperscaler-type=aws", counts="3 owned, 0 dirty"
)


def record_of(tenant: str, member: str, holders: Mapping[str, int], uid: str = "r1") -> Record:
    return replace(
        BOUND,
        uid=uid,
        tenant=tenant,
        partition=Partition("aws", (("eu-access", None),)),
        member=member,
        member_uid=f"uid-of-{member}",
        holders=holders,
        since="2026-11-21T10:00:00Z",
    )


@dataclass
class FakePool:
    """A pool that answers as told and keeps what it was asked."""

    refusals: list[PoolError] = field(default_factory=list[PoolError])
    reused: bool = False
    released: Released = field(default_factory=lambda: Released(Outcome.RELEASED, "aws-1", last=True))
    all_members: tuple[Member, ...] = ()
    all_records: tuple[Record, ...] = ()
    settings: PoolConfigMap = field(default_factory=lambda: PoolConfigMap(partition_keys=("eu-access",)))
    asked: list[ClaimRequest] = field(default_factory=list[ClaimRequest])
    let_go: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    flushed: int = 0
    declared: bool = True

    def is_declared(self) -> bool:
        return self.declared

    def members(self) -> tuple[Member, ...]:
        return self.all_members

    def claim(self, request: ClaimRequest) -> Claimed:
        self.asked.append(request)
        if self.refusals:
            raise self.refusals.pop(0)
        return replace(claimed(request, "aws-1"), account_id="111111111111", reused=self.reused)

    def record_of(self, request: ClaimRequest) -> str:
        self.asked.append(request)
        return "claim-0"

    def release(self, record: str, holder: str) -> Released:
        self.let_go.append((record, holder))
        return self.released

    def status(self) -> PoolStatus:
        return status_of(PoolSnapshot(self.all_members, self.all_records), self.settings)

    def records(self) -> tuple[Record, ...]:
        return self.all_records

    def flush(self) -> bool:
        self.flushed += 1
        return True


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> FakePool:
    fake = FakePool()

    def opened(_where: PoolTarget, _manager: str | None = None) -> FakePool:
        return fake

    monkeypatch.setattr(PoolTarget, "open", opened)
    return fake


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["pool", *arguments])


def claim(*arguments: str) -> Result:
    return run("claim", "--namespace", "account-pool", "--type", "aws", "--tenant", "acme", *arguments)


def release(*arguments: str) -> Result:
    return run("release", "--namespace", "account-pool", "--type", "aws", "--tenant", "acme", *arguments)


@pytest.mark.parametrize("reused", [False, True])
def test_a_claim_in_json_names_account_and_claim_and_whether_it_is_new(
    pool: FakePool, *, reused: bool
) -> None:
    pool.reused = reused
    result = claim("--slot", "eu", "--output", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "tenant": "acme",
        "type": "aws",
        "slot": "eu",
        "secretName": "aws-1",
        "namespace": "account-pool",
        "uid": "uid-of-aws-1",
        "phase": "Bound",
        "reused": reused,
    }


def test_a_claim_without_a_holder_is_the_command_lines_own(pool: FakePool) -> None:
    claim("--partition", "eu-access=true", "--partition", "region=eu=1")
    assert pool.asked == [
        ClaimRequest(
            tenant="acme",
            type="aws",
            slot="main",
            partition={"eu-access": "true", "region": "eu=1"},
            holder="cli",
        )
    ]


def test_the_events_of_a_claim_are_written_before_the_command_ends_even_when_it_was_refused(
    pool: FakePool,
) -> None:
    pool.refusals = [EXHAUSTED]
    claim()
    assert pool.flushed == 1


@pytest.mark.parametrize(
    ("error", "exit_code", "code"),
    [
        (EXHAUSTED, 3, "exhausted"),
        (Misconfigured(place="type AWS", problem="upper case", fix="write aws"), 4, "misconfigured"),
        (NotAllowed(place="secrets", problem="may not patch", fix="ask"), 5, "not-allowed"),
        (
            LimitReached(tenant="acme", account_type="aws", member="aws-1", holders=3, limit=3),
            1,
            "limit-reached",
        ),
        (Unreachable(place="pool account-pool", seconds=10, last="refused"), 1, "unreachable"),
    ],
)
def test_a_refused_claim_has_an_exit_code_of_its_own_and_says_why_in_json(
    pool: FakePool, error: PoolError, exit_code: int, code: str
) -> None:
    pool.refusals = [error]
    result = claim("--output", "json")
    assert result.exit_code == exit_code
    document = json.loads(result.stdout)
    assert set(document) == {"error"}
    assert set(document["error"]) - {"page"} == {"code", "message"}
    assert document["error"]["code"] == code
    assert error.problem in document["error"]["message"]
    assert error.fix in document["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--plan", "trial"], id="both a type and a plan"),
        pytest.param(["--partition", "eu-access"], id="a key without a value"),
        pytest.param(["--partition", "=true"], id="a value without a key"),
        pytest.param(["--partition", "a=1", "--partition", "a=2"], id="a key twice"),
        pytest.param(["--wait", "10"], id="a time without a unit"),
        pytest.param(["--wait", "ten minutes"], id="no time at all"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_the_pool_is_asked(
    pool: FakePool, arguments: list[str]
) -> None:
    assert claim(*arguments).exit_code == 2
    assert pool.asked == []


def test_neither_a_type_nor_a_plan_is_no_request(pool: FakePool) -> None:
    result = run("claim", "--namespace", "account-pool", "--tenant", "acme")
    assert result.exit_code == 2
    assert "--type or --plan" in result.stderr


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("30s", 30), ("10m", 600), ("2h", 7200), ("1h30m", 5400)]
)
def test_times_are_read_with_their_units(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


class Hours:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


REQUEST = ClaimRequest(tenant="acme", type="aws")


def test_waiting_ends_with_the_first_free_account() -> None:
    pool, clock = FakePool(refusals=[EXHAUSTED, EXHAUSTED]), Hours()
    told: list[Step] = []
    got = claim_within(pool.claim, REQUEST, 600, told.append, sleep=clock.sleep, clock=clock)
    assert got.secret_name == "aws-1"
    assert len(pool.asked) == 3
    assert [step.what for step in told] == ["waiting for a free aws account"] * 2


def test_waiting_ends_when_the_time_is_over_after_a_last_look() -> None:
    pool, clock = FakePool(refusals=[EXHAUSTED] * 100), Hours()
    with pytest.raises(Exhausted):
        claim_within(pool.claim, REQUEST, 20, lambda _step: None, sleep=clock.sleep, clock=clock)
    assert clock.now == 20
    assert clock.naps == [1, 2, 4, 8, 5]


def test_without_waiting_a_pool_that_is_empty_is_asked_once() -> None:
    pool, clock = FakePool(refusals=[EXHAUSTED] * 2), Hours()
    with pytest.raises(Exhausted):
        claim_within(pool.claim, REQUEST, 0, lambda _step: None, sleep=clock.sleep, clock=clock)
    assert len(pool.asked) == 1


def test_nothing_but_exhaustion_is_waited_for() -> None:
    refused = NotAllowed(place="secrets", problem="may not", fix="ask")
    pool, clock = FakePool(refusals=[refused]), Hours()
    with pytest.raises(NotAllowed):
        claim_within(pool.claim, REQUEST, 600, lambda _step: None, sleep=clock.sleep, clock=clock)
    assert clock.naps == []


def test_a_release_in_json_names_what_was_let_go(pool: FakePool) -> None:
    result = release("--output", "json")
    assert result.exit_code == 0
    assert pool.let_go == [("claim-0", "cli")]
    assert json.loads(result.stdout) == {
        "tenant": "acme",
        "type": "aws",
        "slot": "main",
        "secretName": "aws-1",
        "namespace": "account-pool",
        "holder": "cli",
        "outcome": "released",
        "lastHolder": True,
    }


def test_anothers_claim_is_not_released_unless_it_is_confirmed(pool: FakePool) -> None:
    result = release("--holder", "pulumi/organization/credfleet/dev/acme/aws")
    assert result.exit_code == 1
    assert pool.let_go == []
    assert "--yes" in result.stderr


def test_anothers_claim_is_released_when_it_is_confirmed(pool: FakePool) -> None:
    assert release("--holder", "ci", "--yes").exit_code == 0
    assert pool.let_go == [("claim-0", "ci")]


def test_releasing_what_others_hold_fails_and_says_who_does_and_what_no_one_holds_is_released(
    pool: FakePool,
) -> None:
    pool.released = Released(Outcome.NOT_HELD)
    assert release().exit_code == 0
    pool.all_records = (record_of("acme", "aws-1", {"ci": 1}),)
    result = release()
    assert result.exit_code == 1
    assert "nothing was released" in result.stdout
    assert "--holder ci --yes" in result.stdout


def member(name: str, annotations: Mapping[str, str] | None = None, **labels: str) -> Member:
    spelled = {key.replace("_", "-"): value for key, value in labels.items()}
    if "pool-state" in spelled:
        spelled["credfleet.io/pool-state"] = spelled.pop("pool-state")
    return Member(name, f"uid-of-{name}", "1", {"hyperscaler-type": "aws"} | spelled, annotations or {})


@pytest.fixture
def full_pool(pool: FakePool) -> FakePool:
    record = record_of("Acme & Söhne", "aws-1", {"ci": 1, "cli": 2})
    token = {"credfleet.io/claim-token": str(record.token)}
    pool.all_records = (record,)
    pool.all_members = (
        member("aws-1", token, tenant_name="enc-x"),
        member("aws-2"),
        member("aws-3", {"credfleet.io/state-reason": "credential leaked"}, pool_state="quarantined"),
        member("aws-4", tenant_name="globex", eu_access="true"),
        member("aws-5", pool_state="dirty", tenant_name="globex"),
        member("aws-6", pool_state="wiped"),
    )
    return pool


def status_json() -> dict[str, Any]:
    return json.loads(run("status", "--output", "json").stdout)


def test_status_counts_by_type_and_partition(full_pool: FakePool) -> None:
    nothing = dict.fromkeys(
        [
            "free",
            "resting",
            "expiring",
            "claimed",
            "owned",
            "dirty",
            "cleaning",
            "quarantined",
            "shared",
            "internal",
            "misconfigured",
        ],
        0,
    )
    assert status_json()["partitions"] == [
        {"type": "aws", "partition": {}, "total": 5}
        | nothing
        | {"free": 1, "claimed": 1, "quarantined": 1, "dirty": 1, "misconfigured": 1},
        {"type": "aws", "partition": {"eu-access": "true"}, "total": 1} | nothing | {"owned": 1},
    ]


def test_status_tells_of_a_claimed_account_whose_it_is_who_holds_it_and_since_when(
    full_pool: FakePool,
) -> None:
    assert status_json()["accounts"][0] == {
        "secretName": "aws-1",
        "type": "aws",
        "partition": {},
        "state": "claimed",
        "tenant": "Acme & Söhne",
        "slot": "0",
        "holders": ["ci", "cli"],
        "since": "2026-11-21T10:00:00Z",
        "reason": None,
        "keyPhase": None,
        "keyReason": None,
        "keyEnds": None,
        "accountId": None,
        "used": 0,
        "capacity": 0,
        "claims": [],
    }


def test_status_tells_of_a_shared_account_which_tenants_use_it_and_who_holds_each_claim(
    pool: FakePool,
) -> None:
    shared = Partition("aws", (("eu-access", None),), shared=True)
    ours = replace(record_of("Acme & Söhne", "aws-1", {"ci": 1, "cli": 2}), partition=shared, slot="web")
    other = replace(ours, name="claim-1", tenant="globex", holders={"ci-of-globex": 1})
    places = {str(ours.token): "web", str(other.token): "web", "claim-2.gone.1": "old"}
    notes = {"credfleet.io/shared-capacity": "9", "credfleet.io/shared-claims": json.dumps(places)}
    pool.all_records = (ours, other)
    pool.all_members = (member("aws-1", notes, **{"credfleet.io/shared": "true"}),)
    (told,) = status_json()["accounts"]
    assert (told["tenant"], told["used"], told["holders"]) == (None, 3, ["ci", "cli", "ci-of-globex"])
    assert [(each["tenant"], each["slot"], each["holders"]) for each in told["claims"]] == [
        (None, "old", []),
        ("Acme & Söhne", "web", ["ci", "cli"]),
        ("globex", "web", ["ci-of-globex"]),
    ]
    shown = " ".join(run("status").stdout.split())
    assert "?, Acme & Söhne, globex" in shown


def test_status_says_why_an_account_is_not_usable(full_pool: FakePool) -> None:
    reasons = {each["secretName"]: each["reason"] for each in status_json()["accounts"] if each["reason"]}
    assert reasons["aws-3"] == "credential leaked"
    assert "wiped" in reasons["aws-6"]


def test_status_as_tables_names_every_account_those_in_use_first(full_pool: FakePool) -> None:
    lines = run("status").stdout
    states = [line.split()[0] for line in lines.partition("Accounts")[2].splitlines()[2:]]
    assert states.index("aws-2") > states.index("aws-1")
    assert "eu-access=true" in lines
    names = run("status", "-o", "name").stdout.split()
    assert sorted(names) == [each["secretName"] for each in status_json()["accounts"]]


def test_an_empty_pool_says_so(pool: FakePool) -> None:
    result = run("status")
    assert (result.exit_code, result.stdout) == (0, "Pool account-pool has no accounts.\n")


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["metrics"],
        ["sweep", "--dry-run"],
        ["clean", "--command", "aws=true", "--yes"],
        ["adopt", "--slot", "0"],
        ["release", "--type", "aws", "--tenant", "acme", "--slot", "0"],
        ["release", "--stack-gone", "prod"],
    ],
    ids=lambda command: command[0],
)
def test_a_namespace_that_is_no_pool_is_refused(pool: FakePool, command: list[str]) -> None:
    pool.declared = False
    result = run(*command, "-n", "nope")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "namespace nope" in result.stderr
    assert "not a pool" in result.stderr


def test_a_namespace_without_settings_is_a_pool_when_it_has_accounts(pool: FakePool) -> None:
    pool.declared = False
    pool.all_members = (member("aws-1"),)
    assert run("status").exit_code == 0


def test_why_an_account_is_kept_away_steers_no_terminal(pool: FakePool) -> None:
    reason = {"credfleet.io/state-reason": "\x1b]0;owned\x07leaked"}
    pool.all_members = (member("aws-3", reason, pool_state="quarantined"),)
    shown = run("status").stdout
    assert "leaked" in shown
    assert not {"\x1b", "\x07"} & {*shown}


def test_the_release_that_a_sweep_advises_is_one_this_command_takes(pool: FakePool) -> None:
    server = MemoryServer()
    server.add_member("aws-1")
    perform(protocol.claim(Claims("acme", "ci").wanted), server)
    server.by_hand("aws-1", {"tenant-name": "globex"})
    report = perform(sweep("accounts", PoolConfigMap(), most=0, write=False, pending={}), server)
    (advised,) = (found.fix for found in report.findings if "pool release" in found.fix)
    typed = shlex.split(advised.partition("`credfleet ")[2].partition("`")[0])
    assert CliRunner().invoke(app, typed).exit_code == 0
    assert pool.let_go == [("claim-0", "ci")]


@pytest.mark.parametrize("command", ["claim", "release"])
def test_where_the_tenants_slots_are_named_none_is_taken_by_default(pool: FakePool, command: str) -> None:
    pool.all_records = (replace(record_of("acme", "aws-1", {"stack": 1}), slot="eu"),)
    arguments = [command, "--namespace", "account-pool", "--type", "aws", "--tenant", "acme"]

    refused = run(*arguments)

    assert refused.exit_code == 2
    assert "slots eu" in refused.stderr
    assert "--slot eu" in refused.stderr
    assert pool.let_go == []
    assert run(*arguments, "--slot", "eu").exit_code == 0
    assert pool.asked[-1].slot == "eu"


def test_an_inherited_kubeconfig_never_decides_against_the_sandbox_of_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, inherited = tmp_path / "own", tmp_path / "inherited"
    monkeypatch.setattr(access, "_of_sandbox", lambda: own)
    monkeypatch.setenv("KUBECONFIG", str(inherited))

    assert PoolTarget().target().kubeconfig == str(own)
    assert PoolTarget(kubeconfig=inherited).target().kubeconfig == str(inherited)
    assert PoolTarget(context="prod").target().kubeconfig is None
    monkeypatch.delenv("KUBECONFIG")
    with pytest.raises(CredfleetError, match="the sandbox here has no context prod"):
        PoolTarget(context="prod").target()
    monkeypatch.setenv("KUBECONFIG", str(inherited))
    monkeypatch.setattr(access, "_of_sandbox", lambda: None)
    assert PoolTarget().target().kubeconfig is None
    monkeypatch.delenv("KUBECONFIG")
    with pytest.raises(CredfleetError, match="has context prod") as nowhere:
        PoolTarget(context="prod").target()
    assert exit_code(nowhere.value) == 2


@pytest.fixture
def inherited(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a cluster by KUBECONFIG only; a pool that would be opened there says so."""

    @dataclass
    class Connected:
        server: str = "https://other.example:6443"

    def opened(target: ClusterTarget, namespace: str, **_: object) -> None:
        raise CredfleetError(code="opened", place=namespace, problem=str(target), fix="look")

    def connected(_target: ClusterTarget) -> Connected:
        return Connected()

    monkeypatch.setattr(connection, "connect", connected)
    monkeypatch.setattr(Pool, "open", opened)
    monkeypatch.setenv("KUBECONFIG", str(project / "kubeconfig"))
    return project / "kubeconfig"


WRITES = [
    ["claim", "-n", "accounts", "--type", "aws", "--tenant", "acme"],
    ["release", "-n", "accounts", "--type", "aws", "--tenant", "acme"],
    ["clean", "--command", "aws=true"],
    ["hold", "--reason", "moved"],
    ["resume"],
    ["quarantine", "aws-1", "--reason", "leaked"],
    ["mark-dirty", "aws-1", "--reason", "used"],
    ["sweep"],
]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write[0])
def test_a_write_to_a_cluster_that_only_kubeconfig_names_is_asked_about(
    inherited: Path, write: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["credfleet", *write])
    refused = run(*write, "--output", "json")
    assert json.loads(refused.stdout)["error"]["code"] == "not-confirmed"
    assert f"{shlex.join(write)} --yes`" in json.loads(refused.stdout)["error"]["message"]
    assert "https://other.example:6443" in refused.stdout
    for named in (["--yes"], ["--kubeconfig", str(inherited)], ["--context", "other"]):
        opened = run(*write, *named, "--output", "json")
        assert json.loads(opened.stdout)["error"]["code"] == "opened", named
        assert str(inherited) in opened.stderr, "a write always says where it goes"


@pytest.mark.parametrize(
    "look",
    [["status"], ["metrics"], ["sweep", "--dry-run"], ["adopt"], ["release", "-n", "a", "--stack-gone", "x"]],
)
def test_a_look_is_never_asked_about(inherited: Path, look: list[str]) -> None:
    assert "· pool" in (seen := run(*look)).stderr
    assert "not-confirmed" not in seen.stderr
    assert "this has to be confirmed" not in seen.stderr


def test_where_a_write_goes_is_said_without_what_steers_a_terminal(inherited: Path) -> None:
    told = run("sweep", "--kubeconfig", str(inherited.with_name("re\x1b[31md"))).stderr
    assert f"· pool account-pool, {inherited.with_name('re')}\ufffd[31md\n" in told
    assert "\x1b" not in told


def test_the_cluster_that_a_stack_was_brought_up_on_from_here_is_no_other(
    inherited: Path, project: Path
) -> None:
    StackCluster(inherited, "https://other.example:6443", None, own=False).remember(
        Folders(project).clusters("mine")
    )
    assert json.loads(run("resume", "--output", "json").stdout)["error"]["code"] == "opened"


def test_a_stack_says_which_pool_and_which_cluster_are_meant(project: Path) -> None:
    (project / "Pulumi.mine.yaml").write_text(
        "config:\n"
        "  credfleet:cluster: {context: mine, uid: 0a3c8d8e-0c5e-4a8e-9d1f-0c5e4a8e9d1f}\n"
        "  credfleet:accountPool: {namespace: accounts, members: {}}\n"
    )
    kubeconfig = project / "kubeconfig"
    StackCluster(kubeconfig, "https://mine.example:6443", None, own=False).remember(
        Folders(project).clusters("mine")
    )
    meant = PoolOptions(stack="mine")
    assert (meant.namespace, meant.context, meant.kubeconfig) == ("accounts", "mine", kubeconfig)
    assert meant.uid == "0a3c8d8e-0c5e-4a8e-9d1f-0c5e4a8e9d1f"
    assert PoolOptions(stack="mine", namespace="others", context="theirs").namespace == "others"
    assert PoolOptions().namespace == "account-pool"


def test_an_account_is_taken_by_hand_from_a_pool_that_is_named(pool: FakePool) -> None:
    refused = run("claim", "--type", "aws", "--tenant", "acme")
    assert (refused.exit_code, pool.asked) == (2, [])
    assert "--stack" in refused.stderr
