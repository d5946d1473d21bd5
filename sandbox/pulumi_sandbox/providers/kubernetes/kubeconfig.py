"""Kubeconfigs: read from a path or from text, and asked for the cluster, user and namespace to use."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Value

PASSPHRASES: Final = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


_PATHS: Final = frozenset({"certificate-authority", "client-certificate", "client-key", "tokenFile"})


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A kubeconfig as a mapping; paths inside are absolute. `place` says where it came from."""

    place: str
    content: Properties

    def context_name(self, chosen: str) -> str:
        """Return the chosen context's name, or the current one's."""
        current = self.content.get("current-context")
        return chosen or (current if isinstance(current, str) else "")

    def cluster(self, context: str, cluster: str) -> Properties | None:
        """Return the cluster these choices (empty: the kubeconfig's own) lead to; None when there is none."""
        name = cluster or self._context(context).get("cluster")
        return self._named("clusters", "cluster", name)

    def namespace(self, context: str) -> str:
        """Return the context's namespace, `default` when it names none."""
        named = self._context(context).get("namespace")
        return named if isinstance(named, str) and named else "default"

    def with_cluster(self, context: str, cluster: str) -> Kubeconfig:
        """Return one whose context leads to this cluster."""
        name = self.context_name(context)
        contexts: list[Value] = [
            {**entry, "context": {**cast(Properties, entry.get("context") or {}), "cluster": cluster}}
            if isinstance(entry, dict) and entry.get("name") == name
            else entry
            for entry in self._list("contexts")
        ]
        return replace(self, content={**self.content, "contexts": contexts})

    def without_passphrase(self) -> Kubeconfig:
        """Return one whose plugins for credentials, which inherit all else, see no passphrase of a state."""
        copy = replace(self, content=deepcopy(self.content))
        for entry in copy._list("users"):
            match entry:
                case {"user": {"exec": dict(plugin)}}:
                    given = plugin.get("env")
                    blank: list[Value] = [{"name": name, "value": ""} for name in PASSPHRASES]
                    plugin["env"] = [*given, *blank] if isinstance(given, list) else blank
                case _:
                    pass
        return copy

    def _context(self, chosen: str) -> Properties:
        return self._named("contexts", "context", self.context_name(chosen)) or {}

    def _named(self, collection: str, kind: str, name: Value) -> Properties | None:
        for entry in self._list(collection):
            if isinstance(entry, dict) and entry.get("name") == name:
                found = entry.get(kind)
                return found if isinstance(found, dict) else {}
        return None

    def _list(self, collection: str) -> list[Value]:
        entries = self.content.get(collection)
        return entries if isinstance(entries, list) else []


def load(path_or_content: str, folder: Path = Path()) -> Kubeconfig:
    """Read a kubeconfig: text, a path (or several, joined as in KUBECONFIG), or the user's own when empty.

    folder: whence relative paths are meant. Of several files the first to name a cluster, user or context
    counts, as with kubectl.

    Raises SandboxError `kubeconfig-invalid`, when nothing is there or it is no kubeconfig; its content is not
    quoted.
    """
    import yaml

    given = path_or_content or os.environ.get("KUBECONFIG", "~/.kube/config")
    is_content = "\n" in given or given.lstrip().startswith("{")
    place = "kubeconfig (given as text)" if is_content else f"kubeconfig {given}"
    try:
        if is_content:
            contents = [yaml.safe_load(given)]
        else:
            files = [
                path
                for part in given.split(os.pathsep)
                if part and (path := folder / Path(part).expanduser()).exists()
            ]
            contents = [_absolute(yaml.safe_load(path.read_text()), path.absolute().parent) for path in files]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _invalid(place, f"it cannot be read ({type(error).__name__})") from error
    mappings = [cast(Properties, content) for content in contents if isinstance(content, dict)]
    if not any(content.get("clusters") for content in mappings):
        raise _invalid(place, "there is no such file, or it names no cluster")
    return Kubeconfig(place, _merged(mappings))


def load_if_readable(path_or_content: str, folder: Path = Path()) -> Kubeconfig | None:
    """Read a kubeconfig as `load` does; None when that fails."""
    try:
        return load(path_or_content, folder)
    except SandboxError:
        return None


def _merged(contents: list[Properties]) -> Properties:
    merged: Properties = {}
    for content in contents:
        for key, value in content.items():
            known = merged.get(key)
            if isinstance(known, list) and isinstance(value, list):
                names = [entry.get("name") for entry in known if isinstance(entry, dict)]
                merged[key] = known + [e for e in value if isinstance(e, dict) and e.get("name") not in names]
            elif not known:
                merged[key] = value
    return merged


def _absolute(value: Value, folder: Path, key: str = "") -> Value:
    if isinstance(value, dict):
        return {name: _absolute(item, folder, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_absolute(item, folder, key) for item in value]
    if isinstance(value, str) and (key in _PATHS or (key == "command" and "/" in value)):
        return str(folder / Path(value).expanduser())
    return value


def _invalid(place: str, problem: str) -> SandboxError:
    return SandboxError(
        code="kubeconfig-invalid",
        place=place,
        problem=problem,
        fix="give the provider a kubeconfig that kubectl can use, or start the sandbox's own cluster",
    )
