"""File of one tenant: the entries it adds, their positions, and whether they refer only to the tenant's own.

A file contains only entries of its tenant, so it can be reviewed without the others: its objects are in the
tenant's namespace, and references lead to the tenant's accounts, identities and credentials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

from components.config.field_types import is_of_the_cluster, named_in
from components.documents import Document, Mark, Step
from components.errors import Problem
from components.naming import config_path
from components.stack_config.store_logins import as_map, logs_in

TENANTS: Final = "tenants"
_OF_A_TENANT: Final = ("namespace", "accounts", "previously")
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "services": ("instances", "apps"),
    "asoCredentials": ("namespaces", "named", "resourceGroups", "identities", "resources"),
    "secretStores": ("providers", "stores", "reads", "pushes"),
    "pullSecrets": ("clusters",),
}
"""Section → its maps whose entries can belong to one tenant."""

KEYS: Final = (*_OF_A_TENANT, *PARTS)
_WITH_NAMESPACE: Final = ("instances", "apps", "named", "providers", "stores", "reads", "pushes")


@dataclass(frozen=True, slots=True)
class Entry:
    """Configuration entry from a file, and its path in that file."""

    place: tuple[str, ...]
    inside: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of a tenant's configuration: its own file, its class, or the defaults."""

    document: Document
    path: tuple[str, ...] = ()

    @property
    def data(self) -> Mapping[str, Any]:
        """Its content; empty if the path does not exist."""
        value: Any = self.document.data
        for step in self.path:
            value = as_map(value).get(step)
        return as_map(value)

    def depth(self, inside: Sequence[Step]) -> int:
        """Return how many steps of a path exist."""
        value: Any = self.data
        for count, step in enumerate(inside):
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return count
        return len(inside)


@dataclass(frozen=True)
class TenantFile:
    """File of one tenant.

    `folder`: of files it can use, relative to `root`, the project's. `layers`: its own first.
    """

    name: str
    folder: str
    root: Path
    layers: Sequence[Layer]

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """Its content, merged over its class and the defaults."""
        found: Mapping[str, Any] = {}
        for layer in reversed(self.layers):
            found = _over(found, layer.data)
        return found

    @property
    def namespace(self) -> str:
        """Its namespace; empty if it names none."""
        said = self.data.get("namespace")
        return said if isinstance(said, str) else ""

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """Entries it adds: the tenant, and all other entries of the tenant."""
        tenant = {key: self.data[key] for key in _OF_A_TENANT if key in self.data}
        found = [Entry((TENANTS, self.name), (), tenant)]
        for section, parts in PARTS.items():
            for part in parts:
                for name, value in as_map(as_map(self.data.get(section)).get(part)).items():
                    placed = isinstance(value, dict) and part in _WITH_NAMESPACE
                    entry = {"namespace": self.data.get("namespace"), **value} if placed else value
                    found.append(Entry((section, part, name), (section, part, name), entry))
        return found

    def at(self, inside: Sequence[Step]) -> Mark:
        """Return the position of a path: in the file, or in the layer it comes from."""
        layer = max(self.layers, key=lambda layer: layer.depth(inside))
        return layer.document.at((*layer.path, *inside))

    def problem(self, inside: Sequence[Step], problem: str, fix: str) -> Problem:
        """Return a problem at a path of the file."""
        return Problem(config_path(TENANTS, self.name, *inside), problem, fix, self.at(inside))

    def unnamed(self, text: str) -> str:
        """Return a message without the names of this tenant, so that equal ones of others match."""
        own = "|".join(re.escape(str(each)) for each in (self.data.get("namespace"), self.name) if each)
        return re.sub(rf"(?<![\w-])({own})(?![\w-])", "…", text)

    def not_its_own(self, entry: Entry, elsewhere: Elsewhere) -> Iterator[Problem]:
        """Yield problems of references to things of others."""
        match entry.place:
            case ("tenants", _) if is_of_the_cluster(str(self.data.get("namespace"))):
                yield self._strange(("namespace",), f"namespace {self.data.get('namespace')}")
            case (_, "namespaces", namespace) if namespace != self.data.get("namespace"):
                yield self._strange(entry.inside, f"namespace {namespace}")
            case ("secretStores", "providers" | "stores", _) if not logs_in(as_map(entry.value)):
                yield self.problem(
                    entry.inside,
                    "it has no login of its own, so it would use that of the identity that runs it",
                    "name a Secret or a ServiceAccount of its namespace, or move it to the stack's file",
                )
            case ("secretStores", "stores", _):
                named = as_map(entry.value).get("providerRef")
                provider = elsewhere.providers.get(named) if isinstance(named, str) else None
                if provider is not None and not logs_in(as_map(provider)):
                    yield self.problem(
                        (*entry.inside, "providerRef"),
                        f"{named} logs in as the identity that runs it, whose rights exceed tenant"
                        f" {self.name}'s",
                        "name a provider that logs in with what is in the store's namespace, or a store of"
                        " the stack's file, with its conditions",
                    )
            case _:
                pass
        for path, around, value in _texts(entry.inside, entry.value):
            joined = "/".join(map(str, path))
            owned = next((rule for pattern, rule in _RULES if re.fullmatch(pattern, joined)), None)
            if owned is not None and not owned(_Text(self, elsewhere, around, value)):
                field = [step for step in path if isinstance(step, str)][-1]
                named = "" if field == "gcpSecret" else named_in(value)
                yield self._strange(path, f"{field} {named}".rstrip())

    def _strange(self, path: Sequence[Step], what: str) -> Problem:
        return self.problem(
            path,
            f"{what} is not tenant {self.name}'s, and its file names only what is",
            f"name what is in its namespace, {self.name}/SLOT, what this file declares, a file in"
            f" {self.folder}, or a credential called {self.name} or {self.name}-…; or move it to the stack's"
            " file",
        )


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two maps recursively; other values come from `above`."""
    found = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            found[key] = _over(below[key], above[key])
    return found


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The rest of the configuration: tenants, providers of the stack's file, credentials of its pool."""

    tenants: Collection[str]
    providers: Mapping[str, Any]
    of_the_pool: Collection[object]

    @classmethod
    def of(cls, document: Mapping[str, Any], files: Iterable[TenantFile]) -> Elsewhere:
        """Collect it from the stack's file and the tenants' files."""
        members = as_map(as_map(document.get("accountPool")).get("members"))
        sources = [as_map(member).get("credentialsFrom") for member in members.values()]
        return cls(
            {*as_map(document.get(TENANTS)), *(file.name for file in files)},
            {**as_map(as_map(document.get("secretStores")).get("providers"))},
            [as_map(source).get("entry", source) for source in sources],
        )


@dataclass(frozen=True, slots=True)
class _Text:
    """String in a file, with checks for whether it refers to the tenant's own.

    `around`: the map that contains it.
    """

    file: TenantFile
    elsewhere: Elsewhere
    around: Mapping[str, Any]
    value: str

    def is_namespace(self) -> bool:
        return self.value == self.file.data.get("namespace")

    def is_selected_namespace(self) -> bool:
        return "name" not in self.around or self.is_namespace()

    def is_secret(self) -> bool:
        return self.value.partition("/")[0] == self.file.data.get("namespace")

    def is_account(self) -> bool:
        return "/" not in self.value or self.value.partition("/")[0] == self.file.name

    def is_credential(self) -> bool:
        is_its = owner_of(self.value, self.elsewhere.tenants) == self.file.name
        return is_its and self.value not in self.elsewhere.of_the_pool

    def is_file(self) -> bool:
        path, root = PurePosixPath(self.value), self.file.root
        if "\0" in self.value or ".." in path.parts or not path.is_relative_to(self.file.folder):
            return False
        folder = os.path.realpath((root / self.file.folder).parent)
        return Path(os.path.realpath(root / path)).is_relative_to(Path(folder, self.file.name))

    def is_declared(self, part: str) -> bool:
        return self.value in self._declared(part)

    def is_scope(self) -> bool:
        """Return whether it is in a resource group of the file; without a subscription, False."""
        owned = (
            f"/subscriptions/{as_map(group).get('subscriptionId')}/resourcegroups/{name}/".lower()
            for name, group in self._declared("resourceGroups").items()
        )
        return f"{self.value}/".lower().startswith((*owned,))

    def _declared(self, part: str) -> Mapping[str, Any]:
        return as_map(as_map(self.file.data.get("asoCredentials")).get(part))


_RULES: Final[Sequence[tuple[str, Callable[[_Text], bool]]]] = (
    (r"accounts/.*|asoCredentials/[^/]+/[^/]+/tags/.*", lambda _: True),
    (r"secretStores/[^/]+/[^/]+/(spec|provider)/(.*/)?caBundle/file", _Text.is_file),
    (r"secretStores/[^/]+/[^/]+/(spec|provider)/(.*/)?remoteNamespace", _Text.is_namespace),
    (r"secretStores/[^/]+/[^/]+/(spec|provider)/(.*/)?namespace", _Text.is_selected_namespace),
    (r"secretStores/[^/]+/[^/]+/(spec|provider)/.*", lambda _: True),
    (
        r"[^/]+/[^/]+/[^/]+/namespace|secretStores/pushes/[^/]+/data/.*/remoteNamespace",
        _Text.is_namespace,
    ),
    (
        r"(.*/[^/]+From(/\d+)?|secretStores/(reads|pushes)/.*|pullSecrets/.*/project)/account",
        _Text.is_account,
    ),
    (r".*From(/\d+)?/secret", _Text.is_secret),
    (r".*From(/\d+)?/gcpSecret", lambda _: False),
    (r".*From(/\d+)?(/entry)?", _Text.is_credential),
    (r"asoCredentials/.*/workloadIdentity/identity", lambda text: text.is_declared("identities")),
    (r"asoCredentials/.*/(workload|pod)Identity/clientId", lambda _: False),
    (r"asoCredentials/identities/[^/]+/resourceGroup", lambda text: text.is_declared("resourceGroups")),
    (r"asoCredentials/identities/[^/]+/roles/[^/]+/scope", _Text.is_scope),
    (r"asoCredentials/resources/[^/]+/file", _Text.is_file),
    (r"asoCredentials/resources/[^/]+/credential", lambda text: text.is_declared("named")),
)
"""Pattern of a string's path → whether the string names something of the tenant; the first match counts."""


def owner_of(credential: str, tenants: Collection[str]) -> str | None:
    """Return the owner of a credential by its name: the tenant with the longest matching prefix."""
    pieces = credential.split("-")
    names = ("-".join(pieces[:count]) for count in range(len(pieces), 0, -1))
    return next((name for name in names if name in tenants), None)


def _texts(path: tuple[Step, ...], value: Any) -> Iterator[tuple[tuple[Step, ...], Mapping[str, Any], str]]:
    """Yield each string below a value: its path, the map that contains it, and itself."""
    around = as_map(value)
    for step, inner in [*around.items(), *(enumerate(value) if isinstance(value, list) else ())]:
        if isinstance(inner, str):
            yield (*path, step), around, inner
        yield from _texts((*path, step), inner)
