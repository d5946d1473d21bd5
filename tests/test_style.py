"""Pages and messages keep the style of CONTRIBUTING.md: words, lengths, examples that parse."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Final

import pytest
import yaml

from tests.support.stacks import ROOT

WORDS: Final = re.compile(
    r"\b(nobody|somebody|whoever|anew|in plain(?! values)|there (is|are) not an?"
    r"|stand-ins?|side by side|for ever|hangs? on|let back|told apart|whence|afresh|ought|likewise)\b",
    re.IGNORECASE,
)
LONGEST: Final = 35
"""Words of a sentence."""

PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "json": yaml.safe_load,
    "yaml": lambda text: [*yaml.safe_load_all(text)],
    "python": ast.parse,
    "toml": tomllib.loads,
}
_CODE: Final = re.compile(r"^ *```(\w*).*?\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_NO_PROSE: Final = re.compile(r"^(\||#|\[\^|!\[).*$", re.MULTILINE)
_SENTENCES: Final = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+")


def _pages() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")):
        yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def _messages() -> Iterator[tuple[str, str]]:
    """Yield each text of the product, in its code and its data, and its place."""
    for folder in ("components", "operations", "policies", "sandbox/pulumi_sandbox"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value
        for path in sorted((ROOT / folder).rglob("*.json")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def test_text_that_people_read_has_no_word_of_the_former_dialect() -> None:
    texts = [*_pages(), *_messages()]
    assert len(texts) > 1000
    assert [(place, found[0]) for place, text in texts for found in WORDS.finditer(text)] == []


def test_sentence_of_a_page_has_at_most_35_words() -> None:
    prose = [(page, _NO_PROSE.sub("", _CODE.sub("", text))) for page, text in _pages()]
    sentences = [(page, each.split()) for page, text in prose for each in _SENTENCES.split(text)]
    assert len(sentences) > 500
    assert [(page, " ".join(words)) for page, words in sentences if len(words) > LONGEST] == []


@pytest.mark.parametrize("language", PARSERS)
def test_code_block_of_a_page_parses(language: str) -> None:
    for page, text in _pages():
        for found in _CODE.finditer(text):
            if found[1] == language:
                assert PARSERS[language](found[2]) is not None, page
