"""A server that gives one answer to whoever shows a certificate it knows."""

import json
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from pulumi_sandbox.services.cloud.certificates import signed


@dataclass(frozen=True)
class Server:
    """A server that runs. authority: in PEM. asked: common name of the certificate shown, and the request."""

    url: str
    authority: str
    asked: list[str]


@contextmanager
def mutual_tls(folder: Path, *, clients: bytes, status: int, answer: Mapping[str, Any]) -> Generator[Server]:
    """Serve until the block ends. clients: the certificates that are known, in PEM."""
    serving, authority = signed(datetime.now(UTC))
    pair = folder / "serving.pem"
    pair.write_text(serving)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=clients.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(pair)
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert isinstance(self.connection, ssl.SSLSocket)
            shown: Any = self.connection.getpeercert()
            names = dict(pair for part in shown["subject"] for pair in part)
            asked.append(f"{names['commonName']} {self.command} {self.path}")
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Server(f"https://127.0.0.1:{server.server_address[1]}", authority, asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
