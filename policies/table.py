"""The table of all rules as docs/policies.md has it; `python policies/table.py` prints it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from pulumi_policy import Policy, StackValidationPolicy

_HEAD: Final = "| Rule | Level | Holds that | Configured by |\n|---|---|---|---|"


def table(policies: Sequence[Policy]) -> str:
    """Render one row per rule; a rule over the whole stack says so."""
    return "\n".join((_HEAD, *(_row(policy) for policy in policies)))


def _row(policy: Policy) -> str:
    level = policy.enforcement_level.value if policy.enforcement_level else ""
    where = ", whole stack" if isinstance(policy, StackValidationPolicy) else ""
    keys = ", ".join(f"`{key}`" for key in (policy.config_schema.properties if policy.config_schema else ()))
    cells = (f"`{policy.name}`", level + where, policy.description, keys)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "\\<") for cell in cells) + " |"


if __name__ == "__main__":
    from pack import POLICIES

    sys.stdout.write(table(POLICIES) + "\n")
