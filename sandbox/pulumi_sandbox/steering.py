"""Control characters and commands in texts that could affect a terminal or a GitHub runner."""

import re
from typing import Final

_STEERING: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except newline and tab, other line ends, zero-width spaces, characters that change the
text direction, and lone surrogates, which cannot be encoded."""

_COMMAND: Final = re.compile(r"##(?=\[)|^(?=\s*::[a-zA-Z])", re.MULTILINE)
"""Positions before a runner command: runners trim blanks before `::`, and find `##[` anywhere in a line."""


def steers(text: str) -> bool:
    """Return whether a text contains terminal control characters."""
    return _STEERING.search(text) is not None


def visible(text: str) -> str:
    """Return a text with control characters replaced and runner commands made harmless."""
    return _COMMAND.sub("\\g<0>\ufffd", _STEERING.sub("\ufffd", text))


def escaped(document: str) -> str:
    """Return an equivalent JSON document with control characters and runner commands escaped."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", document).replace("##[", "##\\u005b")
