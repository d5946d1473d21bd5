"""Requests to a cloud's REST API: JSON in and out, asked again as the genuine provider would ask again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, mapping, text
from pulumi_sandbox.providers import contract

if TYPE_CHECKING:
    from requests import RequestException, Response

_LATER: Final = ("service-busy", "run again later: the request was repeated as often as is sensible")
_ADVICE: Final = {
    400: ("invalid", "correct the value that the message names"),
    401: ("not-authenticated", "fix the provider's token"),
    403: ("not-allowed", "let an administrator grant it, or choose another project or subscription"),
    404: ("not-found", "create what the message names first (depends_on), or run refresh if it is gone"),
    409: ("conflict", "see what the message names: leave it to its owner, or run again if it was busy"),
    412: ("conflict", "run again; another writer wrote at the same moment"),
}


Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Query: TypeAlias = Mapping[str, str]

NO_QUERY: Final[Query] = {}
_CONNECTIONS: Final = 64
_TIMEOUT_SECONDS: Final = (5.0, 60.0)


class ServiceRefusedError(contract.RefusedError):
    """The service's own answer to a request it did not fulfil; `code` is its name of the error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Retries:
    """When a request is made again.

    Both tell the seconds before each further attempt, as long as the failure stays of that kind; none at all
    for a failure that is final, as it is where the service never saw the request.
    """

    after_refusal: Callable[[ServiceRefusedError], Sequence[float]]
    after_loss: Callable[[Method], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Service:
    """Where a service is and how it is spoken to, as one user.

    `find` tells its address, once it is needed; `authority` is the file of the CA it is trusted by.
    """

    title: str
    find: Callable[[], str]
    headers: Mapping[str, str] = field(repr=False)
    authority: str = ""


class Rest:
    """A service over HTTP, on kept-alive connections. Safe for concurrent calls."""

    def __init__(self, service: Service, retries: Retries, pause: Callable[[float], None]) -> None:
        """Connect nowhere yet; `pause` waits so many seconds."""
        import requests
        from requests.adapters import HTTPAdapter

        self._service = service
        self._retries = retries
        self._pause = pause
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update(service.headers)
        self._session.verify = service.authority or True
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))

    @cached_property
    def _url(self) -> str:
        return self._service.find()

    def send(
        self, method: Method, path: str, *, query: Query = NO_QUERY, body: Properties | None = None
    ) -> Properties:
        """Make one request and return the answer's JSON object, empty when it has none.

        Raises ServiceRefusedError when the service answered with an error; SandboxError
        `service-unreachable` when it did not answer.
        """
        attempts = 0
        while True:
            try:
                return self._send_once(method, path, query, body)
            except ServiceRefusedError as refusal:
                delays = self._retries.after_refusal(refusal)
                if attempts >= len(delays):
                    raise
                delay = delays[attempts]
            except _LostError as lost:
                delays = self._retries.after_loss(method) if lost.was_sent else ()
                if attempts >= len(delays):
                    raise self._unreachable(lost) from lost
                delay = delays[attempts]
            self._pause(delay)
            attempts += 1

    def _send_once(self, method: Method, path: str, query: Query, body: Properties | None) -> Properties:
        from requests import RequestException

        try:
            answer = self._session.request(
                method, self._url + path, params=query, json=body, timeout=_TIMEOUT_SECONDS
            )
        except RequestException as error:
            raise _LostError(error) from error
        return _read(answer)

    def _unreachable(self, lost: _LostError) -> SandboxError:
        answered = "its answer was lost" if lost.was_sent else "it cannot be reached"
        return SandboxError(
            code="service-unreachable",
            place=f"{self._service.title} at {self._url}",
            problem=f"{answered} ({lost.reason})",
            fix="start it (the sandbox's `status` shows what runs), or correct its address in the "
            "stack's configuration, or let SSL_CERT_FILE name the CA of its certificate; then run again",
        )


class _LostError(Exception):
    """A request without an answer. was_sent: whether the service may have seen it."""

    def __init__(self, error: RequestException) -> None:
        from requests import ReadTimeout
        from urllib3.exceptions import ProtocolError

        root = _root(error)
        super().__init__(str(root))
        self.reason = type(root).__name__
        self.was_sent = isinstance(error, ReadTimeout) or isinstance(
            root, ConnectionResetError | ProtocolError
        )


def _read(answer: Response) -> Properties:
    content: Properties = {}
    with suppress(ValueError):
        content = mapping(json.loads(answer.content or b"{}"))
    if answer.ok:
        return content
    told = mapping(content.get("error"))
    code = told.get("status") or told.get("code") or ""
    raise ServiceRefusedError(answer.status_code, str(code), text(told.get("message")))


def _root(error: BaseException) -> BaseException:
    """Return the innermost cause: requests and urllib3 wrap what the socket said several times."""
    inner = getattr(error, "reason", None) or next(
        (part for part in reversed(error.args) if isinstance(part, BaseException)), None
    )
    return _root(inner) if isinstance(inner, BaseException) and inner is not error else error


def refused(operation: str, place: str, refusal: ServiceRefusedError) -> SandboxError:
    """Return the error that a service refused to create, read, update or delete something."""
    code, fix = _ADVICE.get(
        refusal.status, _LATER if refusal.status >= 429 else ("refused", "see the message")
    )
    named = f"{refusal.status} {refusal.code}".strip()
    return SandboxError(
        code=code,
        place=place,
        problem=f"the service refused to {operation} it ({named}): {str(refusal).rstrip('.')}",
        fix=fix,
    )


def ask(
    api: Rest,
    operation: str,
    place: str,
    method: Method,
    path: str,
    *,
    query: Query = NO_QUERY,
    body: Properties | None = None,
) -> Properties:
    """Make a request to create, read, update or delete what is at the place.

    Raises SandboxError when the service refuses it, or does not answer.
    """
    try:
        return api.send(method, path, query=query, body=body)
    except ServiceRefusedError as refusal:
        raise refused(operation, place, refusal) from refusal


def ask_for(
    api: Rest, operation: str, place: str, method: Method, path: str, *, query: Query = NO_QUERY
) -> Properties | None:
    """Make a request as `ask` does, without a body; None when nothing is there."""
    try:
        return api.send(method, path, query=query)
    except ServiceRefusedError as refusal:
        if refusal.status == HTTPStatus.NOT_FOUND:
            return None
        raise refused(operation, place, refusal) from refusal
