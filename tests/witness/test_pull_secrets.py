"""What is said of a pull secret is what kubelet does with it: its own code reads files that are drawn.

`python -m tests.witness.test_pull_secrets PROGRAM` records a sample again, for tests without a witness.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from components.pull_secret.kubelet import logins_of, registry_of, without_surrogates
from components.pull_secret.payload import judge
from tests.support.cases import table
from tests.support.proving import counted
from tests.witness.conftest import Witness

CASES: Final = counted(500, 5_000)
SAMPLE: Final = Path(__file__).with_name("pull-secrets.json")
RECORDED: Final[list[tuple[str, Any]]] = json.loads(SAMPLE.read_bytes()) if SAMPLE.exists() else []
NAMES, AUTHS, HEADERS, LOGIN, TEXTS, ODD, UNFIT, BETWEEN = (
    table(__file__, name)
    for name in ("names", "auths", "headers", "login", "texts", "odd", "unfit", "between")
)
PLAIN, BREAKS = ([each.encode("latin-1") for each in table(__file__, name)] for name in ("plain", "breaks"))
FURTHER: Final = (
    "^it is (not (UTF-8|a map)|missing|empty|spelt in another case)"
    "|too large for a 64-bit float|no node pulls"
)
"""Why else a file is refused that kubelet takes: others do not, or kubelet can pull nothing with it."""


def drawn(random: Random) -> bytes:
    """Draw a file: mostly what a person could have written, sometimes broken."""
    pairs = [_pair(AUTHS, _auths(random), random)]
    while random.random() < 0.25:
        headers = random.choice((*ODD, '{"a":"b"}', '{"a":null}', '{"a":5}'))
        more = (AUTHS, _auths(random)), (HEADERS, headers)
        pairs.append(_pair(*random.choice(more), random))
    text = _object(pairs, random) if random.random() < 0.97 else random.choice(ODD)
    content = f"{random.choice(('', ' ', chr(10)))}{text}{random.choice(('', ' ', chr(10)))}".encode()
    if random.random() < 0.06:
        at = random.randrange(len(content) + 1)
        content = content[:at] + random.choice(BREAKS) + content[at + random.choice((0, 1)) :]
    return content


def _auths(random: Random) -> str:
    entries = [_pair(NAMES, _entry(random), random) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    return random.choice(ODD) if random.random() < 0.05 else _object(entries, random)


def _entry(random: Random) -> str:
    pairs = [_pair(LOGIN, _auth(random), random)] if random.random() < 0.8 else []
    while random.random() < 0.3:
        text = random.choice(ODD) if random.random() < 0.15 else random.choice(('"u"', '"p:q"', '""'))
        pairs.append(_pair(TEXTS, text, random))
    return random.choice(ODD) if random.random() < 0.04 else _object(pairs, random)


def _auth(random: Random) -> str:
    text = b64encode(random.choice(PLAIN)).decode()
    change = random.random()
    if change < 0.06:
        return random.choice((*ODD, *UNFIT))
    if change < 0.15:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(BETWEEN) + text[at:]
    elif change < 0.25:
        text = text.rstrip("=")
    elif change < 0.3:
        text = text.replace("+", "-").replace("/", "_")
    return f'"{text}"'


def _pair(keys: Sequence[str], value: str, random: Random) -> str:
    return f'"{random.choice(keys)}":{value}'


def _object(pairs: list[str], random: Random) -> str:
    random.shuffle(pairs)
    return f"{{{','.join(pairs)}}}"


def read_here(content: bytes) -> Mapping[str, list[bytes]] | None:
    """Return user and password by registry; None for what is refused."""
    text = without_surrogates(content.decode(errors="surrogateescape"))
    hooks: dict[str, Any] = dict.fromkeys(("parse_int", "parse_float"), len)
    try:
        document = json.loads(text, object_pairs_hook=tuple, parse_constant=int, **hooks)
        logins = logins_of(document)
    except ValueError:
        return None if content else {}  # kubelet passes over an empty one
    return {name: [login.user, login.password] for name, login in logins.items()}


def read_there(answer: Mapping[str, Any]) -> Mapping[str, list[bytes]] | None:
    """Return what kubelet said, in the same form."""
    if answer["refused"]:
        return None
    return {name: [*map(b64decode, pair)] for name, pair in answer["logins"].items()}


def compare(content: bytes, answer: Mapping[str, Any]) -> bool:
    """Hold what is said here to what kubelet does; return whether it takes the file."""
    there, verdict = read_there(answer), judge(content)
    assert read_here(content) == there, content
    if not there:
        assert verdict.errors, content
    elif verdict.errors:
        assert re.search(FURTHER, verdict.errors[0].problem), (content, verdict)
    else:
        assert {*verdict.registries} <= there.keys(), content
        assert {*map(registry_of, verdict.registries)} <= {*answer["registries"]}, content
    return bool(there)


@pytest.mark.built
def test_what_kubelet_takes_of_a_drawn_file_is_what_is_said_of_it(witness: Witness) -> None:
    random = Random(49)
    files = [drawn(random) for _ in range(CASES)]
    answers = witness("pull-secret", [b64encode(each).decode() for each in files])
    taken = [compare(content, answer) for content, answer in zip(files, answers, strict=True)]
    assert 0.3 < sum(taken) / CASES < 0.8


@pytest.mark.built
def test_the_recorded_sample_is_what_kubelet_says(witness: Witness) -> None:
    assert witness("pull-secret", [content for content, _ in RECORDED]) == [said for _, said in RECORDED]


def test_what_kubelet_took_of_a_recorded_file_is_what_is_said_of_it() -> None:
    taken = [compare(b64decode(content), said) for content, said in RECORDED]
    assert len(taken) == 150
    assert 40 < sum(taken) < 120


if __name__ == "__main__":
    random = Random(7)
    asked = [json.dumps(b64encode(drawn(random)).decode()) for _ in range(150)]
    ran = subprocess.run(
        [sys.argv[1], "pull-secret"], input="\n".join(asked), capture_output=True, text=True, check=True
    )
    rows = [f"[{content}, {said}]" for content, said in zip(asked, ran.stdout.splitlines(), strict=True)]
    SAMPLE.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
