"""`PoolApi` on a real API server: Secrets as metadata only, and a precondition on every write.

Answers report only what is certain: a rejected call had no effect. Every other answer that is not a success
(429, 5xx, timeouts, resets) leaves it unknown whether the call was carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cached_property
from threading import Lock
from typing import Final, Generic, TypeVar
from urllib.parse import quote, urlencode

from components.account_pool.core import calls
from components.account_pool.core.clock import SEEN_AT
from components.account_pool.core.model import JsonObject
from components.connection import MERGE_PATCH, Connection, NoReply, Reply

Query = TypeVar("Query")
Answer = TypeVar("Answer")


class SingleFlight(Generic[Query, Answer]):
    """Coalesces equal concurrent reads; thread-safe.

    An answer includes every write done before the call: a call during a read waits for the next one.
    """

    def __init__(self, ask: Callable[[Query], Answer]) -> None:
        self._ask = ask
        self._lock = Lock()
        self._under_way: dict[Query, Future[Answer]] = {}
        self._next: dict[Query, Future[Answer]] = {}

    def __call__(self, query: Query) -> Answer:
        """Return an answer to a query that was sent after this call began."""
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

_REFUSALS: Final = {
    400: calls.ApiRefusal.INVALID,
    403: calls.ApiRefusal.FORBIDDEN,
    404: calls.ApiRefusal.ABSENT,
    409: calls.ApiRefusal.CONFLICT,
    410: calls.ApiRefusal.EXPIRED,
    413: calls.ApiRefusal.INVALID,
    415: calls.ApiRefusal.INVALID,
    422: calls.ApiRefusal.INVALID,
}


class KubernetesApi:
    """Objects of one namespace. `manager`: field manager of the writes."""

    def __init__(self, connection: Connection, namespace: str, manager: str) -> None:
        self._connection = connection
        self._root = f"/api/v1/namespaces/{quote(namespace, safe='')}/"
        self._written = f"?fieldManager={quote(manager, safe='')}"
        self._read = SingleFlight(self._read_alone)

    @cached_property
    def _user(self) -> str:
        """User name of the writer according to the API server; empty if unknown."""
        answer = self._ask("POST", _WHO_AM_I, {}, accept=_JSON)
        return answer.body["status"]["userInfo"]["username"] if isinstance(answer, calls.Found) else ""

    def __call__(self, call: calls.Call) -> calls.Result:
        """Make a call. No LIST sets a resourceVersion, so it includes every earlier write."""
        match call:
            case calls.Get() | calls.ListPage():
                return self._read(call)
            case calls.Create(kind, body):
                if kind is calls.Kind.EVENT:  # records the name of the writer
                    body = {**body, "reportingInstance": self._user}
                path = f"{self._root}{kind.plural}{self._written}"
                return self._ask("POST", path, body, accept=_accepted(kind))
            case calls.Replace(kind, body):
                path = self._path(kind, str(body["metadata"]["name"])) + self._written
                return self._ask("PUT", path, body, accept=_accepted(kind))
            case calls.Patch(kind, name, body):
                path = self._path(kind, name) + self._written
                return self._ask("PATCH", path, body, accept=_accepted(kind), content_type=MERGE_PATCH)
            case calls.Delete(kind, name, uid, resource_version):
                preconditions = {"preconditions": {"uid": uid, "resourceVersion": resource_version}}
                return self._ask("DELETE", self._path(kind, name), preconditions, accept=_JSON)

    def _read_alone(self, asked: calls.Get | calls.ListPage) -> calls.Result:
        if isinstance(asked, calls.Get):
            return self._ask("GET", self._path(asked.kind, asked.name), accept=_accepted(asked.kind))
        kind, selector, cursor, limit = asked.kind, asked.selector, asked.cursor, asked.limit
        query = {"labelSelector": selector, "limit": str(limit), **({"continue": cursor} if cursor else {})}
        accept = _METADATA_LIST if kind is calls.Kind.MEMBER else _JSON
        answer = self._ask("GET", f"{self._root}{kind.plural}?{urlencode(query)}", accept=accept)
        if not isinstance(answer, calls.Found):
            return answer
        metadata: JsonObject = answer.body["metadata"]
        return calls.Page(tuple(answer.body.get("items") or ()), str(metadata.get("continue") or ""))

    def _path(self, kind: calls.Kind, name: str) -> str:
        return f"{self._root}{kind.plural}/{quote(name, safe='')}"

    def _ask(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        accept: str,
        content_type: str = _JSON,
    ) -> calls.Result:
        try:
            reply = self._connection.call(method, path, body=body, accept=accept, content_type=content_type)
        except NoReply as silence:
            return calls.Unknown(str(silence))
        if method == "POST" and reply.lacks_namespace:
            return calls.Refused(calls.ApiRefusal.ABSENT, reply.text)
        for shown in (reply.body, *(reply.body.get("items") or ())) if accept in _SHOWN else ():
            shown.setdefault("metadata", {})[SEEN_AT] = reply.date
        return _answer(reply)


def _accepted(kind: calls.Kind) -> str:
    return _METADATA if kind is calls.Kind.MEMBER else _JSON


def _answer(reply: Reply) -> calls.Result:
    if reply.status in (200, 201, 202):
        return calls.Found(reply.body)
    if reply.status in _REFUSALS:
        return calls.Refused(_REFUSALS[reply.status], reply.text)
    return calls.Unknown(reply.text, reply.retry_after)
