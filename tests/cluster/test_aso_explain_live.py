"""`credfleet aso explain --live` on a real API server, and the kinds the sandbox brings there."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN
from typer.testing import CliRunner, Result

from operations.main import app
from operations.sandbox import existing
from tests.support.aso import CLIENT, SUB, TENANT, manifest
from tests.support.stacks import ROOT

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

SENTINEL = "sentinel-of-a-live-secret"
IDS = {"AZURE_SUBSCRIPTION_ID": SUB, "AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT}


@pytest.fixture(scope="module")
def kubeconfig(control_plane: ControlPlane) -> Path:
    return control_plane.kubeconfig(ADMIN.name)


def explain(kubeconfig: Path, *manifests: dict[str, Any], form: str = "json") -> Result:
    text = "\n---\n".join(map(json.dumps, manifests))
    words = ["aso", "explain", "-", "--live", "--kubeconfig", str(kubeconfig), "--output", form]
    return CliRunner().invoke(app, words, input=text)


def put(admin: DynamicClient, namespace: str, name: str, data: dict[str, str]) -> None:
    body = {"metadata": {"name": name}, "stringData": data}
    admin.resources.get(api_version="v1", kind="Secret").create(body=body, namespace=namespace)


def test_the_secrets_of_the_cluster_say_what_serves_a_resource_and_none_is_shown(
    kubeconfig: Path, admin: DynamicClient, namespace: str
) -> None:
    put(admin, namespace, "aso-credential", {**IDS, "AZURE_CLIENT_SECRET": SENTINEL})
    put(admin, namespace, "billing", {"AZURE_SUBSCRIPTION_ID": SUB})
    annotations = {"serviceoperator.azure.com/credential-from": "billing"}
    found = explain(
        kubeconfig, manifest(namespace, "shop"), manifest(namespace, "billing", annotations=annotations)
    )
    shop, billing = json.loads(found.stdout)
    assert (shop["secret"], shop["method"], shop["severity"]) == (
        f"{namespace}/aso-credential",
        "servicePrincipalSecret",
        None,
    )
    assert (billing["scope"], billing["severity"]) == ("resource", "Warning")
    assert "key AZURE_TENANT_ID" in billing["message"]
    assert found.exit_code == 1
    table = explain(kubeconfig, manifest(namespace, "shop"), form="table")
    assert (table.exit_code, SENTINEL in found.output + table.output) == (0, False)


def test_a_resource_of_an_empty_namespace_is_served_by_nothing(kubeconfig: Path, namespace: str) -> None:
    found = explain(kubeconfig, manifest(namespace, "shop"))
    assert (found.exit_code, json.loads(found.stdout)[0]["secret"]) == (1, None)


def kubeconfig_of(server: str, folder: Path) -> Path:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "clusters": [{"name": "x", "cluster": {"server": server}}],
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "users": [{"name": "x", "user": {}}],
            }
        )
    )
    return kubeconfig


def test_an_api_server_that_is_not_there_ends_the_command_with_problem_and_fix(tmp_path: Path) -> None:
    kubeconfig = kubeconfig_of("https://127.0.0.1:9", tmp_path)
    refused = explain(kubeconfig, manifest("team", "shop"), form="table")
    assert refused.exit_code != 0
    assert "does not answer" in refused.stderr
    assert [line[:2] for line in refused.stderr.splitlines()] == ["✗ ", "→ "]


def test_kinds_are_served_at_once_when_they_were_brought_and_may_be_brought_again(
    kubeconfig: Path, admin: DynamicClient, namespace: str, tmp_path: Path
) -> None:
    objects = tmp_path / "existing.yaml"
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there", "namespace": namespace}}
    objects.write_text(json.dumps(given))
    for _ in range(2):
        existing.bring_kinds(kubeconfig)
        existing.bring(objects, kubeconfig)
        for kind in ("ResourceGroup", "StorageAccount"):
            body = manifest(namespace, "it", kind)
            api = admin.resources.get(api_version=body["apiVersion"], kind=kind)
            api.create(body=body, namespace=namespace)
            api.delete(name="it", namespace=namespace)
    maps = admin.resources.get(api_version="v1", kind="ConfigMap").get(namespace=namespace).items
    assert "there" in {each.metadata.name for each in maps}


class Slow(BaseHTTPRequestHandler):
    """An API server that has all definitions, established, and fills its lists of kinds a moment later."""

    looks = 0

    def do_GET(self) -> None:
        self._answer(HTTPStatus.OK, self._found())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(HTTPStatus.CONFLICT, {"reason": "AlreadyExists"})

    def _found(self) -> dict[str, Any]:
        definitions = {path.stem: yaml.safe_load(path.read_text()) for path in existing.KINDS.glob("*.yaml")}
        *_, last = self.path.split("/")
        if last in definitions:
            status = {"conditions": [{"type": "Established", "status": "True"}]}
            return {**definitions[last], "status": status}
        Slow.looks += 1
        specs = [definition["spec"] for definition in definitions.values()] if Slow.looks > 5 else []
        if last == "apis":
            groups = [
                {
                    "versions": [
                        {"groupVersion": f"{spec['group']}/{each['name']}"} for each in spec["versions"]
                    ]
                }
                for spec in specs
            ]
            return {"kind": "APIGroupList", "groups": groups}
        served = [{"name": spec["names"]["plural"], "kind": spec["names"]["kind"]} for spec in specs]
        return {"kind": "APIResourceList", "resources": served}

    def _answer(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_kinds_that_are_established_and_not_listed_yet_are_waited_for(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        existing.bring_kinds(kubeconfig_of(f"http://127.0.0.1:{server.server_port}", tmp_path))
        server.shutdown()
    assert Slow.looks > 5


def test_every_kind_of_the_dev_stacks_manifests_is_brought() -> None:
    from components.aso_credentials.manifests import objects_in

    wanted = {
        f"{found.manifest['kind'].lower()}s.{found.manifest['apiVersion'].partition('/')[0]}"
        for path in (ROOT / "stacks" / "dev" / "manifests").glob("*.yaml")
        for found in objects_in(path.read_text(encoding="utf-8"), path.name)
    }
    assert wanted
    assert wanted <= {path.stem for path in existing.KINDS.glob("*.yaml")}
