"""What could steer a terminal: it may stand in any text of a program, an object or a server."""

import re
from typing import Final

_STEERING: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but the end of a line and the tab, other ends of lines, a blank without width, what
turns the direction of writing, and half of a surrogate pair, which cannot be written at all."""


def steers(text: str) -> bool:
    """Whether anything in a text could steer a terminal."""
    return _STEERING.search(text) is not None


def visible(text: str) -> str:
    """Return a text with a sign in place of each character that could steer a terminal."""
    return _STEERING.sub("\ufffd", text)


def escaped(document: str) -> str:
    """Return a JSON document that says the same, what could steer a terminal being escaped."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
