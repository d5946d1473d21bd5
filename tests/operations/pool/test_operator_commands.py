"""How cleaners are run, and what `credfleet pool` says when operators clean, sweep, adopt and recover."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pulumi_sandbox.services.processes import first_ended
from typer.testing import Result

from components.account_pool.core.calls import Kind
from components.account_pool.core.keys import CLAIM_TOKEN, POOL_STATE, STATE_REASON
from components.account_pool.core.model import ClaimRequest
from components.labels import HYPERSCALER_TYPE, TENANT_NAME
from operations.pool.access import PoolTarget
from tests.support.cases import cases
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer
from tests.support.pool import fill

TARGET = PoolTarget.target
DIRTY = {POOL_STATE: "dirty"}


def run(*arguments: str) -> Result:
    return credfleet("pool", *arguments, "--namespace", NAMESPACE)


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


def test_cleaner_is_found_by_the_cloud_of_a_type_and_its_exit_code_decides(
    server: MemoryServer, cluster: Path, tmp_path: Path
) -> None:
    fill(server, "aws-2", **{"aws-1": DIRTY, "gcp-1": {**DIRTY, HYPERSCALER_TYPE: "gcp_cf-sa30"}})
    program = cleaner(tmp_path, f'echo "$@" >> {tmp_path}/seen; test "$2" != gcp-1')
    result = clean("--command", f"aws={program} -x", "--command", f"gcp={program} -y", "--cleaner", "me")
    assert (tmp_path / "seen").read_text().splitlines() == ["-x aws-1", "-y gcp-1"]
    assert outcomes(result) == [
        ("aws-1", "cleaned", None),
        ("gcp-1", "quarantined", "clean.sh ended with exit code 1"),
    ]
    assert result.exit_code == 1


def test_account_of_a_type_without_a_cleaner_is_quarantined_with_the_reason(
    server: MemoryServer, cluster: Path
) -> None:
    fill(server, **{"aws-1": DIRTY, "azure-1": {**DIRTY, HYPERSCALER_TYPE: "azure"}})
    result = clean("--command", "aws=true")
    assert outcomes(result) == [
        ("aws-1", "cleaned", None),
        ("azure-1", "quarantined", "no cleaner is configured for type azure"),
    ]


def test_only_accounts_of_the_type_named_are_cleaned(server: MemoryServer, cluster: Path) -> None:
    fill(server, **{"aws-1": DIRTY, "azure-1": {**DIRTY, HYPERSCALER_TYPE: "azure"}})
    assert outcomes(clean("--command", "aws=true", "--type", "aws")) == [("aws-1", "cleaned", None)]


def test_what_a_cleaner_prints_goes_to_a_log_that_only_its_owner_reads(
    server: MemoryServer, cluster: Path, tmp_path: Path
) -> None:
    fill(server, **{"aws-1": DIRTY})
    program = cleaner(tmp_path, "echo sEcrEt; echo oops >&2; exit 3")
    result = clean("--command", f"aws={program}")
    log = Path(json.loads(result.stdout)["cleaned"][0]["log"])
    assert log.read_text() == "sEcrEt\noops\n"
    assert log.stat().st_mode & 0o077 == 0
    assert "sEcrEt" not in result.output
    assert f"· aws-1: clean.sh, which writes to {log}" in result.stderr


def test_cleaner_is_told_where_the_account_is_and_no_variable_that_could_hold_a_credential(
    server: MemoryServer, cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "pAssphrAse")
    outside = {"HTTPS_PROXY": "http://proxy:3128", "no_proxy": ".svc", "SSL_CERT_FILE": "/etc/ca.pem"}
    for name, text in outside.items():
        monkeypatch.setenv(name, text)
    fill(server, **{"aws-1": DIRTY})
    program = cleaner(tmp_path, f"env > {tmp_path}/env")
    with monkeypatch.context() as named:
        named.setattr(PoolTarget, "target", TARGET)
        clean("--command", f"aws={program}", "--kubeconfig", "mine", "--context", "prod")
    told = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert told["KUBECONFIG"] == str(tmp_path / "mine")
    assert told["CREDFLEET_CONTEXT"] == "prod"
    assert told["CREDFLEET_NAMESPACE"] == NAMESPACE
    assert told["CREDFLEET_TYPE"] == "aws"
    assert "PULUMI_CONFIG_PASSPHRASE" not in told
    assert outside.items() <= told.items()


def test_no_shell_reads_what_a_cleaner_is_given(server: MemoryServer, cluster: Path, tmp_path: Path) -> None:
    fill(server, **{r"$(touch\ made)": DIRTY})
    clean("--command", "aws=true ; touch made")
    assert not (tmp_path / "made").exists()


def test_cleaner_that_does_not_end_is_ended_with_all_it_started_and_the_account_quarantined(
    server: MemoryServer, cluster: Path, tmp_path: Path
) -> None:
    fill(server, **{"aws-1": DIRTY})
    program = cleaner(tmp_path, f"setsid sleep 600 & echo $! > {tmp_path}/child; wait")
    result = clean("--command", f"aws={program}", "--timeout", "1s")
    assert outcomes(result) == [("aws-1", "quarantined", "clean.sh was not done after 1 s")]
    child = int((tmp_path / "child").read_text())
    assert first_ended([child], 10) == child


def test_the_commands_of_the_stack_run_in_the_folder_of_the_project(
    server: MemoryServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "mine")
    (project / "members.csv").write_text("name,type,accountId\naws-1,aws,111111111111\n")
    (project / "Pulumi.dev.yaml").write_text(
        "config:\n"
        "  credfleet:cluster: {context: here}\n"
        "  credfleet:accountPool:\n"
        f"    {{namespace: {NAMESPACE}, membersFrom: members.csv, cleaning: {{aws: [./clean.sh, --all]}}}}\n"
    )
    cleaner(project, 'echo "$PWD $@"')
    fill(server, **{"aws-1": DIRTY})
    done = json.loads(clean().stdout)["cleaned"][0]
    assert (done["outcome"], Path(done["log"]).read_text()) == ("cleaned", f"{project} --all aws-1\n")


TWO = """
current-context: here
contexts:
  - {name: here, context: {cluster: one, user: me}}
  - {name: there, context: {cluster: two, user: me}}
clusters:
  - {name: one, cluster: {server: "https://127.0.0.1:1"}}
  - {name: two, cluster: {server: "https://127.0.0.1:2"}}
users: [{name: me, user: {token: x}}]
"""


@pytest.mark.parametrize(
    ("namespace", "words"),
    [("another", ()), (NAMESPACE, ("--context", "there"))],
    ids=["namespace", "cluster"],
)
def test_commands_of_the_default_stack_clean_no_pool_of_another(
    server: MemoryServer,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    namespace: str,
    words: Sequence[str],
) -> None:
    monkeypatch.setenv("KUBECONFIG", "mine")
    (project / "mine").write_text(TWO)
    (project / "members.csv").write_text("name,type,accountId\naws-1,aws,111111111111\n")
    pool = f"{{namespace: {namespace}, membersFrom: members.csv, cleaning: {{aws: ['true']}}}}"
    (project / "Pulumi.dev.yaml").write_text(
        f"config:\n  credfleet:cluster: {{context: here}}\n  credfleet:accountPool: {pool}\n"
    )
    fill(server, **{"aws-1": DIRTY})
    with monkeypatch.context() as named:
        named.setattr(PoolTarget, "target", TARGET)
        result = clean(*words)
    assert result.exit_code == 2
    assert "whose commands would clean it" in json.loads(result.stdout)["error"]["message"]
    assert server.member("aws-1").state == "dirty"


def test_stack_that_names_no_cleaner_costs_no_account_its_place(server: MemoryServer, project: Path) -> None:
    fill(server, **{"aws-1": DIRTY})
    result = clean()
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (4, "misconfigured")
    assert server.member("aws-1").state == "dirty"


@pytest.mark.parametrize("term", ["aws", "=x", "aws=", "aws='", "aws=/no/such/program"])
def test_cleaner_that_is_not_there_costs_no_account_its_place(
    server: MemoryServer, cluster: Path, term: str
) -> None:
    fill(server, **{"aws-1": DIRTY})
    result = run("clean", "--yes", "--command", term)
    assert result.exit_code == (4 if "/" in term else 2)
    assert server.member("aws-1").state == "dirty"


def test_nothing_dirty_is_nothing_to_do(server: MemoryServer, cluster: Path) -> None:
    result = run("clean", "--command", "aws=true")
    assert (result.exit_code, result.stdout) == (0, "Nothing is dirty.\n")


@cases(
    "arguments, said",
    [
        ("--take-over nope --command aws=true", "the pool has no such account"),
        ("--command AWS=true", "known: a"),
        ("--command aws=true --type azur", "no account of this type"),
        ("--command aws=true --timeout 0s", "it leaves no time"),
    ],
)
def test_what_names_nothing_to_clean_costs_no_account_its_place(
    server: MemoryServer, cluster: Path, arguments: str, said: str
) -> None:
    fill(server, **{"aws-1": DIRTY})
    result = run("clean", "--yes", *arguments.split())
    assert (result.exit_code in (2, 4), said in result.stderr) == (True, True)
    assert server.member("aws-1").state == "dirty"


@cases("arguments", ["unquarantine aws-1", "decommission aws-1", "recover", "clean --command aws=true"])
def test_what_takes_something_away_is_asked_about_first(server: MemoryServer, arguments: str) -> None:
    fill(server, **{"aws-1": DIRTY})
    result = run(*arguments.split())
    assert (result.exit_code, "--yes" in result.stderr) == (1, True)
    assert server.member("aws-1").state == "dirty"


def test_what_a_resume_says_is_what_is_held_then(server: MemoryServer) -> None:
    fill(server, "aws-1")
    for command, said in (
        ("hold -t nope --reason x", "the pool has no account of this type"),
        ("rotate --type nope", "the pool has no account of this type"),
        ("resume -t azur", "nothing of the pool is held"),
    ):
        refused = run(*command.split())
        assert (refused.exit_code, said in refused.stderr) == (2, True)
    run("hold", "--reason", "moved")
    refused = run("resume", "-t", "aws")
    assert (refused.exit_code, "not held by itself" in refused.stderr) == (2, True)
    assert f"`credfleet pool resume -n {NAMESPACE}` ends it" in " ".join(refused.stderr.split())
    run("hold", "-t", "aws", "--reason", "quota")
    ended = run("resume", "-t", "aws")
    assert "the pool is held, and gives no new accounts: moved" in ended.stdout
    assert "gives new accounts again" in run("resume").stdout


def test_account_is_quarantined_with_a_reason_without_asking_and_refusals_leave_an_event(
    server: MemoryServer,
) -> None:
    fill(server, "aws-1")
    told = answer("quarantine", "aws-1", "--reason", "key leaked")
    assert told == {"secretName": "aws-1", "tenant": None, "state": "quarantined"}
    assert server.member("aws-1").annotations[STATE_REASON] == "key leaked"
    assert run("unquarantine", "aws-1", "--yes").stderr.count("· pool") == 1, "its cluster is named once"
    answer("claim", "--type", "aws", "--tenant", "acme")
    assert run("decommission", "aws-1", "--yes").exit_code == 5
    fill(server, "aws-2")
    for command in ("quarantine", "mark-dirty", "quarantine --cut"):
        assert "must not be blank" in run(*command.split(), "aws-2", "--reason", " ").stderr
    assert "account aws-2 is decommissioned now" in run("decommission", "aws-2", "--yes").stdout
    assert [event["reason"] for event in server.events][:1] == ["Quarantined"]


def test_sweep_tells_what_it_did_and_what_it_left(server: MemoryServer) -> None:
    fill(server, **{"aws-0": {POOL_STATE: "wiped"}})
    orphans = [f"aws-{number}" for number in range(1, 7)]
    for name in orphans:
        server.add_member(name, {TENANT_NAME: "acme"}, {CLAIM_TOKEN: f"claim-{name}.uid.1"})
    report = json.loads(run("sweep", "--output", "json").stdout)
    assert (report["freed"], sorted(report["withheld"])) == ([], orphans)
    (finding,) = report["findings"]
    assert (finding["place"], *finding) == ("Secret aws-0", "place", "problem", "fix")
    assert "add --yes" in run("sweep").stdout
    assert sorted(answer("sweep", "--yes")["freed"]) == orphans


TAKEN = "every slot named for it has an account already: main (aws-1)"


@pytest.fixture
def owned(server: MemoryServer) -> MemoryServer:
    """A pool whose accounts bear owners and no claims."""
    acme = {TENANT_NAME: "acme"}
    globex = {TENANT_NAME: "globex", HYPERSCALER_TYPE: "gcp"}
    return fill(server, **{"aws-1": acme, "aws-2": acme, "gcp-1": globex})


def test_adoption_only_reports_until_it_is_told_to_go_on(owned: MemoryServer) -> None:
    found = answer("adopt", "--map", "acme/aws=main")["found"]
    slots = [(each["secretName"], each["slot"]) for each in found]
    assert slots == [("aws-1", "main"), ("aws-2", None), ("gcp-1", None)]
    assert found[1]["problem"] == TAKEN
    assert found[2]["problem"].startswith("nothing names its slot")
    assert "--yes claims 1 of them" in run("adopt", "--map", "acme/aws=main").stdout
    assert not [*owned.records]
    done = run("adopt", "--slot", "main", "--holder", "broker", "--yes", "--output", "json")
    assert json.loads(done.stdout)["adopted"] == [
        {"secretName": name, "tenant": tenant, "slot": "main", "holder": "broker"}
        for name, tenant in (("aws-1", "acme"), ("gcp-1", "globex"))
    ]


def test_one_claim_that_nobody_can_read_keeps_no_other_from_being_adopted(server: MemoryServer) -> None:
    asked = ClaimRequest("acme", "aws", "main").placed(NAMESPACE, ())
    fill(server, m0={TENANT_NAME: "acme"}, m1={TENANT_NAME: "globex"})
    server.create(Kind.RECORD, {"metadata": {"name": asked.record, "namespace": NAMESPACE}, "data": {}})
    done = run("adopt", "--slot", "main", "--yes", "--output", "json")
    document = json.loads(done.stdout)
    assert [each["secretName"] for each in document["adopted"]] == ["m1"]
    assert f"ConfigMap {asked.record}" in document["found"][0]["problem"]
    assert done.exit_code == 1


@cases("term", ["acme", "acme/aws", "acme/aws=", "/aws=main", "acme/=main"])
def test_map_without_a_tenant_a_type_or_a_slot_is_refused(owned: MemoryServer, term: str) -> None:
    result = run("adopt", "--yes", "--map", term)
    assert (result.exit_code, [*owned.records]) == (2, [])
    assert f"--map {term}" in result.stderr


def test_recovery_tells_which_claims_found_their_account_again(server: MemoryServer) -> None:
    fill(server, "aws-1", "aws-2")
    for tenant in ("acme", "globex"):
        answer("claim", "--type", "aws", "--tenant", tenant)
    found, lost = server.records
    server.restore()
    server.remove_member(lost.member)
    nothing: dict[str, list[str]] = {"rebound": [], "intact": [], "lost": [lost.name], "problems": []}
    assert (
        answer("recover", "--dry-run") == answer("recover", "--yes") == {**nothing, "rebound": [found.name]}
    )
    assert answer("recover", "--dry-run") == {**nothing, "intact": [found.name]}
