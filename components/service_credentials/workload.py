"""Lets a workload read its bindings as files: the volume, the mount and the variable that names their root.

The rules are those of servicebinding.io, "Workload Projection": a directory per binding below
`$SERVICE_BINDING_ROOT`, and a root that is set already is never reset. Pure; the parts of a manifest that are
not about bindings may be anything, outputs of a program too.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from components.service_credentials.errors import ServiceError

Manifest: TypeAlias = Mapping[str, Any]

ROOT_VARIABLE: Final = "SERVICE_BINDING_ROOT"
ROOT: Final = "/bindings"
"""The root for a container that names none."""

_READABLE: Final = 0o644
_KINDS: Final = ("Deployment", "StatefulSet")
_DIRECTORY = re.compile(r"(?!\.{1,2}$)[-.a-z0-9]{1,253}")


@dataclass(frozen=True, slots=True)
class MountedBinding:
    """A binding as a workload sees it.

    directory: its name below the root. secret_name: of its Secret, in the workload's namespace; text, or an
    output that will be.
    """

    directory: str
    secret_name: Any


def project_bindings(manifest: Manifest, bindings: Sequence[MountedBinding]) -> dict[str, Any]:
    """Give every container of a Deployment or StatefulSet the files of these bindings.

    Doing it again changes nothing; without bindings nothing is changed at all. Raises
    ServiceError for another kind, two bindings of one directory, a name that is no directory, and
    a container whose root or whose files are in the way.
    """
    place = f"{manifest.get('kind')} {(manifest.get('metadata') or {}).get('name')}"
    _examine(place, manifest, bindings)
    if not bindings:
        return dict(manifest)
    spec = manifest["spec"]
    template = spec["template"]
    pod = template["spec"]
    volumes = [_volume(binding) for binding in bindings]
    patched = {**pod, "volumes": _with(pod.get("volumes"), volumes, "name")}
    for group in ("initContainers", "containers"):
        if pod.get(group):
            patched[group] = [_mounted(place, container, bindings) for container in pod[group]]
    return {**manifest, "spec": {**spec, "template": {**template, "spec": patched}}}


def _examine(place: str, manifest: Manifest, bindings: Sequence[MountedBinding]) -> None:
    if manifest.get("kind") not in _KINDS:
        raise ServiceError(
            code="no-workload",
            place=place,
            cause="it has no template of pods that bindings could be mounted into",
            mend=f"give a manifest of kind {' or '.join(_KINDS)}",
        )
    for directory, count in Counter(binding.directory for binding in bindings).items():
        if not _DIRECTORY.fullmatch(directory):
            raise ServiceError(
                code="bad-directory",
                place=f"{place}, binding {directory!r}",
                cause="it is no name of a directory of bindings",
                mend="use up to 253 of a-z, 0-9, '-' and '.'",
            )
        if count > 1:
            raise ServiceError(
                code="same-directory",
                place=f"{place}, binding {directory}",
                cause=f"{count} bindings have this directory, and only one could be read",
                mend="give each binding a name of its own",
            )


def _mounted(place: str, container: Manifest, bindings: Sequence[MountedBinding]) -> dict[str, Any]:
    place = f"{place}, container {container.get('name')}"
    env = container.get("env") or []
    declared = [variable for variable in env if variable.get("name") == ROOT_VARIABLE]
    root = _root(place, declared[-1]) if declared else ROOT
    mounts = [
        {"name": _volume_name(binding), "mountPath": f"{root}/{binding.directory}", "readOnly": True}
        for binding in bindings
    ]
    for mount in container.get("volumeMounts") or []:
        if any(
            mount.get("mountPath") == ours["mountPath"] and mount.get("name") != ours["name"]
            for ours in mounts
        ):
            raise ServiceError(
                code="path-taken",
                place=f"{place}, {mount['mountPath']}",
                cause=f"volume {mount.get('name')} is mounted there, so the binding cannot be",
                mend="mount that volume elsewhere",
            )
    return {
        **container,
        "env": env if declared else [*env, {"name": ROOT_VARIABLE, "value": ROOT}],
        "volumeMounts": _with(container.get("volumeMounts"), mounts, "mountPath"),
    }


def _root(place: str, variable: Manifest) -> str:
    """Read the root a container names itself; only a plain path can be followed."""
    value = variable.get("value")
    if not isinstance(value, str) or not value.startswith("/") or "$(" in value:
        raise ServiceError(
            code="unknown-root",
            place=f"{place}, {ROOT_VARIABLE}",
            cause="it is set to what is no plain absolute path, so nobody can say where bindings belong",
            mend="set it to a path, or leave it out",
        )
    return value.rstrip("/")


def _volume(binding: MountedBinding) -> dict[str, Any]:
    secret = {"secretName": binding.secret_name, "defaultMode": _READABLE}
    return {"name": _volume_name(binding), "secret": secret}


def _volume_name(binding: MountedBinding) -> str:
    """Name a volume: a DNS label, which the directory need not be."""
    return f"service-binding-{hashlib.sha256(binding.directory.encode()).hexdigest()[:20]}"


def _with(present: Sequence[Manifest] | None, ours: Sequence[Manifest], key: str) -> list[Manifest]:
    """Put our entries into a list, each in the place of the one with the same key, else at the end."""
    wanted = {entry[key]: entry for entry in ours}
    kept = [wanted.pop(entry.get(key), entry) for entry in present or []]
    return [*kept, *wanted.values()]
