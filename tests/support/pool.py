"""Pools in memory, as tests begin with them."""

from collections.abc import Mapping

from components.account_pool.core.calls import Kind
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from tests.support.memory_pool import MemoryServer


def fill(server: MemoryServer, *free: str, **labelled: Mapping[str, str]) -> MemoryServer:
    """Add accounts of type aws: free ones, and others with labels, by name."""
    for name, labels in ({name: {} for name in free} | labelled).items():
        server.add_member(name, labels)
    return server


def settle(server: MemoryServer, settings: PoolConfigMap) -> None:
    """Have a pool say what it is, as if a stack had declared it."""
    metadata = {"name": CONFIG_MAP, "namespace": "accounts"}
    server.put(Kind.RECORD, {"metadata": metadata, "data": settings.render()}, "uid-1")


def server_of(*free: str, **labelled: Mapping[str, str]) -> MemoryServer:
    """Make a server with accounts, as `fill` adds them."""
    return fill(MemoryServer(), *free, **labelled)
