"""The control plane as its users meet it: who may do what, and what survives which failure."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, cast

import pytest
from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services import control_plane as control_plane_module
from pulumi_sandbox.services import processes
from pulumi_sandbox.services.build import binaries
from pulumi_sandbox.services.cloud.certificates import Certificate
from pulumi_sandbox.services.control_plane import CONTEXT, ControlPlane
from pulumi_sandbox.services.parts import ADMIN, Layout, Part, Ports, User, enrol, to_token_file
from pulumi_sandbox.services.ports import LOOPBACK, PortTakenError, free_ports
from pulumi_sandbox.services.progress import Step

from sandbox.tests.support.cluster import ROOT, client_for

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


@pytest.fixture(scope="module")
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    folder = tmp_path_factory.mktemp("own") / "plane"
    yield folder
    ControlPlane.end(folder)


@pytest.fixture
def own_plane(own_folder: Path) -> ControlPlane:
    """A control plane that each test may break: what the one before broke is started again."""
    return ControlPlane.start(own_folder, binaries=binaries(), die_with_parent=True)


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": data}


def pids(folder: Path) -> dict[Part, list[int]]:
    return {part: processes.find(part, Layout(folder).mark(part)) for part in Part}


def test_a_named_user_may_do_nothing_until_a_role_grants_it(
    api_of: Callable[[str], DynamicClient], admin: DynamicClient, namespace: str
):
    from kubernetes.dynamic.exceptions import ForbiddenError

    def list_secrets() -> list[object]:
        kind = api_of("provisioner").resources.get(api_version="v1", kind="Secret")
        return kind.get(namespace=namespace).items

    with pytest.raises(ForbiddenError, match=r'User \\"provisioner\\" cannot list resource \\"secrets\\"'):
        list_secrets()
    rbac = "rbac.authorization.k8s.io"
    admin.resources.get(api_version=f"{rbac}/v1", kind="RoleBinding").create(
        namespace=namespace,
        body={
            "metadata": {"name": "provisioner"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "provisioner"}],
        },
    )
    deadline = time.monotonic() + 30
    while True:  # the authorizer hears of a new binding a moment after it was written
        try:
            assert list_secrets() == []
            break
        except ForbiddenError:
            assert time.monotonic() < deadline


def test_a_namespace_that_is_deleted_is_gone_in_the_end_with_all_it_held(
    admin: DynamicClient, namespace: str
):
    admin.resources.get(api_version="v1", kind="ConfigMap").create(
        namespace=namespace, body=config_map("held")
    )
    namespaces = admin.resources.get(api_version="v1", kind="Namespace")
    namespaces.delete(name=namespace)
    events = namespaces.watch(field_selector=f"metadata.name={namespace}", timeout=60)
    assert "DELETED" in (event["type"] for event in events)


def test_every_namespace_says_whose_certificate_the_api_server_shows_within_the_cluster(
    admin: DynamicClient, namespace: str, control_plane: ControlPlane
):
    maps = admin.resources.get(api_version="v1", kind="ConfigMap")
    published = "metadata.name=kube-root-ca.crt"
    event = next(iter(maps.watch(namespace=namespace, field_selector=published, timeout=60)))
    trusting = ssl.create_default_context(cadata=event["object"]["data"]["ca.crt"])
    host, port = control_plane.server.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port))) as plain,
        trusting.wrap_socket(plain, server_hostname="kubernetes.default") as secure,
    ):
        assert secure.getpeercert()


def test_the_served_version_is_the_one_the_module_pins(admin: DynamicClient):
    pinned = (ROOT / "sandbox" / "pulumi_sandbox" / "control-plane" / "go.mod").read_text()
    version = cast("dict[str, dict[str, str]]", admin.version)["kubernetes"]["gitVersion"]
    assert f"k8s.io/kubernetes {version}\n" in pinned


def test_kubeconfigs_and_tokens_are_their_owners_only_and_no_process_was_given_a_token(
    control_plane: ControlPlane,
):
    layout = Layout(control_plane.folder)
    files = [layout.tokens, layout.signing_key, *layout.kubeconfigs.iterdir()]
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    tokens = [line.split(",")[0] for line in layout.tokens.read_text().splitlines()]
    words = " ".join(" ".join(processes.command_line(control_plane.pid(part) or 0)) for part in Part)
    assert "--token-auth-file" in words
    assert len(tokens) == len(control_plane.users) + 1
    assert [token for token in tokens if token in words] == []


def test_every_user_has_a_kubeconfig_with_the_one_context(control_plane: ControlPlane):
    configs = [json.loads(control_plane.kubeconfig(user).read_text()) for user in control_plane.users]
    assert [config["users"][0]["name"] for config in configs] == ["admin", "provisioner", "janitor", "team"]
    assert {config["current-context"] for config in configs} == {CONTEXT}


@pytest.mark.life
def test_a_killed_part_is_seen_and_the_next_start_brings_all_back_on_their_ports_with_the_data(
    own_plane: ControlPlane, tmp_path: Path
):
    with client_for(own_plane.kubeconfig("admin"), tmp_path / "discovered") as api:
        config_maps = api.resources.get(api_version="v1", kind="ConfigMap")
        config_maps.create(namespace="default", body=config_map("kept", word="still here"))
        for part in Part:
            own_plane.kill(part)
            assert own_plane.pid(part) is None
            again = ControlPlane.start(own_plane.folder, binaries=binaries(), die_with_parent=True)
            assert again.pid(part) is not None
            assert config_maps.get(namespace="default", name="kept").data.word == "still here"
            assert again.ports == own_plane.ports


@pytest.mark.life
def test_a_second_start_reuses_what_runs_and_a_new_user_joins_without_anyone_losing_a_token(
    own_plane: ControlPlane, tmp_path: Path
):
    before, kubeconfig = pids(own_plane.folder), own_plane.kubeconfig("admin").read_text()
    made: list[Path] = []

    def start(*users: User) -> ControlPlane:
        return ControlPlane.start(
            own_plane.folder,
            binaries=binaries(),
            make=lambda: made.append(binaries()),
            users=users,
            die_with_parent=True,
        )

    assert (start(), pids(own_plane.folder), made) == (own_plane, before, [])

    joined = start(User("auditor", ("system:masters",)))
    assert made == [binaries()]
    assert joined.kubeconfig("admin").read_text() == kubeconfig
    assert joined.users == ["admin", "auditor"]
    with client_for(joined.kubeconfig("auditor"), tmp_path / "discovered") as api:
        assert api.resources.get(api_version="v1", kind="Secret").get(namespace="default").items == []


@pytest.mark.life
def test_what_a_killed_start_left_behind_is_ended_by_the_next(tmp_path: Path):
    folder = tmp_path / "killed"
    start = (
        "import sys; from pathlib import Path; from pulumi_sandbox.services.build import binaries; "
        "from pulumi_sandbox.services.control_plane import ControlPlane; "
        "ControlPlane.start(Path(sys.argv[1]), binaries=binaries())"
    )
    with subprocess.Popen([sys.executable, "-c", start, str(folder)], cwd=ROOT) as killed:
        while not pids(folder)[Part.API_SERVER]:
            assert killed.poll() is None
        killed.kill()
    left = pids(folder)
    plane = ControlPlane.start(folder, binaries=binaries(), die_with_parent=True)
    try:
        now = pids(folder)
        assert [len(found) for found in now.values()] == [1, 1, 1]
        assert not set(left[Part.ETCD] + left[Part.API_SERVER]) & set(now[Part.ETCD] + now[Part.API_SERVER])
    finally:
        plane.stop()
    assert pids(folder) == {part: [] for part in Part}


@pytest.mark.life
def test_what_runs_is_ended_though_its_folder_was_removed(own_plane: ControlPlane):
    shutil.rmtree(own_plane.folder)
    assert ControlPlane.find(own_plane.folder) is None
    assert ControlPlane.end(own_plane.folder)
    assert pids(own_plane.folder) == {part: [] for part in Part}
    assert not ControlPlane.end(own_plane.folder)


def test_an_interrupted_start_leaves_nothing_running(tmp_path: Path):
    def interrupt(step: Step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ControlPlane.start(tmp_path / "interrupted", binaries=binaries(), progress=interrupt)
    assert pids(tmp_path / "interrupted") == {part: [] for part in Part}


@pytest.mark.life
def test_two_that_start_at_once_share_one_control_plane_on_ports_that_nobody_took_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def start(_: int) -> ControlPlane:
        return ControlPlane.start(tmp_path / "shared", binaries=binaries())

    with socket.create_server((LOOPBACK, 0)) as stranger:
        taken = stranger.getsockname()[1]
        etcd, peer = free_ports(2)
        choices = iter([Ports(etcd, peer, taken), Ports.free()])
        monkeypatch.setattr(Ports, "free", lambda: next(choices))
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(start, range(2))
        try:
            assert first == second
            assert [len(found) for found in pids(first.folder).values()] == [1, 1, 1]
            assert first.ports.etcd != etcd
            assert taken not in (first.ports.etcd, first.ports.etcd_peer, first.ports.api_server)
        finally:
            first.stop()


def test_a_start_that_finds_its_ports_taken_every_time_names_who_took_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    etcd, peer = free_ports(2)
    with socket.create_server((LOOPBACK, 0)) as stranger:
        taken = Ports(etcd, peer, stranger.getsockname()[1])
        monkeypatch.setattr(Ports, "free", lambda: taken)
        monkeypatch.setattr(control_plane_module, "PORT_ATTEMPTS", 2)
        with pytest.raises(PortTakenError) as caught:
            ControlPlane.start(tmp_path / "crowded", binaries=binaries(), die_with_parent=True)
    assert f"(pid {os.getpid()}) listens on it" in caught.value.problem


@pytest.mark.life
def test_a_part_that_cannot_start_is_an_error_with_its_last_words(own_plane: ControlPlane):
    own_plane.kill(Part.API_SERVER)
    key = Layout(own_plane.folder).signing_key
    sound = key.read_text()
    key.write_text("no key")
    try:
        with pytest.raises(SandboxError) as caught:
            ControlPlane.start(own_plane.folder, binaries=binaries(), die_with_parent=True)
    finally:
        key.write_text(sound)
    assert caught.value.code == "control-plane-died"
    assert caught.value.place == str(own_plane.log(Part.API_SERVER))
    assert "service-accounts.key" in caught.value.problem


def record_of(**ports: object) -> str:
    ports = {"etcd": 20_001, "etcd_peer": 20_002, "api_server": 20_003, **ports}
    return json.dumps({"binaries": str(Path("/bin").resolve()), "context": "c", "ports": ports})


@pytest.mark.parametrize("damage", ["{}", "[" * 5_000, record_of(etcd="x"), record_of(etcd=99_999)])
def test_a_record_that_is_not_one_is_refused_with_the_fix(tmp_path: Path, damage: str):
    Layout(tmp_path).record.write_text(damage)
    with pytest.raises(SandboxError, match=f"remove the folder {tmp_path}"):
        ControlPlane.find(tmp_path)


@pytest.mark.parametrize("damage", [b"{", b"\xff", b"a,b\n", b"x" * 200_000])
def test_users_that_are_none_are_refused_with_the_fix(tmp_path: Path, damage: bytes):
    Layout(tmp_path).record.write_text(record_of())
    Layout(tmp_path).tokens.write_bytes(damage)
    plane = ControlPlane.find(tmp_path)
    assert plane is not None
    with pytest.raises(SandboxError, match="remove it; the next start") as refused:
        _ = plane.users
    assert (refused.value.code, refused.value.place) == ("state-unreadable", str(Layout(tmp_path).tokens))


@pytest.mark.life
def test_a_control_plane_whose_users_were_removed_is_started_anew_with_their_data(own_plane: ControlPlane):
    before = pids(own_plane.folder)
    Layout(own_plane.folder).tokens.unlink()
    again = ControlPlane.start(own_plane.folder, binaries=binaries(), die_with_parent=True)
    assert (again.ports, again.users) == (own_plane.ports, [ADMIN.name])
    assert pids(own_plane.folder) != before


def test_one_that_others_keep_busy_is_asked_again_after_pauses_and_not_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pauses: list[float] = []

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if len(pauses) == 3 else 500)
            self.end_headers()
            self.wfile.write(b'{"rules": [{}]}')

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    def this_process(_program: str, _argument: str) -> list[int]:
        return [os.getpid()]

    certificate, layout = Certificate(tmp_path / "certificate"), Layout(tmp_path / "plane")
    certificate.renew()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate.serving)
    with ThreadingHTTPServer((LOOPBACK, 0), Busy) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        files.replace(layout.authority, certificate.authority.read_text())
        files.replace(layout.tokens, to_token_file(enrol([], [ADMIN, User("c-controllers", ADMIN.groups)])))
        files.replace(layout.record, record_of(api_server=server.server_port))
        monkeypatch.setattr(processes, "find", this_process)
        monkeypatch.setattr(control_plane_module, "sleep", pauses.append)
        plane = ControlPlane.start(layout.folder, binaries=Path("/bin"))
        server.shutdown()
    assert (plane.ports.api_server, pauses) == (server.server_port, [control_plane_module.READY_PAUSE] * 3)
