"""What an environment says to a policy pack: levels and properties, in the genuine host."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from sandbox.tests.support.engine_stack import Outcome, Stack
from sandbox.tests.support.scripted_program import Script

HOUSE = Path(__file__).parent / "packs" / "house"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Return the folder of the pack `house`, run by this environment's interpreter."""
    folder = Path(shutil.copytree(HOUSE, tmp_path / "house"))
    (folder / "PulumiPolicy.yaml").write_text(
        f"version: 1.2.3\nruntime:\n  name: python\n  options:\n    virtualenv: {sys.prefix}\n"
    )
    return folder


def configured(stack: Stack, pack: Path, said: object) -> Outcome:
    def program(script: Script) -> None:
        script.register("a", {"colour": "red"})
        script.register("b", {"colour": "grey"})

    config = stack.directory / "config.json"
    config.write_text(said if isinstance(said, str) else json.dumps(said))
    return stack.preview(program, policy_packs=(pack,), policy_configs={pack: config})


def levels(outcome: Outcome) -> dict[str, str]:
    return {each.policy: each.level for each in outcome.result.policy}


def test_an_environment_changes_levels_and_properties_and_leaves_the_rest(stack: Stack, house: Path) -> None:
    said = {"no-red": "advisory", "no-grey": {"enforcementLevel": "mandatory"}, "tidy": "disabled"}

    assert levels(configured(stack, house, said)) == {
        "no-red": "advisory",
        "no-grey": "mandatory",
        "few": "advisory",
    }


def test_a_level_for_all_is_that_of_every_policy_not_named(stack: Stack, house: Path) -> None:
    said = {"all": "disabled", "no-grey": "mandatory"}

    assert levels(configured(stack, house, said)) == {"no-grey": "mandatory"}


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ({"no-blue": "advisory"}, "the pack has no policy no-blue"),
        ({"no-red": {"shade": 1}}, "no-red has no property shade"),
        ({"no-red": "loud"}, "no-red: the level is none of advisory, mandatory, remediate, disabled"),
        ("{", "it cannot be read as JSON"),
        ([1], "it is no object"),
        ({"no-red": 1}, "it is no object"),
    ],
)
def test_what_the_pack_does_not_understand_is_refused(
    stack: Stack, house: Path, said: object, cause: str
) -> None:
    outcome = configured(stack, house, said)

    assert outcome.code == 1
    assert cause in outcome.errors[0]
    assert str(stack.directory / "config.json") in outcome.errors[0]
