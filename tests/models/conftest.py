"""The built checker of the claim protocol, run as people run it."""

import os
import subprocess
from collections.abc import Callable

import pytest

from tests.models.claimcheck import program

Checker = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def checker() -> Checker:
    path = program()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        # One core, since other tests run beside it.
        environment = {**os.environ, "GOMAXPROCS": "1"}
        return subprocess.run(
            [path, *arguments], env=environment, capture_output=True, text=True, check=False
        )

    return run
