"""Real programs on the real SDK, with the genuine host of dynamic providers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from pulumi_sandbox.engine.model.resource import Resource, Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.protocol.values import Secret

from sandbox.tests.support.engine_stack import Outcome, Stack
from sandbox.tests.support.recording_provider import RecordingProvider

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Story:
    """A stack's life with one program."""

    preview: Outcome
    up: Outcome
    again: Outcome
    changed: Outcome
    first: Snapshot
    stack: Stack

    def record(self, name: str) -> Resource:
        """Return what the state has of a resource after the first update."""
        return next(each for each in self.first.resources if each.urn.endswith(f"::{name}"))


def configuration(stack: Stack, size: int, **more: str) -> None:
    secret = stack.crypter.encrypt("hush-hush")
    stack.configure(
        f"  test:size: {size}\n  test:word:\n    secure: {secret}\n  test:region: here\n"
        "  test:object: {a: [1, true]}\n  test:flag: true\n"
        + "".join(f"  test:{key}: {value}\n" for key, value in more.items())
    )


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, crypter: PassphraseCrypter) -> Story:
    """Run the program `facts`: preview, up, up again, up with a changed configuration."""
    folder = tmp_path_factory.mktemp("facts") / "project"
    stack = Stack.genuine(folder, crypter, RecordingProvider(), PROGRAMS / "facts")
    configuration(stack, size=1)
    os.environ["PULUMI_CONFIG_PASSPHRASE"] = "of the state"
    try:
        preview, up = stack.preview(), stack.up()
        first = stack.snapshot
        again = stack.up()
        configuration(stack, size=3)
        changed = stack.up()
    finally:
        del os.environ["PULUMI_CONFIG_PASSPHRASE"]
    return Story(preview, up, again, changed, first, stack)


def test_the_program_runs_in_its_folder_and_finds_its_sibling_modules(story: Story):
    assert story.up.code == 0, story.up.messages
    assert story.up.result.outputs["names"] == ["organization", "test", "dev", "project"]


def test_configuration_arrives_as_texts_and_secrets_stay_secret(story: Story):
    outputs = story.up.result.outputs
    assert outputs["types"] == {"object": {"a": [1, True]}, "flag": "true"}
    assert outputs["word"] == Secret("hush-hush")
    assert outputs["nested"] == {"list": [1, {"word": Secret("hush-hush")}]}
    assert outputs["variable"] == 1


def test_the_passphrase_of_the_state_is_not_handed_to_the_program(story: Story):
    assert story.up.result.outputs["passphrase"] == "not handed on"


def test_what_the_program_prints_and_logs_is_shown(story: Story):
    assert story.up.printed == ["said on stdout"]
    assert "said on stderr" in story.up.said("info#err")
    assert "said as a warning" in story.up.said("warning")
    assert "second was made in here" in story.up.said("info")
    assert "said in debug" not in story.up.text


def test_dynamic_resources_are_managed_by_the_genuine_host(story: Story):
    assert story.up.ops("second") == ["create"]
    assert story.up.result.outputs["made"] == "in here"


def test_numbers_reach_a_dynamic_provider_as_floats_and_the_state_as_integers(story: Story):
    assert story.up.result.outputs["kind"] == "float"
    thing = story.record("shelf-thing")
    assert thing.inputs["size"] == 1
    assert isinstance(thing.inputs["size"], int)


def test_the_provider_of_dynamic_resources_gets_the_whole_configuration(story: Story):
    record = story.record("default")
    assert record.inputs["test:region"] == "here"
    assert record.inputs["test:word"] == Secret("hush-hush")
    assert record.inputs["test:object"] == '{"a":[1,true]}'


def test_a_dynamic_resource_keeps_its_code_in_inputs_and_outputs(story: Story):
    thing = story.record("second")
    assert isinstance(thing.inputs["__provider"], Secret)
    assert thing.inputs["__provider"] == thing.outputs["__provider"]


def test_properties_without_a_value_are_not_sent(story: Story):
    thing = story.record("shelf-thing")
    assert "nothing" not in thing.inputs
    assert set(thing.property_dependencies) == {"__provider", "size", "word"}


def test_dependencies_come_from_the_outputs_that_are_used(story: Story):
    second = story.record("second")
    child = story.record("shelf-thing")
    assert second.dependencies == (child.urn,)
    assert second.property_dependencies["from"] == (child.urn,)


def test_a_secret_given_to_the_host_in_plain_comes_back_secret(story: Story):
    thing = story.record("shelf-thing")
    assert thing.outputs["word"] == Secret("hush-hush")


def test_a_preview_does_not_make_dynamic_resources(story: Story):
    assert story.preview.ops("second") == ["create"]
    assert story.preview.code == 0
    assert not any("second was made" in message for message in story.preview.said("info"))


def test_a_second_run_changes_nothing(story: Story):
    assert story.again.result.summary.changes == {"same": 4}
    assert story.again.code == 0


def test_a_changed_configuration_updates_what_uses_it_and_the_hidden_provider(story: Story):
    assert story.changed.ops("shelf-thing") == ["update"]
    assert story.changed.ops("default") == ["update"]
    assert story.changed.result.summary.changes == {"same": 3, "update": 1}


def test_no_secret_is_told_or_stored_in_plain(story: Story):
    for outcome in (story.preview, story.up, story.again, story.changed):
        assert "hush-hush" not in outcome.text
    folder = story.stack.directory
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"hush-hush" in path.read_bytes()]


@pytest.fixture
def facts(tmp_path: Path, crypter: PassphraseCrypter) -> Stack:
    return Stack.genuine(tmp_path / "project", crypter, RecordingProvider(), PROGRAMS / "facts")


def test_refresh_and_destroy_find_the_code_of_dynamic_resources_in_the_state(facts: Stack):
    configuration(facts, size=1)
    facts.up()
    refresh = facts.refresh()
    assert refresh.code == 0, refresh.messages
    assert facts.resource("second").outputs["made"] == "seen"
    assert facts.destroy().code == 0
    assert facts.names == []


def test_refused_inputs_of_a_dynamic_resource_stop_a_preview(facts: Stack):
    configuration(facts, size=1, trouble="check")
    preview = facts.preview()
    assert (preview.code, preview.errors) == (1, ["its property trouble is invalid: not here"])


def test_an_exception_in_a_dynamic_provider_is_shown(facts: Stack):
    configuration(facts, size=1, trouble="create")
    up = facts.up()
    assert up.failed_with("out of stock")
    assert not any("monitor has terminated" in message for message in up.errors)
    assert facts.records("second") == []


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory, crypter: PassphraseCrypter) -> Stack:
    folder = tmp_path_factory.mktemp("failing") / "project"
    return Stack.genuine(folder, crypter, RecordingProvider(), PROGRAMS / "failing")


def failure(stack: Stack, way: str) -> Outcome:
    stack.configure(f"  test:way: {way}\n")
    return stack.preview()


@pytest.mark.parametrize("way", ["exception", "apply", "late-apply"])
def test_an_exception_is_shown_with_the_users_own_frames_only(failing: Stack, way: str):
    outcome = failure(failing, way)
    assert outcome.code == 1
    (error,) = outcome.errors
    assert error.startswith("Program failed with an unhandled exception:")
    assert error.endswith("ValueError: something went wrong")
    assert "deeper.py" in error
    assert "site-packages" not in error
    assert "language_host" not in error


def test_a_foreseen_error_is_one_line(failing: Stack):
    outcome = failure(failing, "run-error")
    assert (outcome.code, outcome.errors) == (1, ["a foreseen mistake"])


def test_a_program_that_ends_without_saying_so_is_an_error(failing: Stack):
    outcome = failure(failing, "quiet-exit")
    assert (outcome.code, outcome.errors) == (1, ["the program ended before it was through (exit code 3)"])


def test_a_program_may_end_itself_as_any_script_does(failing: Stack):
    well, badly = failure(failing, "exit-well"), failure(failing, "exit-badly")
    assert (well.code, well.errors) == (0, [])
    assert (badly.code, badly.errors) == (1, ["the program ended before it was through (exit code 3)"])


def test_what_the_engine_cannot_do_is_refused_by_name_in_a_real_program_too(failing: Stack):
    outcome = failure(failing, "unsupported")
    assert outcome.code == 1
    (error,) = outcome.errors
    assert "pulumi:pulumi:other" in error


@pytest.mark.parametrize("main", ["nope/", "nope.py"])
def test_a_program_that_is_not_there_is_told_as_what_the_project_names(
    tmp_path: Path, crypter: PassphraseCrypter, main: str
):
    stack = Stack.genuine(tmp_path / "project", crypter, RecordingProvider(), PROGRAMS / "facts")
    with (stack.directory / "Pulumi.yaml").open("a") as project:
        project.write(f"main: {main}\n")
    (error,) = stack.up().errors
    assert error.rstrip().endswith(f"there is no {stack.directory / main}, which Pulumi.yaml names as main")
