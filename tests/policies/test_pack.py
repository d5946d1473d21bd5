"""The pack as a whole: which names its rules have, where they stand, and what its files may import.

What each rule lets through and refuses is decided in `test_rules.py` and `test_stack_rules.py`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pack import POLICIES, SUBJECTS
from pulumi_policy import Policy
from table import table

from tests.support.stacks import ROOT

PACK = ROOT / "policies"
FILES = sorted(PACK.glob("*.py"))
ALLOWED = {*sys.stdlib_module_names, "pulumi", "pulumi_policy", *(path.stem for path in FILES)}
PURE = {
    "components.account_pool",
    "components.aso_credentials.federation",
    "components.aso_credentials.keys",
    "components.labels",
    "components.naming",
}
"""What the rules share with the program: names and limits, nothing that draws or talks."""


def forbidden(source: str) -> Iterator[str]:
    """Yield what a file imports beyond the host, the pack and the program's own words."""
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        yield from (name for name in names if name not in PURE and name.partition(".")[0] not in ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_the_pack_imports_the_host_the_pack_and_pure_words(path: Path) -> None:
    assert [*forbidden(path.read_text())] == []


@pytest.mark.parametrize(
    "planted",
    [
        "import pulumi_sandbox",
        "from pulumi_sandbox.engine import state",
        "from operations import main",
        "from components.account_pool.provider import AccountClaimProvider",
        "def late():\n    import kubernetes",
    ],
)
def test_a_planted_import_of_anything_else_is_found(planted: str) -> None:
    assert [*forbidden(f"{(PACK / 'rule.py').read_text()}\n{planted}\n")] != []


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_policy_has_the_name_of_its_function_and_one_only(policy: Policy) -> None:
    name = policy.name.replace("-", "_")
    assert [subject for subject in SUBJECTS if vars(subject).get(name) is policy] != []
    assert [one.name for one in POLICIES].count(policy.name) == 1


def test_every_file_of_rules_is_in_the_pack() -> None:
    rules = {path.stem for path in FILES if "_rule(\n" in path.read_text()} - {"rule"}
    assert rules == {subject.__name__ for subject in SUBJECTS}


def test_the_page_has_the_table_made_from_the_pack() -> None:
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")

    assert table(POLICIES) in page, "PYTHONPATH=. .venv/bin/python policies/table.py prints it"
