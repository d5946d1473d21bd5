"""What runs for a checkout: started once, named in one shape, stopped whole."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sandbox.errors import SandboxError
from sandbox.services import sandbox
from sandbox.services.control_plane import ControlPlane
from sandbox.services.parts import Part
from sandbox.services.ports import LOOPBACK
from sandbox.services.users import Account, User, enrol, from_token_file, kubeconfig_name, to_token_file


@pytest.fixture
def state(tmp_path: Path) -> Generator[Path]:
    yield tmp_path / ".sandbox"
    sandbox.down(tmp_path / ".sandbox")


def test_up_starts_what_status_then_names_and_down_stops_and_up_again_finds_as_it_was(state: Path):
    started = sandbox.up(state)
    assert sandbox.status(state) == started == sandbox.up(state)
    said = started.to_json()
    assert said["kubeconfig"] == said["users"]["admin"]
    assert (
        json.loads(Path(said["kubeconfig"]).read_text())["clusters"][0]["cluster"]["server"] == said["server"]
    )
    assert set(said["users"]) == {"admin", "provisioner", "janitor"}
    assert {name: service["running"] for name, service in said["services"].items()} == dict.fromkeys(
        Part, True
    )
    assert said["services"]["kube-apiserver"]["address"] == said["server"]
    assert said["state"] == str(state)

    assert sandbox.down(state) == list(Part)
    stopped = sandbox.status(state)
    assert (stopped.kubeconfig, stopped.server) == (None, None)
    assert [service.running for service in stopped.services.values()] == [False] * 3
    assert sandbox.down(state) == []

    again = sandbox.up(state)
    assert (again.server, again.users) == (started.server, started.users)


def test_a_part_that_died_is_named_as_not_running_and_the_next_up_brings_it_back(state: Path):
    sandbox.up(state)
    plane = ControlPlane.find(state / "control-plane")
    assert plane is not None
    plane.kill(Part.CONTROLLERS)
    services = sandbox.status(state).services
    assert {name for name, service in services.items() if not service.running} == {"kube-controller-manager"}
    assert all(service.running for service in sandbox.up(state).services.values())


def test_a_checkout_where_nothing_was_started_has_an_empty_status(state: Path):
    assert sandbox.status(state).to_json() == {
        "kubeconfig": None,
        "server": None,
        "users": {},
        "services": {},
        "state": str(state),
    }


@pytest.fixture
def refusing_server() -> Generator[str]:
    """An API server that knows nobody."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(401)

        def log_message(self, format: str, *args: object):
            pass

    with HTTPServer((LOOPBACK, 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://{LOOPBACK}:{server.server_port}"
        server.shutdown()


def kubeconfig_for(server: str, folder: Path) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "own", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "me"}}],
        "current-context": "own",
    }
    path = folder / "own.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def test_a_cluster_of_the_users_own_is_used_and_none_is_started(state: Path, control_plane: ControlPlane):
    own = control_plane.kubeconfig("provisioner")
    status = sandbox.up(state, kubeconfig=own)
    assert (status.kubeconfig, status.server, status.services) == (own, control_plane.server, {})
    assert sandbox.down(state) == []
    assert sandbox.status(state).kubeconfig is None
    assert control_plane.pid(Part.API_SERVER) is not None


def test_an_own_cluster_that_refuses_its_user_is_not_used(state: Path, tmp_path: Path, refusing_server: str):
    with pytest.raises(SandboxError, match="answered 401") as caught:
        sandbox.up(state, kubeconfig=kubeconfig_for(refusing_server, tmp_path))
    assert (caught.value.code, caught.value.place) == ("cluster-refused", refusing_server)
    assert not state.exists()


def test_an_own_cluster_out_of_reach_is_not_used(state: Path, tmp_path: Path):
    nobody = f"http://{LOOPBACK}:9"
    with pytest.raises(SandboxError) as caught:
        sandbox.up(state, kubeconfig=kubeconfig_for(nobody, tmp_path))
    assert (caught.value.code, caught.value.place) == ("cluster-unreachable", nobody)
    assert not state.exists()


@pytest.mark.parametrize(
    "text", [None, "", "{}", "not: [a kubeconfig", "- a list", "apiVersion: v1\nkind: Config\n"]
)
def test_a_file_that_names_no_cluster_is_refused(state: Path, tmp_path: Path, text: str | None):
    path = tmp_path / "broken.kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SandboxError) as caught:
        sandbox.up(state, kubeconfig=path)
    assert (caught.value.code, caught.value.place) == ("kubeconfig-unusable", str(path))


def test_known_users_keep_their_tokens_and_take_the_groups_last_wanted():
    first = enrol([], [User("admin", ("system:masters",)), User("janitor")])
    second = enrol(first, [User("janitor", ("cleaners", "staff")), User("auditor")])
    assert [account.user for account in second] == [
        User("admin", ("system:masters",)),
        User("janitor", ("cleaners", "staff")),
        User("auditor"),
    ]
    assert [account.token for account in second[:2]] == [account.token for account in first]
    assert len({account.token for account in second}) == 3


def test_the_token_file_returns_every_user_with_any_name_and_groups():
    accounts = [
        Account(User("admin", ("system:masters",)), "one"),
        Account(User('o"dd, name', ("a", "b")), "two"),
        Account(User("system:serviceaccount:ns:sa"), "three"),
    ]
    assert from_token_file(to_token_file(accounts)) == accounts


def test_a_user_name_with_a_slash_names_a_file_in_the_folder():
    assert kubeconfig_name("../../etc/passwd") == "..%2F..%2Fetc%2Fpasswd.kubeconfig"


def test_a_token_is_not_shown_when_an_account_is_printed():
    assert "sentinel" not in repr(Account(User("admin"), "sentinel"))
