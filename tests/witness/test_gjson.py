"""What a read takes out of a value that is JSON is what External Secrets Operator takes, byte for byte."""

from __future__ import annotations

from base64 import b64decode, b64encode
from random import Random
from typing import Final

import pytest

from components.go_json import write_texts
from components.secret_stores.json_fields import as_path, field_of, is_json, object_fields
from tests.support.cases import table
from tests.support.proving import counted
from tests.witness.conftest import Witness

pytestmark = pytest.mark.built

CASES: Final = counted(400, 10_000)
NAMES: Final = table(__file__, "NAMES")
PLAIN: Final = (
    *("0", "-0", "-0.0", "1.10", "1e3", "1E-7", "12345678901234567890.5", "1e400", "-1e400", "5e-324", "0.1"),
    *("123456789012345678901234567890", "1e21", "true", "false", "null", "01", "1.", "+1", "NaN", "-", "nul"),
)
TEXTS: Final = table(__file__, "TEXTS")
PATHS: Final = ("a.a", "b.a", "a.b.a", "a.0", "0.a", "a.")
SECRETS: Final = (
    b"",
    b"text",
    "é\u2028\u2029".encode(),
    b"<&>",
    b"\x00\x08\x1f\x7f",
    b"\xff\xe2\x82",
    b"\xed\xa0\x80",
    b'"\\/',
)

BREAKS: Final = (
    *(b",", b"}", b'"', b" ", b"]", b"[", b"{", b"(", b")", b":", b"\\", b"\x01"),
    *(
        b"nul",
        b"nan",
        b"-inf",
        b"+nan",
        b"tru",
        b"falsey",
        b"1_0",
        b"+7",
        b".5",
        b"-",
        b"Infinity",
        b"n",
        b"",
    ),
)
"""What a document is broken with."""


def test_a_field_and_a_whole_secret_are_what_the_operators_libraries_make_of_them(witness: Witness) -> None:
    random = Random(9)
    asked = [(_document(random), [*random.sample(NAMES, 4)], _secret(random)) for _ in range(CASES)]
    answers = witness(
        "gjson",
        (
            {
                "value": b64encode(value).decode(),
                "paths": [*map(as_path, names), *PATHS],
                "secret": {key: b64encode(each).decode() for key, each in secret.items()},
            }
            for value, names, secret in asked
        ),
    )
    assert len(answers) == CASES
    assert 0.2 < sum(each["valid"] for each in answers) / CASES < 0.95
    for (value, names, secret), answer in zip(asked, answers, strict=True):
        found = [None if each is None else b64decode(each) for each in answer["found"]]
        ways = [*((name,) for name in names), *(path.split(".") for path in PATHS)]
        assert is_json(value) == answer["valid"], value
        assert [field_of(value, *way) for way in ways] == (
            found if answer["valid"] else [None] * len(ways)
        ), value
        fields = answer["object"] and {key: b64decode(each) for key, each in answer["object"].items()}
        assert object_fields(value) == fields, value
        assert write_texts(secret) == b64decode(answer["whole"]), secret


def test_a_name_is_escaped_as_the_library_itself_escapes_it(witness: Witness) -> None:
    names = [*NAMES, *map(chr, range(1, 256)), *TEXTS]
    (answer,) = witness("gjson", [{"value": "", "paths": names, "secret": {}}])
    assert [as_path(name) for name in names] == answer["escaped"]


def _document(random: Random) -> bytes:
    text = _value(random, 0).encode()
    if random.random() < 0.3:
        for _ in range(random.choice((1, 1, 2, 5))):
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(BREAKS) + text[at + random.choice((0, 1)) :]
    return random.choice((b"", b"", b"", b"\xef\xbb\xbf", b"x ")) + text.decode(errors="ignore").encode()


def _value(random: Random, depth: int) -> str:
    blank = random.choice(("", "", " ", "\n\t"))
    choice = random.random() if depth else random.choice((0.0, 0.0, 0.0, 0.35))
    if choice < 0.3 and depth < 4:
        pairs = (
            f'{blank}"{_key(random)}"{blank}:{_value(random, depth + 1)}' for _ in range(random.randrange(6))
        )
        return f"{blank}{{{','.join(pairs)}{blank}}}{blank}"
    if choice < 0.4 and depth < 4:
        items = ",".join(_value(random, depth + 1) for _ in range(random.randrange(3)))
        return f"{blank}[{items}]{blank}"
    if choice < 0.7:
        return f"{blank}{random.choice(PLAIN[:18] if random.random() < 0.95 else PLAIN)}{blank}"
    return f'"{random.choice(TEXTS[:13] if random.random() < 0.95 else TEXTS)}"'


def _key(random: Random) -> str:
    name = random.choice(NAMES)
    escaped = "".join(f"\\u{ord(each):04x}" for each in name)
    return escaped if random.random() < 0.2 or not name.isprintable() else name.replace("\\", "\\\\")


def _secret(random: Random) -> dict[str, bytes]:
    return {
        random.choice(("a", "Z", "tls.crt", "_")): random.choice(SECRETS) for _ in range(random.randrange(4))
    }
