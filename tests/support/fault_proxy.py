"""A proxy on loopback between clients and a server that misbehaves as a plan says, and counts how often.

It speaks plain HTTP to clients, or HTTPS where it is given a certificate. They meet an API server by a
kubeconfig of its own, and a stand-in of a cloud by its address.
"""

import base64
import http.client
import json
import socket
import ssl
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Lock, Thread, Timer
from typing import Any, TypeAlias
from urllib.parse import urlsplit

LATE_SECONDS = 0.03
DELAY_SECONDS = 0.03
LATEST = 5_000
"""How many exchanges are kept, whole: a history has more of them than memory."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


class Fault(StrEnum):
    """What happens to one request. Whether the server did it is in the second half of each line."""

    NONE = "none"  # done, answered
    DELAYED = "delayed"  # done, answered late
    REFUSED = "reset before"  # not done, connection reset
    LOST = "reset after"  # done, connection reset instead of the answer
    LATE = "reset, done later"  # done a while after the connection was reset
    TWICE = "done twice"  # done, done again, the second answer given
    CONFLICT = "409"  # not done
    BUSY = "429"  # not done
    BROKEN = "500"  # not done
    BROKEN_AFTER = "500 after"  # done


OF_READS = (Fault.DELAYED, Fault.REFUSED, Fault.LOST, Fault.BUSY, Fault.BROKEN)
OF_WRITES = tuple(fault for fault in Fault if fault is not Fault.NONE)

Plan: TypeAlias = Callable[[int, str], Fault]
"""Returns the fault of a request by its number, from 0, and its method."""


def nothing(_number: int, _method: str) -> Fault:
    """Pass everything on."""
    return Fault.NONE


def at_random(seed: int, share: float) -> Plan:
    """Let this share of all requests meet a fault, each kind as often, the same for the same seed."""

    def plan(number: int, method: str) -> Fault:
        random = Random(f"{seed}/{number}")
        if random.random() >= share:
            return Fault.NONE
        return random.choice(OF_READS if method == "GET" else OF_WRITES)

    return plan


@dataclass
class Once:
    """One fault, at the first request from this number on that can meet it."""

    number: int
    fault: Fault
    met: bool = False

    def __call__(self, number: int, method: str) -> Fault:
        possible = OF_READS if method == "GET" else OF_WRITES
        if self.met or number < self.number or self.fault not in possible:
            return Fault.NONE
        self.met = True
        return self.fault


@dataclass(frozen=True)
class Exchange:
    """One request, what happened to it, and what the client was answered (status 0: nothing)."""

    method: str
    path: str
    fault: Fault
    status: int
    answer: bytes = field(repr=False)


@dataclass(frozen=True)
class _Upstream:
    host: str
    port: int
    trust: ssl.SSLContext | None = None

    def open(self) -> http.client.HTTPConnection:
        if self.trust is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=30)
        return http.client.HTTPSConnection(self.host, self.port, context=self.trust, timeout=30)


class FaultProxy(ThreadingHTTPServer):
    """The proxy; it serves from `running` on, until the end of that block."""

    daemon_threads = False

    kubeconfig: Path
    scheme = "http"

    def __init__(self, host: str, upstream: _Upstream, plan: Plan) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), _Handler)
        self.upstream = upstream
        self.plan = plan
        self.exchanges: deque[Exchange] = deque(maxlen=LATEST)
        self._counts: Counter[Fault] = Counter()
        self._numbers = 0
        self._lock = Lock()
        self._late: list[Timer] = []
        self._clients: set[socket.socket] = set()

    @property
    def url(self) -> str:
        """Where clients meet it."""
        host = str(self.server_address[0])
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.server_port}"

    def next_fault(self, method: str) -> Fault:
        with self._lock:
            number, self._numbers = self._numbers, self._numbers + 1
            return self.plan(number, method)

    def restart_plan(self, plan: Plan) -> None:
        """Follow another plan from its first request on, with nothing noted."""
        with self._lock:
            self.plan, self._numbers = plan, 0
            self.exchanges.clear()
            self._counts.clear()

    def note(self, exchange: Exchange) -> None:
        with self._lock:
            self.exchanges.append(exchange)
            self._counts[exchange.fault] += 1

    def do_later(self, work: Callable[[], object]) -> None:
        timer = Timer(LATE_SECONDS, work)
        with self._lock:
            timer.start()  # under the lock: `settle` joins whatever is in the list
            self._late.append(timer)

    def settle(self) -> None:
        """Wait until every late write was done."""
        with self._lock:
            late, self._late = self._late, []
        for timer in late:
            timer.join()

    def counts(self) -> Counter[Fault]:
        """Count the requests by what happened to them."""
        with self._lock:
            return Counter(self._counts)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._clients.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close without the polite half-close, so that a reset is one."""
        with self._lock:
            self._clients.discard(request)
        self.close_request(request)

    def hang_up(self) -> None:
        """End the connections of all clients, each of which a thread waits on."""
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that was killed in the middle of a request."""


@contextmanager
def running(kubeconfig: Path, folder: Path, plan: Plan = nothing) -> Generator[FaultProxy]:
    """Run a proxy in front of the API server of a kubeconfig of the sandbox."""
    config = json.loads(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    server = urlsplit(cluster["server"])
    authority = base64.b64decode(cluster.pop("certificate-authority-data")).decode()
    trust = ssl.create_default_context(cadata=authority)
    with _served("127.0.0.1", _Upstream(str(server.hostname), server.port or 443, trust), plan) as proxy:
        cluster["server"] = proxy.url
        proxy.kubeconfig = folder / f"proxy-{proxy.server_port}.kubeconfig"
        proxy.kubeconfig.write_text(json.dumps(config))
        yield proxy


def before(port: int) -> AbstractContextManager[FaultProxy]:
    """Run a proxy in front of a stand-in; on ::1, where the sandbox starts none of its own."""
    return _served("::1", _Upstream("127.0.0.1", port), nothing)


def before_https(port: int, authority: Path, serving: Path) -> AbstractContextManager[FaultProxy]:
    """Run a proxy with a certificate of its own before a stand-in that an authority vouches for.

    It is on 127.0.0.2, since no host of Azure may be written as ::1.
    """
    trust = ssl.create_default_context(cafile=authority)
    return _served("127.0.0.2", _Upstream("127.0.0.1", port, trust), nothing, serving)


@contextmanager
def _served(host: str, upstream: _Upstream, plan: Plan, serving: Path | None = None) -> Generator[FaultProxy]:
    with FaultProxy(host, upstream, plan) as proxy:
        if serving is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(serving)
            proxy.socket = context.wrap_socket(proxy.socket, server_side=True)
            proxy.scheme = "https"
        thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.settle()
            proxy.shutdown()
            thread.join()
            proxy.hang_up()


class _Handler(BaseHTTPRequestHandler):
    """One client connection: requests one after the other, each on the same upstream connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self._upstream = self._proxy.upstream.open()

    def finish(self) -> None:
        self._upstream.close()
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep standard error clean."""

    @property
    def _proxy(self) -> FaultProxy:
        assert isinstance(self.server, FaultProxy)
        return self.server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match self._proxy.next_fault(self.command):
            case Fault.NONE as fault:
                self._answer(fault, *self._forward(body))
            case Fault.DELAYED as fault:
                time.sleep(DELAY_SECONDS)
                self._answer(fault, *self._forward(body))
            case Fault.TWICE as fault:
                self._forward(body)
                self._answer(fault, *self._forward(body))
            case Fault.REFUSED as fault:
                self._reset(fault)
            case Fault.LOST as fault:
                self._forward(body)
                self._reset(fault)
            case Fault.LATE as fault:
                self._proxy.do_later(self._on_its_own(body))
                self._reset(fault)
            case Fault.CONFLICT as fault:
                self._answer(fault, 409, _status(409, "Conflict"))
            case Fault.BUSY as fault:
                self._answer(fault, 429, _status(429, "TooManyRequests"))
            case Fault.BROKEN as fault:
                self._answer(fault, 500, _status(500, "InternalError"))
            case Fault.BROKEN_AFTER as fault:
                self._forward(body)
                self._answer(fault, 500, _status(500, "InternalError"))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the names http.server calls

    def _forward(self, body: bytes) -> tuple[int, bytes]:
        return _send(self._upstream, self.command, self.path, body, self._passed_on())

    def _on_its_own(self, body: bytes) -> Callable[[], object]:
        """Send the request on a connection of its own: that of the client is closed by then."""
        method, path, headers = self.command, self.path, self._passed_on()
        upstream = self._proxy.upstream

        def send() -> None:
            # A server that was killed meanwhile takes it no more, and no client waits for it.
            with closing(upstream.open()) as connection, suppress(OSError, http.client.HTTPException):
                _send(connection, method, path, body, headers)

        return send

    def _passed_on(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}

    def _answer(self, fault: Fault, status: int, answer: bytes) -> None:
        self._proxy.note(Exchange(self.command, self.path, fault, status, answer))
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        if status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(answer)

    def _reset(self, fault: Fault) -> None:
        self._proxy.note(Exchange(self.command, self.path, fault, 0, b""))
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.close_connection = True


def _send(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, bytes]:
    connection.request(method, path, body or None, headers)
    response = connection.getresponse()
    return response.status, response.read()


def _status(code: int, reason: str) -> bytes:
    """Draw the object an API server sends with a failure."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return json.dumps({**body, "message": "injected"}).encode()
