"""What the engine's tests share: a key, whose derivation takes a third of a second."""

from __future__ import annotations

import pytest

from sandbox.engine.secrets import PassphraseCrypter

PASSPHRASE = "correct horse"


@pytest.fixture(scope="session")
def crypter() -> PassphraseCrypter:
    """Return the crypter of `PASSPHRASE`, derived once for all tests of a worker."""
    return PassphraseCrypter.new(PASSPHRASE)
