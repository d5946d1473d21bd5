"""A deployment on a terminal: a tree that moves while it runs and stays when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from pulumi_sandbox.engine.model.events import (
    Diagnostic,
    Event,
    PolicyPackLoaded,
    PolicyViolation,
    StackStarted,
    StdoutLine,
    Summary,
)
from pulumi_sandbox.engine.show import drawing, phrases
from pulumi_sandbox.engine.show.tree import Failed, Picture
from pulumi_sandbox.steering import visible


class LiveTree:
    """Shows what is under way with what stands above it; at the end all that changed, failures last.

    ahead: a preview goes ahead of its update on the same display, so it leaves no tree unless it ended badly,
    and what it had to say is not said again.
    """

    def __init__(self, stream: IO[str], *, ahead: bool = False) -> None:
        self._console = Console(file=stream, highlight=False)
        self._ahead = ahead
        self._picture = Picture()
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._began = 0.0

    def handle(self, event: Event) -> None:
        """Take note of an event; the screen follows by itself, eight times a second."""
        with self._lock:
            if isinstance(event, StackStarted):
                self._picture = Picture()
            self._picture.add(event, time.monotonic())
        match event:
            case StackStarted(stack, project, operation):
                self._console.print(Text(visible(phrases.title(operation, project, stack)), style="bold"))
                self._began = time.monotonic()
                self._live = Live(
                    console=self._console,
                    get_renderable=self._moving,
                    refresh_per_second=8,
                    transient=True,
                )
                self._live.start()
            case PolicyPackLoaded(name, version):
                for line in self._new([Text(visible(f"Policy pack {name} {version}"), style="dim")]):
                    self._console.print(line)
            case StdoutLine(line):
                self._console.print(Text.assemble(("│ ", "dim"), visible(line)))
            case Summary():
                self.close()
            case _:
                pass

    def close(self) -> None:
        """Stop moving and leave the whole picture behind; once."""
        if self._live is None:
            return
        self._live.stop()
        self._live = None
        for line in self._lasting():
            self._console.print(line, soft_wrap=True)
        for part in self._findings():
            self._console.print()
            for line in part:
                # A failure's advice may hold a command, which is copied: the terminal folds it.
                lines = [line] if line.plain.startswith("✗") else drawing.folded(line, self._console.width)
                for each in lines:
                    self._console.print(each, soft_wrap=True)

    def _moving(self) -> RenderableType:
        """Draw what fits on the screen: all changes so far, or only what is under way."""
        with self._lock:
            room, width = self._console.height - 3, self._console.width
            now = time.monotonic()
            rows = self._picture.rows(lambda node: not node.is_unchanged, brief=True)
            if len(rows) > room:
                rows = self._picture.rows(lambda node: node.status == "running")
            lines = [line for row in drawing.tree(rows, width, now) for line in row][:room]
            for line in lines:
                line.truncate(width)
            done = sum(node.status != "running" for node in self._picture.nodes.values())
            told = f"{done} looked at" if self._picture.nodes else "starting"
            foot = Text(f"{drawing.frame(now)} {told} · {phrases.seconds(now - self._began)}", style="dim")
            return Group(*lines, foot)

    def _lasting(self) -> Iterator[Text]:
        """Draw all that changed; what is longer than the screen with what is alike as one line."""
        start, ended = self._picture.start, self._picture.summary
        if self._ahead and start and start.operation == "preview" and ended and ended.outcome == "succeeded":
            return
        width, now = self._console.width, time.monotonic()
        rows = self._picture.rows(lambda node: not node.is_unchanged)
        if len(rows) > self._console.height:
            rows = self._picture.rows(lambda node: not node.is_unchanged, brief=True)
        for row, lines in zip(rows, drawing.tree(rows, width, now), strict=True):
            yield from lines
            yield from drawing.changes(row, width)

    def _new(self, lines: Iterable[Text]) -> list[Text]:
        """Return what was not said yet."""
        new = [line for line in lines if line.plain not in self._said]
        self._said.update(line.plain for line in new)
        return new

    def _findings(self) -> list[list[Text]]:
        """Return what there is to say besides: messages, policies, outputs, failures, and the summary."""
        picture = self._picture
        messages = [_message(each) for each in picture.messages if each.severity in phrases.SHOWN_SEVERITIES]
        violations = [_violation(each) for each in picture.violations]
        values = phrases.outputs(picture.outputs.values) if picture.outputs else []
        exported = [
            Text.assemble("  ", (visible(name), "cyan"), visible(f": {value}")) for name, value in values
        ]
        failures = [_failure(failed, error) for failed, error in picture.errors()]
        ended = [_summary(picture.summary, picture.counts())] if picture.summary else []
        return [
            part
            for part in (
                self._new(messages + violations),
                [Text("Outputs", style="bold"), *exported] if exported else [],
                failures,
                ended,
            )
            if part
        ]


def _message(found: Diagnostic) -> Text:
    style = "yellow" if found.severity == "warning" else "cyan"
    label, _, rest = visible(phrases.message(found)).partition(": ")
    return Text.assemble((f"{label}: ", style), rest)


def _violation(found: PolicyViolation) -> Text:
    style = {"advisory": "yellow", "mandatory": "bold red", "remediate": "cyan"}[found.level]
    return Text.assemble(("policy ", "dim"), (visible(phrases.violation(found)), style))


def _summary(found: Summary, counts: Mapping[str, int]) -> Text:
    style = "bold green" if found.outcome == "succeeded" else "bold red"
    return Text(phrases.summary(found, counts), style=style)


def _failure(failed: Failed | None, error: str) -> Text:
    text = Text.assemble(("✗ ", "bold red"))
    if failed:
        text.append(visible(f"{phrases.attempt(failed.op)}{failed.name}  "), style="bold red")
        text.append(visible(phrases.short_type(failed.type)) + "\n  ", style="dim")
    return text.append("\n  ".join(visible(error).rstrip().splitlines()))
