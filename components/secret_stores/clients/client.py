"""What the direct back end needs of a place where secrets are kept, and what a client is made from.

Values live in the process only: nothing here shows, logs or raises one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from components.errors import Problem, StoreError
from components.secret_stores.conditions import is_found
from components.secret_stores.consumers import FindOthers
from components.secret_stores.json_fields import field_of, object_fields

if TYPE_CHECKING:
    from components.secret_manager import SecretManagerTarget
    from components.secret_stores.consumers import Find, Place, RemoteRef
    from components.secret_stores.stack_cluster import StackCluster


class Capability(StrEnum):
    """What a kind of provider can do; ESO's words."""

    READ_ONLY = "ReadOnly"
    WRITE_ONLY = "WriteOnly"
    READ_WRITE = "ReadWrite"


class Validity(StrEnum):
    """What a client says of itself, in ESO's order; an unknown one is let through, as ESO does."""

    READY = "Ready"
    UNKNOWN = "Unknown"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a store. version: as the store counts it."""

    content: bytes = field(repr=False)
    version: str


@dataclass(frozen=True, slots=True)
class Gathered:
    """Values by name. version: as the store counts them, of all together."""

    contents: Mapping[str, bytes] = field(repr=False)
    version: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What is at a place. owned: the push that asks wrote it; else it is another owner's.

    content: None when there is an object, and nothing under the property, or no version that can be read.
    exists: it counts as a value without content, too. edition: what a write over it goes by, so that a change
    in between is not overwritten.
    """

    content: bytes | None = field(repr=False)
    owned: bool
    edition: Any = field(default=None, repr=False)
    exists: bool = False


class SecretsClient(Protocol):
    """One place where secrets are kept, as one identity; safe for any number of threads.

    All methods raise CredfleetError.
    """

    def validate(self) -> Validity:
        """Whether the place can be used; where that depends on the secret, nothing is said."""
        return Validity.UNKNOWN

    def read(self, ref: RemoteRef) -> Value | None:
        """Read a value; None when there is none."""
        ...

    def look(self, place: Place, owner: str) -> Kept | None:
        """Read what a push of this owner would write over; None when nothing is there."""
        ...

    def write(self, place: Place, content: bytes, owner: str, over: Kept | None) -> bool:
        """Write over what was seen, marked as the owner's; False when it is another by now."""
        ...

    def remove(self, place: Place, seen: Kept) -> bool:
        """Remove what was seen; False when it is another by now."""
        ...


class GatheringClient(SecretsClient, Protocol):
    """A client of a kind that says by what reads may gather keys."""

    def extract(self, ref: RemoteRef) -> Gathered | None:
        """Read the fields of a value, under their names; None when there is no value."""
        ...

    def find(self, wanted: Find) -> Gathered:
        """Read all secrets that are meant, under their names."""
        ...


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """What a client is made from. spec: the kind's model, where every selector says its namespace.

    title: the provider, for messages. caller: the consumer's namespace. google: where the stack's `gcp:` keys
    lead.
    """

    title: str
    spec: Any
    caller: str
    cluster: StackCluster
    google: SecretManagerTarget


ClientFactory: TypeAlias = Callable[[ClientRequest], SecretsClient]

SpecLimits: TypeAlias = Callable[[Any], "Iterable[Problem]"]
"""Finds what of a kind's spec its client does not do, before anybody is asked."""


def property_of(content: bytes, name: str | None, place: str) -> bytes:
    """Take a property of a value, as `gjson` finds it; without a name the value as it is.

    Raises StoreError.
    """
    if name is None:
        return content
    found = field_of(content, name)
    if found is None:
        raise no_field(place, name)
    return found


def no_field(place: str, name: str) -> StoreError:
    """Say that a value has no such property."""
    return StoreError(
        code="absent",
        place=place,
        problem=f"it is not a JSON object with a field {name}",
        fix="correct property, or leave it out for the whole value",
    )


def fields_of(value: Value | None, place: str) -> Gathered | None:
    """Take a value apart that is a JSON object. Raises StoreError for any other."""
    if value is None:
        return None
    fields = object_fields(value.content)
    if fields is None:
        raise StoreError(
            code="absent",
            place=place,
            problem="it is not a JSON object, so it has no fields",
            fix="read it as one value in data",
        )
    return Gathered(fields, value.version)


def gather(found: Mapping[str, Value]) -> Gathered:
    """Bring values together."""
    versions = ", ".join(f"{name}@{value.version}" for name, value in sorted(found.items()))
    return Gathered({name: value.content for name, value in found.items()}, versions)


def matches(wanted: Find, name: str) -> bool:
    """Whether a secret of this name is meant, as far as names say."""
    if isinstance(wanted, FindOthers) and name == wanted.without:
        return False
    return name.startswith(wanted.path or "") and (wanted.name is None or is_found(wanted.name.regexp, name))
