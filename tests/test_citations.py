"""What the project cites can be opened: paths, links between pages and their anchors; nothing goes by number.

Decided here is that a citation leads somewhere, not that what stands there supports what it is cited for.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.cases import tabled
from tests.support.stacks import ROOT

SANDBOX: Final = ROOT / "sandbox"

_PATH: Final = re.compile(r"(?<![\w/.-])(?:sandbox/)?docs/[\w./-]*\.(?:md|json|svg|yaml)\b")
_PLACE: Final = re.compile(r"\(((?:sandbox/)?docs/[\w./-]*\.md),\s+([^();:]+)\)")
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_FILE: Final = re.compile(
    r"`((?:components|operations|policies|sandbox|stacks|tests|docs|models)/(?:(?![A-Z]{2})[\w./-])+)`"
)
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_BY_NUMBER: Final = re.compile(
    r"\b(?:[Dd]ecisions?\s+\d|[Ff]acts,?\s+(?:section\s+)?\d|(?:engine|ASO)\s+facts\b|[Tt]ables?\s+[A-Z]\b"
    r"|[Ss]ections?\s+\d|[Rr]ows?\s+[A-Z]\d|[Cc]ases?\s+[A-Z]\d)|facts_\d"
    r"|\bid=\"(?:[A-Z]+\d+\b|(?:[A-Z]\d*|\d{1,2})-[a-z])"
    r"|\bdef test_(?:case_\d|[a-z]\d+_|\w+_(?:[b-z]|[a-z]\d+)\()"
)


@cache
def _tracked() -> tuple[Path, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return tuple(ROOT / name for name in listed.split("\0") if name)


def _texts(*endings: str) -> Iterator[tuple[Path, str]]:
    for path in _tracked():
        if path.name.endswith(endings) and path.is_file():
            yield path, path.read_text()


def _anchors(page: str) -> set[str]:
    """Return the anchors that headings of a page have, spelt as GitHub does."""
    words = (heading.strip().lower().replace("`", "") for heading in _HEADING.findall(page))
    return {re.sub(r"[^\w\- ]", "", each).replace(" ", "-") for each in words}


def _is_there(page: Path, name: str) -> bool:
    """Whether a file is there, from the project's folder or, for one of the sandbox, from the sandbox's."""
    return (ROOT / name).exists() or (SANDBOX in page.parents and (SANDBOX / name).exists())


def _opens(cited: str, page: Path) -> bool:
    target, _, anchor = cited.partition("#")
    found = (page.parent / target).resolve() if target else page
    return found.exists() and (not anchor or anchor in _anchors(found.read_text()))


def test_every_cited_page_is_there() -> None:
    cited = [
        (path, name)
        for path, text in _texts(".py", ".md", ".go", ".toml", ".yml", ".yaml", "Makefile")
        for name in _PATH.findall(text)
    ]
    assert len(cited) > 20
    assert [(str(path), name) for path, name in cited if not _is_there(path, name)] == []


def test_every_cited_heading_is_on_its_page() -> None:
    """A heading, or how it begins, follows its page after a comma, within the same parentheses."""
    cited = [
        (str(path), page, " ".join(re.sub(r"\n\s*#?", " ", words).split()).lower())
        for path, text in _texts(".py")
        for page, words in _PLACE.findall(text)
    ]
    headings = {page: _HEADING.findall((ROOT / page).read_text().lower()) for _, page, _ in cited}
    assert cited
    assert [
        each for each in cited if not any(heading.startswith(each[2]) for heading in headings[each[1]])
    ] == []


def test_every_link_between_pages_opens_at_its_heading() -> None:
    links = [
        (page, target)
        for page, text in _texts(".md")
        for target in _LINK.findall(_CODE.sub("", text))
        if not target.startswith(("http://", "https://", "mailto:"))
    ]
    assert len(links) > 20
    assert [(str(page), target) for page, target in links if not _opens(target, page)] == []


def test_every_file_that_a_page_names_is_there() -> None:
    named = [(page, name) for page, text in _texts(".md") for name in _FILE.findall(text)]
    assert len(named) > 20
    assert [(str(page), name) for page, name in named if not _is_there(page, name)] == []


@tabled("bare")
def test_a_bare_citation_is_recognised(bare: str) -> None:
    assert _BY_NUMBER.search(bare)


def test_nothing_is_cited_by_number() -> None:
    texts = [(path, text) for path, text in _texts(".py", ".md", ".go") if path != Path(__file__).resolve()]
    assert len(texts) > 20
    found = [f"{path}: {match[0]}" for path, text in texts for match in _BY_NUMBER.finditer(text)]
    assert found == []


def test_every_test_file_says_what_it_decides() -> None:
    files = [(path, text) for path, text in _texts(".py") if path.name.startswith("test_")]
    assert len(files) > 20
    assert [str(path) for path, text in files if not ast.get_docstring(ast.parse(text))] == []
