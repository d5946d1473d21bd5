"""The real protocol keeps every invariant in every world of `explorer.yaml`, and each mistake breaks one.

Every order of calls is tried, with a crash, a lost or a late answer at any of them (`World.check`,
`World.check_end`). `make prove WHAT=model` explores the large worlds as well; `-s` shows the counts of
each.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.explorer import Violation, World, explore
from tests.support.explorer_scopes import Mistake, Scope, list_mistakes, list_scopes, planted
from tests.support.memory_pool import Claims
from tests.support.proving import PROVES, SEARCHES, tried

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/claim-model.md"
PROTOCOL = ROOT / "docs/design/claim-protocol.md"
SCOPES = list_scopes()
MISTAKES = [*list_mistakes()]
NOW = [scope for scope in SCOPES.values() if PROVES or not scope.large]


def endings(world: World) -> str:
    """Return with what the claims of a world ended."""
    ended = (
        (op, one) for each in world.processes for op, one in zip(each.script, each.outcomes, strict=True)
    )
    return " ".join(sorted(type(one).__name__ for op, one in ended if isinstance(op, Claims)))


@pytest.mark.parametrize("scope", NOW, ids=[scope.name for scope in NOW])
def test_every_invariant_holds_in_every_state_of_a_world(scope: Scope) -> None:
    explored = explore(scope.world())
    tried("worlds in which the protocol ran in every order")
    tried("states of these worlds", explored.states)
    tried("steps between these states", explored.steps)
    assert not scope.ends or {endings(world) for world in explored.ends} == {*scope.ends}
    sys.stdout.write(f"\n{scope.name}: {explored.states} states, {explored.steps} steps\n")


@pytest.mark.skipif(SEARCHES, reason="another fault is in the code")
@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_a_mistake_breaks_an_invariant(mistake: Mistake) -> None:
    tried("mistakes in the protocol, each found")
    with planted(mistake), pytest.raises(Violation, match=f"^(?:{mistake.found}):"):
        explore(mistake.scope.world())


def test_the_fewest_steps_to_a_violation_are_told() -> None:
    mistake = next(each for each in MISTAKES if each.name.startswith("W7 "))
    with planted(mistake), pytest.raises(Violation) as found:
        explore(mistake.scope.world())
    first, *steps = str(found.value).splitlines()
    assert first == "I1: a living claim was taken off m0"
    assert [step.split("(")[0].strip() for step in steps][-1] == "P1 Patch"
    assert len(steps) == 9


def test_every_invariant_that_a_mistake_breaks_is_on_the_page() -> None:
    explained = set(re.findall(r"^\| (I\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert explained == {f"I{number}" for number in range(1, 16)}
    assert len(MISTAKES) >= 36 + 12


def test_the_code_names_the_steps_of_the_page_and_no_others() -> None:
    core = (path.read_text(encoding="utf-8") for path in (ROOT / "components/account_pool/core").glob("*.py"))
    named = set(re.findall(r"\b[CRXKQN]\d\b", "".join(core)))
    told = re.findall(r"^([CRXKQN]\d)\b", PROTOCOL.read_text(encoding="utf-8"), re.MULTILINE)
    assert named == {*told}
