"""What the tests of both cloud providers share."""

import pytest
from pulumi_sandbox.providers.contract import Patience


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the waits between attempts, in seconds; none is really waited for."""
    waits: list[float] = []

    def wait(_patience: Patience, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(Patience, "wait", wait)
    return waits
