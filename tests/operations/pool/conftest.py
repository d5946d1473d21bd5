"""The pool that commands meet."""

from collections.abc import Generator

import pytest

from tests.support.memory_cluster import memory_cluster
from tests.support.memory_pool import MemoryServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[MemoryServer]:
    """Let every command meet one pool in memory, without accounts."""
    with memory_cluster(monkeypatch) as server:
        yield server
