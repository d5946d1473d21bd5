"""Tenants in separate files, `tenants/NAME.yaml`, which are merged into the stack's configuration."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from components.config.document import in_print, misspelt, nearest
from components.config.places import ENDS, steps_in
from components.documents import Document, Mark, Step, Unreadable, read_file, render_path
from components.errors import Problem
from components.naming import config_path
from components.stack_config.store_logins import as_map
from components.stack_config.tenant_file import KEYS, PARTS, TENANTS, Elsewhere, Entry, Layer, TenantFile

KEY: Final = "tenantsFrom"
DEFAULTS: Final = "_defaults"
"""Name of the file with the defaults of all tenants."""

DIGEST: Final = "files"
"""Input that records in the state what was declared in files beside the stack file."""

CLASS: Final = "class"
CLASSES: Final = "classes"
_NAMESPACE: Final = re.compile(rb"^(\{\s*)?[\"']?namespace[\"']?\s*:", re.MULTILINE)
_NO_NAMES: Final = (
    "it is not a map of names, so all that the tenant had there would be deleted",
    "write it as a map: {name: …}, or remove it",
)


@dataclass(frozen=True)
class TenantFiles:
    """Files that could be read, and problems of the others.

    `others`: tenants in the folder that belong to another stack. `idle`: classes without tenants.
    """

    files: Sequence[TenantFile] = ()
    unreadable: Sequence[Problem] = ()
    others: Sequence[TenantFile] = ()
    idle: Sequence[TenantFile] = ()

    def digest(self, further: Iterable[object]) -> str:
        """Return a digest of the files' content, as stored in the state; empty if there is none.

        `further`: content of other files.
        """
        said = [*({file.name: file.data} for file in self.files), *further]
        text = json.dumps(said, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if said else ""

    def join(self, document: dict[str, Any]) -> Iterator[Problem]:
        """Add the files to the stack's configuration, and yield what must not be added."""
        yield from self.unreadable
        around = Elsewhere.of(document, (*self.files, *self.others))
        elsewhere = {_as_azure_has_it(entry.place) for other in self.others for entry in other.entries}
        namespaces = {other.namespace: other for other in self.others if other.namespace}
        for file in self.files:
            if (other := namespaces.get(file.namespace)) is not None:
                problem = f"it is the namespace of tenant {other.name}, which is another stack's"
                yield file.problem(("namespace",), problem, "give the tenant a namespace of its own")
            for entry in file.entries:
                yield from file.not_its_own(entry, around)
                yield from _added(
                    document, file, entry, is_elsewhere=_as_azure_has_it(entry.place) in elsewhere
                )

    @property
    def confined(self) -> Mapping[str, str]:
        """Place of each entry from a file → namespace of its tenant.

        For tenants of other stacks, only the tenants themselves.
        """
        others = {config_path(TENANTS, other.name): other.namespace for other in self.others}
        own = {place: str(file.data.get("namespace")) for place, (file, _) in self._made.items()}
        return others | own

    @cached_property
    def _made(self) -> Mapping[str, tuple[TenantFile, Entry]]:
        return {config_path(*entry.place): (file, entry) for file in self.files for entry in file.entries}

    def located(self, problems: Iterable[Problem]) -> Iterator[Problem]:
        """Return problems with positions; one that several tenants share is reported once."""
        found: dict[object, list[Problem]] = {}
        for each in problems:
            file, at = self._origin(each)
            shared = file is not None and at is not None and at[0] != file.layers[0].document.mark.file
            alike = (at, file.unnamed(each.problem)) if file is not None and shared else len(found)
            found.setdefault(alike, []).append(replace(each, at=at))
        for first, *others in found.values():
            more = f" (and so {len(others)} more tenants have it)" if others else ""
            yield replace(first, problem=first.problem + more)

    def _origin(self, problem: Problem) -> tuple[TenantFile | None, tuple[str, int, int] | None]:
        """Return the file and the position of a problem, if it is in one of these files."""
        place = problem.place
        ends = [index for index, sign in enumerate(place) if sign in ENDS]
        for end in (len(place), *reversed(ends)):
            if (made := self._made.get(place[:end])) is not None:
                file, entry = made
                rest = steps_in(entry.value, place[end:])
                at = file.at((*entry.inside, *rest))
                return file, problem.at or (at.file, at.line, at.column)
        return None, problem.at


def read_tenants(given: object, root: Path, is_ours: Callable[[str], bool] = bool) -> TenantFiles:
    """Read the files of a folder. `given`: its path relative to the project, or not a string.

    `is_ours`: whether a tenant belongs to this stack.
    """
    if not isinstance(given, str) or not given:
        return TenantFiles()
    folder = root / given
    try:
        paths = sorted(folder.iterdir())
    except (OSError, ValueError):
        problem = f"{given} is not a folder that can be read here"
        fix = "name the folder of the tenants' files, from Pulumi.yaml on"
        return TenantFiles((), (Problem(config_path(KEY), problem, fix),))
    files: dict[str, Document] = {}
    found: list[TenantFile] = []
    problems: list[Problem] = []
    for path in paths:
        place, is_mine = config_path(TENANTS, path.stem), path.stem.startswith("_") or is_ours(path.stem)
        if path.suffix != ".yaml" or (path.stem.startswith("_") and path.stem != DEFAULTS):
            problems += _unread(place, path) if is_mine else ()
            continue
        told: Problem | None = None
        document = Document({}, Mark(render_path(path), 1, 1))
        try:
            document = _read_inside(path, folder)
        except Unreadable as error:
            told = Problem(place, error.problem, error.fix, error.at or document.mark)
        if not isinstance(document.data, dict):
            fix = "write the tenant's keys, or delete it"
            told = Problem(place, "the file is not a map, so it declares nothing", fix, document.mark)
        if told is None:
            files[path.stem] = document
        elif is_mine:
            problems.append(told)
        else:  # its name counts even if its file is invalid
            found.append(
                TenantFile(path.stem, f"{given}/{path.stem}", root, [Layer(Document({}, document.mark))])
            )
    if not problems and not found and not files.keys() - {DEFAULTS}:
        problem = f"{given} holds no tenant's file, so all that the stack's tenants had would be deleted"
        fix = "restore it from version control; a stack without tenants in files has no tenantsFrom"
        problems.append(Problem(config_path(KEY), problem, fix))
    of_all = Layer(files.pop(DEFAULTS, None) or Document({}, Mark(str(folder), 1, 1)))
    classes = {name: replace(of_all, path=(CLASSES, name)) for name in as_map(of_all.data.get(CLASSES))}
    problems += _slips(DEFAULTS, of_all, (CLASSES,))
    for layer in classes.values():
        problems += _slips(DEFAULTS, layer)
    for name, document in files.items():
        own = Layer(document)
        problems += _slips(name, own, (CLASS,), classes) if is_ours(name) else ()
        below = (own, classes.get(str(own.data.get(CLASS, ""))), of_all)
        found.append(TenantFile(name, f"{given}/{name}", root, [each for each in below if each]))
    ours = tuple(each for each in found if is_ours(each.name))
    others = tuple(each for each in found if not is_ours(each.name))
    taken = {str(each.data.get(CLASS)) for each in found}
    idle = [TenantFile(name, "", root, (layer,)) for name, layer in classes.items() if name not in taken]
    return TenantFiles(ours, tuple(problems), others, idle)


def _read_inside(path: Path, folder: Path) -> Document:
    """Read a file of the folder. Raises Unreadable, also for a link that leads out of it."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        problem = "it is a link to a file outside of the folder, whose lines a message could show"
        raise Unreadable(Mark(render_path(path), 1, 1), problem, "put the file itself here")
    return read_file(path)


def _unread(place: str, path: Path) -> Iterator[Problem]:
    """Reject an entry of the folder that looks like a tenant's file but is not read."""
    at = (render_path(path), 1, 1)
    if path.is_dir():
        if not (path.parent / f"{path.name}.yaml").exists() and any(map(_is_a_tenants, path.rglob("*"))):
            problem = "tenants' files in folders are not read, so its tenants would count as absent"
            yield Problem(place, problem, f"move them up, into {render_path(path.parent)} itself", at)
    elif path.suffix == ".yaml":
        problem = f"of the files that begin with _ only {DEFAULTS}.yaml is read, so it would count as absent"
        yield Problem(place, problem, f"rename it to {DEFAULTS}.yaml, or remove it", at)
    elif _is_yaml(path):
        problem = "only files that end in .yaml are read, so its tenant would count as absent"
        yield Problem(place, problem, f"rename it to {path.stem}.yaml", at)


def _is_a_tenants(path: Path) -> bool:
    """Return whether a file looks like a tenant's: other files have no top-level namespace."""
    readable = _is_yaml(path) and path.is_file() and os.access(path, os.R_OK)
    return readable and _NAMESPACE.search(path.read_bytes()) is not None


def _is_yaml(path: Path) -> bool:
    return path.suffix.lower() in (".yaml", ".yml") and not path.name.startswith(".")


def _slips(
    name: str, layer: Layer, further: Sequence[str] = (), classes: Collection[str] = ()
) -> Iterator[Problem]:
    """Yield what would be ignored silently: unknown keys, and sections that are not maps.

    `further`: other keys that this layer can have.
    """

    def at(path: tuple[Step, ...], problem: str, fix: str) -> Problem:
        inside = (*layer.path, *path)
        return Problem(config_path(TENANTS, name, *inside), problem, fix, layer.document.at(inside))

    known = (*KEYS, *further)
    for key in layer.data:
        if key == CLASS and CLASS not in known:
            problem = "a class is taken by a tenant's own file alone, so this one would not be"
            yield at((key,), problem, "write it in the files of the tenants, or what it says here")
        elif key not in known:
            yield at((key,), *misspelt(str(key), known))
    if CLASS in further and CLASS in layer.data and str(named := layer.data[CLASS]) not in classes:
        problem = (
            f"{in_print(str(named))} is not a class of {DEFAULTS}.yaml, so nothing of one would be taken"
        )
        yield at((CLASS,), problem, nearest(str(named), classes))
    for section in (*PARTS, *(each for each in further if each != CLASS)):
        given = layer.data.get(section, {})
        if not isinstance(given, dict):
            yield at((section,), *_NO_NAMES)
        for part, entries in as_map(given).items():
            if section in PARTS and part not in PARTS[section]:
                problem = f"{part} of {section} is for all tenants, and cannot be set for one"
                fix = f"here are {', '.join(PARTS[section])}; keep it in the stack's file"
                yield at((section, part), problem, fix)
            elif not isinstance(entries, dict):
                yield at((section, part), *_NO_NAMES)


def _as_azure_has_it(place: tuple[str, ...]) -> tuple[str, ...]:
    """Return a place for comparison: Azure ignores the case of its names."""
    is_of_azure = place[:-1] in (("asoCredentials", "resourceGroups"), ("asoCredentials", "identities"))
    return (*place[:-1], place[-1].lower()) if is_of_azure else place


def _added(
    document: dict[str, Any], file: TenantFile, entry: Entry, *, is_elsewhere: bool
) -> Iterator[Problem]:
    holder = document
    for step in entry.place[:-1]:
        holder = holder.setdefault(step, {})
        if not isinstance(holder, dict):
            return  # reported at its place
    if is_elsewhere or entry.place[-1] in holder:
        problem = f"{config_path(*entry.place)} is also set by another file"
        yield file.problem(entry.inside, problem, "keep it in one of the two, or give it another name")
    if entry.place[-1] not in holder:
        holder[entry.place[-1]] = deepcopy(entry.value)
