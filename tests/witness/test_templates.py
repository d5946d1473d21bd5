"""What a read makes of a template is what External Secrets Operator makes of it, byte for byte.

eso-templates.json has drawn texts, and what `runtime/template/v2` of a commit, compiled, made of each. No
proxy has that module, so Go's `text/template`, with the option that it sets, is asked of many more.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from components.errors import StoreError
from components.secret_stores.templates import is_template, render
from tests.support.cases import table
from tests.support.proving import counted
from tests.witness.conftest import Witness
from tests.witness.test_eso import PUBLISHED

CASES: Final = counted(400, 10_000)
MADE: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("eso-templates.json").read_text())
VALUES: Final = (b"", b"text", b" \n", b"{{ .a }}", b"\xff\xe2\x82", "é".encode(), b"\x00<&>")


def test_a_template_is_what_the_operator_made_of_it() -> None:
    assert MADE["source"]["commit"] == PUBLISHED["commit"]
    assert sum(_rendered(*each) for each in MADE["made"]) > 100


@pytest.mark.built
def test_a_template_is_what_go_makes_of_it(witness: Witness) -> None:
    asked = drawn(12, CASES)
    answers = witness("template", ({"text": text, "data": data} for text, data in asked))
    rendered = [_rendered(*each, made) for each, made in zip(asked, answers, strict=True)]
    assert 0.2 < sum(rendered) / CASES < 0.8


def drawn(seed: int, count: int) -> list[tuple[str, dict[str, str]]]:
    """Draw texts, each with values in base64."""
    random = Random(seed)
    return [(_text(random), _data(random)) for _ in range(count)]


def _rendered(text: str, data: dict[str, str], made: str | None) -> bool:
    """Whether a text is rendered; one of words that no template here has may be something to others."""
    if not is_template(text):
        return False
    try:
        ours = render({"k": text}, {key: b64decode(value) for key, value in data.items()}, "it")["k"]
    except StoreError:
        ours = None
    assert ours == (None if made is None else b64decode(made)), (text, data)
    return ours is not None


def _text(random: Random) -> str:
    words = table(__file__, "SOUND" if random.random() < 0.7 else "ODD")
    parts = [random.choice(each) for _ in range(random.randrange(4)) for each in words]
    return "".join(parts) + random.choice(words[0])


def _data(random: Random) -> dict[str, str]:
    names = ("a", "A_1", "_", "range", "b", "my-key")
    return {key: b64encode(random.choice(VALUES)).decode() for key in names if random.random() < 0.95}
