"""Control characters and commands in texts that could affect a terminal or a GitHub runner."""

import re
from typing import Final

_STEERING: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but the end of a line and the tab, other ends of lines, a blank without width, what
turns the direction of writing, and half of a surrogate pair, which cannot be written at all."""

_COMMAND: Final = re.compile(r"##(?=\[)|^(?=\s*::[a-zA-Z])", re.MULTILINE)
"""Before what a line is a command to a runner: it trims blanks before `::`, and reads `##[` anywhere."""


def steers(text: str) -> bool:
    """Return whether a text contains terminal control characters."""
    return _STEERING.search(text) is not None


def visible(text: str) -> str:
    """Return a text with control characters replaced and runner commands made harmless."""
    return _COMMAND.sub("\\g<0>\ufffd", _STEERING.sub("\ufffd", text))


def escaped(document: str) -> str:
    """Return an equivalent JSON document with control characters and runner commands escaped."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", document).replace("##[", "##\\u005b")
