"""Policy packs in the genuine host, and what an environment says to one: levels and properties.

The facts are in sandbox/docs/engine-facts.md, policy packs.
"""

import json
import shutil
from pathlib import Path

import pytest
from pulumi_sandbox.engine.model.events import PolicyPackLoaded

from sandbox.tests.support.engine_stack import Outcome, Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Script

HOUSE = Path(__file__).parent / "packs" / "house"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Return the folder of the pack `house`, run by this environment's interpreter."""
    folder = Path(shutil.copytree(HOUSE, tmp_path / "house"))
    (folder / "PulumiPolicy.yaml").write_text("version: 1.2.3\nruntime: python\n")
    return folder


def test_a_pack_remediates_objects_and_judges_the_stack(
    stack: Stack, provider: RecordingProvider, house: Path
):
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


def test_what_is_remediated_stays_so_in_a_replacement_and_is_told_once(
    stack: Stack, provider: RecordingProvider, house: Path
):
    stack.up(lambda script: script.register("a", {"fixed": "1"}), policy_packs=(house,))
    up = stack.up(lambda script: script.register("a", {"fixed": "2"}), policy_packs=(house,))
    assert up.ops("a")[:1] == ["create-replacement"]
    assert provider.thing("a").inputs["tidied"] == "by dev"
    assert [each.policy for each in up.result.policy if each.level == "remediate"] == ["tidy"]


def test_an_empty_configuration_says_nothing(stack: Stack, house: Path):
    assert levels(configured(stack, house, "\n")) == levels(configured(stack, house, {}))


def test_a_mandatory_objection_stops_an_update_before_the_step_and_fails_a_preview_at_its_end(
    stack: Stack, provider: RecordingProvider, house: Path
):
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
):
    up = stack.up(lambda program: program.register("breaks-a-policy"), policy_packs=(house,))
    assert up.failed_with("a mistake in a policy")
    assert provider.names() == []


def test_a_mistake_in_a_policy_on_the_stack_fails_what_was_done_all_the_same(
    stack: Stack, provider: RecordingProvider, house: Path
):
    up = stack.up(lambda program: program.register("breaks-the-last-policy"), policy_packs=(house,))
    assert up.failed_with("a mistake at the end")
    assert stack.resource("breaks-the-last-policy").id in provider.things


def test_a_pack_takes_the_longest_configuration_that_is_not_refused(
    stack: Stack, provider: RecordingProvider, house: Path
):
    room = 131_071 - len('PULUMI_CONFIG={"test:long":""}')
    stack.configure(f"  test:long: {'x' * room}\n")
    up = stack.up(lambda program: program.register("a"), policy_packs=(house,))
    assert up.code == 0, up.messages
    assert provider.thing("a").inputs["tidied"] == "by dev"


def test_a_folder_that_is_no_pack_is_told_by_name(stack: Stack, tmp_path: Path):
    up = stack.up(lambda program: program.register("a"), policy_packs=(tmp_path,))
    assert up.code == 1
    assert str(tmp_path / "PulumiPolicy.yaml") in up.errors[0]


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ("runtime: nodejs", "the embedded engine does not know runtime 'nodejs'"),
        (
            "runtime: {name: python, options: [virtualenv]}",
            "PulumiPolicy.yaml:1:25: runtime.options is not a map",
        ),
        ("runtime: {name: python, options: {virtualenv: 7}}", "runtime.options.virtualenv is not a text"),
        ("runtime: python\nversion: {a: b}", "PulumiPolicy.yaml:2:1: version is not a text"),
        ("- runtime: python", "it holds no map of keys"),
    ],
)
def test_a_pack_whose_description_is_odd_is_refused_at_its_place(
    stack: Stack, house: Path, manifest: str, told: str
):
    (house / "PulumiPolicy.yaml").write_text(manifest + "\n")
    assert stack.up(lambda program: program.register("a"), policy_packs=(house,)).failed_with(told)


def test_a_pack_that_cannot_start_quotes_its_log(stack: Stack, house: Path):
    (house / "__main__.py").write_text("raise SystemExit('nothing to see here')\n")
    up = stack.up(lambda program: program.register("a"), policy_packs=(house,))
    assert up.failed_with("nothing to see here")


# What an environment says to a pack


def configured(stack: Stack, pack: Path, said: object) -> Outcome:
    def program(script: Script) -> None:
        script.register("a", {"colour": "red"})
        script.register("b", {"colour": "grey"})

    config = stack.directory / "config.json"
    config.write_text(said if isinstance(said, str) else json.dumps(said))
    return stack.preview(program, policy_packs=(pack,), policy_configs={pack: config})


def levels(outcome: Outcome) -> dict[str, str]:
    return {each.policy: each.level for each in outcome.result.policy}


def test_an_environment_changes_levels_and_properties_and_leaves_the_rest(stack: Stack, house: Path):
    said = {"no-red": "advisory", "no-grey": {"enforcementLevel": "mandatory"}, "tidy": "disabled"}

    assert levels(configured(stack, house, said)) == {
        "no-red": "advisory",
        "no-grey": "mandatory",
        "few": "advisory",
    }


def test_a_level_for_all_is_that_of_every_policy_not_named(stack: Stack, house: Path):
    said = {"all": "disabled", "no-grey": "mandatory"}

    assert levels(configured(stack, house, said)) == {"no-grey": "mandatory"}


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ({"no-blue": "advisory"}, "the pack has no policy no-blue"),
        ({"no-red": {"shade": 1}}, "no-red has no property shade"),
        ({"no-red": "loud"}, "no-red: the level is none of advisory, mandatory, remediate, disabled"),
        ("{", "it cannot be read as JSON"),
        ("[" * 5_000, "it cannot be read as JSON"),
        ({"no-red": {"enforcementLevel": []}}, "no-red: the level is none of"),
        ([1], "it is no object"),
        ({"no-red": 1}, "it is no object"),
        ({"few": {"most": "2"}}, "few: most: '2' is not of type 'integer'"),
        ({"few": {"of": "kinds"}}, "few: of: 'kinds' is not one of ['things']"),
    ],
)
def test_what_the_pack_does_not_understand_is_refused(stack: Stack, house: Path, said: object, cause: str):
    outcome = configured(stack, house, said)

    assert outcome.code == 1
    assert cause in outcome.errors[0]
    assert str(stack.directory / "config.json") in outcome.errors[0]
