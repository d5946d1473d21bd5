"""Whether a kubeconfig leads to a cluster, judged before the client, whose words could hold its text."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from components.documents import Unreadable, read_file
from components.errors import ClusterError

FIX: Final = "name another by --kubeconfig, KUBECONFIG, or kubeconfig in credfleet:cluster; or fix the file"
_SIGN_IN: Final[Mapping[str, str]] = {
    "gke-gcloud-auth-plugin": "gcloud auth login",
    "aws": "aws sso login",
    "aws-iam-authenticator": "aws sso login",
    "kubelogin": "az login",
}
"""Plugin for credentials → the command with which a person signs in again."""

_PARTS: Final = ("contexts", "clusters", "users")

_Named = Mapping[str, Mapping[str, Any]]


def place_of(given: str | None) -> str:
    """Return how errors name it. given: its path, else that of KUBECONFIG, else the user's own."""
    return f"kubeconfig {_files(given)}"


def refuse_unusable(given: str | None, context: str | None) -> None:
    """Refuse one that leads to no cluster; context: the one that is meant, else its current one.

    Raises ClusterError, code `misconfigured`; where it has no such context, `wrong-cluster`.
    """
    place = place_of(given)
    read = _documents(_files(given), place)
    contexts, clusters, users = (_named(read, part, place) for part in _PARTS)
    if not contexts:
        _refuse(place, "it has no contexts, so it leads to no cluster")
    meant = context or next((str(said) for each in read if (said := each.get("current-context"))), "")
    if meant not in contexts:
        lacks = f"it has no context {context}" if context else "its current-context is none of its own"
        raise ClusterError(
            code="wrong-cluster" if context else "misconfigured",
            place=place,
            problem=f"{lacks} (it has {', '.join(contexts)}); nothing was written",
            fix="point KUBECONFIG to the cluster this stack means, or correct credfleet:cluster",
        )
    cluster, user = str(contexts[meant].get("cluster")), contexts[meant].get("user")
    if cluster not in clusters or not clusters[cluster].get("server"):
        _refuse(place, f"its context {meant} names a cluster that it does not have, or that has no server")
    if not _is_address(str(clusters[cluster]["server"])):
        _refuse(place, f"the server of its cluster {cluster} is not an address")
    if not isinstance(clusters[cluster].get("tls-server-name") or "", str):
        _refuse(place, f"the tls-server-name of its cluster {cluster} is not a string")
    if user and str(user) not in users:
        _refuse(place, f"its context {meant} names a user that it does not have")


def sign_in_again(given: str | None, context: str | None) -> str:
    """Return how the user of a kubeconfig that leads to a cluster gets another credential, as a fix."""
    read = _documents(_files(given), place_of(given))
    contexts, _, users = (_named(read, part, place_of(given)) for part in _PARTS)
    meant = context or next(str(said) for each in read if (said := each.get("current-context")))
    name = str(contexts[meant].get("user"))
    file = [] if given is None else ["--kubeconfig", given]
    credentials = shlex.join(["kubectl", "config", "set-credentials", name, *file])
    match users.get(name, {}):
        case {"exec": {"command": str(command)}}:
            plugin = Path(command).name
            how = (
                f"run `{_SIGN_IN[plugin]}`" if plugin in _SIGN_IN else f"sign in again where `{plugin}` does"
            )
        case {"tokenFile": str(path)}:
            how = f"put a valid token into {path}"
        case {"client-certificate": _} | {"client-certificate-data": _}:
            how = f"run `{credentials} --client-certificate=FILE --client-key=FILE --embed-certs`"
        case _:
            how = f"run `{credentials} --token=TOKEN` with a new token"
    whoami = shlex.join(["kubectl", "auth", "whoami", "--context", meant, *file])
    return f"{how}, see that `{whoami}` works, and run again"


def _is_address(server: str) -> bool:
    """Whether a client could look a server up; without a scheme it is one of HTTP."""
    if not server.isprintable() or " " in server:
        return False
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        is_usable = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        return False
    labels = (parts.hostname or "").removesuffix(".").split(".")
    return is_usable and all(0 < len(label) < 64 for label in labels)


def _named(read: Sequence[Mapping[str, Any]], part: str, place: str) -> _Named:
    found: dict[str, Mapping[str, Any]] = {}
    try:
        for each in chain.from_iterable(document.get(part) or () for document in read):
            found.setdefault(str(each["name"]), {**each[part.removesuffix("s")]})
    except (TypeError, KeyError):
        _refuse(place, f"its {part} are not a list of entries with a name and a {part.removesuffix('s')}")
    return found


def _files(given: str | None) -> str:
    return given or os.environ.get("KUBECONFIG") or "~/.kube/config"


def _documents(files: str, place: str) -> Sequence[Mapping[str, Any]]:
    """Return what its files hold; of several, those that are there."""
    there = [path for each in files.split(os.pathsep) if each and (path := Path(each).expanduser()).exists()]
    if not there:
        _refuse(place, "there is no such file")
    try:
        read = [read_file(path).data for path in there]
    except Unreadable as error:
        raise ClusterError(
            code="misconfigured", place=place, problem=error.problem, fix=error.fix, at=error.at
        ) from None
    if not all(isinstance(each, dict) for each in read):
        _refuse(place, "it is not a map of contexts, clusters and users")
    return read


def _refuse(place: str, problem: str) -> NoReturn:
    raise ClusterError(code="misconfigured", place=place, problem=problem, fix=FIX)
