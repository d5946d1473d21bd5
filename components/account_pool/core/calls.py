"""Calls that a protocol step makes, their answers, and the interface to the API server.

A step is a generator: it yields a `Call` and is sent the `Answer`. At every call, other processes might run,
this process might die, or the answer might be lost. Tests can therefore try all these cases in one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from components.account_pool.core.model import JsonObject, Member

PAGE_SIZE = 500


class Kind(StrEnum):
    """Kinds of objects, by their plural in API paths. CREDENTIAL: a Secret read with its data."""

    MEMBER = "secrets"
    RECORD = "configmaps"
    EVENT = "events"
    CREDENTIAL = "credentials"

    @property
    def plural(self) -> str:
        """Plural of the kind in API paths."""
        return str(Kind.MEMBER if self is Kind.CREDENTIAL else self)


@dataclass(frozen=True, slots=True)
class Get:
    """Read one object; for a member, only its metadata."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """Read one page of the objects that match a label selector; pages of one cursor are one snapshot."""

    kind: Kind
    selector: str
    cursor: str = ""
    limit: int = PAGE_SIZE


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object; rejected if the name is taken."""

    kind: Kind
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace a whole object; its metadata contains the resourceVersion that it replaces."""

    kind: Kind
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge-patch an object at the resourceVersion in the patch; null removes a key."""

    kind: Kind
    name: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object if its uid and resourceVersion are unchanged."""

    kind: Kind
    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Parallel:
    """Two independent reads, made in parallel and answered by a `Pair`."""

    first: Get | ListPage
    second: Get | ListPage


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before a retry, with exponential backoff and full jitter by attempt."""

    attempt: int


class KeyVerb(StrEnum):
    """Operations of the operator's key program on an account.

    IDENTIFY: return the account and key of a credential. CREATE: delete every key except `keep`, then create
    one. TEST: check whether a credential is accepted. REVOKE: delete every key except `keep`.
    """

    IDENTIFY = "identify"
    CREATE = "create"
    TEST = "test"
    REVOKE = "revoke"


@dataclass(frozen=True, slots=True)
class AskProgram:
    """Run the operator's key program. `keep`: id of the key to keep, empty for none.

    `data`: the credential to use, as Secret data.
    """

    verb: KeyVerb
    member: Member
    keep: str
    data: Mapping[str, str] = field(repr=False)


class Said(StrEnum):
    """Result that the cloud returned to the key program; UNKNOWN: it might have been carried out."""

    DONE = "done"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Told:
    """Answer to `AskProgram`. `problem`: why the result is not DONE, without credential values."""

    said: Said
    problem: str = ""
    key_id: str = ""
    account_id: str = ""
    data: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class ApiRefusal(StrEnum):
    """Why the API server rejected a call. A rejected call had no effect."""

    ABSENT = "absent"
    CONFLICT = "conflict"
    EXPIRED = "expired"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Found:
    """Object as it is after the call."""

    body: JsonObject


@dataclass(frozen=True, slots=True)
class Page:
    """Page of a LIST; an empty cursor marks the last page."""

    items: tuple[JsonObject, ...]
    cursor: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server rejected the call."""

    why: ApiRefusal
    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No conclusive answer: the call might have been carried out, might still be, or never will be.

    `retry_after`: seconds that the server asks to wait before the next request.
    """

    text: str
    retry_after: float = 0.0


Result: TypeAlias = Found | Page | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Pair:
    """Answers to `Parallel`."""

    first: Result
    second: Result


Write: TypeAlias = Create | Replace | Patch | Delete
Call: TypeAlias = Get | ListPage | Write
Yielded: TypeAlias = Call | Parallel | Pause | AskProgram
Answer: TypeAlias = Result | Pair | Told | None

T = TypeVar("T")
Steps: TypeAlias = Generator[Yielded, Answer, T]
"""Protocol operation: yields calls and pauses, receives their results, and returns the outcome."""

PoolApi: TypeAlias = Callable[[Call], Result]
"""One namespace of an API server: answers each call, and returns failures of the server or network.

A write returns the object after it. CONFLICT: the name is taken, or the object has changed since.
ABSENT: the object does not exist, or its namespace does not. EXPIRED: the cursor of a page is too old.
"""
