"""A real Kubernetes API server on loopback: etcd, kube-apiserver and kube-controller-manager.

Everything known of one is in its state folder, so that any process can find, reuse or stop it. Its data are
disposable: they survive a killed process, but not a crashed machine.
"""

from __future__ import annotations

import base64
import json
import platform
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import sleep

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.locks import exclusive
from pulumi_sandbox.services import processes
from pulumi_sandbox.services.launch import Launch
from pulumi_sandbox.services.parts import (
    ADMIN,
    Account,
    Layout,
    Part,
    Ports,
    User,
    enrol,
    from_token_file,
    kubeconfig,
    kubeconfig_name,
    to_token_file,
)
from pulumi_sandbox.services.ports import PortTakenError, asked, port_of
from pulumi_sandbox.services.progress import Progress, Step, silent

_SERVICE_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


CONTEXT = "pulumi-sandbox"
"""Context in the kubeconfig files if a project sets no other."""

STOP_SECONDS = 10.0
"""How long a component may take to exit; it needs about 1 s."""

PORT_ATTEMPTS = 5

READY_ATTEMPTS = 5
"""How often a running control plane is checked before it counts as broken: it might only be busy."""

READY_PAUSE = 1.0
"""Seconds between checks: while etcd is slow, an API server immediately responds that it is not ready."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A control plane, running or not."""

    folder: Path
    binaries: Path
    ports: Ports
    context: str
    die_with_parent: bool = False

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        binaries: Path,
        make: Callable[[], object] = lambda: None,
        users: Iterable[User] = (),
        context: str | None = None,
        die_with_parent: bool = False,
        progress: Progress = silent,
    ) -> ControlPlane:
        """Return a ready control plane with its state in `folder`, running or started now.

        A running one is reused if it is complete, built from the same programs, and has `users`; otherwise
        its remaining processes are ended and it is started again, with its data, its users and, if free, its
        ports. binaries: the folder with the three programs. make: ensures that they exist before a start.
        users: required in addition to `admin`; those of earlier starts are kept. context: its name in
        kubeconfig files; None: its former one, or `CONTEXT`. die_with_parent: make the kernel kill it when
        the calling thread ends. Raises SandboxError `control-plane-died` or `control-plane-not-ready` with
        the last lines of its log, `state-unreadable`, `not-linux`, `port-taken` if every choice of ports was
        taken at once.
        """
        if platform.system() != "Linux":
            raise SandboxError(
                code="not-linux",
                place=platform.system(),
                problem="the sandbox starts its Kubernetes API server on Linux only",
                fix="run it in a Linux container, or name a cluster of your own with its kubeconfig file",
            )
        layout = Layout(folder.resolve())
        waiting = Step("another process is starting this control plane; waiting for it", 0.0)
        with exclusive(layout.lock, on_wait=lambda: progress(waiting)):
            earlier = cls.find(layout.folder)
            known = _accounts(layout)
            plane = cls(
                folder=layout.folder,
                binaries=binaries.resolve(),
                ports=earlier.ports if earlier else Ports.free(),
                context=context or (earlier.context if earlier else CONTEXT),
                die_with_parent=die_with_parent,
            )
            accounts = enrol(known, [ADMIN, *users, plane._controllers])
            if earlier and known == accounts and earlier._serves_as(plane):
                return plane
            make()
            _stop(layout)
            files.replace(layout.tokens, to_token_file(accounts), mode=files.PRIVATE)
            if not layout.signing_key.exists():
                files.replace(layout.signing_key, _new_signing_key(), mode=files.PRIVATE)
            return plane._start_all(progress)

    @classmethod
    def find(cls, folder: Path) -> ControlPlane | None:
        """Return the control plane that was last started in `folder`, running or not.

        Raises SandboxError `state-unreadable`.
        """
        layout = Layout(folder.resolve())
        fix = f"remove the folder {layout.folder}; the sandbox makes it again"
        faulty = "this is not the record of a control plane"
        with suppress(FileNotFoundError), files.readable(layout.record, faulty, fix):
            record = json.loads(layout.record.read_bytes())
            return cls(
                folder=layout.folder,
                binaries=Path(record["binaries"]),
                ports=Ports(**{part: port_of(port) for part, port in record["ports"].items()}),
                context=record["context"],
            )
        return None

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self.ports.server

    @property
    def users(self) -> list[str]:
        """The names of the users, including `admin`."""
        names = [account.user.name for account in _accounts(self._layout)]
        return [name for name in names if name != self._controllers.name]

    def kubeconfig(self, user: str) -> Path:
        """Return the kubeconfig file of a user."""
        return self._layout.kubeconfigs / kubeconfig_name(user)

    def address(self, part: Part) -> str | None:
        """Return the address of a part, even if stopped; None for the controllers."""
        return {Part.ETCD: self.ports.store, Part.API_SERVER: self.ports.server}.get(part)

    def log(self, part: Part) -> Path:
        """Return the log of a part."""
        return self._layout.log(part)

    def pid(self, part: Part) -> int | None:
        """Return the process of a part, None if it is not running."""
        return next(iter(processes.find(part, self._layout.mark(part))), None)

    def kill(self, part: Part) -> None:
        """End a part with SIGKILL, as a failure would."""
        _end(self._layout, [part], patience=0)

    def stop(self) -> None:
        """End all parts, including remains of a killed run. State and logs are kept."""
        self.end(self.folder)

    @staticmethod
    def end(folder: Path) -> bool:
        """End the control plane of a folder, even if that is gone; return whether any part was running."""
        layout = Layout(folder.resolve())
        if not any(processes.find(part, layout.mark(part)) for part in Part):
            return False
        with exclusive(layout.lock):
            _stop(layout)
        return True

    @property
    def _controllers(self) -> User:
        """The API server's user for the controllers, not a person's."""
        return User(f"{self.context}-controllers", ADMIN.groups)

    @property
    def _layout(self) -> Layout:
        return Layout(self.folder)

    def _serves_as(self, wanted: ControlPlane) -> bool:
        same = replace(self, die_with_parent=wanted.die_with_parent) == wanted
        whole = same and all(self.pid(part) for part in Part)
        return whole and self._is_ready_soon()

    def _is_ready_soon(self) -> bool:
        for attempt in range(READY_ATTEMPTS):
            if attempt:
                sleep(READY_PAUSE)
            if self._ready():
                return True
        return False

    def _api_server_ready(self) -> bool:
        """Return whether the API server is ready, including its built-in roles."""
        return self._ask("GET", "/readyz") is not None

    def _ready(self) -> bool:
        """Return whether the controllers have worked too: service account, aggregated role `view`."""
        if not self._api_server_ready():
            return False
        view = self._ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
        filled = view is not None and bool(json.loads(view)["rules"])
        return filled and self._ask("GET", _SERVICE_ACCOUNT) is not None

    def _ask(self, method: str, path: str) -> bytes | None:
        """Send a request to the API server, with its own certificate, as `admin`."""
        token = next(a.token for a in _accounts(self._layout) if a.user.name == ADMIN.name)
        headers, authority = {"Authorization": f"Bearer {token}"}, self._layout.authority
        return asked(self.ports.api_server, path, authority=authority, method=method, headers=headers)

    def _start_all(self, progress: Progress) -> ControlPlane:
        """Start on these ports, or on others if one was taken meanwhile."""
        plane = self
        for _ in range(PORT_ATTEMPTS - 1):
            try:
                plane._start_once(progress)
            except PortTakenError:
                plane = replace(plane, ports=Ports.free())
            else:
                return plane
        plane._start_once(progress)
        return plane

    def _start_once(self, progress: Progress) -> None:
        record = {"binaries": str(self.binaries), "ports": asdict(self.ports), "context": self.context}
        files.replace(self._layout.record, json.dumps(record, indent=2), mode=files.PRIVATE)
        what = "starting etcd, the Kubernetes API server and its controllers"
        fix = f"run the command again; if its data are broken, remove {self.folder} first"
        launch = Launch("control-plane", what, 4.0, fix, progress)
        try:
            self._start_part(launch, Part.ETCD)
            self._start_part(launch, Part.API_SERVER)
            launch.wait_for(self._api_server_ready)
            self._write_kubeconfigs()
            # The controllers create it again, which proves that they work now; an earlier one proves nothing.
            self._ask("DELETE", _SERVICE_ACCOUNT)
            self._start_part(launch, Part.CONTROLLERS)
            launch.wait_for(self._ready)
        except BaseException:
            _end(self._layout, list(Part), patience=0)
            raise

    def _start_part(self, launch: Launch, part: Part) -> None:
        command = self._layout.command(part, self.binaries, self.ports)
        launch.start(part, command, self.log(part), die_with_parent=self.die_with_parent)

    def _write_kubeconfigs(self) -> None:
        authority = base64.b64encode(self._layout.authority.read_bytes()).decode()
        for account in _accounts(self._layout):
            own = account.user == self._controllers
            path = self._layout.controllers_kubeconfig if own else self.kubeconfig(account.user.name)
            files.replace(path, kubeconfig(account, self.server, authority, self.context), mode=files.PRIVATE)


def _accounts(layout: Layout) -> list[Account]:
    faulty = "these are not the users of a control plane"
    fix = "remove it; the next start makes users, tokens and kubeconfig files again"
    with suppress(FileNotFoundError), files.readable(layout.tokens, faulty, fix):
        return from_token_file(layout.tokens.read_text(encoding="utf-8"))
    return []


def _stop(layout: Layout) -> None:
    """End each part before its dependencies: an API server without etcd does not end by itself."""
    _end(layout, reversed(Part), patience=STOP_SECONDS)


def _end(layout: Layout, parts: Iterable[Part], *, patience: float) -> None:
    for part in parts:
        processes.end_all(part, layout.mark(part), patience=patience)


def _new_signing_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()
