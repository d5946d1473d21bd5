"""`credfleet pool serve`: the metrics of a pool over HTTP, as they are when Prometheus asks."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import ClassVar

import typer
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from pulumi_sandbox.steering import visible

from components.connection import ClusterTarget
from components.errors import ExplainedError, Misused
from operations.cli.answer import Answer
from operations.pool.access import Where
from operations.pool.metrics import gauges_of, is_up, look, registry


@dataclass(slots=True)
class Exporter:
    """Measures a pool when it is asked, and again only after a while: several may ask.

    measure: raises ExplainedError where it cannot.
    """

    namespace: str
    measure: Callable[[], Sequence[Metric]]
    seconds: float
    clock: Callable[[], float] = time.monotonic
    problem: str = "nothing was measured yet"
    _found: Sequence[Metric] = ()
    _until: float = float("-inf")
    _one: Lock = field(default_factory=Lock)

    def metrics(self) -> Sequence[Metric]:
        """Return what was measured; where that failed only that, and `problem` says why."""
        with self._one:
            if self.clock() >= self._until:
                try:
                    self._found, self.problem = self.measure(), ""
                except ExplainedError as error:
                    self._found, self.problem = (), str(error)
                    typer.echo(visible(f"✗ {error}"), err=True)
                self._until = self.clock() + self.seconds
            return [*self._found, is_up(self.namespace, up=not self.problem)]


def measured(target: ClusterTarget, namespace: str) -> Sequence[Metric]:
    """Measure a pool whole; raises as `look`."""
    settings, census = look(target, namespace)
    return [*gauges_of(namespace, census, settings, datetime.now(UTC))]


def serve(where: Where, listen: str, seconds: float) -> Answer:
    """Serve the metrics of a pool until SIGTERM or Ctrl-C; raises as `Where.open_existing`.

    Raises Misused for an address that is none, or taken.
    """
    where.open_existing()
    target = where.target()
    exporter = Exporter(where.namespace, lambda: measured(target, where.namespace), seconds)
    host, _, port = listen.rpartition(":")
    handler = type("Handler", (_Handler,), {"exporter": exporter})
    try:
        server = ThreadingHTTPServer((host.strip("[]"), int(port)), handler)
    except (OSError, ValueError, OverflowError) as error:
        raise Misused(
            place="--listen",
            cause=f"nothing can listen at {listen} ({error})",
            mend="name HOST:PORT that is free",
        ) from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with server:
        where_it_is = "http://{}:{}/metrics".format(*server.server_address[:2])
        typer.echo(f"· pool {where.namespace}: {where_it_is}, until Ctrl-C", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return Answer({"namespace": where.namespace, "served": where_it_is}, [])


class _Handler(BaseHTTPRequestHandler):
    """Answers to Prometheus and to a kubelet's probes."""

    exporter: ClassVar[Exporter]

    def do_GET(self) -> None:
        """Answer one question."""
        match self.path.partition("?")[0]:
            case "/metrics":
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._answer(HTTPStatus.OK, kind, encode(registry(self.exporter.metrics())))
            case "/healthz":
                self._answer(HTTPStatus.OK, "text/plain", b"ok\n")
            case "/readyz":
                self.exporter.metrics()
                problem = self.exporter.problem
                status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
                self._answer(status, "text/plain", f"{problem or 'ok'}\n".encode())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"/metrics, /healthz and /readyz\n")

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing of each question."""
