"""What a person sees while the Pulumi CLI runs, by the events that it told."""

from __future__ import annotations

import io
import json
import re

import pytest
from pulumi.automation.events import EngineEvent

from operations.sandbox.display import Display
from tests.operations.sandbox.told import APPLE, events, raw


def shown(name: str, title: str = "Updating mine/dev", *, hidden: tuple[str, ...] = ()) -> list[str]:
    """Return the lines of what is shown, without times."""
    stream = io.StringIO()
    display = Display(title, hidden=hidden, stream=stream)
    for event in events(name):
        display.show(event)
    display.close()
    return [re.sub(r"[ ·]*\d+\.\ds$", "", line) for line in stream.getvalue().splitlines()]


def test_an_update_counts_what_it_replaced() -> None:
    lines = shown("failing-up")
    assert lines[-1] == "Resources: 1 replaced, 1 updated, 1 unchanged"
    assert len([line for line in lines if "pear" in line]) == 1


def test_an_update_that_fails_shows_what_failed_and_why() -> None:
    text = "\n".join(shown("failing-up"))
    assert "✗ failed    fig  Resource" in text
    assert "error: fig: " in text
    assert "ValueError: no such colour" in text
    assert "warning: something will fail" in text


def test_a_mandatory_policy_is_shown_with_its_resource() -> None:
    lines = shown("denied-preview", "Previewing mine/dev")
    at = lines.index("error: apple: no-forbidden: nothing is forbidden")
    assert lines[at + 1] == "apple is forbidden"


@pytest.mark.parametrize("name", ["first-up", "second-preview", "failing-up"])
def test_neither_hidden_messages_nor_the_notes_on_plugins_are_shown(name: str) -> None:
    text = "\n".join(shown(name, hidden=("hello",)))
    assert "hello" not in text
    assert "using pulumi-" not in text


def test_what_a_resource_is_called_steers_no_terminal() -> None:
    stream = io.StringIO()
    display = Display("Updating mine/dev", stream=stream)
    for event in raw("first-up"):
        renamed = json.dumps(event).replace(APPLE, f"{APPLE}\\u001b[2J")
        display.show(EngineEvent.from_json(json.loads(renamed)))
    assert "\x1b" not in stream.getvalue()
    assert "\ufffd" in stream.getvalue()
