"""Which cluster is asked, and how one that does not answer or does not let in is told."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from pulumi_sandbox.contact import Contact, contact
from pulumi_sandbox.errors import SandboxError


class Answers(BaseHTTPRequestHandler):
    """An API server that knows one question."""

    statuses: ClassVar[dict[str, int]] = {}

    def do_GET(self) -> None:
        status = self.statuses.get(self.path, 404)
        body = json.dumps({"metadata": {"uid": "uid-of-kube-system"}}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Answers) as served:
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def answering(monkeypatch: pytest.MonkeyPatch, namespace: int) -> None:
    statuses = {"/api/v1/namespaces/kube-system": namespace}
    monkeypatch.setattr(Answers, "statuses", statuses)


@pytest.fixture
def kubeconfig(tmp_path: Path, server: HTTPServer) -> Path:
    return write(tmp_path, f"http://127.0.0.1:{server.server_port}")


def write(folder: Path, address: str) -> Path:
    path = folder / "config"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": address}}],
                "users": [{"name": "u", "user": {"token": "t0ken-nobody-may-see"}}],
                "contexts": [
                    {"name": n, "context": {"cluster": "c", "user": "u"}} for n in ("mine", "other")
                ],
                "current-context": "mine",
            }
        )
    )
    return path


@pytest.mark.parametrize(
    ("context", "status", "uid"),
    [(None, 200, "uid-of-kube-system"), ("other", 200, "uid-of-kube-system"), (None, 403, None)],
    ids=["the current context", "the one a stack means", "a uid that may not be read"],
)
def test_a_cluster_says_its_address_context_and_uid(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, context: str | None, status: int, uid: str | None
):
    answering(monkeypatch, status)
    address = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    assert contact(kubeconfig, context) == Contact(kubeconfig, context or "mine", address, uid)


def test_a_user_the_server_does_not_let_in_is_not_allowed(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch, 401)
    with pytest.raises(SandboxError) as told:
        contact(kubeconfig, None)
    assert told.value.code == "not-allowed"


def test_a_context_the_file_has_not_is_named_with_those_it_has(kubeconfig: Path):
    with pytest.raises(SandboxError) as told:
        contact(kubeconfig, "absent", "shop:context")
    assert (told.value.code, told.value.place) == ("wrong-context", "shop:context")
    assert "mine, other" in told.value.problem


def test_a_cluster_out_of_reach_is_named_and_no_token_with_it(tmp_path: Path, server: HTTPServer):
    port = server.server_port
    kubeconfig = write(tmp_path, f"https://127.0.0.1:{port}")
    with pytest.raises(SandboxError) as told:
        contact(kubeconfig, None)
    assert told.value.code == "cluster-unreachable"
    assert told.value.place == f"https://127.0.0.1:{port}"
    assert "t0ken-nobody-may-see" not in str(told.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path):
    with pytest.raises(SandboxError) as told:
        contact(tmp_path / "none", None)
    assert (told.value.code, told.value.place) == ("kubeconfig-missing", str(tmp_path / "none"))


@pytest.mark.parametrize("text", ["", "[]", "{", "clusters: 7", "kind: Config\ncontexts: []\n"])
def test_a_file_that_is_no_kubeconfig_is_named_without_its_text(tmp_path: Path, text: str):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(SandboxError) as told:
        contact(path, None)
    assert (told.value.code, told.value.place) == ("kubeconfig-broken", str(path))
