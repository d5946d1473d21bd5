#!/usr/bin/env python3
# /// script
# dependencies = ["google-auth[requests]"]
# ///
"""Keys of a service account of Google Cloud, of which there are ten at most.

It has roles/iam.serviceAccountKeyAdmin on itself. The credential is the file of a key: its fields, or its
text in one field of any name. A token that Google gave for a key outlives it, by up to an hour.
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any, Final

from contract import Credential, RejectedError, main
from google.auth.exceptions import RefreshError
from google.auth.transport.requests import AuthorizedSession, Request
from google.oauth2.service_account import Credentials

SCOPES: Final = ["https://www.googleapis.com/auth/cloud-platform"]


class AccountKeys:
    """The keys of the service account that one of them signs in as."""

    def __init__(self, credential: Credential) -> None:
        self._field = None if "private_key" in credential else next(iter(credential))
        self._key = json.loads(credential[self._field]) if self._field else credential
        domain = self._key.get("universe_domain", "googleapis.com")
        self._api = f"https://iam.{domain}/v1/"
        self._account = f"projects/{self._key['project_id']}/serviceAccounts/{self._key['client_email']}"
        self._signed = Credentials.from_service_account_info(self._key, scopes=SCOPES)

    def test(self) -> None:
        """Sign in."""
        self._sign_in()

    def identify(self) -> tuple[str, str]:
        """Return the id of the project and that of the key."""
        own = self._key["private_key_id"]
        project = next((name.split("/")[1] for name in self._names() if name.endswith(f"/{own}")), None)
        if project is None:
            raise SystemExit(f"Google lists no key {own} of this service account")
        return project, own

    def list(self) -> list[str]:
        """Return the ids of the account's keys that people made."""
        return [name.rpartition("/")[2] for name in self._names()]

    def create(self) -> tuple[str, Credential]:
        """Make a key."""
        made = self._call("POST", f"{self._account}/keys", json={})
        text = b64decode(made["privateKeyData"]).decode()
        return made["name"].rpartition("/")[2], {self._field: text} if self._field else json.loads(text)

    def remove(self, key_id: str) -> None:
        """Delete a key."""
        self._call("DELETE", f"{self._account}/keys/{key_id}")

    def _names(self) -> list[str]:
        found = self._call("GET", f"{self._account}/keys", params={"keyTypes": "USER_MANAGED"})
        return [each["name"] for each in found.get("keys", [])]

    def _call(self, method: str, path: str, **said: Any) -> Any:
        self._sign_in()
        answer = AuthorizedSession(self._signed).request(method, f"{self._api}{path}", timeout=30, **said)
        if method != "DELETE" or answer.status_code != 404:
            answer.raise_for_status()
        return answer.json()

    def _sign_in(self) -> None:
        try:
            self._signed.refresh(Request())
        except RefreshError as error:
            if "Invalid JWT Signature" in str(error):  # of an invalid_grant, others of which are of the clock
                raise RejectedError from None
            raise


if __name__ == "__main__":
    main(AccountKeys)
