"""Selection of the cluster and user: a kubeconfig is validated before the Kubernetes client reads it.

The client's error messages might quote it. Import-pure: the client is imported where it is used.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from components.documents import Unreadable, read_file, read_json
from components.errors import ClusterError
from components.importing import IMPORT_LOCK

if TYPE_CHECKING:
    from kubernetes.client import Configuration

_FIX: Final = "name another by --kubeconfig, KUBECONFIG, or kubeconfig in credfleet:cluster; or fix the file"
_POD: Final = "the pod's ServiceAccount"
_FIX_POD: Final = "leave automountServiceAccountToken of the pod as it is, or name a kubeconfig"
_SIGN_IN: Final[Mapping[str, str]] = {
    "gke-gcloud-auth-plugin": "gcloud auth login",
    "aws": "aws sso login",
    "aws-iam-authenticator": "aws sso login",
    "kubelogin": "az login",
}
"""Credential plugin → the command with which a user signs in again."""

_PARTS: Final = ("contexts", "clusters", "users")

_Documents = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """Cluster to use; an absent field is not checked.

    `context`: of the kubeconfig, by default the current one. `kubeconfig`: path, by default KUBECONFIG.
    `uid`: of namespace `kube-system`.
    """

    context: str | None = None
    kubeconfig: str | None = None
    uid: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> ClusterTarget:
        """Parse the value of `credfleet:cluster`, a JSON object or nothing."""
        try:
            value: Any = read_json(text or "{}")
            return cls(value.get("context"), value.get("kubeconfig"), value.get("uid"))
        except (ValueError, AttributeError):
            raise ClusterError(
                code="misconfigured",
                place="credfleet:cluster",
                problem="it is not an object, so no cluster is meant",
                fix="give it as {context: …, kubeconfig: …, uid: …}; every key may be left out",
            ) from None

    @property
    def is_of_pod(self) -> bool:
        """Whether this is the cluster of the process's own pod."""
        return self.context is None and self.kubeconfig is None and in_pod()

    @property
    def files(self) -> str:
        """Paths of its kubeconfig, in the format of KUBECONFIG."""
        return self.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"

    @property
    def place(self) -> str:
        """Source of the connection settings, for errors."""
        return _POD if self.is_of_pod else f"kubeconfig {self.files}"

    def misconfigured(self, problem: str, fix: str = "") -> ClusterError:
        """Return the error that no cluster can be reached. `fix`: by default, fix or name a kubeconfig."""
        usual = _FIX_POD if self.is_of_pod else _FIX
        return ClusterError(code="misconfigured", place=self.place, problem=problem, fix=fix or usual)

    def advise(self, text: str, typed: str = "", namespace: str = "") -> str:
        """Add options for this cluster to the commands in an advice, after the pool's namespace.

        `typed`: options to use instead. `namespace`: restrict this to one pool.
        """
        options = typed or typed_options(kubeconfig=self.kubeconfig, context=self.context)
        named = rf"(-n|--namespace) {re.escape(namespace) or '[a-z0-9-]+'}(?![a-z0-9-])"
        return re.sub(named, lambda found: found[0] + options, text)

    def sign_in_again(self) -> str:
        """Return how the user whose login was rejected gets a new credential, as a fix."""
        if self.is_of_pod:
            return "start the pod again, so that it gets another token, and run again"
        read = _documents(self)
        contexts, _, users = (_named(self, read, part) for part in _PARTS)
        meant = self.context or _current_context(read)
        name = str(contexts[meant].get("user"))
        file = [] if self.kubeconfig is None else ["--kubeconfig", self.kubeconfig]
        credentials = shlex.join(["kubectl", "config", "set-credentials", name, *file])
        match users.get(name, {}):
            case {"exec": {"command": str(command)}}:
                plugin = Path(command).name
                known = _SIGN_IN.get(plugin)
                how = f"run `{known}`" if known else f"sign in again where `{plugin}` does"
            case {"tokenFile": str(path)}:
                how = f"put a valid token into {path}"
            case {"client-certificate": _} | {"client-certificate-data": _}:
                how = f"run `{credentials} --client-certificate=FILE --client-key=FILE --embed-certs`"
            case _:
                how = f"run `{credentials} --token=TOKEN` with a new token"
        whoami = shlex.join(["kubectl", "auth", "whoami", "--context", meant, *file])
        return f"{how}, see that `{whoami}` works, and run again"


def typed_options(**values: object) -> str:
    """Return command-line options, each preceded by a space; options without a value are omitted."""
    given = {name: value for name, value in values.items() if value}
    return "".join(f" --{name} {shlex.quote(str(value))}" for name, value in given.items())


def in_pod() -> bool:
    """Return whether this process runs in a pod without a kubeconfig, so that its own cluster is used."""
    led_out = os.environ.get("KUBECONFIG") or Path("~/.kube/config").expanduser().exists()
    return "KUBERNETES_SERVICE_HOST" in os.environ and not led_out


def configuration_of(target: ClusterTarget) -> Configuration:
    """Read the address of a target's API server and its user; raises ClusterError."""
    with IMPORT_LOCK:
        from kubernetes.client import Configuration
        from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
        from yaml import YAMLError

    configuration = Configuration()
    if target.is_of_pod:
        try:
            load_incluster_config(client_configuration=configuration)
        except (ConfigException, OSError):
            problem = "its token or certificate is not there, so no cluster is reached"
            raise target.misconfigured(problem) from None
        return configuration
    _refuse_unusable(target)
    no_login = target.misconfigured(
        "its plugin for credentials failed, so there is no login",
        "sign in again, or run the command under users.exec of the file to see why it fails",
    )
    complaints = _Complaints()
    logging.root.addHandler(complaints)  # the client only logs errors of credential plugins
    try:
        load_kube_config(
            config_file=target.kubeconfig, context=target.context, client_configuration=configuration
        )
    except (ConfigException, YAMLError, OSError, TypeError, ValueError, LookupError, AttributeError):
        problem = "a certificate, a key or a file that it names cannot be read, so no cluster is reached"
        raise target.misconfigured(problem) from None
    except Exception:  # auth-providers raise exceptions of the library they use
        raise no_login from None
    finally:
        logging.root.removeHandler(complaints)
    if complaints.kept:
        raise no_login
    return configuration


def load_certificates(configuration: Configuration) -> None:
    """Load the CA and the user's certificate once; raises OSError if a call would fail."""
    import ssl

    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if configuration.ssl_ca_cert:
        trust.load_verify_locations(configuration.ssl_ca_cert)
    if configuration.cert_file:
        trust.load_cert_chain(configuration.cert_file, configuration.key_file, password="")


class _Complaints(logging.Handler):
    """Keeps errors that a library logs from the terminal: their text is unknown."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.kept: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record)


def _refuse_unusable(target: ClusterTarget) -> None:
    """Reject a kubeconfig that leads to no cluster; raises ClusterError.

    Its code is `misconfigured`, or `wrong-cluster` if the kubeconfig lacks the target's context.
    """
    read = _documents(target)
    contexts, clusters, users = (_named(target, read, part) for part in _PARTS)
    if not contexts:
        raise target.misconfigured("it has no contexts, so it leads to no cluster")
    context = target.context
    meant = context or _current_context(read)
    if meant not in contexts:
        lacks = f"it has no context {context}" if context else "its current-context is none of its own"
        raise ClusterError(
            code="wrong-cluster" if context else "misconfigured",
            place=target.place,
            problem=f"{lacks} (it has {', '.join(contexts)}); nothing was written",
            fix="point KUBECONFIG to the cluster this stack means, or correct credfleet:cluster",
        )
    cluster, user = str(contexts[meant].get("cluster")), contexts[meant].get("user")
    if cluster not in clusters or not clusters[cluster].get("server"):
        problem = f"its context {meant} names a cluster that it does not have, or that has no server"
        raise target.misconfigured(problem)
    if not _is_address(str(clusters[cluster]["server"])):
        raise target.misconfigured(f"the server of its cluster {cluster} is not an address")
    if not isinstance(clusters[cluster].get("tls-server-name") or "", str):
        raise target.misconfigured(f"the tls-server-name of its cluster {cluster} is not a string")
    if user and str(user) not in users:
        raise target.misconfigured(f"its context {meant} names a user that it does not have")


def _is_address(server: str) -> bool:
    """Return whether a client could resolve a server's address; without a scheme it is HTTP."""
    if not server.isprintable() or " " in server:
        return False
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        is_usable = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        return False
    labels = (parts.hostname or "").removesuffix(".").split(".")
    return is_usable and all(0 < len(label) < 64 for label in labels)


def _current_context(read: _Documents) -> str:
    return next((str(said) for each in read if (said := each.get("current-context"))), "")


def _named(target: ClusterTarget, read: _Documents, part: str) -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    one = part.removesuffix("s")
    try:
        for each in chain.from_iterable(document.get(part) or () for document in read):
            found.setdefault(str(each["name"]), {**each[one]})
    except (TypeError, KeyError):
        problem = f"its {part} are not a list of entries with a name and a {one}"
        raise target.misconfigured(problem) from None
    return found


def _documents(target: ClusterTarget) -> _Documents:
    """Return the contents of its kubeconfig files; of several, those that exist."""
    paths = [Path(each).expanduser() for each in target.files.split(os.pathsep) if each]
    there = [path for path in paths if path.exists()]
    if not there:
        raise target.misconfigured("there is no such file")
    try:
        read = [read_file(path).data for path in there]
    except Unreadable as error:
        raise ClusterError(
            code="misconfigured", place=target.place, problem=error.problem, fix=error.fix, at=error.at
        ) from None
    if not all(isinstance(each, dict) for each in read):
        raise target.misconfigured("it is not a map of contexts, clusters and users")
    return read
