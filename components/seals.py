"""Markers of placeholders for secrets, shared by the review, the program and the policies.

A keyless review decrypts nothing, and runs the program with placeholders (docs/review.md).
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

SEALED: Final = "sealed-6f1d0c52"
"""Prefix of each part of a placeholder for a secret whose shape is known."""

UNSEEN: Final = "unseen-6f1d0c52"
"""Prefix of a placeholder for a secret whose shape is unknown or only assumed."""

COULD_NOT: Final = "could not decide: a value is sealed"
"""Text in the message of a rule that could neither pass nor fail."""


def hides(text: str) -> bool:
    """Return whether a string, perhaps base64-encoded, is a placeholder of unknown shape."""
    if UNSEEN in text:
        return True
    try:
        return UNSEEN.encode() in base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
