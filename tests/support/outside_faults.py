"""What can be wrong outside of this program: kubeconfigs that lead nowhere, and servers that are none."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import yaml

from tests.support.cases import table
from tests.support.certificates import pem

TOKEN: Final = "s3ntinel-of-a-token"
QUOTED: Final = "s3ntinel-of-an-answer"
CONTEXT: Final = "meant"

ANSWERS: Final[dict[str, tuple[int, Any]]] = table(__file__, "ANSWERS")
"""What a server answers to everything."""

KUBECONFIGS: Final[dict[str, Any]] = table(__file__, "KUBECONFIGS")
"""What is other than in a sound kubeconfig."""

SILENCES: Final = ("refused", "untrusted", "no TLS", "closed", "silent")
FAULTS: Final = (*KUBECONFIGS, *ANSWERS, *SILENCES)


@contextmanager
def outside(fault: str, folder: Path) -> Generator[dict[str, Any]]:
    """Let a fault be there; gives the configuration of a stack that meets it wherever it asks."""
    with _served(fault, folder) as server:
        file = folder / "kubeconfig"
        if (text := _kubeconfig(KUBECONFIGS.get(fault, {}), server)) is not None:
            file.write_text(text)
        yield {
            "cluster": {"kubeconfig": str(file), "context": CONTEXT},
            "gcp:secretManagerCustomEndpoint": f"{server}/v1/",
            "gcp:accessToken": TOKEN,
            "pullSecrets": {"hyperfleet": {"apiUrl": server}},
        }


def _kubeconfig(change: Any, server: str) -> str | None:
    if change is None or isinstance(change, str):
        return change
    sound = {
        "contexts": [{"name": CONTEXT, "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
    }
    for user in change.get("users", []):
        if command := user["user"].get("exec"):
            command |= {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    return yaml.safe_dump({**sound, **change})


@contextmanager
def _served(fault: str, folder: Path) -> Generator[str]:
    if fault == "refused":
        with socket.socket() as unheard:
            unheard.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{unheard.getsockname()[1]}"
        return
    over = Event()
    handler = type("Handler", (_Handler,), {"fault": fault, "over": over})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if fault == "untrusted":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (folder / "pair.pem").write_bytes(pem())
        context.load_cert_chain(folder / "pair.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    scheme = "https" if fault in ("untrusted", "no TLS") else "http"
    try:
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    fault: str
    over: Event

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.fault == "silent":
            self.over.wait()
            return
        status, body = ANSWERS.get(self.fault, (200, {"data": QUOTED}))
        sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(sent) + (self.fault == "closed")))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - names of the library

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
