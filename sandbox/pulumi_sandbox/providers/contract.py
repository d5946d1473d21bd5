"""What the engine asks of a provider for one resource, and what it gets to know, in plain values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Kind, Path, Properties


@dataclass(frozen=True, slots=True)
class State:
    """A resource as it is recorded; `id` is empty in previews and for a resource that is gone."""

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

    @property
    def replacing(self) -> tuple[Change, ...]:
        """The changes that no update can make."""
        return tuple(change for change in self.changes if change.replaces)


class RefusedError(Exception):
    """The answer of a server that did not fulfil a request; its text may be shown."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message or f"HTTP status {status}")
        self.status = status


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


class Provider(Protocol):
    """A configured provider; its methods are called from many threads at once.

    Each raises SandboxError for whatever the user can fix.
    """

    def check(self, urn: str, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Complete the inputs, and tell what is wrong with them; `old` is empty for a new resource."""
        ...

    def diff(self, urn: str, old: State, new: Properties, ignored: tuple[Path, ...], /) -> InputDiff:
        """Compare new inputs with what is recorded."""
        ...

    def create(self, urn: str, new: Properties, *, preview: bool) -> State:
        """Create the resource; in a preview return what that would leave, without writing."""
        ...

    def update(self, urn: str, old: State, new: Properties, *, preview: bool) -> State:
        """Bring the resource to the new inputs; in a preview as `create`."""
        ...

    def read(self, urn: str, old: State) -> State:
        """Return the resource as it is; without old inputs it is looked up by its id alone."""
        ...

    def delete(self, urn: str, old: State, seconds: float, /) -> None:
        """Unmake the resource; one that is gone already is fine. `seconds`: the program's limit, or 0."""
        ...

    def invoke(self, token: str, args: Properties, /) -> Properties:
        """Call a function of the package."""
        ...

    def cancel(self) -> None:
        """End every wait with an error; requests in flight finish."""
        ...


@dataclass(frozen=True, slots=True)
class Package:
    """A package before it is configured.

    `title` names it for people, `version` is that of the genuine provider whose ways these are. `problems`
    lists what is wrong with options, unknown ones passed over; `configure` makes a provider of options that
    come as texts.
    """

    title: str
    version: str
    problems: Callable[[Properties], list[Problem]]
    configure: Callable[[Mapping[str, str]], Provider]
