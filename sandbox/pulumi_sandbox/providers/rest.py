"""Requests to a cloud's REST API: JSON in and out, with the retries of the genuine provider."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, mapping, text

if TYPE_CHECKING:
    from requests import Response

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


class ServiceRefusedError(SandboxError):
    """An error response of the service; `reason` is its name of the error."""

    def __init__(self, operation: str, place: str, status: int, reason: str, message: str) -> None:
        """Store the operation and its place."""
        code, fix = _ADVICE.get(status, _LATER if status >= 429 else ("refused", "see the message"))
        named = f"{status} {reason}".strip()
        said = (message or f"HTTP status {status}").rstrip(".")
        super().__init__(
            code=code,
            place=place,
            problem=f"the service refused to {operation} it ({named}): {said}",
            fix=fix,
        )
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Retries:
    """When a request is retried: the seconds before each further attempt, and after which errors.

    statuses, reasons: of error responses. lost: methods retried after a lost response; a request that never
    reached the service is not retried.
    """

    delays: Sequence[float]
    statuses: frozenset[int] = frozenset()
    reasons: frozenset[str] = frozenset()
    lost: frozenset[Method] = frozenset()


class Rest:
    """A service over HTTP, on kept-alive connections. Safe for concurrent calls."""

    def __init__(
        self,
        title: str,
        find: Callable[[], str],
        token: str,
        retries: Retries,
        pause: Callable[[float], None],
        *,
        authority: str = "",
    ) -> None:
        """Store the arguments without connecting.

        find: returns the address, once it is needed. pause: waits for some seconds. authority: the file of
        the CA by which the service is trusted.
        """
        import requests
        from requests.adapters import HTTPAdapter

        self._title = title
        self._find = find
        self._retries = retries
        self._pause = pause
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update({"Authorization": f"Bearer {token}", "User-Agent": "pulumi-sandbox"})
        self._session.verify = authority or True
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))

    @cached_property
    def _url(self) -> str:
        return self._find()

    def ask(
        self,
        operation: str,
        place: str,
        method: Method,
        path: str = "",
        *,
        query: Query = NO_QUERY,
        body: Properties | None = None,
    ) -> Properties:
        """Send a request, and return the response's JSON object, empty if it has none.

        operation: a verb for errors: create, read, … the place. path: if different from the place. Raises
        ServiceRefusedError if the service responds with an error; SandboxError `service-unreachable` if it
        does not respond.
        """
        from requests import RequestException

        for delay in (*self._retries.delays, None):
            try:
                url = self._url + (path or place)
                answer = self._session.request(method, url, params=query, json=body, timeout=_TIMEOUT_SECONDS)
                return _read(answer, operation, place)
            except ServiceRefusedError as refusal:
                passing = refusal.status in self._retries.statuses or refusal.reason in self._retries.reasons
                if delay is None or not passing:
                    raise
            except RequestException as error:
                cause, was_sent = _lost(error)
                if delay is None or not was_sent or method not in self._retries.lost:
                    answered = "its answer was lost" if was_sent else "it cannot be reached"
                    raise SandboxError(
                        code="service-unreachable",
                        place=f"{self._title} at {self._url}",
                        problem=f"{answered} ({cause})",
                        fix="start it (the sandbox's `status` shows what runs), or correct its address in"
                        " the stack's configuration, or let SSL_CERT_FILE name the CA of its certificate;"
                        " then run again",
                    ) from error
            self._pause(delay)
        raise AssertionError("the last attempt returns or raises")

    def ask_for(
        self, operation: str, place: str, method: Method, path: str = "", *, query: Query = NO_QUERY
    ) -> Properties | None:
        """Send a request like `ask`, without a body; None if nothing is there."""
        try:
            return self.ask(operation, place, method, path, query=query)
        except ServiceRefusedError as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                return None
            raise


def _lost(error: Exception) -> tuple[str, bool]:
    """Return why a request has no response, and whether the service might have received it."""
    from requests import ReadTimeout
    from urllib3.exceptions import ProtocolError

    inner = error.args[0] if error.args else error
    cause = getattr(inner, "reason", inner)  # requests and urllib3 each wrap the socket's error
    return type(cause).__name__, isinstance(error, ReadTimeout) or isinstance(cause, ProtocolError)


def _read(answer: Response, operation: str, place: str) -> Properties:
    content: Properties = {}
    with suppress(ValueError):
        content = mapping(json.loads(answer.content or b"{}"))
    if answer.ok:
        return content
    told = mapping(content.get("error"))
    reason = str(told.get("status") or told.get("code") or "")
    raise ServiceRefusedError(operation, place, answer.status_code, reason, text(told.get("message")))
