"""The pack as a whole: which names its rules have, and where they stand.

What each rule lets through and refuses is decided in `test_rules.py` and `test_stack_rules.py`; what the pack
may import, in `tests/test_imports.py`.
"""

import pytest
from pack import POLICIES, SUBJECTS
from pulumi_policy import Policy

from tests.support.stacks import ROOT

PACK = ROOT / "policies"
FILES = sorted(PACK.glob("*.py"))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_policy_has_the_name_of_its_function_and_one_only(policy: Policy) -> None:
    name = policy.name.replace("-", "_")
    assert [subject for subject in SUBJECTS if vars(subject).get(name) is policy] != []
    assert [one.name for one in POLICIES].count(policy.name) == 1


def test_every_file_of_rules_is_in_the_pack() -> None:
    rules = {path.stem for path in FILES if "_rule(\n" in path.read_text()} - {"rule"}
    assert rules == {subject.__name__ for subject in SUBJECTS}
