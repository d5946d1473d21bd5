"""The genuine command line on a real API server, by users who may claim, clean or operate, and no more.

The rules of the pool are in force, so the API server has its say. What waits, is stopped or runs beside
others is a process of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from components.account_pool.admission.roles import RIGHTS, rights_to_bring, rights_to_clean
from components.account_pool.admission.state_machine import Verb
from components.account_pool.core.clock import Clock
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.identity import former_name
from components.account_pool.core.keys import FREED, KEY_ID, KEY_OPERATION, KEY_PHASE, POOL_RECORD, POOL_STATE
from components.account_pool.core.model import Policy
from components.labels import ACCOUNT_ID, BRING_YOUR_OWN, HYPERSCALER_TYPE, TENANT_NAME
from sandbox.tests.support.cluster import ROOT, client_for
from tests.support.fleet_project import CREDFLEET
from tests.support.guarded_pool import MERGE, enforce, refusal
from tests.support.memory_cluster import credfleet
from tests.support.memory_pool import KEB
from tests.support.people import grant

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

SENTINEL: Final = "sentinel-credential-that-must-never-travel"
SECONDS: Final = 120.0
SETTINGS: Final = PoolConfigMap(partition_keys=("eu-access",))


@dataclass(frozen=True)
class Answer:
    """How a command ended. json: what it answered."""

    code: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.output)


@dataclass(frozen=True)
class Place:
    """A pool in a namespace of its own, and the command line of its people."""

    namespace: str
    plane: ControlPlane
    admin: DynamicClient
    folder: Path

    @property
    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.plane.folder), "PYTHONPATH": str(ROOT)}

    def _words(self, user: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
        where = ("--namespace", self.namespace, "--kubeconfig", str(self.plane.kubeconfig(user)))
        return (*arguments, *where)

    def start(self, user: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(CREDFLEET), *self._words(user, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self._environment,
        )

    def run(self, user: str, *arguments: str) -> Answer:
        with chdir(self.folder):
            done = credfleet(*self._words(user, arguments))
        assert isinstance(done.exception, SystemExit | None)
        assert SENTINEL not in done.output
        return Answer(done.exit_code, done.stdout, done.stderr)

    def ask(self, user: str, *arguments: str) -> Any:
        answer = self.run(user, *arguments, "--output", "json")
        assert answer.code == 0, answer.output + answer.errors
        return answer.json

    def api(self, kind: str) -> Any:
        return self.admin.resources.get(api_version="v1", kind=kind)

    def add(self, name: str, account_type: str = "aws", **labels: str) -> None:
        named = {HYPERSCALER_TYPE: account_type} | labels
        body = {"metadata": {"name": name, "labels": named}, "stringData": {"key": SENTINEL}}
        self.api("Secret").create(namespace=self.namespace, body=body)

    def standings(self, user: str = "admin") -> dict[str, str]:
        status = self.ask(user, "pool", "status")
        return {each["secretName"]: each["state"] for each in status["accounts"]}

    def forget(self, name: str) -> None:
        """Lose a claim's record: nobody deletes a Bound one, so it is on its way out first."""
        where = {"name": name, "namespace": self.namespace}
        left = {"data": {"phase": "Releasing", "holders": "{}", "retired": "1"}}
        self.api("ConfigMap").patch(**where, body=left, content_type=MERGE)
        self.api("ConfigMap").delete(**where)

    def empty(self) -> None:
        """Take away what other tests left: all but the settings."""
        kept = f"metadata.name!={CONFIG_MAP},metadata.name!=kube-root-ca.crt"
        for kind in ("Secret", "ConfigMap", "Event"):
            self.api(kind).delete(namespace=self.namespace, field_selector=kept)


@pytest.fixture(scope="module")
def shared_place(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    """A pool for all who leave its settings as they are; it may be thrown away, so it can be emptied."""
    namespace = f"test-{secrets.token_hex(5)}"
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": namespace}})
    folder = tmp_path_factory.mktemp("place")
    return made_with(SETTINGS, control_plane, admin, namespace, folder, allow_destroy=True)


@pytest.fixture
def place(shared_place: Place, tmp_path: Path) -> Place:
    shared_place.empty()
    return replace(shared_place, folder=tmp_path)


@pytest.fixture
def own_place(control_plane: ControlPlane, admin: DynamicClient, namespace: str, tmp_path: Path) -> Place:
    return made_with(SETTINGS, control_plane, admin, namespace, tmp_path)


@pytest.fixture
def kyma_place(control_plane: ControlPlane, admin: DynamicClient, namespace: str, tmp_path: Path) -> Place:
    return made_with(replace(SETTINGS, scheme=KEB), control_plane, admin, namespace, tmp_path)


def made_with(
    settings: PoolConfigMap,
    plane: ControlPlane,
    admin: DynamicClient,
    namespace: str,
    folder: Path,
    *,
    allow_destroy: bool = False,
) -> Place:
    """Make a pool with its rules in force; `provisioner` may claim, `janitor` clean, `admin` everything."""
    for user, rights in (
        ("provisioner", RIGHTS[Verb.CLAIM]),
        ("janitor", rights_to_clean(settings.new_keys)),
    ):
        rules = [
            {"apiGroups": [one.group], "resources": [one.resource], "verbs": one.verbs} for one in rights
        ]
        grant(admin, namespace, user, rules)
    made = Place(namespace, plane, admin, folder)
    body = {"metadata": {"name": CONFIG_MAP}, "data": settings.render()}
    made.api("ConfigMap").create(namespace=namespace, body=body)
    enforce(admin, namespace, settings, allow_destroy=allow_destroy)
    return made


def claim(place: Place, tenant: str, user: str = "provisioner") -> str:
    return str(place.ask(user, "pool", "claim", "--type", "aws", "--tenant", tenant)["secretName"])


def test_an_account_goes_from_claim_to_release_to_cleaner_to_the_next_tenant(place: Place) -> None:
    place.add("aws-1")
    claim(place, "acme")
    assert place.run("provisioner", "pool", "claim", "--type", "aws", "--tenant", "globex").code == 3
    place.ask("provisioner", "pool", "release", "--type", "aws", "--tenant", "acme")
    assert place.standings("janitor") == {"aws-1": "dirty"}
    seen = place.folder / "seen"
    cleaner = place.folder / "clean.sh"
    cleaner.write_text(f'#!/bin/sh\necho "$@ $CREDFLEET_NAMESPACE $CREDFLEET_TYPE" > {seen}\n')
    cleaner.chmod(0o755)
    cleaned = place.ask("janitor", "pool", "clean", "--command", f"aws={cleaner}", "--yes")["cleaned"]
    assert [(each["secretName"], each["outcome"], each["reason"]) for each in cleaned] == [
        ("aws-1", "cleaned", None)
    ]
    assert seen.read_text() == f"aws-1 {place.namespace} aws\n"
    assert claim(place, "globex") == "aws-1"
    events = place.api("Event").get(namespace=place.namespace).to_dict()["items"]
    told = {each["reason"] for each in events if each["involvedObject"]["name"] == "aws-1"}
    assert {"Claimed", "Released", "Cleaned"} <= told


def test_an_account_whose_cleaner_fails_stays_out_until_an_operator_lets_it_back(
    place: Place,
) -> None:
    place.add("aws-1")
    claim(place, "acme")
    place.ask("provisioner", "pool", "release", "--type", "aws", "--tenant", "acme")
    failed = place.run("janitor", "pool", "clean", "--command", "aws=false", "--yes")
    assert failed.code == 1
    assert "false ended with exit code 1" in failed.output
    assert place.standings() == {"aws-1": "quarantined"}
    assert place.run("janitor", "pool", "unquarantine", "aws-1", "--yes").code == 5
    told = place.ask("admin", "pool", "unquarantine", "aws-1", "--yes")
    assert told == {"secretName": "aws-1", "tenant": "acme", "state": "dirty"}


def write_cleaner(place: Place, text: str) -> str:
    """Write a cleaner, and return how it is named to the command line."""
    made = place.folder / "clean.sh"
    made.write_text(f"#!/bin/sh\nset -eu\n{text}\n")
    made.chmod(0o755)
    return f"aws={made}"


def test_cleaners_that_wait_for_each_other_end_well_when_they_run_side_by_side(place: Place) -> None:
    for name in ("aws-1", "aws-2", "aws-3"):
        place.add(name, **{POOL_STATE: "dirty"})
    meets = write_cleaner(
        place, 'touch "$1.here"; for i in 1 2 3; do until [ -e "aws-$i.here" ]; do :; done; done'
    )
    cleaned = place.ask("janitor", "pool", "clean", "--command", meets, "--at-once", "3", "--yes")["cleaned"]
    assert {each["outcome"] for each in cleaned} == {"cleaned"}
    assert set(place.standings().values()) == {"free"}


def test_a_cleaner_that_fails_is_tried_as_often_as_asked(place: Place) -> None:
    for name in ("aws-1", "aws-2"):
        place.add(name, **{POOL_STATE: "dirty"})
    second_time = write_cleaner(place, '[ "$1" = aws-1 ] && [ -e once ] || { touch once; exit 3; }')
    again = ("--attempts", "2", "--cooldown", "0s", "--yes")
    done = place.run("janitor", "pool", "clean", "--command", second_time, *again, "--output", "json")
    assert done.code == 1
    outcomes = {each["secretName"]: (each["outcome"], each["reason"]) for each in done.json["cleaned"]}
    assert outcomes == {
        "aws-1": ("cleaned", None),
        "aws-2": ("quarantined", "clean.sh ended with exit code 3, 2 times"),
    }


def test_what_has_its_turn_after_the_time_of_the_run_stays_dirty_for_the_next(place: Place) -> None:
    place.add("aws-1", **{POOL_STATE: "dirty"})
    late = place.run("janitor", "pool", "clean", "--command", "aws=true", "--within", "0s", "--yes")
    assert late.code == 1
    assert "postponed" in late.output
    assert place.standings() == {"aws-1": "dirty"}


def test_control_c_ends_all_cleaners_and_leaves_their_accounts_to_the_next_run(place: Place) -> None:
    for name in ("aws-1", "aws-2", "aws-3"):
        place.add(name, **{POOL_STATE: "dirty"})
    endless = write_cleaner(place, 'echo "$1" >> begun; while :; do sleep 1; done')
    asked = ("pool", "clean", "--cleaner", "nightly", "--at-once", "2", "--yes")
    process = place.start("janitor", *asked, "--command", endless)
    begun = place.folder / "begun"
    while not begun.exists() or len(begun.read_text().split()) < 2:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 8
    assert "Traceback" not in errors
    assert Counter(place.standings().values()) == {"cleaning": 2, "dirty": 1}
    place.ask("janitor", *asked, "--command", "aws=true")
    assert set(place.standings().values()) == {"free"}


def test_a_retained_account_is_returned_cleaned_and_claimed_by_another_tenant(own_place: Place) -> None:
    place, settings = own_place, replace(SETTINGS, policy=Policy.RETAIN).render()
    place.api("ConfigMap").patch(
        name=CONFIG_MAP, namespace=place.namespace, body={"data": settings}, content_type=MERGE
    )
    place.add("aws-1")
    for _ in range(2):
        claim(place, "acme")
        place.ask("provisioner", "pool", "release", "--type", "aws", "--tenant", "acme")
    assert place.standings() == {"aws-1": "owned"}
    assert place.run("provisioner", "pool", "return", "aws-1", "--yes").code == 5
    told = place.ask("admin", "pool", "return", "aws-1", "--yes")
    assert told == {"secretName": "aws-1", "tenant": "acme", "state": "dirty"}
    place.ask("janitor", "pool", "clean", "--command", "aws=true", "--yes")
    assert claim(place, "globex") == "aws-1"


def test_a_sweep_frees_many_only_when_told_so_and_a_dry_run_frees_none(place: Place) -> None:
    for number in range(6):
        place.add(f"aws-{number}")
        claim(place, f"tenant-{number}", "admin")
    records = place.api("ConfigMap").get(namespace=place.namespace, label_selector=POOL_RECORD)
    for record in records.to_dict()["items"]:
        place.forget(record["metadata"]["name"])
    names = [f"aws-{number}" for number in range(6)]
    assert place.run("provisioner", "doctor").code == 1
    for arguments, code in ((["--dry-run"], 0), ([], 1)):
        ran = place.run("provisioner", "pool", "sweep", "--output", "json", *arguments)
        assert (ran.code, sorted(ran.json["withheld"]), ran.json["freed"]) == (code, names, [])
    report = place.ask("provisioner", "pool", "sweep", "--yes")
    assert (sorted(report["freed"]), report["withheld"]) == (names, [])
    assert set(place.standings().values()) == {"dirty"}


def test_consumers_in_processes_of_their_own_fill_accounts_to_their_limit_and_never_over_it(
    control_plane: ControlPlane, admin: DynamicClient, namespace: str, tmp_path: Path
) -> None:
    place = made_with(PoolConfigMap(limits={"aws": 2}), control_plane, admin, namespace, tmp_path)
    for number in range(4):
        place.add(f"aws-{number}")
    asked = ["pool", "claim", "--type", "aws", "--tenant", "acme", "--spill", "--output", "json"]
    running = [place.start("provisioner", *asked, "--holder", f"h{number}") for number in range(5)]
    answers = [process.communicate(timeout=SECONDS)[0] for process in running]
    used = Counter(json.loads(answer)["secretName"] for answer in answers)
    assert sorted(used.values()) == [1, 2, 2]
    slots = {account["slot"] for account in place.ask("janitor", "pool", "status")["accounts"]}
    assert slots == {"main", "main+1", "main+2", None}


def test_hold_by_command_outlives_settings_that_are_deleted_and_declared_again(own_place: Place) -> None:
    place, settings = own_place, own_place.api("ConfigMap")
    place.add("aws-1")
    place.ask("admin", "pool", "hold", "--reason", "accounts are moved", "--type", "aws")
    settings.delete(name=CONFIG_MAP, namespace=place.namespace)
    asked = "pool", "claim", "--type", "aws", "--tenant", "globex"
    assert place.run("provisioner", *asked).code == 5
    body = {"metadata": {"name": CONFIG_MAP}, "data": SETTINGS.render()}
    settings.create(body=body, namespace=place.namespace)
    refused = place.run("provisioner", *asked)
    assert (refused.code, "accounts are moved" in refused.errors) == (5, True)
    assert place.ask("janitor", "pool", "status")["holds"] == {"aws": "accounts are moved"}
    place.ask("admin", "pool", "resume")
    assert claim(place, "globex") == "aws-1"


def test_a_pool_with_the_labels_of_kyma_is_used_as_it_is_and_guarded_by_them(kyma_place: Place) -> None:
    place, secrets = kyma_place, kyma_place.api("Secret")
    accounts = {
        "free": {},
        "dirty": {"dirty": "true"},
        "theirs": {"tenantName": "globex"},
        "eu": {"euAccess": "true"},
        "many": {"shared": "true"},
        "odd": {"dirty": "false"},
        "kept": {"dirty": "true", POOL_STATE: "quarantined"},
    }
    for name, labels in accounts.items():
        metadata = {"name": name, "labels": {"hyperscalerType": "aws", **labels}}
        secrets.create(namespace=place.namespace, body={"metadata": metadata})

    def labels_of(name: str) -> dict[str, str]:
        return secrets.get(name=name, namespace=place.namespace).to_dict()["metadata"]["labels"]

    def change(user: str, name: str, **labels: str | None) -> str | None:
        with client_for(place.plane.kubeconfig(user), place.folder / "discovery.json") as client:
            api = client.resources.get(api_version="v1", kind="Secret")
            where = {"name": name, "namespace": place.namespace, "content_type": MERGE}

            def write() -> object:
                return api.patch(**where, body={"metadata": {"labels": labels}})

            return refusal(write)

    states = ["free", "dirty", "owned", "free", "shared", "misconfigured", "quarantined"]
    assert place.standings() == dict(zip(accounts, states, strict=True))
    assert claim(place, "acme") == "free"
    assert labels_of("free") == {"hyperscalerType": "aws", "tenantName": "acme"}
    assert place.run("provisioner", "pool", "claim", "--type", "aws", "--tenant", "initech").code == 4
    assert " account-owner: " in (change("admin", "free", tenantName="initech") or "")
    assert " account-state: " in (change("provisioner", "dirty", dirty=None) or "")
    for user in ("provisioner", "admin"):
        assert " account-labels: " in (change(user, "kept", dirty=None) or "")
        assert " account-state: " in (change(user, "kept", **{"dirty": None, POOL_STATE: None}) or "")
    place.ask("provisioner", "pool", "release", "--type", "aws", "--tenant", "acme")
    assert labels_of("free") == {"hyperscalerType": "aws", "tenantName": "acme", "dirty": "true"}
    cleaned = place.ask("janitor", "pool", "clean", "--command", "aws=true", "--yes")["cleaned"]
    assert {each["secretName"]: each["outcome"] for each in cleaned} == {
        "free": "cleaned",
        "dirty": "cleaned",
    }
    assert labels_of("free") == labels_of("dirty") == {"hyperscalerType": "aws"}


def test_the_last_account_claimed_leaves_a_zero_in_the_metrics(place: Place) -> None:
    place.add("aws-1")
    claim(place, "acme")
    lines = place.run("janitor", "pool", "metrics").output.splitlines()
    labels = f'{{namespace="{place.namespace}",partition_eu_access="",shared="false",type="aws"}}'
    assert f"credfleet_pool_available_accounts{labels} 0.0" in lines


def test_a_pool_in_order_is_well_for_whoever_works_on_it(place: Place) -> None:
    place.add("aws-1")
    claim(place, "acme")
    for user in ("admin", "provisioner", "janitor"):
        examined = place.run(user, "doctor")
        assert (examined.code, examined.errors) == (0, ""), examined.output


def test_a_team_brings_an_account_that_its_tenant_alone_gets_and_may_do_nothing_else(place: Place) -> None:
    rules = [
        {
            "apiGroups": [one.group],
            "resources": [one.resource],
            "verbs": one.verbs,
            "resourceNames": one.names,
        }
        for one in rights_to_bring("acme")
    ]
    grant(place.admin, place.namespace, "team", rules)
    (place.folder / "key.json").write_text(f'{{"key": "{SENTINEL}"}}')

    def bring(tenant: str, user: str = "team", *more: str) -> Answer:
        account = f"--tenant {tenant} --type aws --account-id 111122223333 --expires-at 2999-01-31"
        whose = (*account.split(), *more)
        return place.run(user, "pool", "bring", *whose, "--values", "key.json", "-o", "json")

    brought = bring("acme").json
    assert brought["brought"]
    again = bring("acme")
    assert (again.code, again.json["outcome"]) == (1, "refused")
    assert bring("acme", "admin").json["outcome"] == "there"
    (place.folder / "key.json").write_text('{"key": "new"}')
    assert (bring("acme", "admin").code, bring("acme", "admin", "--update").json["outcome"]) == (1, "updated")
    assert bring("globex").code == 5
    for other in (("status",), ("quarantine", brought["secretName"], "--reason", "x"), ("sweep", "--yes")):
        assert place.run("team", "pool", *other).code == 5
    assert place.run("provisioner", "pool", "claim", "--type", "aws", "--tenant", "globex").code == 3
    place.add("aws-1")
    assert claim(place, "acme") == brought["secretName"]
    place.ask("provisioner", "pool", "release", "--type", "aws", "--tenant", "acme")
    assert claim(place, "globex") == "aws-1"
    assert claim(place, "acme") == brought["secretName"]


def test_account_that_is_brought_for_two_tenants_at_once_is_brought_for_one(own_place: Place) -> None:
    place = own_place
    (place.folder / "key.json").write_text(f'{{"key": "{SENTINEL}"}}')
    rules = [
        {"apiGroups": [e.group], "resources": [e.resource], "verbs": e.verbs, "resourceNames": e.names}
        for tenant in ("acme", "globex")
        for e in rights_to_bring(tenant)
    ]
    grant(place.admin, place.namespace, "team", rules)

    def words(tenant: str, account: str = "111122223333") -> tuple[str, ...]:
        whose = ("--tenant", tenant, "--type", "aws", "--account-id", account, "--values", "key.json")
        return ("pool", "bring", *whose, "--yes")

    racing = [place.start("team", *words(tenant)) for tenant in ("acme", "globex")]
    said = ["".join(each.communicate(timeout=SECONDS)) for each in racing]
    assert sorted(each.returncode for each in racing) == [0, 1], said
    (account,) = place.standings()
    owner = place.api("Secret").get(name=account, namespace=place.namespace).metadata.labels[TENANT_NAME]
    (loser,) = {"acme", "globex"} - {owner}
    refused = place.run("team", *words(loser))
    assert (refused.code, f"whether it is {loser}'s" in " ".join(refused.output.split())) == (1, True)
    told = place.run("admin", *words(loser))
    assert (told.code, account in told.output + told.errors) == (4, True)

    former = former_name("acme", "aws", "444455556666")
    notes = {ACCOUNT_ID: "444455556666", BRING_YOUR_OWN: "true"}
    metadata = {
        "name": former,
        "labels": {HYPERSCALER_TYPE: "aws", TENANT_NAME: "acme"},
        "annotations": notes,
    }
    place.api("Secret").create(namespace=place.namespace, body={"metadata": metadata})
    assert place.run("team", *words("acme", "444455556666")).code == 1
    assert place.standings().keys() == {account, former}


def test_an_account_that_makes_no_sense_is_not_brought(place: Place) -> None:
    (place.folder / "key.json").write_text(f'{{"key": "{SENTINEL}"}}')
    (place.folder / "text.json").write_text(f'"{SENTINEL}"')
    asked = {"--tenant": "acme", "--type": "aws", "--account-id": "111122223333", "--values": "key.json"}
    for option, text, named in (
        ("--type", "AWS!", "--type"),
        ("--account-id", "1111-2222-3333", "--account-id"),
        ("--tenant", "a b", "--tenant"),
        ("--partition", "region=eu", "partition region"),
        ("--values", "text.json", "text.json"),
    ):
        words = chain.from_iterable((asked | {option: text}).items())
        refused = place.run("admin", "pool", "bring", *words, "-o", "json")
        assert refused.code in (2, 4)
        assert named in refused.output
    assert place.standings() == {}


def _read_until(stream: Any, text: str) -> None:
    while text not in stream.readline():
        pass


@pytest.fixture
def waiting(place: Place) -> Callable[[], subprocess.Popen[str]]:
    """Start a claim that waits for an account, and return when it says that it does."""
    place.add("aws-1")
    claim(place, "acme")

    def waiting() -> subprocess.Popen[str]:
        arguments = ["pool", "claim", "--type", "aws", "--tenant", "globex", "--wait", "10m"]
        process = place.start("provisioner", *arguments)
        _read_until(process.stderr, "waiting for a free aws account")
        return process

    return waiting


def test_a_claim_that_waits_gets_the_account_that_is_given_back(
    place: Place, waiting: Callable[[], subprocess.Popen[str]]
) -> None:
    process = waiting()
    place.ask("provisioner", "pool", "release", "--type", "aws", "--tenant", "acme")
    place.ask("janitor", "pool", "clean", "--command", "aws=true", "--yes")
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "tenant globex now has aws account aws-1" in output


def test_waiting_is_stopped_by_control_c_and_leaves_nothing_behind(
    place: Place, waiting: Callable[[], subprocess.Popen[str]]
) -> None:
    process = waiting()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 8
    assert "Traceback" not in errors
    assert place.ask("admin", "pool", "explain", "--type", "aws", "--tenant", "globex")["claim"] is None


def test_key_that_changed_is_told_and_put_in_place_alone_only_where_it_is_asked_for(place: Place) -> None:
    (place.folder / "more.csv").write_text(
        "name,type,accountId\naws-7,aws,777777777777\naws-8,aws,888888888888\n"
    )
    keys = place.folder / "keys"
    keys.mkdir()

    def imported(code: int, *more: str) -> dict[str, Any]:
        answer = place.run("admin", "pool", "import", "more.csv", "--values", "keys", *more, "-o", "json")
        assert answer.code == code, answer.output + answer.errors
        return {each["secretName"]: each["outcome"] for each in answer.json["accounts"]}

    def secret() -> Any:
        return place.api("Secret").get(name="aws-7", namespace=place.namespace).to_dict()

    for name in ("aws-7", "aws-8"):
        (keys / f"{name}.json").write_text(f'{{"key": "{SENTINEL}", "old": "{name}"}}')
    assert imported(0) == {"aws-7": "imported", "aws-8": "imported"}
    claim(place, "acme")
    (keys / "aws-8.json").unlink()
    (keys / "aws-7.json").write_text(f'{{"key": "{SENTINEL}", "new": "x"}}')
    before = secret()

    assert imported(1) == {"aws-7": "differs", "aws-8": "not compared"}
    assert imported(0, "--update", "--dry-run") == {"aws-7": "to update", "aws-8": "not compared"}
    assert secret() == before
    assert imported(0, "--update") == {"aws-7": "updated", "aws-8": "not compared"}
    after = secret()
    assert after["data"] == {"key": before["data"]["key"], "new": "eA=="}
    assert [after["metadata"][each] for each in ("labels", "annotations", "uid")] == [
        before["metadata"][each] for each in ("labels", "annotations", "uid")
    ]
    assert imported(0) == {"aws-7": "there", "aws-8": "not compared"}

    (keys / "aws-7.json").write_text(f'{{"key": "{SENTINEL}", "new": "y"}}')
    begun = {"labels": {KEY_PHASE: "preparing"}, "annotations": {KEY_OPERATION: "a/run", KEY_ID: "one"}}
    place.api("Secret").patch(
        name="aws-7", namespace=place.namespace, body={"metadata": begun}, content_type=MERGE
    )
    assert imported(1, "--update") == {"aws-7": "differs", "aws-8": "not compared"}

    (keys / "aws-7.json").write_text("{")
    for values, told in (
        ("keys", "value of aws-7: "),
        (".", "it has the value of no account that the CSV lists"),
        ("none", "none: there is no such folder"),
    ):
        refused = place.run("admin", "pool", "import", "more.csv", "--values", values)
        assert (refused.code in (2, 4), told in refused.errors) == (True, True), refused.errors


def test_account_that_has_rested_is_given_out_before_one_that_became_free_later(own_place: Place) -> None:
    place = own_place
    body = {"data": replace(SETTINGS, clock=Clock(rest_for="2h")).render()}
    place.api("ConfigMap").patch(name=CONFIG_MAP, namespace=place.namespace, body=body, content_type=MERGE)
    for name in ("aws-1", "aws-2", "aws-3"):
        place.add(name)
        claim(place, name)
        place.ask("provisioner", "pool", "release", "--type", "aws", "--tenant", name)
    place.ask("janitor", "pool", "clean", "--command", "aws=true", "--yes")
    assert set(place.standings().values()) == {"resting"}
    assert place.run("provisioner", "pool", "claim", "--type", "aws", "--tenant", "acme").code == 3

    rest(place, "aws-2", timedelta(hours=5))
    rest(place, "aws-3", timedelta(hours=3))
    assert place.standings() == {"aws-1": "resting", "aws-2": "free", "aws-3": "free"}
    told = place.ask("janitor", "pool", "explain", "--type", "aws", "--tenant", "globex")
    assert [each["secretName"] for each in told["candidates"]] == ["aws-2", "aws-3", "aws-1"]
    assert [claim(place, tenant) for tenant in ("globex", "initech")] == ["aws-2", "aws-3"]
    assert FREED not in place.api("Secret").get(name="aws-2", namespace=place.namespace).metadata.annotations


def rest(place: Place, name: str, length: timedelta) -> None:
    """Let an account have become free that long ago, as the API server books it if something changes."""
    secret = place.api("Secret").get(name=name, namespace=place.namespace).to_dict()
    secret["metadata"]["annotations"]["note"] = f"rested {length}"
    for entry in secret["metadata"]["managedFields"]:
        entry["time"] = f"{datetime.now(UTC) - length:%Y-%m-%dT%H:%M:%SZ}"
    place.api("Secret").replace(name=name, namespace=place.namespace, body=secret)
