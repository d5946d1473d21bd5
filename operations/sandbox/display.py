"""Displays a preview or an update while the Pulumi CLI runs: one line per change, and a count."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, TextIO

import typer
from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.services.progress import Step as Progress
from pulumi_sandbox.steering import visible

from operations.sandbox.deployment import DONE, TO_DO, changes_of

if TYPE_CHECKING:
    from pulumi.automation.events import DiagnosticEvent, EngineEvent, StepEventMetadata

_MARKS: Final = {
    "create": "+",
    "create-replacement": "+-",  # a replacement counts as one, but takes two steps
    "update": "~",
    "delete": "-",
    "import": "=",
    "read": ">",
}

_ALWAYS: Final = ("warning", "error")
_NOISE: Final = "using pulumi-"
"""Start of the CLI's warnings about providers on PATH; `credfleet sandbox providers` lists them."""


class Display:
    """Displays the events of a preview or update; `close` prints the total."""

    def __init__(self, title: str, *, hidden: tuple[str, ...] = (), stream: TextIO | None = None) -> None:
        """Start. hidden: prefixes of messages that are shown elsewhere."""
        self._stream = stream or sys.stdout
        self._line = ProgressLine(sys.stderr)
        self._title = title
        self._hidden = (*hidden, _NOISE)
        self._began = time.monotonic()
        self._started: dict[str, float] = {}
        self._seen = 0
        self._changes: dict[str, int] = {}
        self._planning = title.startswith("Preview")
        self._write(title)

    def show(self, event: EngineEvent) -> None:
        """Display an event of the engine."""
        if event.resource_pre_event:
            self._seen += 1
            self._started[event.resource_pre_event.metadata.urn] = time.monotonic()
        elif event.res_outputs_event and not event.res_outputs_event.planning:
            told = event.res_outputs_event.metadata
            if (op := told.op.value) in _MARKS:
                self._write(self._described(f"{_MARKS[op]} {DONE[op]}", told))
        elif event.res_op_failed_event:
            self._write(self._described("✗ failed", event.res_op_failed_event.metadata))
        elif event.diagnostic_event:
            self._diagnose(event.diagnostic_event)
        elif event.policy_event and event.policy_event.enforcement_level == "mandatory":
            where = event.policy_event.resource_urn
            name = urns.parse(where).name if where else "the stack"
            message = event.policy_event.message.strip()
            self._write(f"error: {name}: {event.policy_event.policy_name}: {message}")
        elif event.summary_event:
            self._changes = changes_of(event.summary_event)
        count = f", {self._seen} resources" if sys.stderr.isatty() else ""
        self._line(Progress(f"{self._title.lower()}{count}", time.monotonic() - self._began))

    def close(self) -> None:
        """Print the number of resources by operation."""
        words = TO_DO if self._planning else DONE
        counts = [f"{count} {words[op]}" for op, count in self._changes.items() if op in words and count]
        same = self._changes.get("same", 0)
        counts += [f"{same} unchanged"] if same else []
        self._line.clear()
        if counts:
            self._write(f"Resources: {', '.join(counts)} · {time.monotonic() - self._began:.1f}s")

    def _described(self, what: str, told: StepEventMetadata) -> str:
        took = time.monotonic() - self._started.get(told.urn, time.monotonic())
        return f"{what:<12}{urns.parse(told.urn).name}  {told.type.rpartition(':')[2]}  {took:.1f}s"

    def _diagnose(self, said: DiagnosticEvent) -> None:
        message = said.message.strip()
        if said.ephemeral or not message or message.startswith(self._hidden):
            return
        if said.severity in _ALWAYS:
            is_error = said.severity == "error"  # the program's warnings name their place themselves
            place = f"{urns.parse(said.urn).name}: " if said.urn and is_error else ""
            self._write(f"{said.severity}: {place}{message}")
        elif said.severity.startswith("info"):
            self._write(f"info: {message}")

    def _write(self, text: str) -> None:
        self._line.clear()
        typer.echo(visible(text), file=self._stream)
