"""Whether a copy will be another one after this update, whose source the same program declares.

A preview alone is told the digests of what a copy will hold, key by key, since the cluster still has the
source of before; nothing of it comes into a state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from components.projection.model import JsonObject, data_of


def digests(data: Mapping[str, str]) -> dict[str, str]:
    """Return key → the digest of its value."""
    return {key: hashlib.sha256(value.encode()).hexdigest() for key, value in data.items()}


def differs(secret: JsonObject | None, foreseen: Mapping[str, str]) -> bool:
    """Whether a Secret holds anything else under these keys; one that is gone does."""
    known = digests(data_of(secret)) if secret is not None else {}
    return any(known.get(key) != digest for key, digest in foreseen.items())
