"""The one line of JSON in which a preview says to a program what it also says to people.

A provider can only print lines, and a component only log them; the review of a preview finds its own among
them by the marker they begin with. What stands in one may be shown to whoever sees the review, so no line
carries what was found in a credential or in a configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from pulumi_sandbox.documents import read_json

MARKER: Final = "credfleet-report: "
_SUBJECT: Final = "subject"


def report_line(subject: str, content: dict[str, Any]) -> str:
    """Return the line that carries `content`, plain JSON values, on a subject."""
    return MARKER + json.dumps({_SUBJECT: subject, **content}, separators=(",", ":"))


def reported(subject: str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Return the contents on a subject among all lines of a preview; what is no such line is passed over."""
    for line in lines:
        if line.startswith(MARKER):
            try:
                content: Any = read_json(line.removeprefix(MARKER))
            except ValueError:
                continue
            if isinstance(content, dict) and cast("dict[str, Any]", content).pop(_SUBJECT, None) == subject:
                yield cast("dict[str, Any]", content)
