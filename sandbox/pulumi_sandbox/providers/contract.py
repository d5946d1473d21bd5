"""What a provider does for each of its resources, in plain values; secrets are kept around it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns, values
from pulumi_sandbox.protocol.values import Kind, Path, Properties, differences


@dataclass(frozen=True, slots=True)
class State:
    """A resource as it is recorded; `id` is empty in previews."""

    id: str
    outputs: Properties
    inputs: Properties


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one property or option; an empty place means the whole.

    unserved: the genuine provider takes it.
    """

    place: str
    reason: str
    unserved: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One place where the new inputs differ from what is live."""

    path: Path
    kind: Kind
    replaces: bool


@dataclass(frozen=True, slots=True)
class InputDiff:
    """All changes, in the order of their paths; `delete_first` matters only if one of them replaces."""

    changes: tuple[Change, ...]
    delete_first: bool


def list_changes(
    old: Properties, new: Properties, ignored: tuple[Path, ...], replaces: Callable[[Path, Kind], bool]
) -> tuple[Change, ...]:
    """List where two sets of properties differ. replaces: whether no update can make such a change."""
    return tuple(
        Change(path, kind, replaces(path, kind))
        for path, kind in differences(old, new)
        if not any(values.covers(pattern, path) for pattern in ignored)
    )


_NOTE: Final = "__defaults"
"""The genuine provider's own: a sorted list of names among the inputs."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input; `replaces` tells that no update can change it. Its type the SDK and the service judge."""

    required: bool = False
    replaces: bool = False


Schema: TypeAlias = Mapping[str, Input]


def declared(properties: Properties) -> Properties:
    """Return the properties without the provider's own notes (`__defaults`) and without nulls."""
    return {key: value for key, value in properties.items() if not key.startswith("__") and value is not None}


def changes(
    old: Properties, new: Properties, schema: Schema, ignored: tuple[Path, ...]
) -> tuple[Change, ...]:
    """List where two sets of properties differ; what lies within a replacing input replaces."""
    fixed = {name for name, each in schema.items() if each.replaces}
    return list_changes(old, new, ignored, lambda path, _: path[0] in fixed)


def problems(inputs: Properties, schema: Schema) -> list[Problem]:
    """List what is wrong with the names of the inputs."""
    given = declared(inputs)
    unserved = (name for name in given if name not in schema)
    missing = (name for name, each in schema.items() if each.required and name not in given)
    return [
        *(Problem(name, "the sandbox serves no such property; leave it out", True) for name in unserved),
        *(Problem(name, f"missing required property '{name}'") for name in missing),
    ]


def with_defaults(inputs: Properties, defaults: Properties) -> Properties:
    """Return the inputs with what is missing of the defaults, and a note of what that was."""
    missing = {key: value for key, value in defaults.items() if inputs.get(key) is None}
    noted = inputs.get(_NOTE)
    filled = {str(name) for name in noted} if isinstance(noted, list) else set[str]()
    return {**inputs, **missing, _NOTE: [*sorted(missing.keys() | filled)]}


class ResourceKind(ABC):
    """What a provider does for one type of resources. Safe for concurrent calls.

    Each method raises SandboxError for whatever the user can fix.
    """

    secrets: ClassVar[frozenset[str]] = frozenset()
    """The outputs that are always secret."""

    @abstractmethod
    def check(self, old: Properties, new: Properties, /) -> tuple[Properties, list[Problem]]:
        """Complete and judge the inputs; `old` is empty for a new resource."""

    @abstractmethod
    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare new inputs with what is recorded."""

    @abstractmethod
    def preview_create(self, new: Properties) -> Properties:
        """Return the outputs a create would leave, without writing."""

    @abstractmethod
    def create(self, urn: str, new: Properties, /) -> State:
        """Create the resource."""

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return the outputs an update would leave: what is recorded, with the new inputs on top."""
        return {**old.outputs, **declared(new)}

    @abstractmethod
    def update(self, old: State, new: Properties) -> Properties:
        """Bring the resource to the new inputs and return its outputs."""

    @abstractmethod
    def read(self, old: State) -> State | None:
        """Return the resource as it is; None when it is gone. Without old inputs its id alone tells it."""

    @abstractmethod
    def delete(self, old: State, seconds: float, /) -> None:
        """Unmake the resource; one that is gone already is fine. seconds: the program's limit, or 0."""


Function: TypeAlias = Callable[[Properties], Properties]


@dataclass(frozen=True, slots=True)
class Provider:
    """A configured provider.

    kind: what serves the resource of a URN, None where its type is not served. cancel: ends every wait with
    an error; requests in flight finish. function: of a token.
    """

    kind: Callable[[str], ResourceKind | None]
    cancel: Callable[[], None]
    function: Callable[[str], Function | None] = {}.get


@dataclass(frozen=True, slots=True)
class Package:
    """A package before it is configured.

    `title` names it for people, `version` is that of the genuine provider whose ways these are, `served` says
    which resources there are. `problems` lists what is wrong with options, unknown ones passed over;
    `configure` makes a provider of options that come as texts.
    """

    title: str
    version: str
    served: str
    problems: Callable[[Properties], list[Problem]]
    configure: Callable[[Mapping[str, str]], Provider]


def missing_options(config: Properties, required: Mapping[str, str], named: Properties) -> list[Problem]:
    """List the options that are not given; any other is taken.

    required: option → what to say then. named: what the environment names.
    """
    given = {**{key: value for key, value in named.items() if value}, **config}
    return [Problem(key, said) for key, said in required.items() if given.get(key) in (None, "")]


def already_exists(urn: str, id_: str, place: str = "") -> SandboxError:
    """Return the error that something is there that the stack does not know; it is never taken over.

    id_: what it is imported by, and its place where it has no other. A provider does not know the parent of a
    resource, so it prints no command.
    """
    parsed = urns.parse(urn)
    return SandboxError(
        code="already-exists",
        place=place or id_,
        problem="it already exists, and this resource did not create it",
        fix="if this resource was renamed, give it an alias of the old name; if it belongs to others, take "
        "another name; to adopt it, run `pulumi import` with --parent and --provider for"
        f" {parsed.type} {parsed.name} and the id {id_}",
    )


class Patience:
    """All waits of one provider; one cancellation ends them all, the later ones too."""

    def __init__(self, place: Callable[[], str]) -> None:
        """Take the place of what is waited for, asked for only when a wait is ended."""
        self._place = place
        self._stopped = threading.Event()

    def wait(self, seconds: float) -> None:
        """Wait so long.

        Raises SandboxError `cancelled`, when the run is being stopped.
        """
        if self._stopped.wait(seconds):
            raise SandboxError(
                code="cancelled",
                place=self._place(),
                problem="the run is being stopped while its answer is waited for",
                fix="run again: what was written so far is recorded",
            )

    def cancel(self) -> None:
        """End every wait with an error."""
        self._stopped.set()
