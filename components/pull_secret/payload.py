"""Whether bytes are a pull secret. They are stored as given, so they are judged as given, never fixed.

What HyperFleet's own job refuses is an error, and so is what Secret Manager refuses. What the job takes and a
registry or the next reader may not is a doubt: an error only to the strict.
"""

from __future__ import annotations

import base64
import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from components.documents import TooDeep, read_json
from components.errors import Problem

LIMIT: Final = 64 * 1024
"""Bytes Secret Manager takes."""

_LEGIBLE: Final = 16 * LIMIT
"""Bytes beyond which a text is not a pull secret, so its registries are not looked for."""

_BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HOST_LABEL: Final = r"[a-z0-9*]([-a-z0-9*]{0,61}[a-z0-9*])?"
_REGISTRY = re.compile(
    rf"(https?://)?({_HOST_LABEL}(\.{_HOST_LABEL})*|\[[0-9a-f:.]+\])(:[0-9]{{1,5}})?(/[A-Za-z0-9._/-]*)?"
)

_Object: TypeAlias = tuple[tuple[str, Any], ...]
"""A JSON object: its keys and values in order, repeated keys included."""


@dataclass(frozen=True, slots=True)
class PayloadVerdict:
    """What may be told of a payload.

    size: its bytes. registries: the names under `auths`, those left out that may be credentials.
    """

    size: int
    registries: tuple[str, ...]
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def judge(payload: bytes, *, strict: bool = False) -> PayloadVerdict:
    """Judge a payload. strict: doubts are errors, not warnings. The verdict holds no part of a credential."""
    too_large = (_too_large(len(payload)),) if len(payload) > LIMIT else ()
    if len(payload) > _LEGIBLE:
        return PayloadVerdict(len(payload), (), too_large, ())
    try:
        document = _parse(payload)
        auths = _auths(document)
    except _NoPullSecretError as error:
        return PayloadVerdict(len(payload), (), (*too_large, error.fault), ())
    registries = tuple(dict.fromkeys(name for name, _ in auths if _may_be_told(name)))
    doubts = (*_doubts(document, auths),)
    errors = (*too_large, *doubts) if strict else too_large
    return PayloadVerdict(len(payload), registries, errors, () if strict else doubts)


class _NoPullSecretError(Exception):
    """The payload cannot be understood as a pull secret."""

    def __init__(self, place: str, problem: str, fix: str) -> None:
        super().__init__(place, problem, fix)
        self.fault = Problem(place, problem, fix)


def _too_large(size: int) -> Problem:
    return Problem(
        "payload",
        f"it has {size} bytes, and Secret Manager takes {LIMIT}",
        "keep only the registries the cluster pulls from",
    )


def _parse(payload: bytes) -> Any:
    if not payload.strip():
        raise _NoPullSecretError(
            "payload", "it is empty, so the cluster could pull nothing", "give a pull secret: a JSON object"
        )
    if payload.startswith(_BYTE_ORDER_MARKS):
        raise _NoPullSecretError(
            "payload", "it begins with a byte order mark, which is not JSON", "save it as UTF-8 without one"
        )
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 from byte {error.start} on, and JSON is"
        raise _NoPullSecretError("payload", problem, "save it as UTF-8") from None
    try:
        return read_json(
            text,
            object_pairs_hook=tuple,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_refuse_constant,
        )
    except TooDeep:
        problem = "it is nested more deeply than readers of JSON follow"
        raise _NoPullSecretError("payload", problem, "give a pull secret: auths, by registry") from None
    except json.JSONDecodeError as error:
        problem = f"it is not JSON from line {error.lineno}, column {error.colno} on"
        encoded = _is_encoded(payload)
        raise _NoPullSecretError(
            "payload",
            f"{problem}: it is encoded in base64" if encoded else problem,
            "decode it once: base64 -d" if encoded else "correct it, and leave nothing behind its last brace",
        ) from None


def _number(text: str) -> float:
    """Read a number as HyperFleet's job does, in Go, where one beyond its floats spoils the whole."""
    number = float(text)
    if not math.isfinite(number):
        problem = "it holds a number that is too large for a 64-bit float"
        raise _NoPullSecretError("payload", problem, "remove it: HyperFleet's job refuses the whole")
    return number


def _refuse_constant(constant: str) -> NoReturn:
    raise _NoPullSecretError("payload", f"{constant} is not JSON", "remove it")


def _is_encoded(payload: bytes) -> bool:
    """Whether it is a pull secret that went through base64 once too often, as Kubernetes shows them."""
    try:
        return base64.b64decode(b"".join(payload.split()), validate=True).lstrip().startswith(b"{")
    except ValueError:
        return False


def _auths(document: Any) -> _Object:
    """Find the entries by registry; of a repeated key the last one counts, as it does to HyperFleet's job."""
    given = dict(document) if isinstance(document, tuple) else {}
    if "auths" not in given:
        misspelt = any(key.casefold() == "auths" for key in given)
        problem = "it is spelt in another case, and case counts" if misspelt else "it is missing"
        raise _NoPullSecretError(
            "auths", f"{problem}, so no registry has a credential", "give a pull secret: auths, by registry"
        )
    auths = given["auths"]
    if not isinstance(auths, tuple):
        raise _NoPullSecretError(
            "auths", "it is not a map, so no registry has a credential", "give it one entry for each registry"
        )
    if not auths:
        raise _NoPullSecretError(
            "auths", "it is empty, so no registry has a credential", "give it one entry for each registry"
        )
    return auths


def _doubts(document: _Object, auths: _Object) -> Iterator[Problem]:
    if _is_repetitive(document):
        yield _repeated("payload")
    if _is_repetitive(auths):
        yield _repeated("auths")
    for position, (name, entry) in enumerate(auths, start=1):
        told = _may_be_told(name)
        place = f'auths["{name}"]' if told else f"auths, entry {position}"
        if not told:
            yield Problem(
                place,
                "its key is not a registry's name, and is not shown since it may be a credential",
                "write HOST, HOST:PORT or a URL, in lower case, without user and password",
            )
        if isinstance(entry, tuple) and _is_repetitive(entry):
            yield _repeated(place)
        if problem := _auth_doubt(entry):
            yield Problem(
                place, problem, "write it again: podman login --authfile FILE REGISTRY prompts for both"
            )


def _is_repetitive(pairs: _Object) -> bool:
    return max(Counter(key for key, _ in pairs).values(), default=0) > 1


def _repeated(place: str) -> Problem:
    return Problem(
        place, "a key is given twice, and readers differ in which one they take", "remove one of them"
    )


def _may_be_told(name: str) -> bool:
    """Whether a key looks like a registry: no user in it, and no base64, which has capitals."""
    return _REGISTRY.fullmatch(name) is not None


def _auth_doubt(entry: Any) -> str | None:
    """Return why the registry would not accept an entry."""
    auth = dict(entry).get("auth") if isinstance(entry, tuple) else None
    if not auth or not isinstance(auth, str):
        return "it holds no auth, so it opens nothing"
    plain = _user_and_password(auth)
    if plain is None:
        return "its auth is not user:password in base64, so it opens nothing"
    if plain != plain.strip():
        return "its user:password begins or ends with a blank or a line end, which then belongs to it"
    return None


def _user_and_password(encoded: str) -> str | None:
    """Decode `user:password`; None where the text is not one in base64."""
    try:
        plain = base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return None
    user, _, password = plain.partition(":")
    return plain if user and password else None
