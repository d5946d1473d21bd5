"""What others published, found by its digest: kept files are held to the very bytes that were published.

A file whose digest is known is looked for in the cache, then where it was published; a machine that reaches
neither skips the test by name. Whoever has the file puts it into the cache:

    python -m tests.witness.published FILE…
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
import requests
from pulumi_sandbox.services.build import cache_folder


def published(url: str, sha256: str) -> bytes:
    """Return the bytes at an address, of whatever digest; skips a test that reaches them nowhere."""
    kept = _cache() / sha256
    if kept.exists() and _digest(kept.read_bytes()) == sha256:
        return kept.read_bytes()
    try:
        answer = requests.get(url, timeout=30)
        answer.raise_for_status()
    except requests.RequestException as error:
        pytest.skip(f"{url} is not to be had here: {type(error).__name__}")
    keep(answer.content)
    return answer.content


def keep(content: bytes) -> None:
    """Put what was published into the cache."""
    _cache().mkdir(parents=True, exist_ok=True)
    (_cache() / _digest(content)).write_bytes(content)


def _cache() -> Path:
    return cache_folder("credfleet").with_name("published")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        keep(Path(name).read_bytes())
