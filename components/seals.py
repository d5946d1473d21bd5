"""How texts that stand in for secrets are told from others: words that review, program and rules share.

A review without keys decrypts nothing, and such texts go through the program instead (docs/review.md).
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

SEALED: Final = "sealed-6f1d0c52"
"""What every part of a text begins with that stands in for a secret of a known shape."""

UNSEEN: Final = "unseen-6f1d0c52"
"""The same, where the shape is not known, or only assumed."""

COULD_NOT: Final = "could not decide: a value is sealed"
"""How a rule says that it is neither passed nor objected to."""


def hides(text: str) -> bool:
    """Whether a text, or what it encodes, stands in for something of which not even the shape is known."""
    if UNSEEN in text:
        return True
    try:
        return UNSEEN.encode() in base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
