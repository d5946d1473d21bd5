"""The interface of a provider's resources, in plain values; secrets are handled outside."""

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
    """A resource as recorded; `id` is empty in previews."""

    id: str
    outputs: Properties
    inputs: Properties


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem of a property or option; an empty place means the whole.

    unserved: the genuine provider would accept it.
    """

    place: str
    reason: str
    unserved: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A place where the new inputs differ from the live resource."""

    path: Path
    kind: Kind
    replaces: bool


@dataclass(frozen=True, slots=True)
class InputDiff:
    """All changes, in the order of their paths; `delete_first` only matters if one of them replaces."""

    changes: tuple[Change, ...]
    delete_first: bool


def list_changes(
    old: Properties, new: Properties, ignored: tuple[Path, ...], replaces: Callable[[Path, Kind], bool]
) -> tuple[Change, ...]:
    """Return the differences of properties. replaces: whether a change requires a replacement."""
    return tuple(
        Change(path, kind, replaces(path, kind))
        for path, kind in differences(old, new)
        if not any(values.covers(pattern, path) for pattern in ignored)
    )


_NOTE: Final = "__defaults"
"""Input of the real provider: sorted names of the inputs that have default values."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input; `replaces`: changes require a replacement. SDK and service check its type."""

    required: bool = False
    replaces: bool = False


Schema: TypeAlias = Mapping[str, Input]


def declared(properties: Properties) -> Properties:
    """Return the properties without the provider's internal ones (`__defaults`) and without nulls."""
    return {key: value for key, value in properties.items() if not key.startswith("__") and value is not None}


def changes(
    old: Properties, new: Properties, schema: Schema, ignored: tuple[Path, ...]
) -> tuple[Change, ...]:
    """Return the differences of properties; those inside a replacing input require a replacement."""
    fixed = {name for name, each in schema.items() if each.replaces}
    return list_changes(old, new, ignored, lambda path, _: path[0] in fixed)


def problems(inputs: Properties, schema: Schema) -> list[Problem]:
    """Return the problems with the names of the inputs."""
    given = declared(inputs)
    unserved = (name for name in given if name not in schema)
    missing = (name for name, each in schema.items() if each.required and name not in given)
    return [
        *(Problem(name, "the sandbox serves no such property; leave it out", True) for name in unserved),
        *(Problem(name, f"missing required property '{name}'") for name in missing),
    ]


def with_defaults(inputs: Properties, defaults: Properties) -> Properties:
    """Return the inputs completed with defaults, and a note of which were added."""
    missing = {key: value for key, value in defaults.items() if inputs.get(key) is None}
    noted = inputs.get(_NOTE)
    filled = {str(name) for name in noted} if isinstance(noted, list) else set[str]()
    return {**inputs, **missing, _NOTE: [*sorted(missing.keys() | filled)]}


class ResourceKind(ABC):
    """The operations of a provider on one resource type. Safe for concurrent calls.

    Each method raises SandboxError for anything that the user can fix.
    """

    secrets: ClassVar[frozenset[str]] = frozenset()
    """Outputs that are always secret."""

    @abstractmethod
    def check(self, old: Properties, new: Properties, /) -> tuple[Properties, list[Problem]]:
        """Return completed inputs and their problems; `old` is empty for a new resource."""

    @abstractmethod
    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare new inputs with the recorded resource."""

    @abstractmethod
    def preview_create(self, new: Properties) -> Properties:
        """Return the outputs of a creation, without writing."""

    @abstractmethod
    def create(self, urn: str, new: Properties, /) -> State:
        """Create the resource."""

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return the outputs of an update: the recorded ones, overridden by the new inputs."""
        return {**old.outputs, **declared(new)}

    @abstractmethod
    def update(self, old: State, new: Properties) -> Properties:
        """Update the resource to the new inputs and return its outputs."""

    @abstractmethod
    def read(self, old: State) -> State | None:
        """Return the live resource; None if it does not exist. Without old inputs, only its ID is known."""

    @abstractmethod
    def delete(self, old: State, seconds: float, /) -> None:
        """Delete the resource if it exists. seconds: the program's limit, or 0."""


Function: TypeAlias = Callable[[Properties], Properties]


@dataclass(frozen=True, slots=True)
class Provider:
    """A configured provider.

    kind: returns the operations for a URN, None for an unsupported type. cancel: ends every wait with an
    error; requests in flight finish. function: returns the function of a token.
    """

    kind: Callable[[str], ResourceKind | None]
    cancel: Callable[[], None]
    function: Callable[[str], Function | None] = {}.get


@dataclass(frozen=True, slots=True)
class Package:
    """A package before it is configured.

    `title` is its name for people, `version` that of the genuine provider that it emulates, `served`
    describes its resources. `problems` returns problems of options, ignoring unknown ones; `configure`
    returns a provider for options given as texts.
    """

    title: str
    version: str
    served: str
    problems: Callable[[Properties], list[Problem]]
    configure: Callable[[Mapping[str, str]], Provider]


def missing_options(config: Properties, required: Mapping[str, str], named: Properties) -> list[Problem]:
    """Return a problem for each missing option; others are accepted.

    required: option → problem if missing. named: options from the environment.
    """
    given = {**{key: value for key, value in named.items() if value}, **config}
    return [Problem(key, said) for key, said in required.items() if given.get(key) in (None, "")]


def already_exists(urn: str, id_: str, place: str = "") -> SandboxError:
    """Return the error for an existing resource that the stack does not know; it is never taken over.

    id_: its import ID, and its place if it has no other. A provider does not know the parent of a resource,
    so the error contains no command.
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
    """All waits of one provider; a cancellation ends all of them, including later ones."""

    def __init__(self, place: Callable[[], str]) -> None:
        """Store the function that names what is waited for, called only when a wait is cancelled."""
        self._place = place
        self._stopped = threading.Event()

    def wait(self, seconds: float) -> None:
        """Wait for some seconds.

        Raises SandboxError `cancelled` if the run is being stopped.
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
