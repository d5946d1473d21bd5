"""deploy/ on a real API server: manifests are taken, and ServiceAccounts have what they need and no more.

No pod runs here: a command is run with the arguments of its container and the token of its ServiceAccount.
"""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import yaml
from kubernetes.config import incluster_config
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from components import connection
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.holders import Holder, cleaning_token
from components.account_pool.core.keys import CLEANING_TOKEN, POOL_STATE
from components.account_pool.core.model import ClaimRequest, Phase
from components.account_pool.core.pool import CLEANER
from components.account_pool.core.pool_operator import PoolOperator
from components.connection import ClusterTarget
from components.labels import HYPERSCALER_TYPE
from operations.main import app
from operations.pool.metrics import PoolCollector
from sandbox.tests.support.cluster import ROOT
from tests.support.deployed import DEPLOY, Accounts, arguments, objects, single_rights, words
from tests.support.fleet_project import CREDFLEET
from tests.support.guarded_pool import MERGE, enforce, record_of

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

SCRIPT = """#!{python}
import base64, json, os, ssl, sys, urllib.request
config = json.load(open(os.environ["KUBECONFIG"]))
cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
namespace = f"{{cluster['server']}}/api/v1/namespaces/{{os.environ['CREDFLEET_NAMESPACE']}}"
data = base64.b64decode(cluster.get("certificate-authority-data", "")).decode() or None
trusted = ssl.create_default_context(cafile=cluster.get("certificate-authority"), cadata=data)
signed = {{"Authorization": f"Bearer {{user['token']}}"}}
asked = urllib.request.Request(f"{{namespace}}/secrets/{{sys.argv[1]}}", headers=signed)
urllib.request.urlopen(asked, context=trusted).read()
"""
"""What a cleaner of one's own begins with: it reads the credential."""

SECONDS = 600.0
"""How long a slow machine may take to write an Event."""

FILES = ("exporter.yaml", "clean.yaml", "sweep.yaml")


@dataclass(frozen=True)
class Place:
    """A pool with its rules in force; each thing that is tried has accounts of its own."""

    namespace: str
    admin: DynamicClient
    accounts: Accounts
    operator: PoolOperator
    cleaner: Path

    def api(self, kind: str) -> Any:
        return self.admin.resources.get(api_version="v1", kind=kind)

    def add(self, **labels: str) -> str:
        name = f"aws-{secrets.token_hex(4)}"
        body = {"metadata": {"name": name, "labels": {HYPERSCALER_TYPE: "aws", **labels}}}
        self.api("Secret").create(body=body, namespace=self.namespace)
        return name

    def state(self, name: str) -> str | None:
        member = self.operator.member(name)
        assert member is not None
        return "claimed" if member.token else member.state

    def begun_in_pod(self, name: str, pod: str) -> None:
        """Let an account be cleaned in a pod: its NAMESPACE/NAME/UID."""
        token = cleaning_token("nightly", "1", Holder("elsewhere", "b", "1-2", "3", "4", pod))
        body = {"metadata": {"annotations": {CLEANING_TOKEN: token}}}
        self.api("Secret").patch(name=name, namespace=self.namespace, body=body, content_type=MERGE)

    def lose_record(self, record: str, *, whole: bool) -> None:
        """Leave what a release that was killed leaves, or, whole, what a lost record does."""
        where = {"name": record, "namespace": self.namespace}
        left = {"data": {"phase": "Releasing", "holders": "{}", "retired": "1"}}
        self.api("ConfigMap").patch(**where, body=left, content_type=MERGE)
        if whole:
            self.api("ConfigMap").delete(**where)

    def run(self, name: str, kubeconfig: Path, *also: str) -> int:
        given = [*arguments(name, self.namespace), *also, "--kubeconfig", str(kubeconfig)]
        return (
            CliRunner()
            .invoke(app, [each.replace("/cleaners/aws", str(self.cleaner)) for each in given])
            .exit_code
        )


@pytest.fixture(scope="module")
def place(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    namespace, folder = f"test-{secrets.token_hex(5)}", tmp_path_factory.mktemp("accounts")
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": namespace}})
    body = {"metadata": {"name": CONFIG_MAP}, "data": PoolConfigMap().render()}
    admin.resources.get(api_version="v1", kind="ConfigMap").create(body=body, namespace=namespace)
    enforce(admin, namespace)
    target = ClusterTarget(kubeconfig=str(control_plane.kubeconfig("admin")))
    cleaner = folder / "aws"
    cleaner.write_text(SCRIPT.format(python=sys.executable))
    cleaner.chmod(0o755)
    accounts = Accounts(control_plane, admin, namespace, folder)
    return Place(namespace, admin, accounts, PoolOperator.open(target, namespace), cleaner)


def cleans(place: Place, kubeconfig: Path) -> bool:
    """Whether a dirty account is free after it and an Event tells so, and one of a pod that is gone."""
    name, left = place.add(**{POOL_STATE: "dirty"}), place.add(**{POOL_STATE: "cleaning"})
    place.begun_in_pod(left, f"{place.namespace}/gone/1")
    done = place.run("clean.yaml", kubeconfig) == 0 and place.state(name) is place.state(left) is None
    if done:
        target = ClusterTarget(kubeconfig=str(kubeconfig))
        assert PoolOperator.open(target, place.namespace, manager=CLEANER).flush(SECONDS)
    events = place.api("Event").get(namespace=place.namespace, field_selector=f"involvedObject.name={name}")
    return done and [each.reason for each in events.items] == ["Cleaned"]


def sweeps(place: Place, kubeconfig: Path) -> bool:
    """Whether a lost claim, a killed release and a claim that nobody goes on with are ended."""
    for _ in range(2):
        place.add()
    lost, released = (
        place.operator.claim(ClaimRequest(secrets.token_hex(4), "aws", holder="h")) for _ in range(2)
    )
    place.lose_record(lost.record, whole=True)
    place.lose_record(released.record, whole=False)
    begun = replace(record_of(Phase.PENDING), name=f"claim-{secrets.token_hex(4)}")
    place.api("ConfigMap").create(body=begun.render(place.namespace), namespace=place.namespace)
    done = place.run("sweep.yaml", kubeconfig) == 0
    kept = {each.name for each in place.operator.records()} & {begun.name, released.record}
    states = {place.state(each.secret_name) for each in (lost, released)}
    place.operator.sweep(most=100, settle_seconds=0)
    return done and not kept and "claimed" not in states


def exports(place: Place, kubeconfig: Path) -> bool:
    """Whether everything is measured."""
    return len([*PoolCollector(ClusterTarget(kubeconfig=str(kubeconfig)), place.namespace).collect()]) > 1


WORK: dict[str, Callable[[Place, Path], bool]] = {
    "exporter.yaml": exports,
    "clean.yaml": cleans,
    "sweep.yaml": sweeps,
}
LACKING = [
    pytest.param(name, lacking, id=f"{name} without {words(lacking)}")
    for name in WORK
    for lacking in single_rights(name)
]


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Logs are written elsewhere; a claim that is left here is one that nobody goes on with."""
    monkeypatch.chdir(tmp_path)
    defaults = {**(PoolOperator.sweep.__kwdefaults__ or {}), "settle_seconds": 0.0}
    monkeypatch.setattr(PoolOperator.sweep, "__kwdefaults__", defaults)


@pytest.mark.parametrize("name", WORK)
def test_with_its_rights_each_does_all_of_its_work(place: Place, name: str) -> None:
    assert WORK[name](place, place.accounts.kubeconfig(name.removesuffix(".yaml"), [*single_rights(name)]))


def test_what_a_pod_cleans_is_left_to_it_until_it_is_over(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = place.accounts.kubeconfig("nightly", [*single_rights("clean.yaml")])
    pods, name = place.api("Pod"), place.add(**{POOL_STATE: "cleaning"})
    named = {"name": "cleaner", "namespace": place.namespace}
    spec = {"containers": [{"name": "clean", "image": "credfleet"}], "automountServiceAccountToken": False}
    pod = pods.create(namespace=place.namespace, body={"metadata": named, "spec": spec})
    living, held = f"{place.namespace}/cleaner/{pod.metadata.uid}", list[str]()
    place.begun_in_pod(name, living)

    def note(_pid: int, pod: str = "") -> None:
        held.append(pod)

    monkeypatch.setattr(Holder, "of_process", note)
    for its_own in (living, f"{place.namespace}/of-another-cluster/1"):
        place.add(**{POOL_STATE: "dirty"})
        monkeypatch.setenv("CREDFLEET_POD", its_own)
        place.run("clean.yaml", kubeconfig)
    assert {*held} == {"", living}
    assert place.state(name) == "cleaning"
    pods.status.patch(**named, body={"status": {"phase": "Failed"}}, content_type=MERGE)
    place.run("clean.yaml", kubeconfig)
    assert place.state(name) is None


@pytest.mark.parametrize(("name", "lacking"), LACKING)
def test_without_any_one_of_its_rights_it_does_not(place: Place, name: str, lacking: Any) -> None:
    rest = [right for right in single_rights(name) if right != lacking]
    kubeconfig = place.accounts.kubeconfig(f"lacking-{secrets.token_hex(4)}", rest)
    assert not WORK[name](place, kubeconfig)


@pytest.mark.parametrize("name", FILES)
def test_the_api_server_takes_every_manifest(place: Place, name: str) -> None:
    for body in objects(name, place.namespace):
        api: Any = place.admin.resources.get(api_version=body["apiVersion"], kind=body["kind"])
        body["metadata"]["name"] += "-tried"
        api.create(body=body, namespace=place.namespace, dry_run="All")


def test_every_manifest_is_in_the_kustomization() -> None:
    listed = (DEPLOY / "kustomization.yaml").read_text()
    others = {"kustomization.yaml", "prometheus-rules-test.yaml"}
    assert {each.name for each in DEPLOY.glob("*.yaml")} - others == {*re.findall(r"- (\S+\.yaml)", listed)}


@contextmanager
def served(place: Place, kubeconfig: Path) -> Generator[str]:
    """Run the exporter, and yield its address; it ends well when it is told to."""
    given = [
        "127.0.0.1:0" if each.startswith("0.0.0.0") else each
        for each in arguments("exporter.yaml", place.namespace)
    ]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(kubeconfig.parent), "PYTHONPATH": str(ROOT)}
    command = [str(CREDFLEET), *given, "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        yield process.stderr.readline().split()[-3].removesuffix("/metrics,")
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def asked(address: str, path: str) -> str:
    with urlopen(address + path) as answer:
        return answer.read().decode()


def claimed(address: str) -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(asked(address, "/metrics"))
        for sample in family.samples
        if sample.name == "credfleet_pool_claimed_accounts"
    )


def test_exporter_tells_what_was_claimed_since_it_was_asked_before(place: Place) -> None:
    kubeconfig = place.accounts.kubeconfig("served", [*single_rights("exporter.yaml")])
    with served(place, kubeconfig) as address:
        before = claimed(address)
        place.add()
        place.operator.claim(ClaimRequest(secrets.token_hex(4), "aws", holder="h"))
        assert claimed(address) == before + 1


def test_in_a_pod_the_cluster_is_that_of_its_service_account(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = yaml.safe_load(place.accounts.kubeconfig("pod", [*single_rights("sweep.yaml")]).read_text())
    cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
    (tmp_path / "token").write_text(user["token"])
    (tmp_path / "ca.crt").write_bytes(
        b64decode(cluster["certificate-authority-data"])
        if "certificate-authority-data" in cluster
        else Path(cluster["certificate-authority"]).read_bytes()
    )
    address = urlsplit(cluster["server"])
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(connection, "_connections", {})
    result = CliRunner().invoke(app, arguments("sweep.yaml", place.namespace))
    assert result.exit_code == 0, result.output
    assert "the cluster of this pod" in result.stderr
    assert not place.operator.sweep(dry_run=True).withheld
