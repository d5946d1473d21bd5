"""What claim, release and status of `credfleet pool` answer, and with which exit codes."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from pulumi_sandbox.services.progress import Step
from pulumi_sandbox.stack_cluster import StackCluster
from typer.testing import Result

from components.account_pool.core.calls import Kind
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.keys import POOL_STATE, SHARED_CAPACITY, STATE_REASON
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool import Pool
from components.account_pool.core.records import Claimed
from components.connection import ClusterTarget, Reply
from components.errors import (
    CredfleetError,
    Exhausted,
    LimitReached,
    Misconfigured,
    NotAllowed,
    PoolError,
    Unreachable,
)
from components.labels import SHARED, TENANT_NAME
from operations.cli.failures import exit_code
from operations.folders import Folders
from operations.pool import access
from operations.pool.access import PoolOptions, PoolTarget
from operations.pool.claims import claim_within
from operations.pool.claims import seconds as seconds_of
from tests.support.cases import cases, table, tabled
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer
from tests.support.pool import fill, settle
from tests.support.records import claimed

EU = PoolConfigMap(partition_keys=("eu-access", "region"))
EXHAUSTED = Exhausted(
    pool="account-pool", account_type="aws", partition="hyperscaler-type=aws", counts="3 owned, 0 dirty"
)
ACME = ("--type", "aws", "--tenant", "acme")


def run(*arguments: str) -> Result:
    return credfleet("pool", *arguments, "--namespace", NAMESPACE)


def test_claim_in_json_names_account_and_claim_and_whether_it_is_new(server: MemoryServer) -> None:
    fill(server, "aws-1")
    told = [answer("claim", *ACME, "--slot", "eu") for _ in range(2)]
    expected = {
        "tenant": "acme",
        "type": "aws",
        "slot": "eu",
        "secretName": "aws-1",
        "namespace": NAMESPACE,
        "uid": server.member("aws-1").uid,
        "phase": "Bound",
    }
    assert told == [{**expected, "reused": reused} for reused in (False, True)]


def test_claim_without_a_holder_is_the_command_lines_own(server: MemoryServer) -> None:
    settle(server, EU)
    fill(server, eu={"eu-access": "true", "region": "eu-1"})
    answer("claim", *ACME, "--partition", "eu-access=true", "--partition", "region=eu-1")
    (record,) = server.records
    assert (record.slot, record.member, {*record.holders}) == ("main", "eu", {"cli"})


def test_events_of_a_refused_claim_are_written_before_the_command_ends(server: MemoryServer) -> None:
    run("claim", *ACME)
    assert [event["reason"] for event in server.events] == ["ClaimRefused"]


@cases(
    "error, code",
    [
        (EXHAUSTED, 3),
        (Misconfigured(place="type AWS", problem="upper case", fix="write aws"), 4),
        (NotAllowed(place="secrets", problem="may not patch", fix="ask"), 5),
        (LimitReached(tenant="acme", account_type="aws", member="aws-1", holders=3, limit=3), 1),
        (Unreachable(place="pool account-pool", seconds=10, last="refused"), 1),
    ],
)
def test_refused_claim_has_an_exit_code_of_its_own_and_says_why_in_json(
    server: MemoryServer, monkeypatch: pytest.MonkeyPatch, error: PoolError, code: int
) -> None:
    monkeypatch.setattr(Pool, "claim", refusing(error))
    result = run("claim", *ACME, "--output", "json")
    assert result.exit_code == code
    document = json.loads(result.stdout)
    assert (set(document), set(document["error"]) - {"page"}) == ({"error"}, {"code", "message"})
    assert document["error"]["code"] == error.code
    assert error.problem in document["error"]["message"]
    assert error.fix in document["error"]["message"]


def refusing(*errors: PoolError) -> Callable[..., Claimed]:
    """Refuse a claim so often, then give it an account."""
    left = list(errors)

    def claim(*asked: object) -> Claimed:
        if left:
            raise left.pop(0)
        return claimed(REQUEST, "aws-1")

    return claim


@cases("arguments", table(__file__, "NONSENSE"))
def test_request_that_makes_no_sense_is_refused_and_nothing_is_claimed(
    server: MemoryServer, arguments: str
) -> None:
    fill(server, "aws-1")
    refused = credfleet("pool", "claim", *shlex.split(arguments))
    assert refused.exit_code == 2
    assert not [*server.records]


def test_namespace_that_is_missing_and_type_that_is_missing_are_asked_for(server: MemoryServer) -> None:
    assert "--stack" in credfleet("pool", "claim", *ACME).stderr
    assert "--type or --plan" in run("claim", "--tenant", "acme").stderr


@cases("text, seconds", [("0s", 0), ("30s", 30), ("10m", 600), ("2h", 7200), ("1h30m", 5400)])
def test_times_are_read_with_their_units(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@dataclass
class Hours:
    """A clock that only sleeping moves."""

    now: float = 0.0
    naps: list[float] = field(default_factory=list[float])
    steps: list[Step] = field(default_factory=list[Step])

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds

    def claim(self, within: float, *refused: PoolError) -> Claimed:
        return claim_within(
            refusing(*refused), REQUEST, within, self.steps.append, sleep=self.sleep, clock=self
        )


REQUEST = ClaimRequest(tenant="acme", type="aws")


def test_waiting_ends_with_the_first_free_account() -> None:
    clock = Hours()
    assert clock.claim(600, EXHAUSTED, EXHAUSTED).secret_name == "aws-1"
    assert [step.what for step in clock.steps] == ["waiting for a free aws account"] * 2


@cases(
    "within, refused, naps",
    {
        "until the time is over, after a last look": (20, EXHAUSTED, [1, 2, 4, 8, 5]),
        "not where it is not asked for": (0, EXHAUSTED, []),
        "not for anything but an account": (600, NotAllowed(place="p", problem="may not", fix="ask"), []),
    },
)
def test_claim_waits(within: float, refused: PoolError, naps: list[float]) -> None:
    clock = Hours()
    with pytest.raises(type(refused)):
        clock.claim(within, *[refused] * (len(naps) + 1))
    assert clock.naps == naps


def test_release_in_json_names_what_was_let_go(server: MemoryServer) -> None:
    fill(server, "aws-1")
    answer("claim", *ACME)
    assert answer("release", *ACME) == {
        "tenant": "acme",
        "type": "aws",
        "slot": "main",
        "secretName": "aws-1",
        "namespace": NAMESPACE,
        "holder": "cli",
        "outcome": "released",
        "lastHolder": True,
    }
    assert run("release", *ACME).exit_code == 0, "what nobody holds is released"


def test_claim_of_another_holder_is_named_and_released_only_where_that_is_confirmed(
    server: MemoryServer,
) -> None:
    fill(server, "aws-1")
    answer("claim", *ACME, "--holder", "ci")
    own = run("release", *ACME)
    assert (own.exit_code, "nothing was released" in own.stdout) == (1, True)
    assert "--holder ci --yes" in own.stdout
    others = run("release", *ACME, "--holder", "ci")
    assert (others.exit_code, "--yes" in others.stderr) == (1, True)
    assert [*server.records]
    assert answer("release", *ACME, "--holder", "ci", "--yes")["outcome"] == "released"


@pytest.fixture
def full(server: MemoryServer) -> MemoryServer:
    """A pool with an account of each kind; the claimed one has two holders."""
    settle(server, EU)
    fill(server, "aws-1")
    for holder in ("ci", "cli"):
        answer("claim", "--type", "aws", "--tenant", "Acme & Söhne", "--holder", holder)
    (record,) = server.records
    server.objects[Kind.RECORD, record.name]["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    server.add_member(
        "aws-3", {POOL_STATE: "quarantined"}, {STATE_REASON: "\x1b]0;owned\x07credential leaked"}
    )
    return fill(
        server,
        "aws-2",
        **{
            "aws-4": {TENANT_NAME: "globex", "eu-access": "true"},
            "aws-5": {TENANT_NAME: "globex", POOL_STATE: "dirty"},
            "aws-6": {POOL_STATE: "wiped"},
        },
    )


@pytest.mark.usefixtures("full")
def test_status_counts_by_type_and_partition_and_tells_each_account() -> None:
    told = answer("status")
    counted = [{key: count for key, count in each.items() if count} for each in told["partitions"]]
    assert counted == [
        {
            "type": "aws",
            "total": 5,
            "free": 1,
            "claimed": 1,
            "dirty": 1,
            "quarantined": 1,
            "misconfigured": 1,
        },
        {"type": "aws", "partition": {"eu-access": "true"}, "total": 1, "owned": 1},
    ]
    assert {*told["partitions"][0]} == {*table(__file__, "COUNTED")}
    accounts = {each["secretName"]: each for each in told["accounts"]}
    assert accounts["aws-1"] == table(__file__, "CLAIMED")
    assert "credential leaked" in accounts["aws-3"]["reason"]
    assert "wiped" in accounts["aws-6"]["reason"]


@pytest.mark.usefixtures("full")
def test_status_as_tables_names_every_account_those_in_use_first_and_steers_no_terminal() -> None:
    lines = run("status").stdout
    states = [line.split()[0] for line in lines.partition("Accounts")[2].splitlines()[2:]]
    assert states.index("aws-2") > states.index("aws-1")
    assert "eu-access=true" in lines
    assert "leaked" in lines
    assert not {"\x1b", "\x07"} & {*lines}
    names = run("status", "-o", "name").stdout.split()
    assert sorted(names) == [each["secretName"] for each in answer("status")["accounts"]]


def test_status_tells_of_a_shared_account_which_tenants_use_it_and_who_holds_each_claim(
    server: MemoryServer,
) -> None:
    places = {SHARED_CAPACITY: "9", "credfleet.io/shared-claims": json.dumps({"claim-2.gone.1": "old"})}
    server.add_member("aws-1", {SHARED: "true"}, places)
    for tenant, holder in (("Acme & Söhne", "ci"), ("Acme & Söhne", "cli"), ("globex", "ci-of-globex")):
        asked = ("--type", "aws", "--tenant", tenant, "--holder", holder, "--slot", "web")
        answer("claim", *asked, "--shared")
    (told,) = answer("status")["accounts"]
    assert (told["tenant"], told["used"], told["holders"]) == (None, 3, ["ci", "cli", "ci-of-globex"])
    assert [(each["tenant"], each["slot"], each["holders"]) for each in told["claims"]] == [
        (None, "old", []),
        ("Acme & Söhne", "web", ["ci", "cli"]),
        ("globex", "web", ["ci-of-globex"]),
    ]
    assert "?, Acme & Söhne, globex" in " ".join(run("status").stdout.split())


def test_status_of_an_empty_pool_says_so(server: MemoryServer) -> None:
    result = run("status")
    assert (result.exit_code, result.stdout) == (0, f"Pool {NAMESPACE} has no accounts.\n")


@cases("command", table(__file__, "NO_POOL"))
def test_namespace_that_is_no_pool_is_refused_until_it_has_accounts(
    server: MemoryServer, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def no_problem(*_asked: object) -> None: ...

    monkeypatch.setattr(access, "namespace_problem", no_problem)
    server.remove(Kind.RECORD, CONFIG_MAP)
    result = run(*shlex.split(command))
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"namespace {NAMESPACE}" in result.stderr
    assert "not a pool" in result.stderr
    fill(server, "aws-1")
    assert run("status").exit_code == 0


def test_namespace_that_is_not_there_may_be_misspelt(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*_: str) -> Reply:
        return Reply(404, {})

    def connect(_target: ClusterTarget) -> SimpleNamespace:
        return SimpleNamespace(call=call)

    monkeypatch.setattr(access, "connect", connect)
    found = access.namespace_problem(ClusterTarget(), "acounts")
    assert found is not None
    assert found.fix.startswith("check its name; ")


def test_release_that_a_sweep_advises_is_one_this_command_takes(server: MemoryServer) -> None:
    fill(server, "aws-1")
    answer("claim", *ACME, "--holder", "ci")
    server.by_hand("aws-1", {TENANT_NAME: "globex"})
    findings = json.loads(run("sweep", "--dry-run", "--output", "json").stdout)["findings"]
    (advised,) = (found["fix"] for found in findings if "pool release" in found["fix"])
    typed = shlex.split(advised.partition("`credfleet ")[2].partition("`")[0])
    assert credfleet(*typed).exit_code == 0
    assert not [*server.records]


@cases("command", ["claim", "release"])
def test_where_the_tenants_slots_are_named_none_is_taken_by_default(
    server: MemoryServer, command: str
) -> None:
    fill(server, "aws-1")
    answer("claim", *ACME, "--slot", "eu", "--holder", "stack")

    refused = run(command, *ACME)

    assert refused.exit_code == 2
    assert "slots eu" in refused.stderr
    assert "--slot eu" in refused.stderr
    assert [record.slot for record in server.records] == ["eu"]


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

    monkeypatch.setattr(access, "connect", connected)
    monkeypatch.setattr(Pool, "open", opened)
    monkeypatch.setenv("KUBECONFIG", str(project / "kubeconfig"))
    return project / "kubeconfig"


WRITES: Final = table(__file__, "WRITES")


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


@tabled("look")
def test_a_look_is_never_asked_about(inherited: Path, look: list[str]) -> None:
    assert "· pool" in (seen := run(*look)).stderr
    assert "not-confirmed" not in seen.stderr
    assert "this has to be confirmed" not in seen.stderr


def test_where_a_write_goes_is_said_without_what_steers_a_terminal(inherited: Path) -> None:
    told = run("sweep", "--kubeconfig", str(inherited.with_name("re\x1b[31md"))).stderr
    assert f"· pool accounts, {inherited.with_name('re')}\ufffd[31md\n" in told
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
    meant = PoolOptions(stack="mine").resolve()
    assert (meant.namespace, meant.context, meant.kubeconfig) == ("accounts", "mine", kubeconfig)
    assert meant.uid == "0a3c8d8e-0c5e-4a8e-9d1f-0c5e4a8e9d1f"
    assert PoolOptions(stack="mine", namespace="others", context="theirs").resolve().namespace == "others"
    assert PoolOptions().resolve().namespace == "account-pool"
