"""Microsoft's and Google's clouds as a file of keys that are alive: what two examples call, and nothing else.

Run as `clouds_of_keys.py STATE EXAMPLE ACCOUNT VERB`. A request must be one of `CALLS`, which are of Graph's
v1.0 metadata and of Google's discovery document iam v1 of 2026-10-23.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
import time
import uuid
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from google.auth import jwt
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

PROJECT, EMAIL = "acme", "robot@acme.iam.gserviceaccount.com"
TOKEN_URL: Final = "https://oauth2.googleapis.com/token"
_ACCOUNT: Final = f"projects/{PROJECT}/serviceAccounts/{EMAIL}"
_KEYS: Final = rf"https://iam\.googleapis\.com/v1/{_ACCOUNT}/keys"
_APPLICATION: Final = r"https://graph\.microsoft\.com/v1\.0/applications\(appId='app'\)"
_LOGIN: Final = r"https://login\.microsoftonline\.com/tenant/oauth2/v2\.0/token"
_FORM: Final = {"grant_type", "client_id", "client_secret", "scope"}
CALLS: Final[Mapping[str, tuple[str, set[str]]]] = {
    "entra login": (rf"POST {_LOGIN}", _FORM),
    "list passwords": (rf"GET {_APPLICATION}\?\$select=passwordCredentials", set()),
    "add password": (rf"POST {_APPLICATION}/addPassword", {"passwordCredential"}),
    "remove password": (rf"POST {_APPLICATION}/removePassword", {"keyId"}),
    "subscription": (r"GET https://management\.azure\.com/subscriptions/s-1\?api-version=2022-12-01", set()),
    "google login": (rf"POST {re.escape(TOKEN_URL)}", {"grant_type", "assertion"}),
    "list keys": (rf"GET {_KEYS}\?keyTypes=USER_MANAGED", set()),
    "create key": (rf"POST {_KEYS}", {"keyAlgorithm", "privateKeyType"}),
    "delete key": (rf"DELETE {_KEYS}/\w+", set()),
}


class Cloud:
    """Keys, by id. late: how often a new one is rejected; down: what every login is answered."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.state: dict[str, Any] = (
            json.loads(file.read_text()) if file.exists() else {"keys": {}, "late": 0}
        )
        self.keys: dict[str, str] = self.state["keys"]

    def keep(self) -> None:
        self.file.write_text(json.dumps(self.state))

    def send(self, request: PreparedRequest, **_: Any) -> Response:
        """Answer a request, of an identity whose key is alive."""
        text = request.body.decode() if isinstance(request.body, bytes) else request.body or "{}"
        said = (
            json.loads(text) if text[0] == "{" else {key: value for key, (value,) in parse_qs(text).items()}
        )
        asked = f"{request.method} {request.url}"
        (call,) = (call for call, (pattern, _) in CALLS.items() if re.fullmatch(pattern, asked))
        own = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not said.keys() <= CALLS[call][1] or (own not in self.keys and not call.endswith("login")):
            raise AssertionError(call)
        answer = Response()
        answer.status_code, told = self.answer(call, said, asked.rpartition("/")[2])
        self.keep()
        answer._content = json.dumps(told).encode()  # pyright: ignore[reportPrivateUsage]
        return answer

    def answer(self, call: str, said: Mapping[str, Any], last: str = "") -> tuple[int, Any]:
        match call:
            case "entra login":
                known = [key_id for key_id, secret in self.keys.items() if secret == said["client_secret"]]
                return self._sign_in(
                    [*known, ""][0], 401, {"error": "invalid_client", "error_codes": [7000215]}
                )
            case "list passwords":
                listed = [{"keyId": key_id, "hint": secret[:3]} for key_id, secret in self.keys.items()]
                told = {"passwordCredentials": listed}
            case "add password":
                key_id, secret = str(uuid.uuid4()), f"{len(self.keys)}sentinel-{uuid.uuid4()}"
                self.keys[key_id], self.state["new"] = secret, key_id
                told = {"keyId": key_id, "secretText": secret, "hint": secret[:3]}
            case "remove password":
                told = self.keys.pop(said["keyId"])
            case "subscription":
                told = {"subscriptionId": "s-1"}
            case "google login":
                key_id = jwt.decode_header(said["assertion"])["kid"]
                if key_id in self.keys:
                    own = pem.load_pem_private_key(
                        json.loads(self.keys[key_id])["private_key"].encode(), None
                    )
                    form = pem.PublicFormat.SubjectPublicKeyInfo
                    public = {key_id: own.public_key().public_bytes(pem.Encoding.PEM, form)}
                    jwt.decode(said["assertion"], public, audience=TOKEN_URL)
                rejection = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
                return self._sign_in(key_id, 400, rejection)
            case "list keys":
                told = {"keys": [{"name": f"{_ACCOUNT}/keys/{key_id}"} for key_id in self.keys]}
            case "create key":
                form = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
                key = generate_private_key(65537, 2048).private_bytes(*form).decode()
                file = {"private_key_id": uuid.uuid4().hex, "private_key": key, "token_uri": TOKEN_URL}
                file |= {"type": "service_account", "project_id": PROJECT, "client_email": EMAIL}
                self.state["new"] = file["private_key_id"]
                text = self.keys[self.state["new"]] = json.dumps(file)
                name = f"{_ACCOUNT}/keys/{self.state['new']}"
                told = {"name": name, "privateKeyData": b64encode(text.encode()).decode()}
            case _:
                told = self.keys.pop(last)
        return 200, told

    def _sign_in(self, key_id: str, status: int, rejection: Mapping[str, Any]) -> tuple[int, Any]:
        if down := self.state.get("down"):
            return down
        is_late = key_id == self.state["new"] and self.state["late"] > 0
        self.state["late"] -= is_late
        if is_late or key_id not in self.keys:
            return status, rejection
        return 200, {"access_token": key_id, "expires_in": 3600, "token_type": "Bearer"}


if __name__ == "__main__":
    state, example, *words = sys.argv[1:]
    HTTPAdapter.send, time.sleep = Cloud(Path(state)).send, lambda _: None  # pyright: ignore
    sys.argv, sys.path[0] = [example, *words], str(Path(example).parent)
    runpy.run_path(example, run_name="__main__")
