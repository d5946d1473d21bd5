"""The three programs of the control plane and their users: how each is started and recognized again."""

from __future__ import annotations

import csv
import io
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from pulumi_sandbox.services.ports import LOOPBACK, free_ports


@dataclass(frozen=True, slots=True)
class User:
    """A user of the API server, with its name and groups for RBAC."""

    name: str
    groups: tuple[str, ...] = ()


ADMIN = User("admin", ("system:masters",))
"""User with all permissions."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user and its token."""

    user: User
    token: str = field(repr=False)


def enrol(known: Iterable[Account], wanted: Iterable[User]) -> list[Account]:
    """Return accounts for known and wanted users; known ones keep their tokens, wanted groups apply."""
    tokens = {account.user.name: account.token for account in known}
    users = {account.user.name: account.user for account in known} | {user.name: user for user in wanted}
    return [Account(user, tokens.get(name) or secrets.token_urlsafe(32)) for name, user in users.items()]


def to_token_file(accounts: Iterable[Account]) -> str:
    """Return the content of the API server's `--token-auth-file`: token, name, uid, groups."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for account in accounts:
        user = account.user
        rows.writerow([account.token, user.name, user.name, ",".join(user.groups)])
    return text.getvalue()


def from_token_file(text: str) -> list[Account]:
    """Parse the output of `to_token_file`. Raises ValueError if it is invalid."""
    try:
        return [
            Account(User(name, tuple(group for group in groups.split(",") if group)), token)
            for token, name, _, groups in csv.reader(io.StringIO(text))
        ]
    except csv.Error as error:
        raise ValueError(error) from None


def kubeconfig_name(user: str) -> str:
    """Return the name of a user's kubeconfig file; any user name gives a valid one."""
    return f"{quote(user, safe=':')}.kubeconfig"


def kubeconfig(account: Account, server: str, authority: str, context: str) -> str:
    """Return a kubeconfig with one context, as JSON; `authority` is the server's CA in base64."""
    name = account.user.name
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": context, "cluster": {"server": server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": name, "user": {"token": account.token}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": name}}],
        "current-context": context,
    }
    return json.dumps(config, indent=2) + "\n"


class Part(StrEnum):
    """A program of the control plane, named like its file, in starting order."""

    ETCD = "etcd"
    API_SERVER = "kube-apiserver"
    CONTROLLERS = "kube-controller-manager"


CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "clusterrole-aggregation-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
)
"""Without them, namespaces are never deleted, owned objects are not collected, role `view` is empty, and no
namespace has the ConfigMap `kube-root-ca.crt` with the CA of the API server."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of a control plane; kept when a part is restarted."""

    etcd: int
    etcd_peer: int
    api_server: int

    @classmethod
    def free(cls) -> Ports:
        """Return three ports that are currently free."""
        return cls(*free_ports(3))

    @property
    def store(self) -> str:
        """The address of etcd."""
        return f"http://{LOOPBACK}:{self.etcd}"

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{LOOPBACK}:{self.api_server}"


class Layout:
    """The paths in the state folder of a control plane (an absolute path)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = folder / "lock"  # held during a start or stop
        self.record = folder / "control-plane.json"  # the record for later processes
        self.tokens = folder / "tokens.csv"
        self.signing_key = folder / "service-accounts.key"
        self.certificates = folder / "certificates"  # signed by the API server itself
        self.authority = self.certificates / "apiserver.crt"  # what clients trust
        self.data = folder / "data"
        self.kubeconfigs = folder / "kubeconfigs"
        self.controllers_kubeconfig = folder / "controllers.kubeconfig"

    def log(self, part: Part) -> Path:
        """Return the log of a part, with the output of all its starts."""
        return self.folder / "logs" / f"{part}.log"

    def mark(self, part: Part) -> str:
        """Return the argument that identifies the control plane of a process."""
        return self.options(part)[0]

    def options(self, part: Part) -> list[str]:
        """Return the arguments of a part that do not depend on ports."""
        return {
            Part.ETCD: [
                f"--data-dir={self.data}",
                "--name=sandbox",
                "--unsafe-no-fsync",
            ],
            Part.API_SERVER: [
                f"--cert-dir={self.certificates}",
                f"--token-auth-file={self.tokens}",
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={self.signing_key}",
                f"--service-account-signing-key-file={self.signing_key}",
                # A machine without a network has no address to advertise; nothing here uses it.
                f"--advertise-address={LOOPBACK}",
                "--endpoint-reconciler-type=none",
            ],
            Part.CONTROLLERS: [
                f"--kubeconfig={self.controllers_kubeconfig}",
                f"--controllers={','.join(CONTROLLERS)}",
                "--leader-elect=false",
                "--secure-port=0",
                f"--root-ca-file={self.authority}",
                # With the default of 20 requests per second, deleting many namespaces would be slow.
                "--kube-api-qps=200",
                "--kube-api-burst=400",
            ],
        }[part]

    def command(self, part: Part, binaries: Path, ports: Ports) -> list[str]:
        """Return the command line of a part. It contains no secret: tokens and keys are in files."""
        return [str(binaries / part), *self.options(part), *_addresses(ports)[part]]


def _addresses(ports: Ports) -> Mapping[Part, list[str]]:
    peer = f"http://{LOOPBACK}:{ports.etcd_peer}"
    return {
        Part.ETCD: [
            f"--listen-client-urls={ports.store}",
            f"--advertise-client-urls={ports.store}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=sandbox={peer}",
        ],
        Part.API_SERVER: [
            f"--etcd-servers={ports.store}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={ports.api_server}",
        ],
        Part.CONTROLLERS: [],
    }
