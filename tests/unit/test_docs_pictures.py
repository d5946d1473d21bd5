"""The pictures of the docs: what viewers outside browsers can draw. How they look is for the eye."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.stacks import ROOT

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_says_its_colours_outright_on_paper_of_its_own(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")

    colours = re.findall(r"(?:fill|stroke): ([^;}]+)", text)
    assert colours
    assert {each for each in colours if not re.fullmatch(r"none|#[0-9a-f]{6}", each.strip())} == set()
    assert re.search(r'</style>\s*<rect class="paper"', text)
