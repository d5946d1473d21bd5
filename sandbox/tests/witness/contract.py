"""A published contract as a witness: what of a request and its answer it does not know.

A contract leaves room for fields of tomorrow; here there is none, so a field it does not name is a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from jsonschema import Draft4Validator, FormatChecker
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FORMATS: Final = FormatChecker(formats=())
_UNKNOWN: Final = (404, 405)
"""How a stand-in answers what its contract does not have."""


@_FORMATS.checks("date-time", raises=ValueError)
def _is_moment(given: object) -> bool:
    return not isinstance(given, str) or datetime.fromisoformat(given).tzinfo is not None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer; None for no body."""

    method: str
    path: str
    query: str
    sent: Any
    status: int
    answered: Any


class Contract:
    """Contracts as `reduce` keeps them: OpenAPI's paths and components, and where they were published."""

    def __init__(self, *files: Path, about: str = "") -> None:
        """Read them; about: a regular expression for the paths they speak of, others are nobody's."""
        documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        self.paths: Mapping[str, Mapping[str, Any]] = _joined(each["paths"] for each in documents)
        self.beyond: Mapping[str, str] = _joined(each["beyond"] for each in documents)
        self._components: dict[str, Any] = {
            kind: _closed(_joined(each["components"].get(kind, {}) for each in documents))
            for kind in ("schemas", "parameters")
        }
        self._about = re.compile(about, re.IGNORECASE)
        self._validator = lru_cache(maxsize=None)(self._make_validator)

    def faults(self, exchange: Exchange, *, of_client: bool = False) -> Iterator[str]:
        """Yield what of an exchange the contract does not have.

        of_client: the request counts whatever was answered; a stand-in's counts when it was accepted.
        """
        if not self._about.search(exchange.path):
            return
        what = f"{exchange.method} {exchange.path}"
        path = next((each for each in self.paths if _pattern(each).fullmatch(exchange.path)), "")
        operation = self.paths.get(path, {}).get(exchange.method.lower())
        if operation is None:
            if of_client or exchange.status not in _UNKNOWN:
                yield f"{what}: it has no such operation"
            return
        if of_client or exchange.status < 400:
            yield from (f"{what}: {fault}" for fault in self._of_request(operation, exchange))
        if f"{exchange.method} {path} {exchange.status}" not in self.beyond:
            yield from (f"{what}: {fault}" for fault in self._of_answer(operation, exchange))

    def _of_request(self, operation: Mapping[str, Any], exchange: Exchange) -> Iterator[str]:
        known = {self._resolved(each)["name"] for each in operation.get("parameters", ())}
        yield from (f"query {name}" for name, _ in parse_qsl(exchange.query) if name not in known)
        wanted = _schema(operation.get("requestBody", {}))
        if wanted is not None and (exchange.sent is not None or operation["requestBody"].get("required")):
            yield from (f"request {fault}" for fault in self._unfit(wanted, exchange.sent))
        elif wanted is None and exchange.sent not in (None, {}):
            yield "a request with a body"

    def _of_answer(self, operation: Mapping[str, Any], exchange: Exchange) -> Iterator[str]:
        responses = operation["responses"]
        response = responses.get(str(exchange.status), responses.get("default"))
        if response is None:
            yield f"status {exchange.status}"
        elif (schema := _schema(response)) is not None:
            yield from (f"answer {fault}" for fault in self._unfit(schema, exchange.answered))

    def _resolved(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" not in given:
            return given
        _, _, kind, name = given["$ref"].split("/")
        return self._components[kind][name]

    def _unfit(self, schema: Mapping[str, Any], body: Any) -> Iterator[str]:
        for error in self._validator(json.dumps(schema)).iter_errors(body):
            yield f"{'.'.join(map(str, error.absolute_path)) or 'body'}: {error.message}"

    def _make_validator(self, schema: str) -> Draft4Validator:
        whole = {**_closed(json.loads(schema)), "components": self._components}
        return Draft4Validator(whole, format_checker=_FORMATS)


class Witness:
    """An ASGI app that notes what is said to the app behind it, but for the sandbox's own paths."""

    def __init__(self, app: ASGIApp, contract: Contract, *, of_client: bool = False) -> None:
        """Stand before an app. of_client: as in `Contract.faults`."""
        self._app, self._contract, self._of_client = app, contract, of_client
        self.exchanges: list[Exchange] = []

    @property
    def faults(self) -> list[str]:
        """What of all exchanges the contract does not have."""
        return [
            fault
            for exchange in self.exchanges
            for fault in self._contract.faults(exchange, of_client=self._of_client)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and note what was said."""
        sent, answered, status = b"", b"", 0

        async def hear() -> Message:
            nonlocal sent
            message = await receive()
            sent += message.get("body", b"")
            return message

        async def say(message: Message) -> None:
            nonlocal answered, status
            status = message.get("status", status)
            answered += message.get("body", b"")
            await send(message)

        await self._app(scope, hear, say)
        if status and not scope["path"].startswith("/sandbox/"):
            self.exchanges.append(
                Exchange(
                    method=scope["method"],
                    path=scope["path"],
                    query=scope["query_string"].decode(),
                    sent=_read(sent),
                    status=status,
                    answered=_read(answered),
                )
            )


@cache
def _pattern(path: str) -> re.Pattern[str]:
    """Return what matches a path: a scope has several parts, the last part may have a verb behind `:`."""
    words = {"\\{scope\\}/": ".+/"}
    escaped = re.sub(r"\\\{\w+\\\}/", lambda found: words.get(found[0], "[^/]+/"), re.escape(path))
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/:]+", escaped), re.IGNORECASE)


def _joined(each: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: value for one in each for key, value in one.items()}


def _read(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")


def _schema(holder: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next(
        (each["schema"] for kind, each in holder.get("content", {}).items() if kind.endswith("json")), None
    )


def _closed(node: Any) -> Any:
    """Return schemas that take no property they do not name."""
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items()}
    if isinstance(node.get("properties"), dict) and node.get("type") == "object":
        return {"additionalProperties": False, **closed}
    return closed
