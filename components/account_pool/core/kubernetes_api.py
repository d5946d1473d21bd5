"""`PoolApi` on a real API server: metadata only of every Secret, every write with its precondition.

The answers say no more than what is certain: what the server refused was not done, and everything else that
is not a plain success (429, 5xx, time-outs, resets) may or may not have been.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cached_property
from threading import Lock
from typing import Final, Generic, TypeVar
from urllib.parse import quote, urlencode

from components.account_pool.core.calls import (
    ApiRefusal,
    Found,
    Get,
    Kind,
    ListPage,
    Page,
    Refused,
    Result,
    Unknown,
)
from components.account_pool.core.clock import SEEN_AT
from components.account_pool.core.model import JsonObject
from components.connection import Connection, NoReply, Reply

Query = TypeVar("Query")
Answer = TypeVar("Answer")


class SingleFlight(Generic[Query, Answer]):
    """Joins equal questions; safe for any number of threads.

    A read shows every write done before it was asked for: who asks while one is under way waits for the next.
    """

    def __init__(self, ask: Callable[[Query], Answer]) -> None:
        self._ask = ask
        self._lock = Lock()
        self._under_way: dict[Query, Future[Answer]] = {}
        self._next: dict[Query, Future[Answer]] = {}

    def __call__(self, query: Query) -> Answer:
        """Return an answer that was asked for after this call began."""
        with self._lock:
            joined, before = self._next.get(query), self._under_way.get(query)
            own = Future[Answer]()
            if joined is None:
                self._next[query] = own
        if joined is not None:
            return joined.result()
        if before is not None:
            wait([before])
        with self._lock:
            self._under_way[query] = self._next.pop(query)
        try:
            own.set_result(self._ask(query))
        except BaseException as error:
            own.set_exception(error)
            raise
        finally:
            with self._lock:
                if self._under_way.get(query) is own:
                    del self._under_way[query]
        return own.result()


_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_SHOWN: Final = (_METADATA, _METADATA_LIST)
_JSON: Final = "application/json"
_WHO_AM_I: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_MERGE_PATCH: Final = "application/merge-patch+json"

_REFUSALS: Final = {
    400: ApiRefusal.INVALID,
    403: ApiRefusal.FORBIDDEN,
    404: ApiRefusal.ABSENT,
    409: ApiRefusal.CONFLICT,
    410: ApiRefusal.EXPIRED,
    413: ApiRefusal.INVALID,
    415: ApiRefusal.INVALID,
    422: ApiRefusal.INVALID,
}


class KubernetesApi:
    """The objects of one namespace. manager: under which name the server books the fields written here."""

    def __init__(self, connection: Connection, namespace: str, manager: str) -> None:
        self._connection = connection
        self._root = f"/api/v1/namespaces/{quote(namespace, safe='')}/"
        self._written = f"?fieldManager={quote(manager, safe='')}"
        self._read = SingleFlight(self._read_alone)

    @cached_property
    def _user(self) -> str:
        """As whom the API server knows the writer; empty where it does not say."""
        answer = self._ask("POST", _WHO_AM_I, {}, accept=_JSON)
        return answer.body["status"]["userInfo"]["username"] if isinstance(answer, Found) else ""

    def get(self, kind: Kind, name: str) -> Result:
        """Read one object."""
        return self._read(Get(kind, name))

    def list(self, kind: Kind, selector: str, cursor: str, limit: int) -> Result:
        """Read one page; no resourceVersion is named, so every earlier write is in it."""
        return self._read(ListPage(kind, selector, cursor, limit))

    def _read_alone(self, asked: Get | ListPage) -> Result:
        if isinstance(asked, Get):
            return self._ask("GET", self._path(asked.kind, asked.name), accept=_accepted(asked.kind))
        kind, selector, cursor, limit = asked.kind, asked.selector, asked.cursor, asked.limit
        query = {"labelSelector": selector, "limit": str(limit), **({"continue": cursor} if cursor else {})}
        accept = _METADATA_LIST if kind is Kind.MEMBER else _JSON
        answer = self._ask("GET", f"{self._root}{kind.plural}?{urlencode(query)}", accept=accept)
        if not isinstance(answer, Found):
            return answer
        metadata: JsonObject = answer.body["metadata"]
        return Page(tuple(answer.body.get("items") or ()), str(metadata.get("continue") or ""))

    def create(self, kind: Kind, body: JsonObject) -> Result:
        """Create; a taken name is a conflict. An Event is signed with the name of who writes it."""
        if kind is Kind.EVENT:
            body = {**body, "reportingInstance": self._user}
        return self._ask("POST", f"{self._root}{kind.plural}{self._written}", body, accept=_accepted(kind))

    def replace(self, kind: Kind, body: JsonObject) -> Result:
        """PUT with the resourceVersion in the body."""
        path = self._path(kind, str(body["metadata"]["name"])) + self._written
        return self._ask("PUT", path, body, accept=_accepted(kind))

    def patch(self, kind: Kind, name: str, body: JsonObject) -> Result:
        """Merge with the resourceVersion in the patch."""
        path = self._path(kind, name) + self._written
        return self._ask("PATCH", path, body, accept=_accepted(kind), content_type=_MERGE_PATCH)

    def delete(self, kind: Kind, name: str, uid: str, resource_version: str) -> Result:
        """DELETE with both preconditions."""
        preconditions = {"preconditions": {"uid": uid, "resourceVersion": resource_version}}
        return self._ask("DELETE", self._path(kind, name), preconditions, accept=_JSON)

    def _path(self, kind: Kind, name: str) -> str:
        return f"{self._root}{kind.plural}/{quote(name, safe='')}"

    def _ask(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        accept: str,
        content_type: str = _JSON,
    ) -> Result:
        try:
            reply = self._connection.call(method, path, body=body, accept=accept, content_type=content_type)
        except NoReply as silence:
            return Unknown(str(silence))
        if method == "POST" and reply.lacks_namespace:
            return Refused(ApiRefusal.ABSENT, reply.text)
        for shown in (reply.body, *(reply.body.get("items") or ())) if accept in _SHOWN else ():
            shown.setdefault("metadata", {})[SEEN_AT] = reply.date
        return _answer(reply)


def _accepted(kind: Kind) -> str:
    return _METADATA if kind is Kind.MEMBER else _JSON


def _answer(reply: Reply) -> Result:
    if reply.status in (200, 201, 202):
        return Found(reply.body)
    if reply.status in _REFUSALS:
        return Refused(_REFUSALS[reply.status], reply.text)
    return Unknown(reply.text, reply.retry_after)
