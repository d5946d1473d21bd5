"""Who is told about a deployment: a person at a terminal, a log, or a program."""

from __future__ import annotations

import json
import threading
import time
from types import TracebackType
from typing import IO, Final, Protocol, Self

from pulumi_sandbox.engine.model.events import (
    Diagnostic,
    Event,
    Outputs,
    PolicyPackLoaded,
    PolicyViolation,
    Sink,
    StackStarted,
    StdoutLine,
    StepFinished,
    StepPlanned,
    Summary,
)
from pulumi_sandbox.engine.show import phrases
from pulumi_sandbox.engine.show.event_json import digest, event_json
from pulumi_sandbox.engine.show.tree import Picture, is_told_apart
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Json
from pulumi_sandbox.steering import escaped, visible

_DIGESTED: Final = frozenset({"create", "update", "delete", "replace", "read", "import", "refresh"})
"""Steps a digest lists: not the halves of a replacement, and of what is unchanged the root stack only."""


class Display(Sink, Protocol):
    """A sink that holds something open while it is used (a part of the screen)."""

    def close(self) -> None:
        """Leave the screen or the stream in order, also when the deployment broke off."""
        ...


class Serialised:
    """Lets many threads tell one display, one event at a time; closes it at the end."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._lock = threading.Lock()

    def handle(self, event: Event) -> None:
        """Pass an event on."""
        with self._lock:
            self._display.handle(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.close()


def display_for(stream: IO[str], *, json_lines: bool = False, ahead: bool = False) -> Serialised:
    """Return what suits the stream: a live tree on a terminal, plain lines elsewhere, JSON on demand.

    ahead: it is shown a preview that goes ahead of its update, and then that; changes are told once.
    """
    if json_lines:
        return Serialised(JsonLines(stream))
    if stream.isatty():
        from pulumi_sandbox.engine.show.live_tree import LiveTree

        return Serialised(LiveTree(stream, ahead=ahead))
    return Serialised(PlainLines(stream, ahead=ahead))


class PlainLines:
    """One line per change when it is done, what failed at the end, then the summary; nothing moves."""

    def __init__(self, stream: IO[str], *, ahead: bool = False) -> None:
        self._stream = stream
        self._ahead = ahead
        self._picture = Picture()
        self._said: set[str] = set()

    def handle(self, event: Event) -> None:
        """Write what the event has to say."""
        if isinstance(event, StackStarted):
            self._picture = Picture()
        self._picture.add(event, time.monotonic())
        match event:
            case StackStarted(stack, project, operation):
                self._write(phrases.title(operation, project, stack))
            case PolicyPackLoaded(name, version):
                self._write_once(f"Policy pack {name} {version}")
            case StdoutLine(line):
                self._write(f"| {line}")
            case StepPlanned() if self._ahead:
                pass
            case StepPlanned(step) | StepFinished(step, _, None) if is_told_apart(step):
                words = phrases.WORDS[step.op]
                told = words.plan if isinstance(event, StepPlanned) else words.done
                took = f"  {phrases.seconds(event.seconds)}" if isinstance(event, StepFinished) else ""
                self._write(f"{words.symbol} {told:<9} {step.name}  {phrases.short_type(step.type)}{took}")
                for line in phrases.changes(step):
                    self._write(f"    {line}")
            case Diagnostic(severity) if severity in phrases.SHOWN_SEVERITIES:
                self._write_once(phrases.message(event))
            case PolicyViolation():
                self._write_once(f"policy {phrases.violation(event)}")
            case Outputs():
                self._write_outputs(event)
            case Summary():
                self._write_errors()
                self._write(phrases.summary(event, self._picture.counts()))
            case _:
                pass

    def close(self) -> None:
        """Write what failed, if no summary came to say it."""
        if self._picture.summary is None:
            self._write_errors()

    def _write_outputs(self, event: Outputs) -> None:
        if event.values:
            self._write("Outputs:")
        for name, value in phrases.outputs(event.values):
            self._write(f"  {name}: {value}")

    def _write_errors(self) -> None:
        for failed, error in self._picture.errors():
            if failed:
                self._write(f"✗ {phrases.attempt(failed.op)}{failed.name}  {phrases.short_type(failed.type)}")
            for index, line in enumerate(error.rstrip().splitlines()):
                self._write(f"  {line}" if failed or index else f"✗ {line}")

    def _write_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._write(line)

    def _write(self, line: str) -> None:
        self._stream.write(f"{visible(line)}\n")
        self._stream.flush()


class JsonLines:
    """One JSON object per event, numbered and timed, under the names of `pulumi up --json`."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._sequence = 0

    def handle(self, event: Event) -> None:
        """Write the event."""
        head: dict[str, Json] = {"sequence": self._sequence, "timestamp": int(time.time())}
        self._sequence += 1
        document = json.dumps(head | event_json(event), ensure_ascii=False)
        self._stream.write(f"{escaped(document)}\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing is held open."""


class PreviewDigest:
    """Gathers a preview into the one JSON document that `pulumi preview --json` prints when it is over.

    `policyEvents` is this engine's own: with packs, what they had to say; the CLI tells that in its event
    stream only.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._document: dict[str, Json] = {}
        self._steps: list[Json] = []
        self._diagnostics: list[Json] = []
        self._policies: list[Json] | None = None

    def handle(self, event: Event) -> None:
        """Remember what the document tells."""
        match event:
            case StackStarted(config=config):
                self._document["config"] = dict(config)
            case StepPlanned(step) if step.op in _DIGESTED or step.type == urns.ROOT_STACK_TYPE:
                if not urns.is_default_provider(step.urn):
                    self._steps.append(digest(step))
            case Diagnostic(severity, text, urn) if severity != "debug":
                about: dict[str, Json] = {"urn": urn} if urn else {}
                self._diagnostics.append({**about, "message": text, "severity": severity})
            case StdoutLine(line):
                self._diagnostics.append({"message": f"{line}\n", "severity": "info"})
            case PolicyPackLoaded() if self._policies is None:
                self._policies = []
            case PolicyViolation() if self._policies is not None:
                self._policies.append(event_json(event)["policyEvent"])
            case Summary():
                self._document["duration"] = round(event.seconds * 1e9)
                self._document["changeSummary"] = {op: count for op, count in event.changes.items()}
            case _:
                pass

    def close(self) -> None:
        """Write the document."""
        document = {**self._document, "steps": self._steps, "diagnostics": self._diagnostics}
        if self._policies is not None:
            document["policyEvents"] = self._policies
        self._stream.write(escaped(json.dumps(document, indent=4, ensure_ascii=False)) + "\n")
        self._stream.flush()
