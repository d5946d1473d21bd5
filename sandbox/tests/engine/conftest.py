"""What the engine's tests share: a key, as deriving one takes long, and a stack of their own."""

from collections.abc import Generator
from pathlib import Path

import pytest
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider, serving

PASSPHRASE = "correct horse"


@pytest.fixture(scope="session")
def crypter() -> PassphraseCrypter:
    """Return the crypter of `PASSPHRASE`, derived once for all tests of a worker."""
    return PassphraseCrypter.new(PASSPHRASE)


@pytest.fixture
def provider() -> RecordingProvider:
    """Return a fresh recording provider; `stack` serves it."""
    return RecordingProvider()


@pytest.fixture
def stack(
    tmp_path: Path,
    crypter: PassphraseCrypter,
    provider: RecordingProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> Generator[Stack]:
    """Return an empty stack whose programs the test plays; package `fake` is served by `provider`."""
    with serving(provider) as port:
        monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", f"fake:{port}")
        yield Stack.make(tmp_path / "project", crypter, provider)
