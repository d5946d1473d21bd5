"""What credentials become is what Go's encoding/json makes of them, as Korifi uses it, byte for byte.

Text that is not UTF-8 and nesting beyond 200 levels are not asked: they are refused here, and replaced or
taken there.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import pytest

from components.errors import CredfleetError
from components.service_credentials.binding import (
    BoundInstance,
    binding_data,
    binding_type,
    read_credentials_object,
    source_data,
    vcap_services,
)
from tests.support.cases import table
from tests.support.proving import counted
from tests.witness.conftest import Witness

pytestmark = pytest.mark.built

CASES: Final = counted(150, 10_000)
NUMBERS: Final = table(__file__, "NUMBERS")
TEXTS: Final = table(__file__, "TEXTS")
"""Strings, some as they are written, escapes included."""


def test_random_credentials_become_what_go_makes_of_them(witness: Witness) -> None:
    texts = [*_random_texts(Random(4), CASES)]
    answers = witness("json", (b64encode(text).decode() for text in texts))
    assert len(answers) == len(texts)
    refused = [answer["refused"] for answer in answers]
    assert 0.1 < sum(refused) / len(refused) < 0.9
    for text, answer in zip(texts, answers, strict=True):
        assert _made_here(text) == _made_there(answer), text


def test_random_applications_have_the_vcap_services_that_korifis_builder_makes(witness: Witness) -> None:
    random = Random(8)
    given: list[list[tuple[BoundInstance, bytes]]] = []
    for _ in range(counted(50, 2_000)):
        texts = [text for text in _random_texts(random, 6) if _made_here(text) is not None]
        labels = ("user-provided", "a&b", "postgresql", "é", "Z")
        bound = [
            BoundInstance(
                instance_guid=f"i-{number}",
                instance_name=random.choice(("orders", "<db>")),
                binding_guid=f"b-{random.random()}",
                binding_name=random.choice((None, "", "own")),
                tags=tuple(random.choices(("sql", "&"), k=random.randrange(3))),
                label=random.choice(labels),
            )
            for number, _ in enumerate(texts)
        ]
        given.append([*zip(bound, texts, strict=True)])
    answers = witness("vcap", ([_as_listed(*one) for one in sorted(app, key=_by_id)] for app in given))
    assert len(answers) == len(given)
    for app, answer in zip(given, answers, strict=True):
        read = [(bound, read_credentials_object(text)) for bound, text in app]
        assert vcap_services(read) == b64decode(answer), app


def _by_id(binding: tuple[BoundInstance, bytes]) -> str:
    return binding[0].binding_guid


def _as_listed(bound: BoundInstance, text: bytes) -> dict[str, Any]:
    """Return a binding as the program takes it; its display name wins, even an empty one."""
    name = bound.instance_name if bound.binding_name is None else bound.binding_name
    return {
        "label": bound.label,
        "name": name,
        "tags": [*bound.tags],
        "instanceGuid": bound.instance_guid,
        "instanceName": bound.instance_name,
        "bindingGuid": bound.binding_guid,
        "bindingName": bound.binding_name,
        "credentials": b64encode(text).decode(),
    }


def _made_here(text: bytes) -> Any:
    try:
        credentials = read_credentials_object(text)
    except CredfleetError:
        return None
    source = source_data(credentials)["credentials"]
    return source, binding_type(credentials), dict(binding_data(credentials))


def _made_there(answer: dict[str, Any]) -> Any:
    if answer["refused"]:
        return None
    data = {key: b64decode(value) for key, value in answer["data"].items()}
    return b64decode(answer["source"]), answer["type"], data


def _random_texts(random: Random, count: int) -> Iterator[bytes]:
    """Yield documents, mostly objects, some of them damaged in one place."""
    for _ in range(count):
        top: Callable[[Random, int], str] = _object if random.random() < 0.95 else _value
        text = top(random, 0)
        if random.random() < 0.1:
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(("", ",", "}", '"', " ", "\x00", "1")) + text[at + 1 :]
        yield text.encode()


def _value(random: Random, depth: int) -> str:
    kind = random.randrange(4 if depth > 3 else 6)
    if kind == 0:
        return random.choice(("true", "false", "null"))
    if kind == 1:
        # a wrong one would spoil most documents
        return random.choice(NUMBERS if random.random() < 0.3 else NUMBERS[:8])
    if kind == 5:
        return (
            "["
            + ",".join(_value(random, depth + 1) for _ in range(random.randrange(4)))
            + _blank(random)
            + "]"
        )
    return _object(random, depth + 1) if kind == 4 else _text(random)


def _object(random: Random, depth: int) -> str:
    keys = [random.choice(('"type"', '"a"', '"provider"', _text(random))) for _ in range(random.randrange(5))]
    members = (f"{_blank(random)}{key}{_blank(random)}:{_value(random, depth)}" for key in keys)
    return "{" + ",".join(members) + _blank(random) + "}"


def _text(random: Random) -> str:
    chosen = random.choice(TEXTS)
    if chosen.startswith("\\") and len(chosen) > 1:
        return f'"{chosen}"'
    return json.dumps(chosen, ensure_ascii=random.random() < 0.5)


def _blank(random: Random) -> str:
    return random.choice(("", "", " ", "\n", "\t\r\n"))
