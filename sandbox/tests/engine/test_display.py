"""What a person, a log and a program are shown of a deployment."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
from pulumi_sandbox.engine.model.diff import PropertyDiff
from pulumi_sandbox.engine.model.events import (
    Diagnostic,
    Event,
    Op,
    Outputs,
    PolicyPackLoaded,
    PolicyViolation,
    StackStarted,
    StdoutLine,
    Step,
    StepFinished,
    StepPlanned,
    StepStarted,
    Summary,
)
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.show.display import (
    Display,
    JsonLines,
    PlainLines,
    PreviewDigest,
    Serialised,
    display_for,
)
from pulumi_sandbox.engine.show.live_tree import LiveTree
from pulumi_sandbox.engine.show.phrases import seconds, short_type
from pulumi_sandbox.engine.show.tree import Picture
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import MASK, UNKNOWN, Properties, Secret


def _resource(
    name: str, parent: Resource | None = None, *, type_: str = "shop:index:Shelf", **inputs: Any
) -> Resource:
    above = parent.urn if parent else ""
    return Resource(urns.make("dev", "shop", above, type_, name), type_, True, parent=above, inputs=inputs)


_STACK = _resource("shop-dev", type_=urns.ROOT_STACK_TYPE)
_ROOM = _resource("room", _STACK, type_="shop:index:Room")
_START = StackStarted("dev", "shop", "update")


def _step(
    op: Op, name: str = "shelf", old: Properties | None = None, new: Properties | None = None, **more: Any
) -> Step:
    gone = replace(_resource(name, _ROOM), inputs=old or {})
    here = replace(_resource(name, _ROOM), inputs=new or {})
    return Step.of(op, None if op == "create" else gone, None if op == "delete" else here, **more)


def _unchanged(resource: Resource) -> StepFinished:
    return StepFinished(Step.of("same", resource, resource), 0)


def _plain(*events: Event) -> list[str]:
    stream = io.StringIO()
    display = PlainLines(stream)
    for event in events:
        display.handle(event)
    display.close()
    return stream.getvalue().splitlines()


@pytest.fixture
def terminal() -> Iterator[Any]:
    """Return a function that shows events on a terminal and gives back the lines that stay on it."""
    master, slave = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(master, 65536):
                shown.append(data)
        except OSError:
            return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    stream = os.fdopen(slave, "w", encoding="utf-8")

    def show(*events: Event) -> list[str]:
        with display_for(stream) as display:
            for event in events:
                display.handle(event)
        stream.close()
        reader.join(10)
        text = b"".join(shown).decode()
        last = text.rpartition("\x1b[?25h")[2].replace("\r", "")
        return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last).splitlines()]

    yield show
    os.close(master)


def test_a_log_gets_one_line_per_change_and_none_for_what_is_unchanged_or_under_way():
    create, update, delete = (
        _step("create", "new"),
        _step("update", "old", {"size": 1}, {"size": 2}),
        _step("delete", "gone"),
    )
    lines = _plain(
        _START,
        PolicyPackLoaded("house", "1.0"),
        _unchanged(_ROOM),
        StepStarted(create),
        StdoutLine("hello"),
        StepFinished(create, 0.25),
        StepFinished(update, 1.0),
        StepFinished(delete, 65.0),
        Summary("update", {"create": 1, "update": 1, "delete": 1, "same": 1}, 66.4),
    )
    assert lines == [
        "Updating shop/dev",
        "Policy pack house 1.0",
        "| hello",
        "+ created   new  shop:index:Shelf  0.2s",
        "~ updated   old  shop:index:Shelf  1.0s",
        "    ~ size: 1 → 2",
        "- deleted   gone  shop:index:Shelf  1m05s",
        "Resources: 1 created, 1 updated, 1 deleted, 1 unchanged · 1m06s",
    ]


def test_of_a_record_that_stayed_a_step_keeps_one_masked_copy():
    room = _resource("room", _STACK, key=Secret("hidden"))
    step = Step.of("same", room, room)
    assert step.old is step.new
    assert (step.resource.inputs, step.changes) == ({"key": MASK}, ())


def test_a_preview_speaks_of_what_would_be_done():
    lines = _plain(
        StackStarted("dev", "shop", "preview"),
        StepPlanned(_step("create", "new")),
        StepPlanned(Step.of("same", _ROOM, _ROOM)),
        Summary("preview", {"create": 1, "same": 1}, 2),
    )
    assert lines[1:] == ["+ create    new  shop:index:Shelf", "Resources: 1 to create, 1 unchanged · 2.0s"]


def test_failures_come_last_with_their_two_lines_and_only_once():
    failing = _step("create", "bad")
    error = "pool account-pool: no free member of type aws\n→ add one, or release one"
    lines = _plain(
        _START,
        StepFinished(failing, 0.1, error),
        Diagnostic("error", error, failing.urn),
        Diagnostic("error", "the program raised ValueError: no"),
        Diagnostic("error", "its property size is invalid: too large", _resource("refused").urn),
        StepFinished(_step("create", "good"), 0.1),
        Outputs.of({"a": 1}),
        Summary("update", {"create": 1}, 1, "failed"),
    )
    assert lines[1:] == [
        "+ created   good  shop:index:Shelf  0.1s",
        "Outputs:",
        "  a: 1",
        "✗ create of bad  shop:index:Shelf",
        "  pool account-pool: no free member of type aws",
        "  → add one, or release one",
        "✗ the program raised ValueError: no",
        "✗ refused  shop:index:Shelf",
        "  its property size is invalid: too large",
        "Failed. Resources: 1 created · 1.0s",
    ]


def test_what_failed_is_told_even_if_the_deployment_broke_off():
    assert _plain(_START, StepFinished(_step("create", "bad"), 0.1, "why"))[-1] == "  why"


@pytest.mark.parametrize(
    "order",
    [
        ("create-replacement", "replace", "delete-replaced"),
        ("delete-replaced", "replace", "create-replacement"),
    ],
    ids=["create first", "delete first"],
)
def test_a_replacement_is_one_line_and_says_what_forces_it(order: tuple[Op, ...]):
    steps = {
        "create-replacement": _step("create-replacement", "s", {"size": 1}, {"size": 2}, keys=("size",)),
        "replace": _step("replace", "s", {"size": 1}, {"size": 2}, keys=("size",)),
        "delete-replaced": Step.of("delete-replaced", _resource("s", _ROOM, size=1), None),
    }
    lines = _plain(_START, *(StepFinished(steps[op], 0.5) for op in order))
    assert lines[1:] == ["± replaced  s  shop:index:Shelf  0.5s", "    ~ size: 1 → 2 (forces replacement)"]


def test_default_providers_are_not_shown():
    provider = Resource(
        urns.make("dev", "shop", "", "pulumi:providers:shop", "default_1_0"), "pulumi:providers:shop", True
    )
    assert _plain(_START, StepFinished(Step.of("create", None, provider), 0.1)) == ["Updating shop/dev"]


def test_policies_and_messages_name_the_resource_they_are_about():
    lines = _plain(
        _START,
        Diagnostic("warning", "two members are dirty", _ROOM.urn),
        Diagnostic("info", "hello\n"),
        Diagnostic("debug", "chatter"),
        PolicyViolation("no-plain-secrets", "house", "1", "mandatory", "data is open", _ROOM.urn),
        PolicyViolation("few-rooms", "house", "1", "advisory", "three are enough"),
    )
    assert lines[1:] == [
        "warning on room: two members are dirty",
        "info: hello",
        "policy mandatory: no-plain-secrets on room: data is open",
        "policy advisory: few-rooms: three are enough",
    ]


_OLD: Properties = {"token": Secret("hunter2"), "spec": {"password": Secret("hunter2")}, "size": 1}
_NEW: Properties = {"token": Secret("hunter3"), "spec": {"password": Secret("hunter3")}, "size": UNKNOWN}


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(_step("update", "s", _OLD, _NEW), id="compared by the engine"),
        pytest.param(
            _step(
                "update",
                "s",
                {"token": Secret({"a": ["hunter2"]})},
                {"token": Secret({"a": ["hunter3"]})},
                detailed_diff={"token.a[0]": PropertyDiff("update", input_diff=True)},
            ),
            id="a provider names a place inside a secret",
        ),
    ],
)
def test_no_display_shows_a_secret_but_all_show_that_it_changed(step: Step):
    events = (
        StackStarted("dev", "shop", "preview", {"shop:t": "[secret]"}),
        StepPlanned(step),
        Outputs.of({"deep": {"in": [Secret("hunter2")]}}),
        Summary("preview", {"update": 1}, 1),
    )
    lines = "\n".join(_plain(*events))
    stream = io.StringIO()
    for display in (JsonLines(stream), PreviewDigest(stream)):
        for event in events:
            display.handle(event)
        display.close()
    assert "hunter" not in lines + stream.getvalue()
    assert "[secret] → [secret]" in lines
    assert "[secret]" in stream.getvalue()


def test_long_values_are_cut_and_many_changes_counted():
    old: Properties = {f"k{index:02}": "x" * 200 for index in range(12)}
    lines = _plain(_START, StepFinished(_step("update", "s", old, {}), 0))
    assert max(map(len, lines)) < 80
    assert lines[-1] == "    … 4 more"


def test_json_lines_are_numbered_and_named_as_the_genuine_stream_names_them():
    stream = io.StringIO()
    display = JsonLines(stream)
    failed = StepFinished(_step("create"), 0.1, "why")
    for event in (
        _START,
        StepStarted(_step("create")),
        failed,
        Summary("update", {"create": 1}, 1, "failed"),
    ):
        display.handle(event)
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [each["sequence"] for each in told] == [0, 1, 2, 3]
    assert [[*each][2] for each in told] == [
        "preludeEvent",
        "resourcePreEvent",
        "resOpFailedEvent",
        "summaryEvent",
    ]
    assert told[1]["resourcePreEvent"]["metadata"]["op"] == "create"
    assert told[3]["summaryEvent"]["resourceChanges"] == {"create": 1}


def test_many_threads_write_whole_json_lines():
    stream = io.StringIO()
    with Serialised(JsonLines(stream)) as display:
        threads = [
            threading.Thread(target=lambda: [display.handle(StdoutLine("x" * 500)) for _ in range(50)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(json.loads(line)["sequence"] for line in stream.getvalue().splitlines()) == [*range(400)]


def test_a_previews_digest_is_the_document_of_preview_json():
    stream = io.StringIO()
    with Serialised(PreviewDigest(stream)) as display:
        for event in (
            StackStarted("dev", "shop", "preview", {"shop:a": "1"}),
            StepPlanned(
                _step("update", "s", {"size": 1}, {"size": 2}, detailed_diff={"size": PropertyDiff("update")})
            ),
            Diagnostic("warning", "careful", _ROOM.urn),
            Diagnostic("debug", "chatter"),
            Summary("preview", {"update": 1}, 1.5),
        ):
            display.handle(event)
    digest = json.loads(stream.getvalue())
    assert digest["config"] == {"shop:a": "1"}
    assert digest["changeSummary"] == {"update": 1}
    assert digest["duration"] == 1_500_000_000
    assert digest["diagnostics"] == [{"urn": _ROOM.urn, "message": "careful", "severity": "warning"}]
    (step,) = digest["steps"]
    assert (step["op"], step["diffReasons"]) == ("update", ["size"])
    assert step["detailedDiff"] == {"size": {"kind": "update", "inputDiff": False}}
    assert step["newState"]["inputs"] == {"size": 2}


def test_a_digest_lists_the_steps_the_clis_lists_and_what_was_printed():
    stream = io.StringIO()
    default = _resource("default", type_="pulumi:providers:pulumi-python")
    with Serialised(PreviewDigest(stream)) as display:
        for event in (
            StepPlanned(Step.of("same", _STACK, _STACK)),
            StepPlanned(Step.of("update", default, default)),
            StepPlanned(Step.of("same", _ROOM, _ROOM)),
            *(StepPlanned(_step(op)) for op in ("create-replacement", "replace", "delete-replaced")),
            StdoutLine("hello"),
        ):
            display.handle(event)
    digest = json.loads(stream.getvalue())
    assert [(step["op"], urns.parse(step["urn"]).name) for step in digest["steps"]] == [
        ("same", "shop-dev"),
        ("replace", "shelf"),
    ]
    assert digest["diagnostics"] == [{"message": "hello\n", "severity": "info"}]


def test_a_digest_tells_what_policies_had_to_say_if_any_were_asked():
    violation = PolicyViolation("no-dust", "house", "1", "mandatory", "dusty", _ROOM.urn)
    digests: list[Any] = []
    for events in ((), (PolicyPackLoaded("house", "1"), violation)):
        stream = io.StringIO()
        with Serialised(PreviewDigest(stream)) as display:
            for event in events:
                display.handle(event)
        digests.append(json.loads(stream.getvalue()).get("policyEvents"))
    assert digests[0] is None
    assert [(each["policyName"], each["enforcementLevel"]) for each in digests[1]] == [
        ("no-dust", "mandatory")
    ]


def test_a_terminal_keeps_the_tree_of_what_changed_and_of_all_above_it(terminal: Any):
    shelf = _step("update", "shelf", {"size": 1}, {"size": 2})
    below = Step.of("create", None, _resource("book", _resource("shelf", _ROOM)))
    lines = terminal(
        _START,
        *map(_unchanged, (_STACK, _ROOM, _resource("untouched", _ROOM))),
        StepStarted(shelf),
        StepFinished(shelf, 0.4),
        StepFinished(below, 1.2),
        StepFinished(_step("delete", "gone"), 0.1),
        StepFinished(Step.of("create", None, _resource("hall", _STACK)), 0.3, "it is locked\n→ unlock it"),
        Outputs.of({"token": Secret("hunter2")}),
        Summary("update", {"create": 1, "update": 1, "delete": 1, "same": 3}, 4.1, "failed"),
    )
    assert lines == [
        "├─ ✗ hall            failed 0.3s   shop:index:Shelf",
        "└─   room                          shop:index:Room",
        "   ├─ - gone         deleted 0.1s  shop:index:Shelf",
        "   ├─ ~ shelf        updated 0.4s  shop:index:Shelf",
        "   │  │   ~ size: 1 → 2",
        "   │  └─ + book      created 1.2s  shop:index:Shelf",
        "   └─ · 1 unchanged",
        "",
        "Outputs",
        "  token: [secret]",
        "",
        "✗ create of hall  shop:index:Shelf",
        "  it is locked",
        "  → unlock it",
        "",
        "Failed. Resources: 1 created, 1 updated, 1 deleted, 2 unchanged · 4.1s",
    ]


def _screen(*events: Event, ahead: bool = False) -> list[str]:
    """Return what stays on the screen, which is as wide as COLUMNS says."""
    stream = io.StringIO()
    tree = LiveTree(stream, ahead=ahead)
    for event in events:
        tree.handle(event)
    tree.close()
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("ahead", [False, True])
def test_what_a_preview_ahead_of_its_update_says_is_said_once(
    monkeypatch: pytest.MonkeyPatch, *, ahead: bool
):
    monkeypatch.setenv("COLUMNS", "80")
    told = Diagnostic("info", "expected to get aws-1")
    events = [
        StackStarted("dev", "shop", "preview"),
        StepPlanned(_step("create")),
        told,
        Summary("preview", {"create": 1}, 1),
        _START,
        StepFinished(_step("create"), 0.5),
        told,
        Summary("update", {"create": 1}, 1),
    ]
    lines = _screen(*events, ahead=ahead)
    assert lines.count("info: expected to get aws-1") == 1
    assert [line for line in lines if "+ shelf" in line] == [
        *(["└─ + shelf  create  shop:index:Shelf"] if not ahead else []),
        "└─ + shelf  created 0.5s  shop:index:Shelf",
    ]


def test_a_preview_that_failed_ahead_of_its_update_shows_how_far_it_came():
    failed = [
        StackStarted("dev", "shop", "preview"),
        StepPlanned(_step("create")),
        Summary("preview", {}, 1, "failed"),
    ]
    assert any("+ shelf" in line for line in _screen(*failed, ahead=True))


def test_what_is_alike_below_a_resource_is_one_line_when_the_screen_is_too_short(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("LINES", "10")
    other = _resource("hall", _STACK)
    made = [_ROOM, *(_resource(f"shelf-{number}", _ROOM) for number in range(20)), other]
    events = [StepFinished(Step.of("create", None, each), 0.2) for each in made]
    assert _screen(_START, *events)[1:] == [
        "├─ + hall  created 0.2s  shop:index:Shelf",
        "└─ + room  21 created    shop:index:Room",
    ]
    broken = StepFinished(Step.of("create", None, made[7]), 0.1, "no wood")
    lines = _screen(_START, *events[:7], broken, *events[8:])
    assert len([line for line in lines if "shelf-" in line and "created" in line]) == 19


@pytest.mark.parametrize("width", [44, 60, 200])
def test_no_name_and_no_word_is_broken_however_narrow_the_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", str(width))
    name = "a-shelf-with-a-name-that-is-longer-than-a-line"
    step = _step("update", name, {"place": "left of the door"}, {"place": "right of the window"})
    lines = _screen(_START, StepFinished(step, 0.4), Diagnostic("info", "expected to get any of three"))
    words = " ".join(lines).split()
    assert {name, "updated", "0.4s", 'window"', "expected", "three"} <= {*words}
    assert {"shop:index:Shelf", "Shelf"} & {*words}
    assert all(len(line) <= width or len(line.strip(" │└─~").split()) == 1 for line in lines)


def test_a_terminal_is_left_in_order_when_the_deployment_breaks_off(terminal: Any):
    lines = terminal(_START, StepStarted(_step("create", "half")))
    assert re.fullmatch(r"└─ \+ half  . creating \d+\.\ds  shop:index:Shelf", lines[0])


def test_a_stream_that_is_no_terminal_gets_no_control_codes():
    stream = io.StringIO()
    with display_for(stream) as display:
        display.handle(_START)
        display.handle(StepFinished(_step("create"), 0))
    assert "+ created   shelf" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


_STEERING = "".join(
    chr(code)
    for first, last in (
        *((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x61C, 0x61C), (0x200B, 0x200B)),
        *((0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x2069)),
    )
    for code in range(first, last + 1)
)
_ANYBODYS = f"re{_STEERING}d"


def _all_said_by_anybody() -> list[Event]:
    """Return events of all kinds, each text in them with whatever could steer a terminal."""
    text, type_ = _ANYBODYS, f"shop:index:{_ANYBODYS}"
    resource = _resource(text, _STACK, type_=type_)
    step = Step.of("update", replace(resource, inputs={text: text}), replace(resource, inputs={text: "new"}))
    refused = _resource(f"refused {text}", _STACK, type_=type_)
    return [
        StackStarted(text, text, "update", {text: text}),
        PolicyPackLoaded(text, text),
        StepPlanned(step),
        StepStarted(step),
        StdoutLine(text),
        StepFinished(step, 0.1),
        StepFinished(Step.of("create", None, _resource("failed", resource, type_=type_)), 0.1, text),
        *(Diagnostic(severity, text, step.urn) for severity in ("info", "info#err", "warning", "error")),
        *(Diagnostic("error", text, urn) for urn in ("", refused.urn)),
        *(PolicyViolation(text, text, text, level, text, step.urn) for level in ("advisory", "mandatory")),
        Outputs.of({text: text, f"{text} deep": {text: [text]}}),
        Summary("update", {"update": 1}, 1, "failed"),
    ]


@pytest.mark.parametrize("display_of", [PlainLines, LiveTree, JsonLines, PreviewDigest])
def test_nothing_that_anybody_says_steers_a_terminal(
    display_of: Callable[[io.StringIO], Display], monkeypatch: pytest.MonkeyPatch
):
    for variable, value in (("FORCE_COLOR", "1"), ("TERM", "xterm-256color"), ("COLUMNS", "300")):
        monkeypatch.setenv(variable, value)
    events, stream = _all_said_by_anybody(), io.StringIO()
    assert {type(event) for event in events} == {*get_args(Event)}
    display = display_of(stream)
    for event in events:
        display.handle(event)
    display.close()
    lines = re.sub(r"\r?\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).split("\n")
    assert len(lines) > 10
    assert [line for line in lines if {*_STEERING} & {*line}] == []


def test_what_could_steer_a_terminal_is_shown_as_a_sign_and_escaped_in_json(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "300")
    shown = "re" + "\ufffd" * len(_STEERING) + "d"
    assert _plain(StdoutLine(_ANYBODYS), StdoutLine("\x1b[31mone\ttwo")) == [
        f"| {shown}",
        "| \ufffd[31mone\ttwo",
    ]
    assert _screen(StdoutLine(_ANYBODYS)) == [f"│ {shown}"]
    stream = io.StringIO()
    JsonLines(stream).handle(StdoutLine(_ANYBODYS))
    assert json.loads(stream.getvalue())["stdoutEvent"]["message"] == _ANYBODYS


def test_children_deleted_before_their_parents_are_shown_under_them_all_the_same():
    picture = Picture()
    for resource in (_resource("shelf", _ROOM), _ROOM):
        picture.add(StepFinished(Step.of("delete", resource, None), 0), 0)
    assert [(row.guides, row.node.step.name) for row in picture.rows(lambda _: True) if row.node] == [
        ("└─ ", "room"),
        ("   └─ ", "shelf"),
    ]


@pytest.mark.parametrize(
    ("type_", "short"),
    [
        ("kubernetes:core/v1:Secret", "kubernetes:core/v1:Secret"),
        ("gcp:secretmanager/secret:Secret", "gcp:secretmanager:Secret"),
        ("pulumi-python:dynamic/shop:Claim", "shop:Claim"),
        ("pulumi-python:dynamic:Resource", "dynamic:Resource"),
        ("pulumi:providers:kubernetes", "pulumi:providers:kubernetes"),
    ],
)
def test_types_are_shown_without_what_repeats_itself(type_: str, short: str):
    assert short_type(type_) == short


@pytest.mark.parametrize(
    ("taken", "told"), [(0, "0.0s"), (59.94, "59.9s"), (60, "1m00s"), (3599.7, "60m00s")]
)
def test_durations_are_short(taken: float, told: str):
    assert seconds(taken) == told
