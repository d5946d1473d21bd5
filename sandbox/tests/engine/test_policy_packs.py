"""Policy packs in the genuine host (sandbox/docs/engine-facts.md, policy packs)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from pulumi_sandbox.engine.model.events import PolicyPackLoaded

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
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


def test_a_pack_remediates_objects_and_judges_the_stack(
    stack: Stack, provider: RecordingProvider, house: Path
) -> None:
    def program(script: Script) -> None:
        script.register("a", {"colour": "blue"})
        script.register("b", {"colour": "grey"})

    up = stack.up(program, policy_packs=(house,))
    assert up.code == 0, up.messages
    assert [(event.name, event.version) for event in up.events if isinstance(event, PolicyPackLoaded)] == [
        ("house", "1.2.3")
    ]
    assert provider.thing("a").inputs["tidied"] == "by dev"
    assert stack.resource("a").inputs["tidied"] == "by dev"
    said = {
        (each.level, each.policy, each.urn.rpartition("::")[2], each.message) for each in up.result.policy
    }
    ids = sorted(str(thing.outputs["made"]) for thing in provider.things.values())
    assert said == {
        ("remediate", "tidy", "a", "all is tidied"),
        ("remediate", "tidy", "b", "all is tidied"),
        ("advisory", "no-grey", "b", "nothing is grey\nb is dull"),
        ("advisory", "few", "test-dev", f"few things\n2 things, made {ids}"),
    }


def test_a_mandatory_objection_stops_an_update_before_the_step_and_fails_a_preview_at_its_end(
    stack: Stack, provider: RecordingProvider, house: Path
) -> None:
    def program(script: Script) -> None:
        script.register("a", {"colour": "red"})
        script.register("b", {"colour": "blue"})

    preview = stack.preview(program, policy_packs=(house,))
    assert preview.code == 1
    assert preview.ops("b") == ["create"]
    up = stack.up(program, policy_packs=(house,))
    assert up.code == 1
    assert [each.policy for each in up.result.policy if each.level == "mandatory"] == ["no-red"]
    assert provider.names() == []
    assert up.ops("b") == []


def test_a_mistake_in_a_policy_stops_the_deployment_and_says_so(
    stack: Stack, provider: RecordingProvider, house: Path
) -> None:
    up = stack.up(lambda program: program.register("breaks-a-policy"), policy_packs=(house,))
    assert up.code == 1
    assert "a mistake in a policy" in up.errors[0]
    assert provider.names() == []


def test_a_mistake_in_a_policy_on_the_stack_fails_what_was_done_all_the_same(
    stack: Stack, provider: RecordingProvider, house: Path
) -> None:
    up = stack.up(lambda program: program.register("breaks-the-last-policy"), policy_packs=(house,))
    assert up.code == 1
    assert "a mistake at the end" in up.errors[0]
    assert stack.resource("breaks-the-last-policy").id in provider.things


def test_a_pack_takes_the_longest_configuration_that_is_not_refused(
    stack: Stack, provider: RecordingProvider, house: Path
) -> None:
    room = 131_071 - len('PULUMI_CONFIG={"test:long":""}')
    stack.configure(f"  test:long: {'x' * room}\n")
    up = stack.up(lambda program: program.register("a"), policy_packs=(house,))
    assert up.code == 0, up.messages
    assert provider.thing("a").inputs["tidied"] == "by dev"


def test_a_folder_that_is_no_pack_is_told_by_name(stack: Stack, tmp_path: Path) -> None:
    up = stack.up(lambda program: program.register("a"), policy_packs=(tmp_path,))
    assert up.code == 1
    assert str(tmp_path / "PulumiPolicy.yaml") in up.errors[0]


def test_a_pack_that_cannot_start_quotes_its_log(stack: Stack, house: Path) -> None:
    (house / "__main__.py").write_text("raise SystemExit('nothing to see here')\n")
    up = stack.up(lambda program: program.register("a"), policy_packs=(house,))
    assert up.code == 1
    assert "nothing to see here" in up.errors[0]
