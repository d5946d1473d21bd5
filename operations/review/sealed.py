"""Decides which placeholders stand for secrets that cannot be read in a review, and what they reveal.

A sealed value is identified by its ciphertext. The program gets a text of the same shape instead, whose parts
are derived from a digest of the ciphertext: it can be processed as JSON, base64 and by keys like the
credential, and everything made from it differs when the ciphertext does. The shape, which contains no value,
is recorded by the environment's own run; a credential without one is UNSEEN (docs/review.md, What stands in
for a credential).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from pulumi_sandbox.protocol.values import Properties, Secret, Value, contains_unknown, reveal

from components.credentials import KEY
from components.documents import json_within
from components.naming import is_guid
from components.seals import SEALED, UNSEEN
from components.stack_config.stack import NAMESPACE

Shape: TypeAlias = Any
"""JSON: {"text": length}, {"guid": true}, {"open": text}, {"scheme": "https://", "rest": shape},
{"list": shapes}, {"fields": [[name, shape], …]}; for encoded content {"json": shape}, {"base64": shape},
{"parts": shapes} separated by colons. Numbers and booleans become strings."""

_TELLING: Final = frozenset({"type", "provider"})
"""Fields of service credentials that are not secret: a binding shows them as names."""
_PROVISIONED: Final = "goog-pulumi-provisioned"
"""Label that Google's provider adds to all its resources."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://")
_OWN_PORT: Final = re.compile(r"127\.0\.0\.1:[0-9]+")
_UNREAD: Final = "unread-91c6f3a8-"
"""Prefix of secrets in a state that was read without its key."""
_INPUTS: Final = "__inputs"
"""Output in which the Kubernetes provider stores the inputs."""


class ValueStanding(StrEnum):
    """How a sealed value compares with the deployed one."""

    SAME = "same"
    CHANGED = "changed"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Seals:
    """The record of sealed values: name → digest of the ciphertext, and shape.

    key: of the digests, generated for this record. It can be public: a ciphertext reveals nothing about its
    content, and is random itself.
    """

    key: str
    digests: Mapping[str, str]
    shapes: Mapping[str, Shape]

    def identity(self, ciphertext: str) -> str:
        """Return the digest of a ciphertext."""
        return _digest(self.key, ciphertext)

    def find(self, name: str, ciphertext: str) -> Sealed:
        """Return what is known of a value; a changed one is assumed to have its former shape."""
        identity = self.identity(ciphertext)
        origin = next((each for each, known in self.digests.items() if known == identity), None)
        changed = ValueStanding.CHANGED if name in self.digests else ValueStanding.NEW
        standing = changed if origin is None else ValueStanding.SAME
        return Sealed(name, standing, self.shapes.get(origin or name), identity)


@dataclass(frozen=True, slots=True)
class Sealed:
    """A value that cannot be read: how it compares, its shape if known, and the digest of its ciphertext."""

    name: str
    standing: ValueStanding
    shape: Shape | None
    identity: str = ""

    @property
    def text(self) -> str:
        """Its placeholder."""
        mark = SEALED if self.standing is ValueStanding.SAME else UNSEEN
        if self.shape is not None:
            return str(_drawn(self.shape, self.identity, mark))
        marked = f"{mark}-{self.identity}"
        return json.dumps({UNSEEN: marked}) if is_credential(self.name) else marked


def is_credential(name: str) -> bool:
    """Return whether the name of a sealed value is that of a credential."""
    return name.startswith(f"{NAMESPACE}{KEY}.")


def ciphertexts(value: Any, place: str = "") -> dict[str, str]:
    """Return name → ciphertext of all encrypted values in a stack file."""
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return {place: str(value["secure"])}
        below = ((f"{place}.{key}" if place else str(key), item) for key, item in value.items())
    elif isinstance(value, list):
        below = ((f"{place}[{index}]", item) for index, item in enumerate(value))
    else:
        return {}
    return {name: text for inner, item in below for name, text in ciphertexts(item, inner).items()}


def shape_of(text: str, in_the_open: frozenset[str] = frozenset()) -> Shape | None:
    """Return the shape of a credential's text; None if there can be no placeholder for it.

    in_the_open: plaintexts of the state, which are kept in fields that tell a service's kind.
    """
    if text.startswith("base64:") or "-----BEGIN" in text:
        return None
    document = json_within(text)
    return {"text": len(text)} if document is None else {"json": _shape(document, "", in_the_open)}


def _shape(value: Any, name: str, in_the_open: frozenset[str]) -> Shape:
    match value:
        case dict():
            return {"fields": [[key, _shape(item, key, in_the_open)] for key, item in value.items()]}
        case list():
            return {"list": [_shape(item, name, in_the_open) for item in value]}
        case str():
            return _shape_of_text(value, name, in_the_open)
        case _:
            return {"text": 16}


def _shape_of_text(value: str, name: str, in_the_open: frozenset[str]) -> Shape:
    if name in _TELLING and value in in_the_open:
        return {"open": value}
    if is_guid(value):
        return {"guid": True}
    if (scheme := _SCHEME.match(value)) is not None:
        return {"scheme": scheme[0], "rest": {"text": len(value) - len(scheme[0])}}
    if (document := json_within(value)) is not None:
        return {"json": _shape(document, "", in_the_open)}
    if (inner := _decoded(value)) is not None and ":" in inner:
        return {"base64": {"parts": [{"text": len(part)} for part in inner.split(":")]}}
    return {"text": len(value)}


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return None


def _drawn(shape: Shape, seed: str, mark: str) -> Any:
    """Return a value of a shape, with parts derived from a seed."""
    made: Any
    match shape:
        case {"fields": fields}:
            made = {key: _drawn(inner, f"{seed}.{key}", mark) for key, inner in fields}
        case {"list": items}:
            made = [_drawn(inner, f"{seed}[{index}]", mark) for index, inner in enumerate(items)]
        case {"json": inner}:
            made = json.dumps(_drawn(inner, seed, mark))
        case {"base64": inner}:
            made = base64.b64encode(_drawn(inner, seed, mark).encode()).decode()
        case {"parts": parts}:
            made = ":".join(_drawn(part, f"{seed}{index}", mark) for index, part in enumerate(parts))
        case {"guid": _}:
            drawn = _digest(seed, "guid")
            made = f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-8{drawn[17:20]}-{drawn[20:32]}"
        case {"open": made}:
            pass
        case {"scheme": scheme, "rest": rest}:
            made = scheme + _drawn(rest, seed, mark)
        case _:
            length = shape.get("text", 16)
            made = f"{mark}-{_digest(seed, 'text')[:32]}".ljust(length - length % 8, "x")
    return made


def _digest(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:40]


def unread(ciphertext: str) -> str:
    """Return, as JSON, the temporary text for a secret in a state until `align`, if the key is missing."""
    return json.dumps(f"{_UNREAD}{hashlib.sha256(ciphertext.encode()).hexdigest()}")


def is_unread(value: Value) -> bool:
    """Return whether a value is such a text for an unread secret."""
    return isinstance(value, str) and value.startswith(_UNREAD)


def _held(value: Value) -> dict[Any, Value]:
    """Return the items of a value by key or index."""
    if isinstance(value, list):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else {}


def _places(value: Value, place: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Value]:
    """Return a value and all nested ones by path; secrets are not descended into."""
    found = {place: value}
    for key, item in _held(value).items():
        found |= _places(item, (*place, key))
    return found


def _rebuilt(value: Value, make: Callable[[Any, Value], Value]) -> Value:
    """Return a value with each item replaced by the result of `make`."""
    if isinstance(value, dict):
        return {key: make(key, item) for key, item in value.items()}
    return [make(*each) for each in enumerate(value)] if isinstance(value, list) else value


def unread_outputs(outputs: Value, inputs: Value) -> dict[str, Value]:
    """Return the values of unread secrets in outputs, taken from the same place in aligned inputs."""
    held, below = reveal(outputs), reveal(inputs)
    if is_unread(held):
        return {} if below is None else {_key(held): below}
    if not isinstance(outputs, dict) or not isinstance(below, dict):
        return {}
    places = ((item, below if name == _INPUTS else below.get(name)) for name, item in outputs.items())
    return {key: value for item, place in places for key, value in unread_outputs(item, place).items()}


def align(state: Properties, run: Properties) -> tuple[Properties, Mapping[str, Value]]:
    """Replace each secret in recorded inputs by what the program made there from placeholders.

    Returns the inputs, and the replacement of each secret. A secret that the program did not make stays
    unknown.
    """
    became: dict[str, Value] = {}
    found = {key: _aligned(value, run.get(key), became) for key, value in state.items()}
    return found, became


def _aligned(value: Value, run: Value, became: dict[str, Value]) -> Value:
    made = reveal(run)
    if isinstance(value, Secret):
        held = reveal(value)
        old, new = _places(held), {(): made} if is_unread(held) else _places(made)
        if made is None or contains_unknown(made) or old.keys() != new.keys():
            return conceal_unmade(value, became)
        became |= {_key(old[place]): new[place] for place in old}
        return Secret(made)
    if isinstance(value, str) and isinstance(run, str) and value != run:
        if without_port(value) != without_port(run):
            return value
        became[_key(value)] = run
        return run
    fits = not isinstance(value, list) or (isinstance(made, list) and len(made) == len(value))
    below = _held(made) if fits else {}
    return _rebuilt(value, lambda key, item: _aligned(item, below.get(key), became))


def without_port(text: str) -> str:
    """Return a text with the ports of the sandbox's services left open, as in its stack files."""
    return _OWN_PORT.sub("127.0.0.1:0", text)


def conceal_unmade(value: Value, became: Mapping[str, Value]) -> Value:
    """Replace secrets elsewhere in a resource by their known replacements, or conceal them."""
    if isinstance(value, Secret):
        held = reveal(value)
        return Secret(became.get(_key(held), _unmade(held, became)))
    if isinstance(value, str):
        return became.get(_key(value), value) if _OWN_PORT.search(value) else value
    return _rebuilt(value, lambda _, item: conceal_unmade(item, became))


def in_the_open(inputs: Value) -> dict[str, Value]:
    """Return the plaintext values in inputs: Google's provider marks even labels as secret elsewhere."""
    return {_key(each): each for each in _places(inputs).values() if not isinstance(each, Secret)}


def _unmade(value: Value, became: Mapping[str, Value], name: str = "") -> Value:
    """Keep the names in a value, and values that are in plaintext elsewhere; conceal the rest."""
    if isinstance(value, dict):
        return {key: _unmade(item, became, key) for key, item in value.items()}
    known = value is None or name == _PROVISIONED
    return value if known else became.get(_key(value), f"{SEALED}-made-by-none")


def _key(value: Value) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
