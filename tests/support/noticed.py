"""Waits until the API server has noticed what was written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import pytest

_SECONDS: Final = 60.0


def until(holds: Callable[[], bool]) -> None:
    """Wait until the API server has noticed what was written."""
    deadline = time.monotonic() + _SECONDS
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"the API server has not noticed after {_SECONDS:g} s")
        time.sleep(0.05)
