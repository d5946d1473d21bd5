"""Basic steps of all operations: reads that retry until answered, and single writes.

After any error of a write, including timeouts, the caller reads again and decides from the result. A write
therefore returns the object, or None for conflict, absence and unknown outcome alike
(docs/design/claim-protocol.md, How calls are made).
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count

from components.account_pool.core.calls import (
    ApiRefusal,
    Call,
    Create,
    Delete,
    Found,
    Get,
    Kind,
    ListPage,
    Page,
    Pair,
    Parallel,
    Patch,
    Pause,
    Refused,
    Replace,
    Result,
    Steps,
    Told,
    Unknown,
    Write,
)
from components.account_pool.core.model import JsonObject, Member
from components.account_pool.core.records import Record
from components.account_pool.core.tokens import Token
from components.errors import Misconfigured, NotAllowed, PoolError


def _ask(call: Call) -> Steps[Result]:
    answer = yield call
    if answer is None or isinstance(answer, Pair | Told):
        raise TypeError(answer)
    return answer


def _refused(kind: Kind, text: str, why: ApiRefusal) -> PoolError:
    if why is ApiRefusal.FORBIDDEN:
        fix = "ask the owner of the pool for the right, or use an identity that has it"
        return NotAllowed(place=str(kind), problem=f"the API server does not allow it: {text}", fix=fix)
    return Misconfigured(
        place=str(kind), problem=f"the API server refused it: {text}", fix="fix what it names and run again"
    )


def read(kind: Kind, name: str) -> Steps[JsonObject | None]:
    """GET until answered; None if not found."""
    asked = Get(kind, name)
    return (yield from _settled(asked, (yield from _ask(asked))))


def _settled(asked: Get, answer: Result) -> Steps[JsonObject | None]:
    for attempt in count():
        match answer:
            case Found(body):
                return body
            case Refused(ApiRefusal.ABSENT):
                return None
            case Refused(why, text):
                raise _refused(asked.kind, text, why)
            case _:
                yield Pause(attempt)
                answer = yield from _ask(asked)
    raise AssertionError


def read_both(first: Get, second: Get) -> Steps[tuple[JsonObject | None, JsonObject | None]]:
    """GET two objects in parallel, each until answered."""
    answer = yield Parallel(first, second)
    if not isinstance(answer, Pair):
        raise TypeError(answer)
    return (yield from _settled(first, answer.first)), (yield from _settled(second, answer.second))


def list_all(kind: Kind, selector: str) -> Steps[list[JsonObject]]:
    """LIST all pages of one snapshot; restart if the cursor expired."""
    return (yield from _rest_of(kind, selector, [], ""))


def _rest_of(kind: Kind, selector: str, items: list[JsonObject], cursor: str) -> Steps[list[JsonObject]]:
    for attempt in count():
        answer = yield from _ask(ListPage(kind, selector, cursor))
        match answer:
            case Page(page, cursor):
                items = [*items, *page]
                if not cursor:
                    return items
            case Refused(ApiRefusal.EXPIRED):
                items, cursor = [], ""
            case Refused(why, text):
                raise _refused(kind, text, why)
            case _:
                yield Pause(attempt)
    raise AssertionError


def any_record(selector: str) -> Steps[Record | None]:
    """LIST until the first readable record; None if there is none."""
    cursor = ""
    for attempt in count():
        answer = yield from _ask(ListPage(Kind.RECORD, selector, cursor, limit=1))
        match answer:
            case Page(page, cursor):
                for body in page:
                    with suppress(Misconfigured):
                        return Record.parse(body)
                if not cursor:
                    return None
            case Refused(ApiRefusal.EXPIRED):
                cursor = ""
            case Refused(why, text):
                raise _refused(Kind.RECORD, text, why)
            case _:
                yield Pause(attempt)
    raise AssertionError


def list_side_by_side(first: str, second: str) -> Steps[tuple[list[JsonObject], list[JsonObject]]]:
    """LIST members in parallel, in any order: all of the first selector, one page of the second."""
    for attempt in count():
        answer = yield Parallel(ListPage(Kind.MEMBER, first), ListPage(Kind.MEMBER, second))
        match answer:
            case Pair(Page(own, cursor), Page(others)):
                if cursor:
                    own = yield from _rest_of(Kind.MEMBER, first, list(own), cursor)
                return list(own), list(others)
            case Pair(Refused(why, text)) | Pair(_, Refused(why, text)):
                raise _refused(Kind.MEMBER, text, why)
            case _:
                yield Pause(attempt)
    raise AssertionError


def write(call: Write) -> Steps[JsonObject | None]:
    """Write once; return the object after it, or None if not written or unknown."""
    answer = yield from _ask(call)
    match answer:
        case Found(body):
            return body
        case Refused(ApiRefusal.FORBIDDEN | ApiRefusal.INVALID as why, text):
            raise _refused(call.kind, text, why)
        case Refused(ApiRefusal.ABSENT) if isinstance(call, Create):
            raise Misconfigured(
                place=f"namespace {call.body['metadata']['namespace']}",
                problem="it is gone, or is being deleted, so nothing can be created in it",
                fix="bring it back with what was in it, then run again",
            )
        case Refused() | Unknown():
            return None
        case Page():
            raise TypeError(answer)


def get_record(name: str) -> Steps[Record | None]:
    """GET the record."""
    body = yield from read(Kind.RECORD, name)
    return None if body is None else Record.parse(body)


def get_member(name: str) -> Steps[Member | None]:
    """GET the metadata of the member."""
    body = yield from read(Kind.MEMBER, name)
    return None if body is None else Member.parse(body)


def replace_record(record: Record, namespace: str) -> Steps[Record | None]:
    """Replace the record at the resourceVersion it was read with."""
    body = yield from write(Replace(Kind.RECORD, record.render(namespace)))
    return None if body is None else Record.parse(body)


def delete_record(record: Record) -> Steps[bool]:
    """DELETE the record if it is unchanged since it was read."""
    body = yield from write(Delete(Kind.RECORD, record.name, record.uid, record.resource_version))
    return body is not None


def change_member(patch: Patch) -> Steps[Member | None]:
    """Patch the member at the patch's resourceVersion."""
    body = yield from write(patch)
    return None if body is None else Member.parse(body)


def record_of(token: Token) -> Steps[tuple[Record | None, bool]]:
    """GET the record of a token, and return whether the token is alive; only for tokens read before."""
    record = yield from get_record(token.record)
    return record, record is not None and record.token == token
