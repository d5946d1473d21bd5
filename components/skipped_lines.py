"""What an update goes on without, as Diagnostics tell it to people, and as a review of them reads it back.

A line is `skipped: WHAT, WHAT: WHY`. WHAT is a noun and a name, WHY any text of one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

SKIPPED: Final = "skipped: "
_IN_A_LINE: Final = 8
_WHAT: Final = r"[A-Za-z]+(?: [A-Za-z]+)* [A-Za-z0-9._/-]+"
_LINE: Final = re.compile(rf"{SKIPPED}(?P<what>{_WHAT}(?:, {_WHAT})*): (?P<why>.+)")


def skipped_lines(skipped: Mapping[str, str]) -> Iterator[str]:
    """Tell what is skipped, and why; what is skipped for one reason stands together."""
    by_reason: dict[str, list[str]] = {}
    for what, why in skipped.items():
        by_reason.setdefault(" ".join(why.split()), []).append(what)
    for why, each in by_reason.items():
        for start in range(0, len(each), _IN_A_LINE):
            yield f"{SKIPPED}{', '.join(each[start : start + _IN_A_LINE])}: {why}"


def skipped_in(told: Iterable[str]) -> dict[str, str]:
    """Return what is skipped, and why, as all lines of a log tell it; any other line is passed over."""
    found = (_LINE.fullmatch(line.strip()) for line in told)
    return {what: line["why"] for line in found if line for what in line["what"].split(", ")}
