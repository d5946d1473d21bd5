"""How requests to an API server are made, repeated and refused; the server is a stand-in."""

import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeAlias, cast

import pytest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.kubernetes.connection import Connection, KubernetesOptions
from pulumi_sandbox.providers.kubernetes.errors import ApiRefusedError
from pulumi_sandbox.providers.kubernetes.objects import KubernetesKind

Answer: TypeAlias = tuple[int, object]

V1 = "client.authentication.k8s.io/v1"


class Server(ThreadingHTTPServer):
    """Answers each path from a list, the last answer for good, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        methods: dict[str, object] = {"do_GET": _Handler.answer, "do_POST": _Handler.answer}
        super().__init__(("127.0.0.1", 0), type("Handler", (_Handler,), methods))
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[tuple[str, str, str, str]] = []

    def connection(self, *, namespace: str = "", token: str = "my-token", plugin: str = "") -> Connection:
        context: Properties = {"cluster": "here", "user": "me", "namespace": "mine"}
        place = f"http://127.0.0.1:{self.server_address[1]}"
        content: Properties = {
            "current-context": "dev",
            "clusters": [{"name": "here", "cluster": {"server": place}}],
            "contexts": [{"name": "dev", "context": context}],
            "users": [{"name": "me", "user": _signing_in(plugin) if plugin else {"token": token}}],
        }
        return Connection(KubernetesOptions(json.dumps(content), namespace=namespace))


def _signing_in(script: str) -> Properties:
    return {"exec": {"apiVersion": V1, "command": "sh", "args": ["-c", script]}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        server = cast(Server, self.server)
        server.asked.append((self.command, self.path, self.headers["Authorization"], body))
        answers = server.answers[self.path]
        status, content = answers.pop(0) if len(answers) > 1 else answers[0]
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Generator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def listed(*kinds: str) -> Properties:
    resources: list[object] = []
    for kind in kinds:
        plural = f"{kind.lower()}s"
        resources += [{"name": plural, "kind": kind, "namespaced": True}]
        resources += [{"name": f"{plural}/status", "kind": kind, "namespaced": True}]
    return json.loads(json.dumps({"resources": resources}))


def test_a_token_from_a_file_that_ends_in_a_newline_is_sent_without_it(server: Server):
    server.answers["/api/v1"] = [(200, {})]
    server.connection(token="my-token\n").send("GET", "/api/v1")
    assert [asked[2] for asked in server.asked] == ["Bearer my-token"]


@pytest.mark.parametrize("token", ["my-token\nmore", "my-token→"])
def test_a_token_that_no_header_bears_is_told_without_its_text(server: Server, token: str):
    with pytest.raises(SandboxError) as refused:
        server.connection(token=token).send("GET", "/api/v1")
    assert refused.value.code == "kubeconfig-invalid"
    assert "my-token" not in str(refused.value)


def test_a_plugin_for_credentials_is_not_told_the_passphrase_of_the_state(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "hunter2")
    credential = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "told-@"}}
    script = f"""printf '%s' '{json.dumps(credential)}' | sed "s/@/$PULUMI_CONFIG_PASSPHRASE./" """
    server.answers["/api"] = [(200, {})]
    server.connection(plugin=script).send("GET", "/api")
    assert server.asked == [("GET", "/api", "Bearer told-.", "")]


def test_a_plugin_for_credentials_that_fails_is_told_and_prints_nothing(
    server: Server, capfd: pytest.CaptureFixture[str]
):
    with pytest.raises(SandboxError) as refused:
        server.connection(plugin="echo sentinel >&2; exit 1").send("GET", "/api")
    assert refused.value.code == "kubeconfig-invalid"
    assert "its plugin for credentials failed" in str(refused.value)
    assert "sentinel" not in "".join([str(refused.value), *capfd.readouterr()])
    assert server.asked == []


def test_a_busy_server_is_asked_again_also_for_writes(server: Server):
    server.answers["/api/v1/secrets"] = [(429, {}), (503, {}), (201, {"kind": "Secret"})]
    assert server.connection().send("POST", "/api/v1/secrets", body={}) == {"kind": "Secret"}


def test_a_server_that_stays_busy_is_an_error(server: Server):
    server.answers["/api/v1/secrets"] = [(429, {"message": "too many requests"})]
    with pytest.raises(ApiRefusedError, match="too many requests"):
        server.connection().send("GET", "/api/v1/secrets")


@pytest.mark.parametrize(
    ("answer", "message"), [("<html>gateway</html>", "<html>gateway</html>"), ({}, "HTTP status 500")]
)
def test_a_refusal_without_a_message_is_told_as_it_came(server: Server, answer: object, message: str):
    server.answers["/api/v1/secrets"] = [(500, answer)]
    with pytest.raises(ApiRefusedError) as refused:
        server.connection().send("GET", "/api/v1/secrets")
    assert str(refused.value) == message


def test_a_kind_is_looked_up_once_and_one_that_is_missing_each_time(server: Server):
    server.answers["/apis/a.b/v1"] = [(404, {}), (200, listed("Bucket")), (200, listed("Bucket", "Pail"))]
    connection = server.connection()
    assert connection.find("a.b/v1", "Bucket") is None
    assert connection.find("a.b/v1", "Bucket") == KubernetesKind("a.b/v1", "buckets", namespaced=True)
    assert connection.find("a.b/v1", "Bucket") is not None
    assert len(server.asked) == 2
    assert connection.find("a.b/v1", "Pail") == KubernetesKind("a.b/v1", "pails", namespaced=True)


def test_the_namespace_is_the_options_or_the_contexts(server: Server):
    assert server.connection().default_namespace == "mine"
    assert server.connection(namespace="other").default_namespace == "other"


@pytest.mark.parametrize("given", ["/nowhere/config", "{not: [yaml", "{}", "a: 1\nb: 2", "{users: 7}"])
def test_what_is_no_kubeconfig_is_refused_without_quoting_it(given: str):
    with pytest.raises(SandboxError) as refused:
        Connection(KubernetesOptions(given)).send("GET", "/api/v1")
    assert refused.value.code == "kubeconfig-invalid"
    assert "yaml" not in str(refused.value)


def test_files_are_joined_and_paths_in_one_are_meant_from_its_folder(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    content: Properties = {
        "current-context": "dev",
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
    }
    more: Properties = {
        "contexts": [{"name": "dev", "context": {"cluster": "here", "user": "me"}}],
        "users": [{"name": "me", "user": {"tokenFile": "token"}}],
    }
    for name, text in (("a", json.dumps(content)), ("b", json.dumps(more)), ("token", "my-token\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBECONFIG", ":".join(str(tmp_path / name) for name in "axb"))
    server.answers["/api/v1"] = [(200, {})]
    connection = Connection(KubernetesOptions())
    connection.send("GET", "/api/v1")
    assert [asked[2] for asked in server.asked] == ["Bearer my-token"]
    assert connection.default_namespace == "default"
