"""docs/policies.md: its table is the pack's."""

from __future__ import annotations

from pack import POLICIES
from table import table

from tests.support.stacks import ROOT


def test_the_page_has_the_table_made_from_the_pack() -> None:
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")

    assert table(POLICIES) in page, "PYTHONPATH=. .venv/bin/python policies/table.py prints it"
