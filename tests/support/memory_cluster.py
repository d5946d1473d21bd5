"""The commands of the account pool on an API server in memory: all their code but the connection."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from components.account_pool.core import pool as pools
from components.account_pool.core.calls import Kind
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.connection import ClusterTarget
from operations.main import app
from operations.pool.access import PoolTarget
from tests.support.memory_pool import MemoryServer

NAMESPACE = "accounts"
"""Not the one that commands mean when none is named."""


@contextmanager
def memory_cluster(monkeypatch: pytest.MonkeyPatch) -> Generator[MemoryServer]:
    """Let every command and provider meet one pool in memory, whatever cluster it means."""
    server = MemoryServer()
    settings = {"metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}, "data": PoolConfigMap().render()}
    server.create(Kind.RECORD, settings)

    def api(_target: ClusterTarget, namespace: str, _manager: str) -> MemoryServer:
        assert namespace == NAMESPACE, f"the command went to pool {namespace}"
        return server

    def target(_where: PoolTarget) -> ClusterTarget:
        return ClusterTarget(context="memory")

    with monkeypatch.context() as patch:
        patch.setattr(pools, "_api", api)
        patch.setattr(pools, "_pools", {})
        patch.setattr(PoolTarget, "target", target)
        yield server


def credfleet(*arguments: str) -> Result:
    """Run a command line, as a process of its own does: no pool is open yet."""
    pools._pools.clear()  # pyright: ignore[reportPrivateUsage] - of the process that the tests run in
    return CliRunner().invoke(app, list(arguments))


def answer(*arguments: str) -> Any:
    """Run a command of the pool that goes well, and return what it answers in JSON."""
    result = credfleet("pool", *arguments, "--namespace", NAMESPACE, "--output", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
