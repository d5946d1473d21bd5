"""Transforms and hooks of a real program, called back by the engine."""

from collections.abc import Generator
from pathlib import Path

import pytest
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter

from sandbox.tests.support.engine_stack import Outcome, Stack
from sandbox.tests.support.recording_provider import RecordingProvider, serving

PROGRAM = Path(__file__).parent / "programs" / "called_back"


@pytest.fixture
def called_back(
    tmp_path: Path, crypter: PassphraseCrypter, provider: RecordingProvider, monkeypatch: pytest.MonkeyPatch
) -> Generator[Stack]:
    with serving(provider) as port:
        monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", f"fake:{port}")
        yield Stack.genuine(tmp_path / "project", crypter, provider, PROGRAM)


def told(outcome: Outcome) -> list[str]:
    return [message for message in outcome.said("info") if message.startswith(("before", "after"))]


def test_transforms_and_hooks_run_at_their_moments(called_back: Stack, provider: RecordingProvider):
    preview = called_back.preview()
    assert told(preview) == ["before-create hooked: None -> red by-the-stack, made False"]

    created = called_back.up()
    assert created.code == 0, created.messages
    child = called_back.resource("child")
    assert child.inputs["colour"] == "blue by-itself by-the-parent by-the-stack"
    assert child.retain_on_delete
    assert told(created) == [
        "before-create hooked: None -> red by-the-stack, made False",
        "after-create hooked: None -> red by-the-stack, made True",
    ]

    assert told(called_back.up()) == []

    called_back.configure("  test:colour: green\n")
    assert told(called_back.up()) == [
        "before-update hooked: red by-the-stack -> green by-the-stack, made False",
        "after-update hooked: red by-the-stack -> green by-the-stack, made True",
    ]

    called_back.configure("  test:without-hooked: true\n")
    assert told(called_back.up()) == [
        "before-delete hooked: green by-the-stack -> None, made False",
        "after-delete hooked: green by-the-stack -> None, made False",
    ]
    assert provider.names() == ["child"]


def test_hooks_of_a_deletion_need_the_program(called_back: Stack, provider: RecordingProvider):
    called_back.up()
    there = provider.names()
    assert called_back.destroy().failed_with("destroy with --run-program")
    assert (provider.of("Delete"), provider.names()) == ([], there)
    destroy = called_back.destroy(run_program=True)
    assert (destroy.code, destroy.errors) == (0, [])
    assert told(destroy) == [
        "before-delete hooked: red by-the-stack -> None, made False",
        "after-delete hooked: red by-the-stack -> None, made False",
    ]
    assert called_back.names == []


def test_a_failing_hook_before_a_step_prevents_it(called_back: Stack, provider: RecordingProvider):
    called_back.configure("  test:failing: before-create\n")
    up = called_back.up()
    assert up.failed_with("before hook 'before-create' failed")
    assert not provider.of("Create", "hooked")
    assert called_back.records("hooked") == []


def test_a_failing_hook_after_a_step_fails_the_run_but_keeps_what_was_done(
    called_back: Stack, provider: RecordingProvider
):
    called_back.configure("  test:failing: after-create\n")
    up = called_back.up()
    assert up.failed_with("after hook 'after-create' failed")
    assert called_back.resource("hooked").id in provider.things
