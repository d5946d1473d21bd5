"""Tenants in files of their own, `tenants/NAME.yaml`, which are one configuration with the stack's file.

A file says what is its own tenant's and nothing else, so that who reviews it need not know the others: what
has a namespace is in the tenant's, references lead to its accounts, its identities and its credentials.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

from components.config.document import in_print, misspelt, nearest
from components.config.field_types import is_of_the_cluster, named_in
from components.config.places import ENDS, steps_in
from components.documents import Document, Mark, Step, Unreadable, read_file, render_path
from components.errors import Problem
from components.naming import config_path
from components.stack_config.store_logins import logs_in

KEY: Final = "tenantsFrom"
DEFAULTS: Final = "_defaults"
"""The file of what every tenant has that does not say otherwise."""

DIGEST: Final = "files"
"""The input by which a state knows what was declared in files beside the stack's."""

CLASS: Final = "class"
CLASSES: Final = "classes"
_TENANTS: Final = "tenants"
_OF_A_TENANT: Final = ("namespace", "accounts", "previously")
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "services": ("instances", "apps"),
    "asoCredentials": ("namespaces", "named", "resourceGroups", "identities", "resources"),
    "secretStores": ("providers", "stores", "reads", "pushes"),
    "pullSecrets": ("clusters",),
}
"""Section → its maps of what may be one tenant's."""

_WITH_NAMESPACE: Final = ("instances", "apps", "named", "providers", "stores", "reads", "pushes")
_NAMESPACE: Final = re.compile(rb"^(\{\s*)?[\"']?namespace[\"']?\s*:", re.MULTILINE)
_NO_NAMES: Final = (
    "it is not a map of names, so all that the tenant had there would be deleted",
    "write it as a map: {name: …}, or remove it",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the configuration that a file makes, and its path in that file."""

    place: tuple[str, ...]
    inside: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Layer:
    """What a tenant has from one place: its own file, its class, or what all have."""

    document: Document
    path: tuple[str, ...] = ()

    @property
    def data(self) -> Mapping[str, Any]:
        """What it says; of a path that is not there, nothing."""
        value: Any = self.document.data
        for step in self.path:
            value = _map(value).get(step)
        return _map(value)

    def depth(self, inside: Sequence[Step]) -> int:
        """Return how many steps of a path are there."""
        value: Any = self.data
        for count, step in enumerate(inside):
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return count
        return len(inside)


@dataclass(frozen=True)
class TenantFile:
    """The file of one tenant.

    folder: where its own files are, from root on, the project's. layers: itself, and what is below it.
    """

    name: str
    folder: str
    root: Path
    layers: Sequence[Layer]

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """What it says, over what it has from its class and from all."""
        found: Mapping[str, Any] = {}
        for layer in reversed(self.layers):
            found = _over(found, layer.data)
        return found

    @property
    def namespace(self) -> str:
        """The namespace that it says, if it says one."""
        said = self.data.get("namespace")
        return said if isinstance(said, str) else ""

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """What it makes: the tenant, and whatever else is that tenant's."""
        tenant = {key: self.data[key] for key in _OF_A_TENANT if key in self.data}
        found = [Entry((_TENANTS, self.name), (), tenant)]
        for section, parts in PARTS.items():
            for part in parts:
                for name, value in _map(_map(self.data.get(section)).get(part)).items():
                    placed = isinstance(value, dict) and part in _WITH_NAMESPACE
                    entry = {"namespace": self.data.get("namespace"), **value} if placed else value
                    found.append(Entry((section, part, name), (section, part, name), entry))
        return found

    def at(self, inside: Sequence[Step]) -> Mark:
        """Return where a path stands: in the file, or where that has it from."""
        layer = max(self.layers, key=lambda layer: layer.depth(inside))
        return layer.document.at((*layer.path, *inside))

    def problem(self, inside: Sequence[Step], problem: str, fix: str) -> Problem:
        """Return what is wrong at a path of the file."""
        return Problem(config_path(_TENANTS, self.name, *inside), problem, fix, self.at(inside))

    def unnamed(self, text: str) -> str:
        """Return a text without the names of this tenant: what is alike for others is then one."""
        own = "|".join(re.escape(str(each)) for each in (self.data.get("namespace"), self.name) if each)
        return re.sub(rf"(?<![\w-])({own})(?![\w-])", "…", text)


@dataclass(frozen=True)
class TenantFiles:
    """The files that could be read, and what is wrong with those that could not.

    others: those of tenants in the same folder that are another stack's.
    """

    files: Sequence[TenantFile] = ()
    unreadable: Sequence[Problem] = ()
    others: Sequence[TenantFile] = ()

    def digest(self, further: Iterable[object]) -> str:
        """Return a digest of what the files say, as the state keeps it; empty where nothing is said.

        further: what other files say.
        """
        said = [*({file.name: file.data} for file in self.files), *further]
        text = json.dumps(said, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if said else ""

    def join(self, document: dict[str, Any]) -> Iterator[Problem]:
        """Add them to the configuration of the stack's file, and say what may not be added."""
        yield from self.unreadable
        around = _Around.of(document, (*self.files, *self.others))
        elsewhere = {_as_azure_has_it(entry.place) for other in self.others for entry in other.entries}
        namespaces = {other.namespace: other for other in self.others if other.namespace}
        for file in self.files:
            if (other := namespaces.get(file.namespace)) is not None:
                problem = f"it is the namespace of tenant {other.name}, which is another stack's"
                yield file.problem(("namespace",), problem, "give the tenant a namespace of its own")
            for entry in file.entries:
                yield from _not_its_own(file, entry, around)
                yield from _added(
                    document, file, entry, is_elsewhere=_as_azure_has_it(entry.place) in elsewhere
                )

    @property
    def confined(self) -> Mapping[str, str]:
        """The place of each entry that a file makes → the namespace that is its tenant's.

        Of another stack's tenants only themselves.
        """
        others = {config_path(_TENANTS, other.name): other.namespace for other in self.others}
        own = {place: str(file.data.get("namespace")) for place, (file, _) in self._made.items()}
        return others | own

    @cached_property
    def _made(self) -> Mapping[str, tuple[TenantFile, Entry]]:
        return {config_path(*entry.place): (file, entry) for file in self.files for entry in file.entries}

    def located(self, problems: Iterable[Problem]) -> Iterator[Problem]:
        """Return problems where they stand; what several tenants have from one place is told once."""
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
        """Return whose file a problem is of, and where it stands, if it is of one of these."""
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
    """Read the files of a folder. given: its path from the root of the project, or no text.

    is_ours: whether a tenant is this stack's, by its name.
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
        place, is_mine = config_path(_TENANTS, path.stem), path.stem.startswith("_") or is_ours(path.stem)
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
            told = Problem(place, "the file holds no map, so it says nothing", fix, document.mark)
        if told is None:
            files[path.stem] = document
        elif is_mine:
            problems.append(told)
        else:  # its name counts, whatever its file says
            found.append(
                TenantFile(path.stem, f"{given}/{path.stem}", root, [Layer(Document({}, document.mark))])
            )
    if not problems and not found and not files.keys() - {DEFAULTS}:
        problem = f"{given} holds no tenant's file, so all that the stack's tenants had would be deleted"
        fix = "restore it from version control; a stack without tenants in files has no tenantsFrom"
        problems.append(Problem(config_path(KEY), problem, fix))
    of_all = Layer(files.pop(DEFAULTS, None) or Document({}, Mark(str(folder), 1, 1)))
    classes = {name: replace(of_all, path=(CLASSES, name)) for name in _map(of_all.data.get(CLASSES))}
    problems += _slips(DEFAULTS, of_all, (CLASSES,))
    for layer in classes.values():
        problems += _slips(DEFAULTS, layer)
    for name, document in files.items():
        own = Layer(document)
        problems += _slips(name, own, (CLASS,), classes) if is_ours(name) else ()
        below = (own, classes.get(str(own.data.get(CLASS, ""))), of_all)
        found.append(TenantFile(name, f"{given}/{name}", root, [each for each in below if each]))
    ours = tuple(each for each in found if is_ours(each.name))
    return TenantFiles(ours, tuple(problems), tuple(each for each in found if not is_ours(each.name)))


def _read_inside(path: Path, folder: Path) -> Document:
    """Read a file of the folder. Raises Unreadable, for a link that leads out of it as well."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        problem = "it is a link to a file outside of the folder, whose lines a message could show"
        raise Unreadable(Mark(render_path(path), 1, 1), problem, "put the file itself here")
    return read_file(path)


def _unread(place: str, path: Path) -> Iterator[Problem]:
    """Refuse an entry of the folder that is not read, and looks like a tenant's file."""
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
    """Whether a file is as a tenant's: whatever else is kept in folders says no namespace of its own."""
    readable = _is_yaml(path) and path.is_file() and os.access(path, os.R_OK)
    return readable and _NAMESPACE.search(path.read_bytes()) is not None


def _is_yaml(path: Path) -> bool:
    return path.suffix.lower() in (".yaml", ".yml") and not path.name.startswith(".")


def _slips(
    name: str, layer: Layer, further: Sequence[str] = (), classes: Collection[str] = ()
) -> Iterator[Problem]:
    """Yield what would count as absent without a word: what is not read, and a section that is not a map.

    further: keys that this layer may have besides.
    """

    def at(path: tuple[Step, ...], problem: str, fix: str) -> Problem:
        inside = (*layer.path, *path)
        return Problem(config_path(_TENANTS, name, *inside), problem, fix, layer.document.at(inside))

    known = (*_OF_A_TENANT, *PARTS, *further)
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
        for part, entries in _map(given).items():
            if section in PARTS and part not in PARTS[section]:
                problem = f"{part} of {section} is for all tenants, and no one tenant's to say"
                fix = f"here are {', '.join(PARTS[section])}; keep it in the stack's file"
                yield at((section, part), problem, fix)
            elif not isinstance(entries, dict):
                yield at((section, part), *_NO_NAMES)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two maps as one, map by map; of all else the upper one's."""
    found = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            found[key] = _over(below[key], above[key])
    return found


def _as_azure_has_it(place: tuple[str, ...]) -> tuple[str, ...]:
    """Return a place by which entries are compared: the case of names in Azure does not count there."""
    is_of_azure = place[:-1] in (("asoCredentials", "resourceGroups"), ("asoCredentials", "identities"))
    return (*place[:-1], place[-1].lower()) if is_of_azure else place


def _added(
    document: dict[str, Any], file: TenantFile, entry: Entry, *, is_elsewhere: bool
) -> Iterator[Problem]:
    holder = document
    for step in entry.place[:-1]:
        holder = holder.setdefault(step, {})
        if not isinstance(holder, dict):
            return  # told where it stands
    if is_elsewhere or entry.place[-1] in holder:
        problem = f"{config_path(*entry.place)} is said by another file as well"
        yield file.problem(entry.inside, problem, "keep it in one of the two, or give it another name")
    if entry.place[-1] not in holder:
        holder[entry.place[-1]] = deepcopy(entry.value)


@dataclass(frozen=True, slots=True)
class _Around:
    """What is said elsewhere: all tenants, the providers of the stack's file, the credentials of its pool."""

    tenants: Collection[str]
    providers: Mapping[str, Any]
    of_the_pool: Collection[str]

    @classmethod
    def of(cls, document: Mapping[str, Any], files: Iterable[TenantFile]) -> _Around:
        members = _map(_map(document.get("accountPool")).get("members"))
        return cls(
            {*_map(document.get(_TENANTS)), *(file.name for file in files)},
            {**_map(_map(document.get("secretStores")).get("providers"))},
            {each for member in members.values() for each in _entries(_map(member).get("credentialsFrom"))},
        )


def _entries(source: object) -> Iterator[str]:
    """Yield the entry of credentials that a source names, if it names one."""
    entry = source.get("entry") if isinstance(source, dict) else source
    if isinstance(entry, str):
        yield entry


def _not_its_own(file: TenantFile, entry: Entry, elsewhere: _Around) -> Iterator[Problem]:
    """Find what leads to things of others."""
    match entry.place:
        case ("tenants", _) if is_of_the_cluster(str(file.data.get("namespace"))):
            yield _strange(file, ("namespace",), f"namespace {file.data.get('namespace')}")
        case (_, "namespaces", namespace) if namespace != file.data.get("namespace"):
            yield _strange(file, entry.inside, f"namespace {namespace}")
        case ("secretStores", "providers" | "stores", _) if not logs_in(_map(entry.value)):
            yield file.problem(
                entry.inside,
                "it has no login of its own, so it would use that of the identity that runs it",
                "name a Secret or a ServiceAccount of its namespace, or move it to the stack's file",
            )
        case ("secretStores", "stores", _):
            named = _map(entry.value).get("providerRef")
            provider = elsewhere.providers.get(named) if isinstance(named, str) else None
            if provider is not None and not logs_in(_map(provider)):
                yield file.problem(
                    (*entry.inside, "providerRef"),
                    f"{named} logs in as the identity that runs it, whose rights exceed tenant {file.name}'s",
                    "name a provider that logs in with what is in the store's namespace, or a store of the"
                    " stack's file, with its conditions",
                )
        case _:
            pass
    for path, around, value in _texts(entry.inside, entry.value):
        joined = "/".join(map(str, path))
        owned = next((rule for pattern, rule in _REFERENCES if pattern.fullmatch(joined)), None)
        if owned is not None and not owned(_Text(file, elsewhere, around, value)):
            field = [step for step in path if isinstance(step, str)][-1]
            named = "" if field == "gcpSecret" else named_in(value)
            yield _strange(file, path, f"{field} {named}".rstrip())


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of a file, and whether what it names is the tenant's.

    around: the map that it stands in.
    """

    file: TenantFile
    elsewhere: _Around
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
        groups = self._declared("resourceGroups")
        return any(_is_in(self.value, name, group) for name, group in groups.items())

    def _declared(self, part: str) -> Mapping[str, Any]:
        return _map(_map(self.file.data.get("asoCredentials")).get(part))


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
"""The path of a text, as a pattern → whether it names the tenant's own; the first one counts."""

_REFERENCES: Final = [(re.compile(pattern), rule) for pattern, rule in _RULES]


def _is_in(scope: str, name: object, group: object) -> bool:
    """Whether a scope is a resource group of a file, or in it; one that says no subscription is in none."""
    own = f"/subscriptions/{_map(group).get('subscriptionId')}/resourcegroups/{name}/".lower()
    return f"{scope}/".lower().startswith(own)


def _strange(file: TenantFile, path: Sequence[Step], what: str) -> Problem:
    return file.problem(
        path,
        f"{what} is not tenant {file.name}'s, and its file names only what is",
        f"name what is in its namespace, {file.name}/SLOT, what this file declares, a file in {file.folder},"
        f" or a credential called {file.name} or {file.name}-…; or move it to the stack's file",
    )


def owner_of(credential: str, tenants: Collection[str]) -> str | None:
    """Return whose a credential is by its name: the tenant's with the longest name it begins with."""
    pieces = credential.split("-")
    names = ("-".join(pieces[:count]) for count in range(len(pieces), 0, -1))
    return next((name for name in names if name in tenants), None)


def _texts(path: tuple[Step, ...], value: Any) -> Iterator[tuple[tuple[Step, ...], Mapping[str, Any], str]]:
    """Yield each text below a value: its path, the map that it stands in, and itself."""
    around = _map(value)
    for step, inner in [*around.items(), *(enumerate(value) if isinstance(value, list) else ())]:
        if isinstance(inner, str):
            yield (*path, step), around, inner
        yield from _texts((*path, step), inner)


def _map(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}
