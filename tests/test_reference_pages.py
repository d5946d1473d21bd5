"""What pages have from the code, keys, commands, errors and more, is what the code says now."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.reference_pages import BLOCKS, drawn, list_pages
from tests.support.stacks import ROOT

PAGES = {page: page.read_text("utf-8") for page in list_pages()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_has_what_the_code_says(page: Path) -> None:
    assert drawn(PAGES[page]) == PAGES[page], "run: .venv/bin/python -m tests.support.reference_pages"


def test_each_block_is_on_one_page() -> None:
    found = [name for text in PAGES.values() for name in re.findall(r"<!-- drawn: (\w+) -->", text)]
    assert sorted(found) == sorted(BLOCKS)


def test_version_is_that_of_the_project_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    files = [*ROOT.glob("deploy/*"), ROOT / "docs/package.md", ROOT / "docs/pool-operations.md"]
    text = "".join(path.read_text("utf-8") for path in files)
    newest = re.findall(r"^## (\d\S+) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert {*re.findall(r"credfleet[:\- ](\d+\.\d+\.\d+)", text), newest[0]} == {version}
