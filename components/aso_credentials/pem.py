"""The blocks of PEM that Go's `encoding/pem` finds in a text, which are fewer than other readers find.

A block begins at the beginning of a line and ends with its line; what is between two blocks, or a block that
is none, is passed over in silence.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"


def pem_blocks(text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield type and content of each block."""
    at = 0
    while (end := text.find(_END, at)) >= 0:
        after_end = end + len(_END)
        begin = text.rfind(_BEGIN, at, end)
        opens = begin == at or text[begin - 1 : begin] == b"\n"
        found = _block(text, begin + len(_BEGIN), end) if begin >= 0 and opens else None
        if found is None:
            at = after_end
        else:
            kind, content, at = found
            yield kind.decode(errors="replace"), content


def _block(text: bytes, start: int, end: int) -> tuple[bytes, bytes, int] | None:
    """Return type, content and where the next line begins, of what begins at `start` and may end at `end`."""
    first, body = _line(text, start)
    kind = first.removesuffix(_DASHES)
    headers = False
    while kind != first and body < len(text):
        line, after = _line(text, body)
        if b":" not in line:
            break
        headers, body = True, after
    closing = end + len(_END) + len(kind) + len(_DASHES)
    behind, following = _line(text, closing)
    closes = text[end + len(_END) : closing] == kind + _DASHES and not behind
    if kind == first or not closes or (headers and end < body):
        return None
    try:
        content = base64.b64decode(text[body : max(body, end)].translate(None, b" \t\r\n"), validate=True)
    except binascii.Error:
        return None
    return kind, content, following


def _line(text: bytes, start: int) -> tuple[bytes, int]:
    """Return the line from `start` on without blanks at its end, and where the next one begins."""
    line, newline, _ = text[start:].partition(b"\n")
    return line.removesuffix(b"\r" if newline else b"").rstrip(b" \t"), start + len(line) + len(newline)
