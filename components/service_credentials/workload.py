"""Fields applied to an application's workload: files of its bindings and VCAP_SERVICES.

Uses server-side apply on any kind with a pod template; only the fields below are applied, so other fields
keep their owners. An existing SERVICE_BINDING_ROOT is kept, as servicebinding.io requires
(docs/compatibility.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from components.errors import Problem
from components.labels import PREFIX
from components.projection.model import INCARNATION
from components.service_credentials.binding import BINDINGS_ROOT, VCAP_FILE, VCAP_KEY

FIELD_MANAGER: Final = "credfleet-services"
"""Field manager under which credentials are added to workloads."""

RESTARTED_FOR: Final = f"{PREFIX}restarted-for"
"""Annotation of a pod template that changes with the Secrets, so that a change starts a rollout."""

_ROOT: Final = "SERVICE_BINDING_ROOT"
_TEMPLATE: Final[Mapping[str, Sequence[str]]] = {"CronJob": ("spec", "jobTemplate", "spec", "template")}
_USUAL_TEMPLATE: Final = ("spec", "template")
_MODE: Final = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Bindings of a workload.

    `directories`: directory below the root → Secret. `containers`: only these; empty means all.
    `restarted_for`: versions of the Secrets, None if nothing is restarted. `incarnation`: of the resource
    that applies it, None for one of an earlier version.
    """

    vcap_secret: str
    takes_file: bool
    directories: Mapping[str, str]
    containers: Sequence[str] = ()
    restarted_for: str | None = None
    incarnation: str | None = None


def unfit(live: Mapping[str, Any], containers: Sequence[str], *, takes_files: bool) -> Problem | None:
    """Return why a live object cannot be bound, None if it can.

    `takes_files`: whether it gets files of bindings, so that its own root matters.
    """
    kind = str(live.get("kind"))
    names = {name: one for known in _lists(live).values() for name, one in known.items()}
    if not names:
        return Problem(kind, "it has no template of pods", "name a Deployment, a StatefulSet or the like")
    missing = [name for name in containers if name not in names]
    if missing:
        problem = f"it has no container {', '.join(missing)}"
        return Problem(kind, problem, f"name some of {', '.join(names)}, or none for all of them")
    for name in (containers or names) if takes_files else ():
        root = _own_root(names[name])
        if root is not None and (not root.startswith("/") or "$(" in root):
            problem = f"container {name} sets {_ROOT} to no path that its entry spells out, and it is kept"
            return Problem(kind, problem, "write an absolute path as its value, or leave the variable out")
    return None


def render(live: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """Return the object to apply to a valid live object."""
    spec: dict[str, Any] = {"volumes": [*_volumes(given)]}
    for key, known in _lists(live).items():
        chosen = [name for name in known if not given.containers or name in given.containers]
        if chosen:
            spec[key] = [_container(name, known[name], given) for name in chosen]
    annotated = {} if given.restarted_for is None else {"annotations": {RESTARTED_FOR: given.restarted_for}}
    template: dict[str, Any] = {"metadata": annotated, "spec": spec}
    for step in reversed(_path(live)):
        template = {step: template}
    body = nothing(live)
    own = {} if given.incarnation is None else {"annotations": {INCARNATION: given.incarnation}}
    return {**body, "metadata": {**body["metadata"], **own}, **template}


def is_given(live: Mapping[str, Any], given: Given) -> bool:
    """Return whether a valid live object still has all its bindings."""
    return _holds(live, render(live, given))


def _holds(live: object, wanted: object) -> bool:
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(_holds(live.get(key), each) for key, each in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and all(any(_holds(one, each) for one in live) for each in wanted)
    return live == wanted


def nothing(live: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object to apply to remove everything."""
    metadata = live["metadata"]
    named = {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": named}


def _path(live: Mapping[str, Any]) -> Sequence[str]:
    return _TEMPLATE.get(str(live.get("kind")), _USUAL_TEMPLATE)


def _lists(live: Mapping[str, Any]) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return the container lists of the pod template, as servicebinding.io maps them by default."""
    value: Any = live
    for step in (*_path(live), "spec"):
        value = value.get(step) if isinstance(value, dict) else None
    spec: Mapping[str, Any] = value if isinstance(value, dict) else {}
    return {
        key: {str(one["name"]): one for one in spec.get(key) or () if isinstance(one, dict)}
        for key in ("containers", "initContainers")
    }


def _volumes(given: Given) -> Iterator[dict[str, Any]]:
    for secret in dict.fromkeys(given.directories.values()):
        yield {"name": _volume(secret), "secret": {"secretName": secret, "defaultMode": _MODE}}
    if given.takes_file:
        name = VCAP_FILE.rpartition("/")[2]
        source = {"secretName": given.vcap_secret, "items": [{"key": VCAP_KEY, "path": name}]}
        yield {"name": _volume(given.vcap_secret), "secret": {**source, "defaultMode": _MODE}}


def _container(name: str, live: Mapping[str, Any], given: Given) -> dict[str, Any]:
    root = _own_root(live) or BINDINGS_ROOT
    env: list[dict[str, Any]] = []
    if given.directories and root == BINDINGS_ROOT:
        env.append({"name": _ROOT, "value": BINDINGS_ROOT})
    mounts = [
        {"name": _volume(secret), "mountPath": f"{root.rstrip('/')}/{directory}", "readOnly": True}
        for directory, secret in given.directories.items()
    ]
    if given.takes_file:
        env.append({"name": f"{VCAP_KEY}_FILE_PATH", "value": VCAP_FILE})
        folder = VCAP_FILE.rpartition("/")[0]
        mounts.append({"name": _volume(given.vcap_secret), "mountPath": folder, "readOnly": True})
    else:
        source = {"secretKeyRef": {"name": given.vcap_secret, "key": VCAP_KEY}}
        env.append({"name": VCAP_KEY, "valueFrom": source})
    return {"name": name, "env": env, "volumeMounts": mounts}


def _own_root(container: Mapping[str, Any]) -> str | None:
    """Return the root that a container sets, empty if not a literal; None if it sets none."""
    own = {str(one.get("name")): str(one.get("value") or "") for one in container.get("env") or ()}
    return own.get(_ROOT)


def _volume(secret: str) -> str:
    """Return the volume name of a Secret, since Secret names can be too long."""
    return f"binding-{hashlib.sha256(secret.encode()).hexdigest()[:16]}"
