"""Keeping the secrets of a call's properties out of what an API said of it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pulumi_sandbox.protocol.values import MASK, Properties, Secret, Value, reveal

_SHORTEST: Final = 5
"""Characters; anything shorter would blot out innocent words and protects nothing."""


def without_secrets(text: str, properties: Properties) -> str:
    """Return a text without the secrets of the properties: as they are, within JSON, and in base64.

    Of a secret that is a JSON document or has several lines, each text and line counts by itself. What the
    same properties also hold in the open is no secret: Google's provider marks the labels of a resource, all
    of them, beside the ones it was given.
    """
    texts = {True: set[str](), False: set[str]()}
    for found, is_secret in _marked(properties, is_secret=False):
        texts[is_secret].add(found)
    forms = {form for secret in texts[True] for part in _parts(secret) for form in _forms(part)}
    known = [form for form in forms - texts[False] if len(form) >= _SHORTEST]
    longest_first = map(re.escape, sorted(known, key=len, reverse=True))
    return re.sub("|".join(longest_first), MASK, text) if known else text


def _marked(value: Value, *, is_secret: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(value, Secret):
        yield from _marked(reveal(value), is_secret=True)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _marked(item, is_secret=is_secret)
    elif isinstance(value, str):
        yield value, is_secret


def _parts(secret: str) -> Iterator[str]:
    yield secret
    inside = [line.strip() for line in secret.splitlines()]
    with suppress(ValueError, RecursionError):
        inside += (
            found for found, _ in _marked(json.loads(secret, parse_int=str, parse_float=str), is_secret=True)
        )
    with suppress(ValueError):
        inside.append(base64.b64decode(secret, validate=True).decode())
    for part in inside:
        if part != secret:
            yield from _parts(part)


def _forms(part: str) -> Iterator[str]:
    yield from (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])
    yield base64.b64encode(part.encode(errors="surrogatepass")).decode()
