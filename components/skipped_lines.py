"""Messages about what an update skips, in the format that a review of the log parses again.

A line is `skipped: WHAT, WHAT: WHY`. WHAT is a noun and a name, WHY a one-line string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SKIPPED: Final = "skipped: "
_IN_A_LINE: Final = 8
_WHAT: Final = r"[A-Za-z]+(?: [A-Za-z]+)* [A-Za-z0-9._/-]+"
_LINE: Final = re.compile(rf"{SKIPPED}(?P<what>{_WHAT}(?:, {_WHAT})*): (?P<why>.+)")


def skipped_lines(skipped: Mapping[str, str]) -> Iterator[str]:
    """Yield lines about what is skipped; equal reasons are combined."""
    in_one_line = {what: " ".join(why.split()) for what, why in skipped.items()}
    for part in in_lines(in_one_line, alike=in_one_line.__getitem__):
        yield f"{SKIPPED}{', '.join(part)}: {in_one_line[part[0]]}"


def in_lines(each: Iterable[T], alike: Callable[[T], object]) -> Iterator[Sequence[T]]:
    """Group equal items in the order of the first, at most as many as fit in a line."""
    groups: dict[object, list[T]] = {}
    for one in each:
        groups.setdefault(alike(one), []).append(one)
    for group in groups.values():
        for start in range(0, len(group), _IN_A_LINE):
            yield group[start : start + _IN_A_LINE]


def skipped_in(told: Iterable[str]) -> dict[str, str]:
    """Parse what is skipped, and why, from the lines of a log; ignore all other lines."""
    found = (_LINE.fullmatch(line.strip()) for line in told)
    return {what: line["why"] for line in found if line for what in line["what"].split(", ")}
