"""What the tests of both cloud providers share."""

import pytest


@pytest.fixture
def pauses() -> list[float]:
    """Return the waits between attempts, in seconds; none is really waited for."""
    return []
