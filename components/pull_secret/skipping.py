"""What a preview says of a cluster that is skipped: a sentence for people, and a line for its review.

Unchanged resources are left out of the CLI's digest of a preview, lines never are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from components.report_lines import report_line, reported

SKIPPED: Final = "skipped: "
"""What a sentence begins with."""
_SUBJECT: Final = "pull-secret"
_QUOTABLE: Final = re.compile(r"[A-Za-z0-9 ,()-]{1,160}")
"""What a review shows of a reason; one with other characters quotes the configuration: the log has it."""


def sentence(reasons: Sequence[str]) -> str:
    """Return why a cluster is skipped, for people."""
    return f"{SKIPPED}{'; '.join(reasons)}"


def line(reasons: Sequence[str]) -> str:
    """Return the line by which a review knows that a cluster is skipped."""
    return report_line(_SUBJECT, {"skipped": [each for each in reasons if _QUOTABLE.fullmatch(each)]})


def heard(told: Iterable[str]) -> tuple[str, ...] | None:
    """Return the reasons among the lines of a log; None when none of them says that a cluster is skipped."""
    for content in reported(_SUBJECT, told):
        match content:
            case {"skipped": [*reasons]}:
                return tuple(map(str, reasons))
            case _:
                pass
    return None
