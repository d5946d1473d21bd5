"""docs/policies.md: its table is the pack."""

from __future__ import annotations

from typing import Final

from pack import POLICIES

from tests.support.stacks import ROOT

PAGE: Final = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8").replace("\\<", "<")


def test_the_page_has_every_rule_with_its_level_and_mend_and_no_other() -> None:
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `kubernetes-")]

    assert [(name.strip("`"), level, mend) for name, level, _, mend in lines] == [
        (policy.name, policy.enforcement_level and policy.enforcement_level.value, policy.remediation_steps)
        for policy in POLICIES
    ]
