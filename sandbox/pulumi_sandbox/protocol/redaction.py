"""Keeping known secrets out of texts made elsewhere: a provider's error, a line the program printed."""

import base64
import json
import re
from collections.abc import Iterator, Set
from typing import Final

from pulumi_sandbox.protocol.values import MASK, Secret, Value, reveal

_SHORTEST: Final = 5
"""Characters; anything shorter would blot out innocent words and protects nothing."""


class Redactor:
    """Replaces every known secret in a text by `[secret]`, also quoted as JSON, and to and from base64.

    Of a secret that is a JSON document or has several lines, each text and each line counts by itself, unless
    it is also held in the open: the ids in a credential are none of its secrets.
    """

    __slots__ = ("_pattern",)

    def __init__(self, secrets: Set[str], in_the_open: Set[str] = frozenset()) -> None:
        derived = {form for secret in secrets for part in _parts(secret) for form in _forms(part)}
        forms = secrets | (derived - in_the_open)
        longest_first = sorted(filter(lambda form: len(form) >= _SHORTEST, forms), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self._pattern.sub(MASK, text) if self._pattern else text


def texts_of(value: Value) -> tuple[Set[str], Set[str]]:
    """Return every text that is a secret in a value, or within one; and every text that is in the open there.

    What the same value also holds in the open is no secret: Google's provider marks the labels of a resource,
    all of them, beside the ones it was given.
    """
    texts = {True: set[str](), False: set[str]()}
    for text, secret in _marked_texts(value, secret=False):
        texts[secret].add(text)
    return texts[True] - texts[False], texts[False]


def _marked_texts(value: Value, *, secret: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(value, Secret):
        yield from _marked_texts(reveal(value), secret=True)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _marked_texts(item, secret=secret)
    elif isinstance(value, list):
        for item in value:
            yield from _marked_texts(item, secret=secret)
    elif isinstance(value, str):
        yield value, secret


def _parts(secret: str) -> Iterator[str]:
    yield secret
    yield from secret.splitlines()
    try:
        yield from (text for text, _ in _marked_texts(json.loads(secret), secret=True))
    except ValueError:
        return


def _forms(part: str) -> Iterator[str]:
    yield part
    yield json.dumps(part)[1:-1]
    yield base64.b64encode(part.encode()).decode()
    try:
        yield base64.b64decode(part, validate=True).decode()
    except ValueError:
        return
