"""`credfleet aso explain`, on files, on standard input and on a cluster; and the page that shows it."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

import components.connection
from components.connection import ClusterTarget, Reply
from operations.main import app
from tests.support.cases import tabled
from tests.support.stacks import ROOT

IDS: Final = {
    "AZURE_SUBSCRIPTION_ID": "00000000-0000-4000-8000-0000000000aa",
    "AZURE_TENANT_ID": "00000000-0000-4000-8000-0000000000bb",
    "AZURE_CLIENT_ID": "00000000-0000-4000-8000-0000000000cc",
}
SENTINEL: Final = "sentinel-of-a-secret"
KEYS: Final = ["resource", "secret", "scope", "method", "subject", "severity", "reason", "message"]
GROUP: Final = "apiVersion: resources.azure.com/v1api20200601\nkind: ResourceGroup\n"


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["aso", "explain", *arguments], input=stdin)


def explained(text: str, *arguments: str) -> list[dict[str, Any]]:
    result = run("-", "--output", "json", *arguments, stdin=text)
    found: list[dict[str, Any]] = json.loads(result.stdout)
    assert result.exit_code == any(each["severity"] for each in found)
    assert [list(each) for each in found] == [KEYS] * len(found)
    return found


def secret(namespace: str, name: str, data: Mapping[str, str], under: str = "stringData") -> str:
    if under == "data":
        data = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}
    return json.dumps({**body, under: data}) + "\n---\n"


def test_stack_says_how_the_operator_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = GROUP + "metadata: {name: rg, namespace: a}\n"
    assert explained(text, "--stack", "dev") == explained(text)
    assert run("-", "--stack", "dev", "--strict", stdin=text).exit_code == 2


@pytest.mark.parametrize("under", ["data", "stringData"])
def test_a_secret_is_read_from_data_and_from_string_data(under: str) -> None:
    text = secret("a", "aso-credential", {**IDS, "AZURE_CLIENT_SECRET": SENTINEL}, under)
    assert explained(text + GROUP + "metadata: {name: rg, namespace: a}\n") == [
        {
            "resource": "a/ResourceGroup/rg",
            "secret": "a/aso-credential",
            "scope": "namespace",
            "method": "servicePrincipalSecret",
            "subject": None,
            "severity": None,
            "reason": None,
            "message": None,
        }
    ]


def test_resources_come_in_their_order_with_lists_and_without_a_namespace_in_default(tmp_path: Path) -> None:
    listed = {"apiVersion": "storage.azure.com/v1", "kind": "StorageAccount", "metadata": {"name": "b"}}
    (tmp_path / "2.yaml").write_text(GROUP + "metadata: {name: c}\n")
    (tmp_path / "1.yml").write_text(
        "---\n---\n" + json.dumps({"apiVersion": "v1", "kind": "List", "items": [listed]}) + "\n---\n"
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n"
    )
    (tmp_path / "readme.txt").write_text("{")
    result = run("-", str(tmp_path), "-o", "json", stdin=GROUP + "metadata: {name: a}\n")
    assert [each["resource"] for each in json.loads(result.stdout)] == [
        "default/ResourceGroup/a",
        "default/StorageAccount/b",
        "default/ResourceGroup/c",
    ]
    assert result.exit_code == 1


def test_an_operator_elsewhere_has_its_settings_and_its_subject_there() -> None:
    settings = {**IDS, "USE_WORKLOAD_IDENTITY_AUTH": "true"}
    text = secret("ops", "aso-controller-settings", settings) + GROUP + "metadata: {name: rg}\n"
    (there,) = explained(text, "--operator-namespace", "ops")
    (elsewhere,) = explained(text)
    assert (there["secret"], there["scope"]) == ("ops/aso-controller-settings", "global")
    assert there["subject"] == "system:serviceaccount:ops:azureserviceoperator-default"
    assert (elsewhere["secret"], elsewhere["severity"]) == (None, "Warning")
    (renamed,) = explained(text, "--operator-namespace", "ops", "--operator-account", "aso-of-ours")
    assert renamed["subject"] == "system:serviceaccount:ops:aso-of-ours"


def test_strict_and_multi_env_say_how_the_operator_runs() -> None:
    cloud = {
        "AZURE_AUTHORITY_HOST": "https://login.example/",
        "AZURE_RESOURCE_MANAGER_ENDPOINT": "https://management.example",
        "AZURE_RESOURCE_MANAGER_AUDIENCE": "https://management.example",
    }
    text = secret("a", "aso-credential", {**IDS, **cloud}) + GROUP + "metadata: {name: rg, namespace: a}\n"
    assert "ALLOW_MULTI_ENV_MANAGEMENT" in explained(text)[0]["message"]
    (found,) = explained(text, "--multi-env", "--strict")
    assert (found["subject"], found["severity"]) == ("system:serviceaccount:a:aso-workload", None)


def test_owner_annotations_and_deletion_are_read_from_the_manifest() -> None:
    text = secret("a", "aso-credential", IDS) + secret("a", "x", {**IDS, "AZURE_SUBSCRIPTION_ID": "other"})
    text += GROUP + (
        "metadata: {name: rg, namespace: a, annotations: {serviceoperator.azure.com/credential-from: x}}\n"
        "---\napiVersion: storage.azure.com/v1\nkind: StorageAccount\n"
        "metadata: {name: sa, namespace: a, annotation: {serviceoperator.azure.com/credential-from: x}}\n"
        "spec: {owner: {name: rg}}\n---\n"
    )
    text += GROUP + (
        "metadata: {name: gone, namespace: a, deletionTimestamp: '2026-11-21T10:00:00Z', annotations:"
        " {serviceoperator.azure.com/resource-id: /subscriptions/before/resourceGroups/gone}}\n"
    )
    _, child, gone = explained(text)
    assert (child["severity"], child["reason"]) == ("Error", "Failed")
    assert "metadata.annotation" in child["message"]
    assert gone["reason"] == "SubscriptionMismatch"
    assert "its deletion is stuck" in gone["message"]


IDENTITY = """
apiVersion: managedidentity.azure.com/v1api20230131
kind: UserAssignedIdentity
metadata: {name: mi, namespace: team-a}
spec:
  operatorSpec:
    secrets:
      clientId: {name: own, key: AZURE_CLIENT_ID}
      tenantId: {name: own, key: AZURE_TENANT_ID}
    secretExpressions:
    - {name: own, key: AZURE_SUBSCRIPTION_ID, value: self.status.id}
---
"""
READER = """
apiVersion: resources.azure.com/v1api20200601
kind: ResourceGroup
metadata: {name: rg, namespace: team-a, annotations: {serviceoperator.azure.com/credential-from: own}}
---
"""


def test_a_secret_that_aso_itself_writes_serves_others_and_is_said_to_come() -> None:
    namespace = secret("team-a", "aso-credential", {**IDS, "AZURE_CLIENT_SECRET": "s"})
    _, reader = explained(IDENTITY + READER + namespace)
    assert (reader["secret"], reader["method"], reader["severity"]) == (
        "team-a/own",
        "workloadIdentity",
        None,
    )
    assert "is there once team-a/UserAssignedIdentity/mi is ready" in reader["message"]
    half = "\n".join(line for line in IDENTITY.splitlines() if "SUBSCRIPTION" not in line)
    _, short = explained(half.replace("    secretExpressions:\n", "") + READER + namespace)
    assert "does not contain key AZURE_SUBSCRIPTION_ID" in short["message"]


def test_a_resource_is_not_served_by_the_secret_that_is_written_of_it() -> None:
    own = IDENTITY.replace(
        "team-a}", "team-a, annotations: {serviceoperator.azure.com/credential-from: own}}"
    )
    (found,) = explained(own)
    assert (found["severity"], found["reason"]) == ("Warning", "Failed")
    assert "does not exist" in found["message"]


def test_each_namespace_has_a_secret_of_one_name_for_its_own_resources() -> None:
    text = ""
    for team, proof in (("a", {"AZURE_CLIENT_SECRET": SENTINEL}), ("b", {"AUTH_MODE": "podidentity"})):
        text += secret(team, "billing", {**IDS, **proof}) + GROUP
        text += (
            f"metadata: {{name: rg, namespace: {team},"
            " annotations: {serviceoperator.azure.com/credential-from: billing}}\n---\n"
        )
    assert [(each["secret"], each["scope"], each["method"]) for each in explained(text)] == [
        ("a/billing", "resource", "servicePrincipalSecret"),
        ("b/billing", "resource", "podIdentity"),
    ]


def test_a_list_of_one_kind_need_not_repeat_it_in_its_items() -> None:
    items = [{"metadata": {"name": "aso-credential", "namespace": "a"}, "stringData": IDS}]
    text = json.dumps({"apiVersion": "v1", "kind": "SecretList", "items": items}) + "\n---\n"
    (found,) = explained(text + GROUP + "metadata: {name: rg, namespace: a}\n")
    assert (found["secret"], found["severity"]) == ("a/aso-credential", None)


@pytest.mark.parametrize("given", ["-", "file"])
def test_what_is_no_text_is_told_as_such(tmp_path: Path, given: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff\xfe")
    words = [given if given == "-" else str(path)]
    result = CliRunner().invoke(app, ["aso", "explain", *words], input=b"\xff\xfe")
    assert result.exit_code == 2
    assert "not UTF-8 text" in result.stderr


@tabled("text, place")
def test_a_manifest_that_is_none_is_told_in_two_lines_without_its_text(text: str, place: str) -> None:
    result = run("-", stdin=text)
    assert result.exit_code == 2
    assert place in result.stderr
    assert len(result.stderr.strip().splitlines()) == 2
    assert SENTINEL not in result.output


def test_a_file_that_is_not_there_is_a_mistake_in_the_command() -> None:
    assert run("nowhere.yaml").exit_code == 2


def test_nothing_to_explain_is_said_and_is_no_failure() -> None:
    result = run("-", stdin=secret("a", "aso-credential", IDS))
    assert (result.exit_code, result.stdout) == (0, "There is no ASO resource in what was given.\n")


@dataclass
class FakeConnection:
    """A cluster that has one Secret and keeps what it was asked for."""

    status: int = 404
    asked: list[str] = field(default_factory=list[str])

    def call(self, method: str, path: str) -> Reply:
        self.asked.append(f"{method} {path}")
        if path.endswith("/a/secrets/aso-credential"):
            data = {**IDS, "AZURE_CLIENT_SECRET": SENTINEL}
            return Reply(200, {"data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}})
        return Reply(self.status, {"message": "no"})


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeConnection:
    fake = FakeConnection()

    def connect(target: ClusterTarget) -> FakeConnection:
        assert target == ClusterTarget(context="prod", kubeconfig="config")
        return fake

    monkeypatch.setattr(components.connection, "connect", connect)
    return fake


LIVE: Final = ("-", "--live", "--kubeconfig", "config", "--context", "prod")


@pytest.mark.parametrize("form", ["table", "json"])
def test_live_secrets_count_instead_of_those_in_files_and_are_never_shown(
    cluster: FakeConnection, form: str
) -> None:
    text = secret("b", "aso-credential", IDS) + GROUP + "metadata: {name: rg, namespace: a}\n---\n"
    text += GROUP + (
        "metadata: {name: rg, namespace: b, annotations: {serviceoperator.azure.com/credential-from: x}}\n"
    )
    result = run(*LIVE, "--output", form, stdin=text)
    assert result.exit_code == 1
    assert "a/aso-credential" in result.stdout
    assert "credential Secret b/x does not exist" in result.stdout
    assert SENTINEL not in result.output
    assert cluster.asked == [
        "GET /api/v1/namespaces/a/secrets/aso-credential",
        "GET /api/v1/namespaces/azureserviceoperator-system/secrets/aso-controller-settings",
        "GET /api/v1/namespaces/b/secrets/aso-credential",
        "GET /api/v1/namespaces/b/secrets/x",
    ]


def test_a_secret_that_may_not_be_read_ends_the_command_and_is_named(cluster: FakeConnection) -> None:
    cluster.status = 403
    result = run(*LIVE, stdin=GROUP + "metadata: {name: rg, namespace: b}\n")
    assert result.exit_code == 5
    assert "Secret azureserviceoperator-system/aso-controller-settings" in result.stderr


def test_the_examples_print_what_is_kept_and_the_page_shows_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = run("docs/examples/aso")
    printed = "\n".join(line.rstrip() for line in result.stdout.splitlines()).strip()
    assert printed == Path(__file__).with_name("explained.txt").read_text(encoding="utf-8").strip()
    assert printed.partition("\n→")[0] in (ROOT / "docs" / "aso-credentials.md").read_text(encoding="utf-8")
    assert "an-example-not-a-secret" not in printed
    assert result.exit_code == 1
