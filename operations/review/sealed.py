"""What stands in for a secret that may not be read here, and what that tells: the one place that decides it.

A sealed value is known by its ciphertext. In its place the program is given a text of the same shape, every
part of which is drawn from a digest of the ciphertext: it goes through JSON, base64 and the choice of keys as
the credential would, and whatever is made of it differs as soon as the ciphertext does. The shape, which
holds no value, is recorded by the environment's own run; a credential without one is UNSEEN
(docs/review.md, What stands in for a credential).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from pulumi_sandbox.protocol.values import Properties, Secret, Value, contains_unknown, reveal

from components.credentials import KEY
from components.naming import is_guid
from components.seals import SEALED, UNSEEN
from components.stack_config.stack import NAMESPACE

Shape: TypeAlias = Any
"""JSON: {"text": length}, {"guid": true}, {"number": how it is written, 0 for each digit}, {"open": text},
{"scheme": "https://", "rest": shape}, {"list": shapes}, {"fields": [[name, shape], …]}, and what a text
encodes: {"json": shape}, {"base64": shape}, {"parts": shapes} with colons between them."""

_TELLING: Final = frozenset({"type", "provider"})
"""Fields of services' credentials that are not secrets: they are names in a binding, in the open."""
_PROVISIONED: Final = "goog-pulumi-provisioned"
"""The label that Google's provider adds to all it makes."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://")
_OWN_PORT: Final = re.compile(r"127\.0\.0\.1:[0-9]+")
_UNREAD: Final = "unread-91c6f3a8-"
"""What the secrets of a state begin with that was read without its key."""
_INPUTS: Final = "__inputs"
"""The output in which Kubernetes' provider keeps the inputs."""
_DRAWN: Final = 4
"""Digits from which on others can be drawn that tell values apart."""


class ValueStanding(StrEnum):
    """How a sealed value is against what was deployed."""

    SAME = "same"
    CHANGED = "changed"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Seals:
    """What was recorded of sealed values: name → digest of its ciphertext, and its shape.

    key: of the digests, drawn for this record alone. It may be known: a ciphertext tells nothing of what it
    holds, and has been drawn at random itself.
    """

    key: str
    digests: Mapping[str, str]
    shapes: Mapping[str, Shape]

    def identity(self, ciphertext: str) -> str:
        """Return the digest of a ciphertext."""
        return _digest(self.key, ciphertext)

    def standing(self, name: str, ciphertext: str) -> ValueStanding:
        """Return how a value stands: one that was only renamed is the same."""
        identity = self.identity(ciphertext)
        if identity in self.digests.values():
            return ValueStanding.SAME
        return ValueStanding.CHANGED if name in self.digests else ValueStanding.NEW

    def shape(self, name: str, ciphertext: str) -> Shape | None:
        """Return the shape of a value, or what is assumed of one that changed; None where none is known."""
        return self.shapes.get(self._origin(ciphertext) or name)

    def _origin(self, ciphertext: str) -> str | None:
        identity = self.identity(ciphertext)
        return next((each for each, known in self.digests.items() if known == identity), None)

    def text(self, name: str, ciphertext: str) -> str:
        """Return what stands in for a value; of one that changed the shape is assumed to be as it was."""
        identity = self.identity(ciphertext)
        shape = self.shape(name, ciphertext)
        mark = UNSEEN if self._origin(ciphertext) is None else SEALED
        if shape is None:
            return json.dumps({UNSEEN: f"{mark}-{identity}"}) if is_credential(name) else f"{mark}-{identity}"
        return _text(shape, identity, mark)


def is_credential(name: str) -> bool:
    """Whether the name of a sealed value is that of a credential."""
    return name.startswith(f"{NAMESPACE}{KEY}.")


def ciphertexts(config: Mapping[str, Any]) -> dict[str, str]:
    """Return name → ciphertext of all that is encrypted in a stack file's values."""
    return dict(_ciphertexts("", config))


def _ciphertexts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            yield place, str(value["secure"])
            return
        for key, item in value.items():
            yield from _ciphertexts(f"{place}.{key}" if place else str(key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _ciphertexts(f"{place}[{index}]", item)


def shape_of(text: str, in_the_open: frozenset[str] = frozenset()) -> Shape | None:
    """Return the shape of a credential's text; None for one that nothing of can stand in for.

    in_the_open: texts the state has in plaintext; of the fields that tell a service's kind those stay.
    """
    if text.startswith("base64:") or "-----BEGIN" in text:
        return None
    document = _document(text)
    return {"text": len(text)} if document is None else {"json": _shape(document, "", in_the_open)}


def _shape(value: Any, name: str, in_the_open: frozenset[str]) -> Shape:
    if isinstance(value, _Fields):
        return {"fields": [[key, _shape(item, key, in_the_open)] for key, item in value]}
    if isinstance(value, list):
        return {"list": [_shape(item, name, in_the_open) for item in value]}
    if isinstance(value, _Number):
        tells = _is_inexact(value) or len(value) >= _DRAWN
        return {"number": _form(value)} if tells else {"text": 16}
    return _shape_of_text(value, name, in_the_open) if isinstance(value, str) else {"text": 16}


def _shape_of_text(value: str, name: str, in_the_open: frozenset[str]) -> Shape:
    if name in _TELLING and value in in_the_open:
        return {"open": value}
    if is_guid(value):
        return {"guid": True}
    if (scheme := _SCHEME.match(value)) is not None:
        return {"scheme": scheme[0], "rest": {"text": len(value) - len(scheme[0])}}
    if (document := _document(value)) is not None:
        return {"json": _shape(document, "", in_the_open)}
    if (inner := _decoded(value)) is not None and ":" in inner:
        return {"base64": {"parts": [{"text": len(part)} for part in inner.split(":")]}}
    return {"text": len(value)}


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Fields(list[tuple[str, Any]]):
    """The fields of an object, in their order."""


def _is_inexact(number: str) -> bool:
    """Whether a number may be another one once it was read as a float, as most readers of JSON do."""
    return not number.lstrip("-").isdecimal() or int(float(number)) != int(number)


def _form(number: str) -> str:
    """Return how a number is written, with 0 for each digit to be drawn.

    An integer stays one that floats can hold, by its first digit, or that none can, by its last as well.
    """
    if not number.lstrip("-").isdecimal():
        return re.sub(r"[0-9]", "0", number)
    first, last = ("9", "1") if _is_inexact(number) else ("1", "0")
    return f"{'-' * number.startswith('-')}{first}{'0' * (len(number.lstrip('-')) - 2)}{last}"


def _document(text: str) -> Any:
    """Read an object or list of JSON; None for anything else."""
    try:
        found: Any = json.loads(text, object_pairs_hook=_Fields, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _text(shape: Shape, seed: str, mark: str) -> str:
    """Return the text of a shape whose parts are drawn from a seed."""
    match shape:
        case {"json": inner}:
            text = json.dumps(_value(inner, seed, mark))
        case {"base64": inner}:
            text = base64.b64encode(_text(inner, seed, mark).encode()).decode()
        case {"parts": parts}:
            text = ":".join(_text(part, f"{seed}{index}", mark) for index, part in enumerate(parts))
        case {"guid": _}:
            drawn = _digest(seed, "guid")
            text = f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-8{drawn[17:20]}-{drawn[20:32]}"
        case {"open": text}:
            pass
        case {"scheme": scheme, "rest": rest}:
            text = scheme + _text(rest, seed, mark)
        case {"text": length}:
            text = f"{mark}-{_digest(seed, 'text')[:32]}".ljust(length - length % 8, "x")
        case _:
            raise ValueError(shape)
    return text


def _value(shape: Shape, seed: str, mark: str) -> Any:
    match shape:
        case {"fields": fields}:
            return {key: _value(inner, f"{seed}.{key}", mark) for key, inner in fields}
        case {"list": items}:
            return [_value(inner, f"{seed}[{index}]", mark) for index, inner in enumerate(items)]
        case {"number": form}:
            digits = iter(str(int(_digest(seed, "number") * 4, 16)))
            return json.loads(re.sub("0", lambda _: next(digits).replace("0", "1"), form))
        case _:
            return _text(shape, seed, mark)


def _digest(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:40]


def unread(ciphertext: str) -> str:
    """Return, as JSON, what stands for a secret of a state until it is aligned, where the key is missing."""
    return json.dumps(f"{_UNREAD}{hashlib.sha256(ciphertext.encode()).hexdigest()}")


def is_unread(value: Value) -> bool:
    """Whether a value stands for a secret that could not be read."""
    return isinstance(value, str) and value.startswith(_UNREAD)


def _held(value: Value) -> dict[Any, Value] | None:
    """Return what a value holds, by its place in it; None for one that holds nothing."""
    if isinstance(value, list):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else None


def _rebuilt(value: Value, make: Callable[[Any, Value], Value]) -> Value:
    """Return a value with another one made of each that it holds, by its place."""
    if isinstance(value, dict):
        return {key: make(key, item) for key, item in value.items()}
    return [make(*each) for each in enumerate(value)] if isinstance(value, list) else value


def _paired(value: Value, made: Value) -> list[tuple[Value, Value]] | None:
    """Return two values and what they hold at the same places; None where they are not of one structure."""
    pairs, inner, others = [(value, made)], _held(value), _held(made)
    if is_unread(value):
        return pairs
    if inner is None or others is None:
        return pairs if inner is others else None
    if type(value) is not type(made):
        return pairs
    if inner.keys() != others.keys():
        return None
    for key, item in inner.items():
        below = _paired(item, others[key])
        if below is None:
            return None
        pairs += below
    return pairs


def unread_outputs(outputs: Value, inputs: Value) -> dict[str, Value]:
    """Return what unread secrets of outputs became: what the aligned inputs have at the same place."""
    held, below = reveal(outputs), reveal(inputs)
    if is_unread(held):
        return {} if below is None else {_key(held): below}
    if not isinstance(outputs, dict) or not isinstance(below, dict):
        return {}
    places = ((item, below if name == _INPUTS else below.get(name)) for name, item in outputs.items())
    return {key: value for item, place in places for key, value in unread_outputs(item, place).items()}


def align(state: Properties, run: Properties) -> tuple[Properties, Mapping[str, Value]]:
    """Put into recorded inputs, wherever a secret is, what the program made there of what stands in.

    Return them, and what each secret became, by what it is. A secret that the program did not make stays
    unknown to everybody.
    """
    became: dict[str, Value] = {}
    found = {key: _aligned(value, run.get(key), became) for key, value in state.items()}
    return found, became


def _aligned(value: Value, run: Value, became: dict[str, Value]) -> Value:
    made = reveal(run)
    if isinstance(value, Secret):
        is_made = made is not None and not contains_unknown(made)
        pairs = _paired(reveal(value), made) if is_made else None
        if pairs is None:
            return conceal_unmade(value, became)
        became |= {_key(old): new for old, new in pairs}
        return Secret(made)
    if isinstance(value, str) and isinstance(run, str) and value != run:
        if without_port(value) != without_port(run):
            return value
        became[_key(value)] = run
        return run
    fits = not isinstance(value, list) or (isinstance(made, list) and len(made) == len(value))
    below = (_held(made) if fits else None) or {}
    return _rebuilt(value, lambda key, item: _aligned(item, below.get(key), became))


def without_port(text: str) -> str:
    """Return a text with the ports of the sandbox's own services left open, as its stack files may."""
    return _OWN_PORT.sub("127.0.0.1:0", text)


def conceal_unmade(value: Value, became: Mapping[str, Value]) -> Value:
    """Return what stands in for secrets elsewhere in a resource: what they became, else nothing of them."""
    if isinstance(value, Secret):
        held = reveal(value)
        return Secret(became.get(_key(held), _unmade(held, became)))
    if isinstance(value, str):
        return became.get(_key(value), value) if _OWN_PORT.search(value) else value
    return _rebuilt(value, lambda _, item: conceal_unmade(item, became))


def in_the_open(inputs: Value) -> dict[str, Value]:
    """Return the values that inputs have in plaintext: Google's provider marks even labels beside them."""
    if isinstance(inputs, Secret):
        return {}
    below = (_held(inputs) or {}).values()
    return {_key(inputs): inputs} | {key: item for each in below for key, item in in_the_open(each).items()}


def _unmade(value: Value, became: Mapping[str, Value], name: str = "") -> Value:
    """Keep the names in a value, and what is in the open; nothing else."""
    if isinstance(value, dict):
        return {key: _unmade(item, became, key) for key, item in value.items()}
    known = value is None or name == _PROVISIONED
    return value if known else became.get(_key(value), f"{SEALED}-made-by-none")


def _key(value: Value) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
