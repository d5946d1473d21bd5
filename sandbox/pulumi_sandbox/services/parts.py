"""The three programs of the control plane: how each is started, and how each is known again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pulumi_sandbox.services.ports import LOOPBACK, free_ports


class Part(StrEnum):
    """A program of the control plane, named as its file is, in the order they start."""

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
"""Without these no namespace is ever deleted, nothing owned is collected, the role `view` is empty, and no
namespace has the ConfigMap `kube-root-ca.crt`, which says whom to trust within the cluster."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of a control plane; kept when a part is restarted."""

    etcd: int
    etcd_peer: int
    api_server: int

    @classmethod
    def free(cls) -> Ports:
        """Choose three that are free now."""
        return cls(*free_ports(3))

    @property
    def store(self) -> str:
        """The address of etcd."""
        return f"http://{LOOPBACK}:{self.etcd}"

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{LOOPBACK}:{self.api_server}"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things lie in the state folder of a control plane (an absolute path)."""

    folder: Path

    @property
    def lock(self) -> Path:
        """Held while something is started or stopped."""
        return self.folder / "lock"

    @property
    def record(self) -> Path:
        """What a later process has to know."""
        return self.folder / "control-plane.json"

    @property
    def tokens(self) -> Path:
        """The users and their tokens."""
        return self.folder / "tokens.csv"

    @property
    def signing_key(self) -> Path:
        """The key service account tokens are signed with."""
        return self.folder / "service-accounts.key"

    @property
    def certificates(self) -> Path:
        """Where the API server puts the serving certificate it signs itself."""
        return self.folder / "certificates"

    @property
    def authority(self) -> Path:
        """The certificate clients trust."""
        return self.certificates / "apiserver.crt"

    @property
    def data(self) -> Path:
        """The data of etcd."""
        return self.folder / "data"

    @property
    def kubeconfigs(self) -> Path:
        """A kubeconfig file per user."""
        return self.folder / "kubeconfigs"

    @property
    def controllers_kubeconfig(self) -> Path:
        """The kubeconfig of the controllers, which are nobody's user."""
        return self.folder / "controllers.kubeconfig"

    def log(self, part: Part) -> Path:
        """Everything a part has said, over all its starts."""
        return self.folder / "logs" / f"{part}.log"

    def mark(self, part: Part) -> str:
        """Return the argument that says of a process which control plane it belongs to."""
        return self.options(part)[0]

    def options(self, part: Part) -> list[str]:
        """Return the arguments of a part that do not depend on ports."""
        return _options(self)[part]

    def command(self, part: Part, binaries: Path, ports: Ports) -> list[str]:
        """Return the whole command line of a part. It holds no secret: tokens and keys are in files."""
        return [str(binaries / part), *self.options(part), *_addresses(ports)[part]]


def _options(layout: Layout) -> Mapping[Part, list[str]]:
    return {
        Part.ETCD: [
            f"--data-dir={layout.data}",
            "--name=sandbox",
            "--unsafe-no-fsync",
        ],
        Part.API_SERVER: [
            f"--cert-dir={layout.certificates}",
            f"--token-auth-file={layout.tokens}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={layout.signing_key}",
            f"--service-account-signing-key-file={layout.signing_key}",
            # A machine without a network has no address to advertise; nothing here asks for it.
            f"--advertise-address={LOOPBACK}",
            "--endpoint-reconciler-type=none",
        ],
        Part.CONTROLLERS: [
            f"--kubeconfig={layout.controllers_kubeconfig}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--root-ca-file={layout.authority}",
            # The default of 20 requests a second makes the deletion of many namespaces wait in line.
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ],
    }


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
