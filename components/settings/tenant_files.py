"""Tenants in files of their own, `tenants/NAME.yaml`, which are one configuration with the stack's file.

A file says what is its own tenant's and nothing else, so that who reviews it need not know the others: what
has a namespace is in the tenant's, references lead to its accounts, its identities and its credentials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.documents import Document, Step, Unreadable, read_file, shown

from components.errors import Problem
from components.naming import config_path
from components.settings.document import misspelt, nearest
from components.settings.places import begins, steps_in

KEY: Final = "tenantsFrom"
DEFAULTS: Final = "_defaults"
"""The file of what every tenant has that does not say otherwise."""

CLASS: Final = "class"
CLASSES: Final = "classes"
_TENANTS: Final = "tenants"
_OF_A_TENANT: Final = ("namespace", "accounts")
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "services": ("instances", "apps"),
    "asoCredentials": ("namespaces", "named", "identities"),
    "secretStores": ("providers", "stores", "reads", "pushes"),
    "pullSecrets": ("clusters",),
}
"""Section → its maps of what may be one tenant's."""

_WITHOUT_NAMESPACE: Final = ("namespaces", "identities", "clusters")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the configuration that a file makes, and its path in that file."""

    place: tuple[str, ...]
    inside: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class TenantFile:
    """The file of one tenant. data: what it says, over what it has from its class and from all."""

    name: str
    document: Document
    data: Mapping[str, Any]

    @property
    def entries(self) -> Iterator[Entry]:
        """What it makes: the tenant, and whatever else is that tenant's."""
        tenant = {key: self.data[key] for key in _OF_A_TENANT if key in self.data}
        yield Entry((_TENANTS, self.name), (), tenant)
        for section, parts in PARTS.items():
            for part in parts:
                for name, value in _map(_map(self.data.get(section)).get(part)).items():
                    placed = isinstance(value, dict) and part not in _WITHOUT_NAMESPACE
                    own = {"namespace": self.data.get("namespace")} if placed else {}
                    entry = {**own, **value} if placed else value
                    yield Entry((section, part, name), (section, part, name), entry)

    def problem(self, inside: Sequence[Step], cause: str, mend: str) -> Problem:
        """Return what is wrong at a path of the file."""
        place = config_path(_TENANTS, self.name, *inside)
        return Problem(place, cause, mend, self.document.at(inside))


@dataclass(frozen=True, slots=True)
class TenantFiles:
    """The files that could be read, and what is wrong with those that could not."""

    files: Sequence[TenantFile] = ()
    unreadable: Sequence[Problem] = ()

    def join(self, document: dict[str, Any]) -> Iterator[Problem]:
        """Add them to the configuration of the stack's file, and say what may not be added."""
        yield from self.unreadable
        tenants = {*_map(document.get(_TENANTS)), *(file.name for file in self.files)}
        for file in self.files:
            yield from _unknown_keys(file)
            for entry in file.entries:
                yield from _not_its_own(file, entry, tenants)
                yield from _added(document, file, entry)

    def located(self, problem: Problem) -> Problem:
        """Return a problem with its place in the file that it comes from, if it is one of these."""
        if problem.at is None:
            for file in self.files:
                for entry in file.entries:
                    made = config_path(*entry.place)
                    if begins(problem.place, made):
                        rest = steps_in(entry.value, problem.place.removeprefix(made))
                        return replace(problem, at=file.document.at((*entry.inside, *rest)))
        return problem


def read_tenants(given: object, root: Path) -> TenantFiles:
    """Read the files of a folder. given: its path from the root of the project, or no text."""
    if not isinstance(given, str) or not given:
        return TenantFiles()
    folder = root / given
    if not folder.is_dir():
        cause, mend = f"{given} is no folder", "name the folder of the tenants' files, from Pulumi.yaml on"
        return TenantFiles((), (Problem(config_path(KEY), cause, mend),))
    files: list[TenantFile] = []
    problems: list[Problem] = []
    defaults: Mapping[str, Any] = {}
    for path in sorted(folder.iterdir(), key=lambda path: (path.stem != DEFAULTS, path.name)):
        place = config_path(_TENANTS, path.stem)
        if path.suffix == ".yml":
            cause = "only files that end in .yaml are read, so its tenant would count as absent"
            problems.append(Problem(place, cause, f"rename it to {path.stem}.yaml", (shown(path), 1, 1)))
        if path.suffix != ".yaml" or (path.stem.startswith("_") and path.stem != DEFAULTS):
            continue
        try:
            document = read_file(path)
        except Unreadable as error:
            problems.append(Problem(place, error.cause, error.mend, error.at))
            continue
        if not isinstance(document.data, dict):
            cause, mend = "the file holds no map, so it says nothing", "write the tenant's keys, or delete it"
            problems.append(Problem(place, cause, mend, document.mark))
        elif path.stem == DEFAULTS:
            defaults = document.data
        else:
            files.append(TenantFile(path.stem, document, document.data))
    for file in files:
        problems += _slips(file, _map(defaults.get(CLASSES)))
    return TenantFiles(tuple(_with(defaults, file) for file in files), tuple(problems))


def _slips(file: TenantFile, classes: Collection[str]) -> Iterator[Problem]:
    """Yield what would count as absent without a word: an unknown class, a section that is no map."""
    named = file.data.get(CLASS)
    if CLASS in file.data and str(named) not in classes:
        cause = f"{named} is no class of {DEFAULTS}.yaml, so nothing of one would be taken"
        yield file.problem((CLASS,), cause, nearest(str(named), classes))
    for section in PARTS:
        if not isinstance(file.data.get(section, {}), dict):
            cause = "it is no map of names, so all that the tenant had there would be deleted"
            yield file.problem((section,), cause, "write it as a map: {name: …}, or remove it")


def _with(defaults: Mapping[str, Any], file: TenantFile) -> TenantFile:
    """Return a file with what its class says before that, and before that what all have."""
    of_all = {key: value for key, value in defaults.items() if key != CLASSES}
    of_class = _map(_map(defaults.get(CLASSES)).get(str(file.data.get(CLASS))))
    return replace(file, data=_over(_over(of_all, of_class), file.data))


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two maps as one, map by map; of all else the upper one's."""
    found = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            found[key] = _over(below[key], above[key])
    return found


def _unknown_keys(file: TenantFile) -> Iterator[Problem]:
    known = (*_OF_A_TENANT, CLASS, *PARTS)
    for key in file.data:
        if key not in known:
            yield file.problem((key,), *misspelt(str(key), known))
    for section, parts in PARTS.items():
        for part in _map(file.data.get(section)):
            if part not in parts:
                cause = f"{part} of {section} is for all tenants, and no one tenant's to say"
                yield file.problem(
                    (section, part), cause, f"here are {', '.join(parts)}; keep it in the stack's file"
                )


def _added(document: dict[str, Any], file: TenantFile, entry: Entry) -> Iterator[Problem]:
    holder = document
    for step in entry.place[:-1]:
        holder = holder.setdefault(step, {})
        if not isinstance(holder, dict):
            return  # told where it stands
    if entry.place[-1] in holder:
        cause = f"{config_path(*entry.place)} is said by another file as well"
        yield file.problem(entry.inside, cause, "keep it in one of the two, or give it another name")
        return
    holder[entry.place[-1]] = deepcopy(entry.value)


def _not_its_own(file: TenantFile, entry: Entry, tenants: Collection[str]) -> Iterator[Problem]:
    """Find what leads to things of others."""
    namespace = file.data.get("namespace")
    if entry.place[1:2] == ("namespaces",) and entry.place[2] != namespace:
        yield _strange(file, entry.inside, f"namespace {entry.place[2]}")
    for path, key, value in _texts(entry.inside, entry.value):
        if key in ("namespace", "remoteNamespace"):
            is_its_own = value == namespace or entry.place[0] == _TENANTS
        elif key == "account":
            is_its_own = "/" not in value or value.partition("/")[0] == file.name
        elif key == "secret":
            is_its_own = value.partition("/")[0] == namespace
        elif key == "identity":
            is_its_own = value in _map(_map(file.data.get("asoCredentials")).get("identities"))
        elif key.endswith("From"):
            is_its_own = _owner(value, tenants) == file.name
        else:
            continue
        if not is_its_own:
            yield _strange(file, path, f"{key} {value}")


def _strange(file: TenantFile, path: Sequence[Step], what: str) -> Problem:
    return file.problem(
        path,
        f"{what} is not tenant {file.name}'s, and its file names only what is",
        f"name what is in its namespace, {file.name}/SLOT, an identity of this file, or a credential called"
        f" {file.name} or {file.name}-…; or move it to the stack's file",
    )


def _owner(credential: str, tenants: Collection[str]) -> str | None:
    """Return whose a credential is by its name: the tenant's with the longest name it begins with."""
    owners = [name for name in tenants if credential == name or credential.startswith(f"{name}-")]
    return max(owners, key=len, default=None)


def _texts(path: tuple[Step, ...], value: Any) -> Iterator[tuple[tuple[Step, ...], str, str]]:
    """Yield each text below a value: its path, its key, and itself."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for step, inner in entries:
        if isinstance(inner, str) and isinstance(step, str):
            yield (*path, step), step, inner
        yield from _texts((*path, step), inner)


def _map(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}
