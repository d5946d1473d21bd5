"""What each step in the life of a stack costs, beside the same step of the floor under it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.processes import Usage
from benchmarks.stacks import Stack

_ORDER: Final = ("CLI", "language host", "program", "policy host", "dynamic host", "kubernetes")
_NO_PREVIEW: Final = ("--yes", "--skip-preview")
_STEPS: Final = (
    ("first update", "up", _NO_PREVIEW, False),
    ("preview, no change", "preview", ("--expect-no-changes",), False),
    ("update, no change", "up", (*_NO_PREVIEW, "--expect-no-changes"), False),
    ("one tenant added, previewed first", "up", ("--yes",), True),
    ("one tenant added, no preview", "up", _NO_PREVIEW, True),
)
"""What it is called, the verb and the options of the CLI, whether a tenant is added before."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one step cost, and the bytes of state per tenant after it; floor: None where there is none."""

    stack: str
    step: str
    ours: Usage
    state: float
    floor: Usage | None = None
    floor_state: float = 0.0

    def cells(self, kinds: Iterable[str]) -> list[str]:
        """Lay it out, ratios first, then ours / floor each."""
        ours, floor = self.ours, self.floor
        ratios = [f"{ours.waited / floor.waited:.2f}", f"{ours.wall / floor.wall:.2f}"] if floor else ["", ""]
        states = [each / 1000 for each in (self.state, self.floor_state) if each]
        return [
            self.stack,
            self.step,
            *ratios,
            self._each(lambda usage: f"{usage.waited:.1f}"),
            *(self._each(lambda usage, kind=kind: f"{usage.seconds.get(kind, 0):.1f}") for kind in kinds),
            self._each(lambda usage: f"{usage.wall:.1f}"),
            " / ".join(f"{each:.1f}" for each in states),
            self._each(lambda usage: " ".join(map(str, usage.largest))),
        ]

    def _each(self, told: Callable[[Usage], str]) -> str:
        return " / ".join(told(usage) for usage in (self.ours, self.floor) if usage)


def lives(
    stack: Stack,
    tenants: int,
    add_tenant: Callable[[int], None],
    with_policies: bool,
) -> Iterator[Row]:
    """Take a stack and its floor through the same life, step by step; tenants: how many it has at first."""
    floor, name = stack.floor(), f"{stack.name}, {tenants:,} tenants{', policies' * with_policies}"
    for step, verb, options, adds in _STEPS:
        if adds:
            add_tenant(tenants)
            tenants += 1
        ours = stack.run(verb, options, with_policies=with_policies)
        floor.declare(stack.kinds())
        beside = floor.run(verb, options, with_policies=with_policies)
        sizes = [each.state.stat().st_size / tenants for each in (stack, floor)]
        row = Row(name, step, ours, sizes[0], beside, sizes[1])
        print(*row.cells(_kinds([row])), sep=" | ", file=sys.stderr, flush=True)
        yield row


def table(rows: Iterable[Row]) -> str:
    """Lay rows out as Markdown."""
    rows = list(rows)
    kinds = _kinds(rows)
    head = ["Stack", "Step", "CPU, ours over floor", "wall clock", "CPU s", *kinds, "wall s"]
    head += ["state, kB per tenant", "largest process, MiB"]
    lines = [head, ["---"] * len(head), *(row.cells(kinds) for row in rows)]
    seen = [usage.seen for row in rows for usage in (row.ours, row.floor) if usage]
    fault = "" if all(abs(1 - each) <= 0.05 for each in seen) else "; THAT IS NOT WITHIN 5 %"
    told = (
        "Seconds of processor by kind of process; with a floor, each cell is ours / floor.",
        f"Of what `wait4` counted, {min(seen):.1%} to {max(seen):.1%} were seen process by process{fault}.",
    )
    return "\n".join((*(f"| {' | '.join(line)} |" for line in lines), "", *told))


def _kinds(rows: Iterable[Row]) -> list[str]:
    found = {kind for row in rows for usage in (row.ours, row.floor) if usage for kind in usage.seconds}
    return [*filter(found.__contains__, _ORDER), *sorted(found - {*_ORDER})]
