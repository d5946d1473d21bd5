"""Stacks in the backend of the environment, whose files name who encrypts their secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from pulumi.automation import ConfigValue

from operations.fleet.backend import Backend
from operations.folders import Folders
from operations.stack.yaml_file import load_map
from sandbox.tests.support.cli_folder import Cli


class Transit(BaseHTTPRequestHandler):
    """The two calls of a Vault's transit engine that encrypt and decrypt a stack's key."""

    def do_PUT(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked.get("plaintext") or asked["ciphertext"].removeprefix("vault:v1:")
        answer = {"data": {"plaintext": text, "ciphertext": f"vault:v1:{text}"}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def vault() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Transit) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_new_stack_keeps_the_secrets_provider_and_the_key_of_its_file(
    tmp_path: Path, vault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(tmp_path)
    variables = {**cli.environment, "VAULT_SERVER_URL": vault, "VAULT_SERVER_TOKEN": "any"}
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    key = base64.b64encode(b"vault:v1:" + base64.b64encode(b"k" * 32)).decode()
    file = cli.folder / "Pulumi.new.yaml"
    file.write_text(f"secretsprovider: hashivault://stacks\nencryptedkey: {key}\n")
    Backend.find(Folders(cli.folder)).stack("new").set_config("mine:key", ConfigValue("sealed", secret=True))
    written = load_map(file).data
    assert (written["secretsprovider"], written["encryptedkey"]) == ("hashivault://stacks", key)
    assert "encryptionsalt" not in written
