"""Validation of pull secrets. They are stored as given, so they are validated as given, never fixed.

Errors are what kubelet cannot read, or cannot pull with, and what HyperFleet's job or Secret Manager reject.
What they accept, but a registry or another reader might not, is a warning; in strict mode, an error.
"""

from __future__ import annotations

import base64
import codecs
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any, Final, NoReturn

from components.documents import TooDeep, read_json
from components.errors import Problem, PullSecretError
from components.pull_secret.kubelet import (
    Object,
    Refused,
    fields_of,
    folded,
    login_of,
    logins_of,
    registry_of,
)

LIMIT: Final = 64 * 1024
"""Maximum size of a version in Secret Manager, in bytes."""

_BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HOST_LABEL: Final = r"[a-z0-9*]([-a-z0-9*]{0,61}[a-z0-9*])?"
_REGISTRY = re.compile(
    rf"(https?://)?({_HOST_LABEL}(\.{_HOST_LABEL})*|\[(?P<address>[0-9a-f:.]+)\])(:[0-9]{{1,5}})?(/[A-Za-z0-9._/-]*)?"
)

_IN_SECRET: Final = re.compile(rb"\.dockerc(onfigjson|fg)\b")
_TOKENS: Final = ("identitytoken", "registrytoken")
_REFUSED: Final = "kubelet refuses the whole pull secret for it"
_LOG_IN: Final = "write it with: podman login --authfile FILE REGISTRY"


@dataclass(frozen=True, slots=True)
class PayloadVerdict:
    """Result of validating a payload, without secret values.

    `size`: in bytes. `registries`: names under `auths`, except those that might be credentials.
    """

    size: int
    registries: tuple[str, ...]
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def judge(payload: bytes, *, strict: bool = False) -> PayloadVerdict:
    """Validate a payload. `strict`: doubts are errors, not warnings. The result contains no credentials."""
    errors = [_too_large(len(payload))] if len(payload) > LIMIT else []
    try:
        document = _parse(payload)
        _require_auths(document)
        entries = _entries(document)
        refusals = [*_refusals(document, entries)]
    except PullSecretError as error:
        fault = Problem(error.place, error.problem, error.fix)
        if found := _IN_SECRET.search(payload):
            key = found[0].decode()
            problem = f"it is a Secret of Kubernetes, and the pull secret is what its key {key} holds"
            fix = f"give that: kubectl get secret NAME -o jsonpath='{{.data.\\{key}}}' | base64 -d"
            fault = Problem("payload", problem, fix)
        return PayloadVerdict(len(payload), (), (*errors, fault), ())
    doubts = [*_doubts(document, entries)]
    errors += [*refusals, *(doubts if strict else ())]
    registries = tuple(dict.fromkeys(name for _, name, _ in entries if _may_be_told(name)))
    return PayloadVerdict(len(payload), registries, (*errors,), () if strict else (*doubts,))


def merge(payloads: Iterable[bytes]) -> bytes:
    """Merge pull secrets by registry: the first one wins. Other keys than auths are dropped.

    Raises PullSecretError if the result is too large.
    """
    merged: dict[str, Any] = {}
    for payload in payloads:
        taken = {*map(registry_of, merged)}
        merged |= {n: entry for _, n, entry in _entries(_parse(payload)) if registry_of(n) not in taken}
    content = _written((("auths", (*merged.items(),)),)).encode()
    if len(content) > LIMIT:
        raise PullSecretError.of(_too_large(len(content)), "unfit", "merged")
    return content


def list_winners(registries: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield which merged pull secret provides a registry of several. `registries`: of each, in order."""
    winners: dict[str, str] = {}
    for place, names in registries.items():
        for name in names:
            winner = winners.setdefault(registry_of(name), place)
            if winner != place:
                yield f"registry {name} is that of {winner}, not of {place}"


def _written(value: Any) -> str:
    match value:
        case tuple():
            return f"{{{','.join(f'{json.dumps(key)}:{_written(each)}' for key, each in value)}}}"
        case list():
            return f"[{','.join(map(_written, value))}]"
        case _:
            return json.dumps(value)


def _unfit(place: str, problem: str, fix: str) -> PullSecretError:
    """Return the error for a payload that cannot be parsed as a pull secret."""
    return PullSecretError(code="unfit", place=place, problem=problem, fix=fix)


def _too_large(size: int) -> Problem:
    return Problem(
        "payload",
        f"it has {size} bytes, and Secret Manager takes {LIMIT}",
        "keep only the registries the cluster pulls from",
    )


def _parse(payload: bytes) -> Any:
    if not payload.strip():
        raise _unfit(
            "payload", "it is empty, so the cluster could pull nothing", "give a pull secret: a JSON object"
        )
    if payload.startswith(_BYTE_ORDER_MARKS):
        raise _unfit(
            "payload", "it begins with a byte order mark, which is not JSON", "save it as UTF-8 without one"
        )
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 from byte {error.start} on, and JSON is"
        raise _unfit("payload", problem, "save it as UTF-8") from None
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
        raise _unfit("payload", problem, "give a pull secret: auths, by registry") from None
    except json.JSONDecodeError as error:
        problem = f"it is not JSON from line {error.lineno}, column {error.colno} on"
        encoded = _is_encoded(payload)
        raise _unfit(
            "payload",
            f"{problem}: it is encoded in base64" if encoded else problem,
            "decode it once: base64 -d" if encoded else "correct it, and leave nothing behind its last brace",
        ) from None


def _number(text: str) -> float:
    """Parse a number as HyperFleet's job does, in Go, where a float overflow rejects the whole."""
    number = float(text)
    if not math.isfinite(number):
        problem = "it holds a number that is too large for a 64-bit float"
        raise _unfit("payload", problem, "remove it: HyperFleet's job refuses the whole")
    return number


def _refuse_constant(constant: str) -> NoReturn:
    raise _unfit("payload", f"{constant} is not JSON", "remove it")


def _is_encoded(payload: bytes) -> bool:
    """Return whether it is a pull secret with one base64 encoding too many, as shown by Kubernetes."""
    try:
        return base64.b64decode(b"".join(payload.split()), validate=True).lstrip().startswith(b"{")
    except ValueError:
        return False


def _require_auths(document: Any) -> None:
    """Reject what HyperFleet's job rejects; it uses the last of repeated keys."""
    auths = dict(document).get("auths", False) if isinstance(document, tuple) else False
    if isinstance(auths, tuple) and auths:
        return
    problem = "it is empty" if auths == () else "it is not a map"
    fix = "give auths one entry for each registry"
    entries = [entry for _, entry in document] if auths is False and isinstance(document, tuple) else []
    if any(isinstance(entry, tuple) and fields_of(entry, "auth") for entry in entries):
        problem, fix = "it is missing, as in a legacy .dockercfg", "wrap it: jq '{auths: .}' FILE"
    elif auths is False:
        misspelt = isinstance(document, tuple) and fields_of(document, "auths")
        problem = "it is spelt in another case, and case counts" if misspelt else "it is missing"
    raise _unfit("auths", f"{problem}, so no registry has a credential", fix)


def _entries(document: Any) -> Sequence[tuple[str, str, Any]]:
    """Return place, name and value of each entry that kubelet reads; null drops the ones before it."""
    found: list[tuple[str, str, Any]] = []
    for auths in fields_of(document, "auths"):
        if auths is None:
            found.clear()
        pairs: Object = auths if isinstance(auths, tuple) else ()
        for position, (name, entry) in enumerate(pairs, start=1):
            place = f'auths["{name}"]' if _may_be_told(name) else f"auths, entry {position}"
            found.append((place, name, entry))
    return found


def _refusals(document: Any, entries: Sequence[tuple[str, str, Any]]) -> Iterator[Problem]:
    """Yield why kubelet rejects the whole, or finds no usable login in it."""
    found = 0
    for place, _, entry in entries:
        try:
            login_of(entry)
        except Refused as refusal:
            found += 1
            yield Problem(place, f"{_REFUSED}: {refusal}", _LOG_IN)
    try:
        logins = logins_of(document)
        if not logins:
            yield Problem(
                "auths", "a second one, null, has kubelet find no registry", "remove one of the two"
            )
        elif not any(login.user and login.password for login in logins.values()):
            yield Problem(
                "auths", "no registry has both a user and a password, so no node pulls with it", _LOG_IN
            )
    except Refused as refusal:
        if not found:
            yield Problem("payload", f"{_REFUSED}: {refusal}", "correct it, or remove it")


def _doubts(document: Object, entries: Sequence[tuple[str, str, Any]]) -> Iterator[Problem]:
    keys = {
        "payload": [folded(key) for key, _ in document],
        "auths": [name for _, name, _ in entries],
        **{place: [folded(key) for key, _ in each] for place, _, each in entries if isinstance(each, tuple)},
    }
    for place, given in keys.items():
        if len({*given}) < len(given):
            problem = "a key is given twice, and readers differ in which one they take"
            yield Problem(place, problem, "remove one of them")
    for place, name, entry in entries:
        if not _may_be_told(name):
            yield Problem(
                place,
                "its key is not a registry's name, and is not shown since it may be a credential",
                "write HOST, HOST:PORT or a URL, in lower case, without user and password",
            )
        if problem := _login_doubt(entry):
            yield Problem(place, problem, _LOG_IN)


def _may_be_told(name: str) -> bool:
    """Return whether a key looks like a registry: no user, and no base64, which has upper case."""
    found = _REGISTRY.fullmatch(name)
    try:
        return found is not None and bool(IPv6Address(found["address"] or "::"))
    except ValueError:
        return False


def _login_doubt(entry: Any) -> str | None:
    """Return why an entry that kubelet accepts might not work, for kubelet or others."""
    try:
        login = login_of(entry)
    except Refused:
        return None
    plain = login.user + b":" + login.password
    text = plain.decode(errors="replace")
    nothing = not login.auth and plain == b":"
    doubts = {
        "it holds a token alone, which kubelet does not read, so no node pulls with it": nothing
        and any(fields_of(entry, token) for token in _TOKENS),
        "it holds no auth, so it opens nothing": nothing,
        "its user or its password is empty, so it opens nothing": not (login.user and login.password),
        "it holds no auth: kubelet takes its username and password, podman and CRI-O do not": not login.auth,
        "its auth is not padded with =: kubelet takes it so, podman and CRI-O do not": len(
            "".join(login.auth.split())
        )
        % 4,
        "its user:password is not UTF-8, and readers differ in what they make of it": text.encode() != plain,
        "its user:password begins or ends with a blank or a line end, which then belongs to it": text
        != text.strip(),
    }
    return next((problem for problem, holds in doubts.items() if holds), None)
