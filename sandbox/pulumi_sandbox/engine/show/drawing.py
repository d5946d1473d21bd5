"""The tree of a deployment drawn for the width of a terminal: no name is cut, and none is broken. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from pulumi_sandbox.engine.show import phrases
from pulumi_sandbox.engine.show.tree import Node, Row
from pulumi_sandbox.steering import visible

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_COLOURS: Final = {
    "+": "green",
    "~": "yellow",
    "-": "red",
    "±": "magenta",
    ">": "cyan",
    "<": "cyan",
    "=": "green",
}
_GAP: Final = 2


def tree(rows: Sequence[Row], width: int, now: float) -> Iterator[list[Text]]:
    """Yield the lines of each row: names, states and types in columns.

    Types are written short where the long form does not fit, and beneath a name that leaves no room.
    """
    names = [f"{row.guides}{_symbol(row)} {_name(row)}" for row in rows]
    states = [_state(row, now) for row in rows]
    types = [visible(phrases.short_type(row.node.step.type)) if row.node else "" for row in rows]
    widest = max(map(len, names), default=0) + max(map(len, states), default=0) + 2 * _GAP
    if widest + max(map(len, types), default=0) > width:
        types = [type_.rpartition(":")[2] for type_ in types]
    state_width, type_width = max(map(len, states), default=0), max(map(len, types), default=0)
    room = width - state_width - type_width - 2 * _GAP
    name_width = max((len(name) for name in names if len(name) <= room), default=0)
    for row, name, state, type_ in zip(rows, names, states, types, strict=True):
        style = _style(row)
        line = Text.assemble((row.guides, "dim"), (name.removeprefix(row.guides), style))
        lines = [line]
        if len(name) > name_width and (state or type_):
            line = Text(row.below, style="dim")
            lines.append(line)
        line.pad_right(max(0, name_width - len(line.plain)) + _GAP)
        line.append(state.ljust(state_width + _GAP), style=style)
        line.append(type_, style="dim")
        for each in lines:
            each.rstrip()
        yield lines


def changes(row: Row, width: int) -> Iterator[Text]:
    """Yield the lines of what differs in the properties of a row's resource."""
    for change in phrases.changes(row.node.step) if row.node else ():
        line = Text(visible(change), style=_COLOURS.get(change[0], "dim"))
        for number, part in enumerate(folded(line, width - len(row.below) - 2 * _GAP)):
            yield Text.assemble((row.below, "dim"), " " * (_GAP if number == 0 else 2 * _GAP), part)


def folded(line: Text, width: int) -> Iterator[Text]:
    """Yield a text in lines of a width, folded between words; a longer word keeps a line of its own."""
    for given in line.split("\n", allow_blank=True):
        begins, breaks = 0, list[int]()
        for word in re.finditer(r"\S+", given.plain):
            if word.start() > begins and cell_len(given.plain[begins : word.end()]) > width:
                begins = word.start()
                breaks.append(begins)
        for part in given.divide(breaks):
            part.rstrip()
            yield part


def frame(now: float) -> str:
    """Return a sign that moves as time goes on."""
    return FRAMES[int(now * 8) % len(FRAMES)]


def _symbol(row: Row) -> str:
    if row.node is None:
        return "·"
    return "✗" if row.node.status == "failed" else phrases.WORDS[row.node.step.op].symbol


def _name(row: Row) -> str:
    return visible(row.node.step.name) if row.node else f"{row.count} unchanged"


def _style(row: Row) -> str:
    if row.node is None:
        return "dim"
    if row.node.status == "failed":
        return "bold red"
    return _COLOURS.get(phrases.WORDS[row.node.step.op].symbol, "dim")


def _state(row: Row, now: float) -> str:
    if row.node is None or row.node.is_unchanged:
        return ""
    if row.count == 1:
        return _of_one(row.node, now)
    words = phrases.WORDS[row.node.step.op]
    many = {"planned": f"to {words.plan}", "running": words.doing}.get(row.node.status, words.done)
    return f"{row.count} {many}"


def _of_one(node: Node, now: float) -> str:
    words = phrases.WORDS[node.step.op]
    match node.status:
        case "planned":
            return words.plan
        case "running":
            return f"{frame(now)} {words.doing} {phrases.seconds(now - node.began)}"
        case "done":
            return f"{words.done} {phrases.seconds(node.seconds)}"
        case "failed":
            return f"failed {phrases.seconds(node.seconds)}"
