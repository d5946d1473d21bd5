"""What an update goes on without, as Diagnostics tell it to people, and as a review of them reads it back.

A line is `skipped: WHAT, WHAT: WHY`. WHAT is a noun and a name, WHY any text of one line.
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
    """Tell what is skipped, and why; what is skipped for one reason stands together."""
    in_one_line = {what: " ".join(why.split()) for what, why in skipped.items()}
    for part in in_lines(in_one_line, alike=in_one_line.__getitem__):
        yield f"{SKIPPED}{', '.join(part)}: {in_one_line[part[0]]}"


def in_lines(each: Iterable[T], alike: Callable[[T], object]) -> Iterator[Sequence[T]]:
    """Put what is alike together, in the order in which it comes first, and so many that a line can name."""
    groups: dict[object, list[T]] = {}
    for one in each:
        groups.setdefault(alike(one), []).append(one)
    for group in groups.values():
        for start in range(0, len(group), _IN_A_LINE):
            yield group[start : start + _IN_A_LINE]


def skipped_in(told: Iterable[str]) -> dict[str, str]:
    """Return what is skipped, and why, as all lines of a log tell it; any other line is passed over."""
    found = (_LINE.fullmatch(line.strip()) for line in told)
    return {what: line["why"] for line in found if line for what in line["what"].split(", ")}
