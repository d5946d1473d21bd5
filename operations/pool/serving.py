"""`credfleet pool serve`: the metrics of a pool over HTTP, as they are when Prometheus asks."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import typer
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import Metric
from pulumi_sandbox.steering import visible

from components.connection import ClusterTarget
from components.errors import ExplainedError, Misused
from operations.cli.answer import CommandResult
from operations.pool.access import PoolTarget
from operations.pool.metrics import gauges_of, is_up, look


@dataclass(frozen=True, slots=True, eq=False)
class PoolCollector:
    """Measures a pool whenever Prometheus asks; where that fails it tells only so, and why to a log."""

    target: ClusterTarget
    namespace: str

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        measured: list[Metric] = []
        try:
            settings, snapshot = look(self.target, self.namespace)
            measured += gauges_of(self.namespace, snapshot, settings, datetime.now(UTC))
        except ExplainedError as error:
            typer.echo(visible(f"✗ {error}"), err=True)
        yield from (*measured, is_up(self.namespace, up=bool(measured)))


def serve(where: PoolTarget, listen: str) -> CommandResult:
    """Serve the metrics of a pool until SIGTERM or Ctrl-C; raises as `PoolTarget.open_existing`.

    Raises Misused for an address that is none, or taken.
    """
    where.open_existing()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(PoolCollector(where.target(), where.namespace))
    host, _, port = listen.rpartition(":")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry)
    except (OSError, ValueError, OverflowError) as error:
        raise Misused(
            place="--listen",
            problem=f"nothing can listen at {listen} ({error})",
            fix="name HOST:PORT that is free",
        ) from None
    where_it_is = "http://{}:{}/metrics".format(*server.server_address[:2])
    typer.echo(f"· pool {where.namespace}: {where_it_is}, until Ctrl-C", err=True)
    with contextlib.suppress(KeyboardInterrupt):
        thread.join()
    server.shutdown()
    return CommandResult({"namespace": where.namespace, "served": where_it_is}, [])
