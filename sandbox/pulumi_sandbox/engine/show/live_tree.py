"""A deployment on a terminal: a tree that moves while it runs and stays when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import IO, Final

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
from pulumi_sandbox.engine.show import phrases
from pulumi_sandbox.engine.show.tree import Failed, Node, Picture, Row

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_COLOURS: Final = {
    "+": "green",
    "~": "yellow",
    "-": "red",
    "±": "magenta",
    ">": "cyan",
    "<": "cyan",
    "=": "green",
}


class LiveTree:
    """Shows what is under way with what stands above it; at the end all that changed, failures last."""

    def __init__(self, stream: IO[str]) -> None:
        self._console = Console(file=stream, highlight=False)
        self._picture = Picture()
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._began = 0.0

    def handle(self, event: Event) -> None:
        """Take note of an event; the screen follows by itself, eight times a second."""
        with self._lock:
            self._picture.add(event, time.monotonic())
        match event:
            case StackStarted(stack, project, operation):
                self._console.print(Text(phrases.title(operation, project, stack), style="bold"))
                self._began = time.monotonic()
                self._live = Live(
                    console=self._console,
                    get_renderable=self._moving,
                    refresh_per_second=8,
                    transient=True,
                )
                self._live.start()
            case PolicyPackLoaded(name, version):
                self._console.print(Text(f"Policy pack {name} {version}", style="dim"))
            case StdoutLine(line):
                self._console.print(Text.assemble(("│ ", "dim"), line))
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
            self._console.print(line, no_wrap=True, overflow="ellipsis")
        for part in self._findings():
            self._console.print()
            for line in part:
                self._console.print(line, soft_wrap=True)

    def _moving(self) -> RenderableType:
        """Draw what fits on the screen: all changes so far, or only what is under way."""
        with self._lock:
            room = self._console.height - 3
            rows = self._picture.rows(lambda node: not node.is_unchanged)
            if len(rows) > room:
                rows = self._picture.rows(lambda node: node.status == "running")
            now = time.monotonic()
            done = sum(node.status != "running" for node in self._picture.nodes.values())
            told = f"{done} looked at" if self._picture.nodes else "starting"
            foot = Text(f"{_frame(now)} {told} · {phrases.seconds(now - self._began)}", style="dim")
            return Group(*_lines(rows[:room], now), foot)

    def _lasting(self) -> Iterator[Text]:
        rows = self._picture.rows(lambda node: not node.is_unchanged)
        for row, line in zip(rows, _lines(rows, time.monotonic()), strict=True):
            yield line
            for change in phrases.changes(row.node.step):
                style = _COLOURS.get(change[0], "dim")
                yield Text.assemble((row.below, "dim"), "  ", (change, style))

    def _findings(self) -> list[list[Text]]:
        """Return what there is to say besides: messages, policies, outputs, failures, and the summary."""
        picture = self._picture
        messages = [_message(each) for each in picture.messages if each.severity in phrases.SHOWN_SEVERITIES]
        violations = [_violation(each) for each in picture.violations]
        values = phrases.outputs(picture.outputs.values) if picture.outputs else []
        exported = [Text.assemble("  ", (name, "cyan"), f": {value}") for name, value in values]
        failures = [_failure(failed, error) for failed, error in picture.errors()]
        ended = [_summary(picture.summary, picture.counts())] if picture.summary else []
        return [
            part
            for part in (
                messages + violations,
                [Text("Outputs", style="bold"), *exported] if exported else [],
                failures,
                ended,
            )
            if part
        ]


def _message(found: Diagnostic) -> Text:
    style = "yellow" if found.severity == "warning" else "cyan"
    label, _, rest = phrases.message(found).partition(": ")
    return Text.assemble((f"{label}: ", style), rest)


def _violation(found: PolicyViolation) -> Text:
    style = {"advisory": "yellow", "mandatory": "bold red", "remediate": "cyan"}[found.level]
    return Text.assemble(("policy ", "dim"), (phrases.violation(found), style))


def _summary(found: Summary, counts: Mapping[str, int]) -> Text:
    style = "bold green" if found.outcome == "succeeded" else "bold red"
    return Text(phrases.summary(found, counts), style=style)


def _failure(failed: Failed | None, error: str) -> Text:
    text = Text.assemble(("✗ ", "bold red"))
    if failed:
        text.append(f"{phrases.attempt(failed.op)}{failed.name}  ", style="bold red")
        text.append(phrases.short_type(failed.type) + "\n  ", style="dim")
    return text.append("\n  ".join(error.rstrip().splitlines()))


def _lines(rows: list[Row], now: float) -> list[Text]:
    """Draw the rows with names, types and states in columns."""
    names = [f"{row.guides}{_symbol(row.node)} {row.node.step.name}" for row in rows]
    types = [phrases.short_type(row.node.step.type) for row in rows]
    name_width, type_width = max(map(len, names), default=0), max(map(len, types), default=0)
    lines: list[Text] = []
    for row, name, type_ in zip(rows, names, types, strict=True):
        words = phrases.WORDS[row.node.step.op]
        style = "bold red" if row.node.status == "failed" else _COLOURS.get(words.symbol, "dim")
        line = Text.assemble((row.guides, "dim"))
        line.append(name.removeprefix(row.guides).ljust(name_width - len(row.guides) + 2), style=style)
        line.append(type_.ljust(type_width + 2), style="dim")
        line.append(_state(row.node, now), style=style)
        lines.append(line)
    return lines


def _symbol(node: Node) -> str:
    return "✗" if node.status == "failed" else phrases.WORDS[node.step.op].symbol


def _state(node: Node, now: float) -> str:
    words = phrases.WORDS[node.step.op]
    if node.is_unchanged:
        return ""
    match node.status:
        case "planned":
            return words.plan
        case "running":
            return f"{_frame(now)} {words.doing} {phrases.seconds(now - node.began)}"
        case "done":
            return f"{words.done} {phrases.seconds(node.seconds)}"
        case "failed":
            return f"failed {phrases.seconds(node.seconds)}"


def _frame(now: float) -> str:
    return _FRAMES[int(now * 8) % len(_FRAMES)]
