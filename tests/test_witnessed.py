"""Each sentence of docs/compatibility.md that says what another system does carries its witness.

Such a sentence has a system as the one that acts: `Azure refuses …`, `… is refused by Entra`. Its
witness is in its paragraph, item or row, for a row also in the table's head or the paragraph above:
the path of a test, or a footnote. The note names a test that is there, or a source with its version
or commit. Decided here is that there is one, not that it says so: that is for whoever reads it. The
API server is no other system, since tests run on it.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from tests.support.cases import table
from tests.support.stacks import ROOT

_SYSTEM: Final = (
    r"(?:Azure Service Operator|External Secrets Operator|Secret Manager|ASO|azidentity|Azure|ARM|Entra|KEB"
    r"|Kyma|Gardener|ESO|Korifi|HyperFleet(?:'s (?:own )?job)?|Google|Linux|servicebinding\.io"
    r"|(?:[Aa]|[Tt]he) kubelet|[Tt]he (?:genuine )?(?:Pulumi )?CLI|Pulumi)"
)
_PLURAL: Final = (
    "(?:accounts|adapters|annotations|clouds|credentials|events|facts|instructions|keys|kinds|labels|members|names"
    "|objects|plans|providers|resources|rules|secrets|services|sources|stacks|stores|systems|tests|tokens|types"
    "|versions|words|as|is|its|this|does(?! not))"
)
_ACTS: Final = re.compile(
    rf"(?<!hen )(?<!hether )(?<!\bif )(?<!nless )(?<![-`/])"
    rf"(?<!\bin )(?<!\bof )(?<!\bfor )(?<!\band )(?<!\bto )\b{_SYSTEM}"
    r"(?: (?:itself|only|never|always|then|also|alone|silently|and \w+))*"
    rf" (?:does not|would|will|cannot|can|has|(?!{_PLURAL}\b)[a-z]+s)\b"
    rf"|\b[a-z]+(?:ed|en|wn) by {_SYSTEM}(?![\w'-])"
)
_CODE: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_NOTED: Final = re.compile(r"\[\^([\w-]+)\](?!:)")
_NOTE: Final = re.compile(r"^\[\^([\w-]+)\]: (.+(?:\n +.+)*)", re.MULTILINE)
_TEST: Final = re.compile(r"`((?:sandbox/)?tests/[\w./-]+\.py)`")
_VERSION: Final = re.compile(r"\b[Vv]?\d+\.\d+|\bat [0-9a-f]{7,40}\b")

PAGE: Final = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")


class Block(NamedTuple):
    """A paragraph, an item of a list or a row, as one line; around: what else may carry its witness."""

    text: str
    around: str


def blocks(page: str) -> Iterator[Block]:
    """Yield what a page says, code and notes left out."""
    prose = _NOTE.sub("", _CODE.sub("", page))
    above = ""
    for part in re.split(r"\n\s*\n|\n(?=#+ )|(?<=\n)(?=#+ )", prose):
        lines = part.strip().splitlines()
        if lines and lines[0].startswith("|"):
            yield from (Block(row, f"{above} {lines[0]}") for row in lines[2:])
            continue
        above = " ".join(lines)
        items = re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", part.strip())
        yield from (Block(" ".join(item.split()), "") for item in items if item)


def acts(sentence: str) -> bool:
    """Whether a sentence says what another system does."""
    return not sentence.startswith("#") and _ACTS.search(sentence) is not None


@pytest.mark.parametrize(
    "sentence",
    [
        "Azure refuses two writes.",
        "the token is refused by Entra",
        "ASO itself never reads it",
        "HyperFleet's own job takes it",
        "so the CLI warns of it",
        "what ESO would ignore",
        "Linux has a limit",
    ],
)
def test_a_sentence_in_which_another_system_acts_is_known(sentence: str) -> None:
    assert acts(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "ASO resources are declared last",
        "the credentials of Azure Service Operator",
        "when HyperFleet does not answer, the command fails",
        "whether Azure knows it is not looked at",
        "# How ASO resolves",
        "`credfleet aso explain` tells it",
        "Azure's resource groups",
        "what is in Azure stays there",
    ],
)
def test_a_sentence_that_only_names_another_system_is_none(sentence: str) -> None:
    assert not acts(sentence)


def test_a_block_is_witnessed_where_it_stands_or_above_its_table() -> None:
    page = "It is so.[^a]\n\n| A | B |\n|---|---|\n| ASO reads | x |\n\n- one\n  goes on\n- two\n\n[^a]: x\n"
    assert [*blocks(page)] == [
        Block("It is so.[^a]", ""),
        Block("| ASO reads | x |", "It is so.[^a] | A | B |"),
        Block("- one goes on", ""),
        Block("- two", ""),
    ]


def test_what_another_system_does_is_said_with_its_witness() -> None:
    notes = {name for name, _ in _NOTE.findall(PAGE)}
    said = [(block.text, f"{block.text} {block.around}") for block in blocks(PAGE) if acts(block.text)]
    assert [
        what for what, near in said if not (notes.intersection(_NOTED.findall(near)) or _TEST.search(near))
    ] == []


def test_a_witness_is_a_test_that_is_there_or_a_source_with_its_version() -> None:
    notes = dict(_NOTE.findall(PAGE))
    assert notes.keys() == {*_NOTED.findall(_NOTE.sub("", PAGE))}
    for name, note in notes.items():
        tests = _TEST.findall(note)
        assert all((ROOT / each).exists() for each in tests), name
        assert tests or _VERSION.search(note), name


PINS: Final = table(__file__, "test_a_version_on_the_page_is_the_one_that_is_pinned")


def versions_after(name: str, text: str) -> list[str]:
    """Return the versions and commits that stand behind a name."""
    return re.findall(rf"{re.escape(name)}[`)]*(?: \|)? `?(\d[\d.]*\d|[0-9a-f]{{7}})\b", text)


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: f"{pin[0]} of {pin[1]}")
def test_a_version_on_the_page_is_the_one_that_is_pinned(pin: list[str]) -> None:
    name, file, pattern, form = [*pin, r"\1"][:4]
    *_, pinned = re.finditer(pattern, (ROOT / file).read_text(encoding="utf-8"))
    written = versions_after(name, PAGE)
    assert written
    assert [each for each in written if not f"{pinned.expand(form)}.".startswith(f"{each}.")] == []


def test_every_system_that_was_compared_has_a_pin() -> None:
    rows = [block.text for block in blocks(PAGE) if "Compared" in block.around]
    assert len(rows) > 10
    assert [row for row in rows if not any(versions_after(name, row) for name, *_ in PINS)] == []
