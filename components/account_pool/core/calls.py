"""The calls a protocol step makes, the answers it gets, and the narrow door to an API server.

A step is a generator: it yields a `Call` and is sent the `Answer`. So every call is a point where other
processes may run, where this one may die, or where an answer may be lost, and a test can try them all in
one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from components.account_pool.core.model import JsonObject, Member

PAGE_SIZE = 500


class Kind(StrEnum):
    """The three kinds of objects, by their plural in the API's paths; CREDENTIAL: a Secret, with its data."""

    MEMBER = "secrets"
    RECORD = "configmaps"
    EVENT = "events"
    CREDENTIAL = "credentials"

    @property
    def plural(self) -> str:
        """What the API's paths have."""
        return str(Kind.MEMBER if self is Kind.CREDENTIAL else self)


@dataclass(frozen=True, slots=True)
class Get:
    """Read one object; of a member, the metadata only."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """Read one page of the objects a label selector means; all pages from one cursor on are one snapshot."""

    kind: Kind
    selector: str
    cursor: str = ""
    limit: int = PAGE_SIZE


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object; refused when the name is taken."""

    kind: Kind
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Replace:
    """Write a whole object; its metadata holds the resourceVersion it replaces."""

    kind: Kind
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge into an object; the patch holds the resourceVersion it changes, null removes a key."""

    kind: Kind
    name: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object, if it still has this uid and resourceVersion."""

    kind: Kind
    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Parallel:
    """Two reads, neither of which needs the other's answer; answered by `Pair`."""

    first: Get | ListPage
    second: Get | ListPage


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before trying again, longer with each attempt that another process won (full jitter)."""

    attempt: int


class KeyVerb(StrEnum):
    """What a program does with the keys of an account.

    IDENTIFY: say which account and key a credential is. CREATE: remove every key but the one that is kept,
    and make one. TEST: say whether a credential opens the account. REVOKE: remove every key but the kept one.
    """

    IDENTIFY = "identify"
    CREATE = "create"
    TEST = "test"
    REVOKE = "revoke"


@dataclass(frozen=True, slots=True)
class AskProgram:
    """Have the user's program do something at the cloud. keep: id of the key that stays, empty for none.

    data: the credential it works with, as a Secret has it.
    """

    verb: KeyVerb
    member: Member
    keep: str
    data: Mapping[str, str] = field(repr=False)


class Said(StrEnum):
    """What the cloud said by the program; UNKNOWN: it may have been done."""

    DONE = "done"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to `AskProgram`. problem: why it is not DONE, in words without a credential."""

    said: Said
    problem: str = ""
    key_id: str = ""
    account_id: str = ""
    data: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class ApiRefusal(StrEnum):
    """Why the API server did not do it. Whatever it refused, it did not do."""

    ABSENT = "absent"
    CONFLICT = "conflict"
    EXPIRED = "expired"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Found:
    """The object after the call."""

    body: JsonObject


@dataclass(frozen=True, slots=True)
class Page:
    """Objects of a LIST; without a cursor it was the last page."""

    items: tuple[JsonObject, ...]
    cursor: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server answered that it did not do it."""

    why: ApiRefusal
    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer, or none that says: the call may have been carried out, may still be, or never.

    retry_after: the seconds that the server asks to be left alone.
    """

    text: str
    retry_after: float = 0.0


Result: TypeAlias = Found | Page | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Pair:
    """The answers to `Parallel`."""

    first: Result
    second: Result


Write: TypeAlias = Create | Replace | Patch | Delete
Call: TypeAlias = Get | ListPage | Write
Yielded: TypeAlias = Call | Parallel | Pause | AskProgram
Answer: TypeAlias = Result | Pair | Told | None

T = TypeVar("T")
Steps: TypeAlias = Generator[Yielded, Answer, T]
"""A protocol operation with its outcome: yields calls and pauses, is sent answers."""

PoolApi: TypeAlias = Callable[[Call], Result]
"""One namespace of an API server: answers each call, and never raises for what a server or a network may do.

A write is answered with the object after it. CONFLICT: the name is taken, or the object changed since.
ABSENT: there is no such object, or no namespace to create it in. EXPIRED: the cursor of a page is too old.
"""
