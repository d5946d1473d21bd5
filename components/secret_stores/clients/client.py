"""Client interface of the direct back end, and the arguments that clients are created from.

Secret values stay in this process: nothing here prints, logs or raises one.
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
    """Capabilities of a kind of provider, as ESO names them."""

    READ_ONLY = "ReadOnly"
    WRITE_ONLY = "WriteOnly"
    READ_WRITE = "ReadWrite"


class Validity(StrEnum):
    """Result of a client's validation, in ESO's order; UNKNOWN is accepted, as ESO does."""

    READY = "Ready"
    UNKNOWN = "Unknown"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Value:
    """Value in a store. `version`: as the store numbers it."""

    content: bytes = field(repr=False)
    version: str


@dataclass(frozen=True, slots=True)
class Gathered:
    """Values by name. `version`: combined version of all of them, from the store."""

    contents: Mapping[str, bytes] = field(repr=False)
    version: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Present content of a place. `owned`: written by this push; otherwise it has another owner.

    `content`: None if the object exists without the property, or without a readable version. `exists`: counts
    as existing even without content. `edition`: precondition for overwriting it, so that a concurrent change
    is not lost.
    """

    content: bytes | None = field(repr=False)
    owned: bool
    edition: Any = field(default=None, repr=False)
    exists: bool = False


class SecretsClient(Protocol):
    """Client of one place that stores secrets, with one identity; thread-safe.

    All methods raise CredfleetError.
    """

    def validate(self) -> Validity:
        """Return whether the place is usable; UNKNOWN if that depends on the secret."""
        return Validity.UNKNOWN

    def read(self, ref: RemoteRef) -> Value | None:
        """Read a value; None if not found."""
        ...

    def look(self, place: Place, owner: str) -> Kept | None:
        """Read what a push by this owner would overwrite; None if nothing exists."""
        ...

    def write(self, place: Place, content: bytes, owner: str, over: Kept | None) -> bool:
        """Overwrite what was read, marked with its owner; False on conflict."""
        ...

    def remove(self, place: Place, seen: Kept) -> bool:
        """Delete what was read; False on conflict."""
        ...


class GatheringClient(SecretsClient, Protocol):
    """Client that can also read several keys, for kinds that declare it."""

    def extract(self, ref: RemoteRef) -> Gathered | None:
        """Read the fields of a value, by name; None if the value is not found."""
        ...

    def find(self, wanted: Find) -> Gathered:
        """Read all matching secrets, by name."""
        ...


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """Arguments of a client. `spec`: model of the kind; every selector has a namespace.

    `title`: of the provider, for messages. `caller`: namespace of the consumer. `google`: target configured
    by the stack's `gcp:` keys.
    """

    title: str
    spec: Any
    caller: str
    cluster: StackCluster
    google: SecretManagerTarget


ClientFactory: TypeAlias = Callable[[ClientRequest], SecretsClient]

SpecLimits: TypeAlias = Callable[[Any], "Iterable[Problem]"]
"""Finds problems in the spec of a kind, before any network call."""


def property_of(content: bytes, name: str | None, place: str) -> bytes:
    """Return a property of a value with `gjson` semantics; without a name, the whole value.

    Raises StoreError.
    """
    if name is None:
        return content
    found = field_of(content, name)
    if found is None:
        raise no_field(place, name)
    return found


def no_field(place: str, name: str) -> StoreError:
    """Return the error for a value that lacks a property."""
    return StoreError(
        code="absent",
        place=place,
        problem=f"it is not a JSON object with a field {name}",
        fix="correct property, or leave it out for the whole value",
    )


def fields_of(value: Value | None, place: str) -> Gathered | None:
    """Return the fields of a JSON object. Raises StoreError for any other value."""
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
    """Combine values."""
    versions = ", ".join(f"{name}@{value.version}" for name, value in sorted(found.items()))
    return Gathered({name: value.content for name, value in found.items()}, versions)


def matches(wanted: Find, name: str) -> bool:
    """Return whether the name of a secret matches."""
    if isinstance(wanted, FindOthers) and name == wanted.without:
        return False
    return name.startswith(wanted.path or "") and (wanted.name is None or is_found(wanted.name.regexp, name))
