"""What the engine's tests share: a key, as deriving one takes long, and a stack of their own."""

import pytest
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter

PASSPHRASE = "correct horse"


@pytest.fixture(scope="session")
def crypter() -> PassphraseCrypter:
    """Return the crypter of `PASSPHRASE`, derived once for all tests of a worker."""
    return PassphraseCrypter.new(PASSPHRASE)
