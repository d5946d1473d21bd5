#!/usr/bin/env python3
# /// script
# dependencies = ["requests"]
# ///
"""Passwords of an application of Entra ID, by which its service principal signs in to Azure.

The application owns itself, has Application.ReadWrite.OwnedBy of Microsoft Graph, and may read the
subscription. Fields of the credential: tenantID, clientID, clientSecret, subscriptionID. A token that
Entra ID gave for a password outlives it, by up to an hour.
"""

from __future__ import annotations

from typing import Any, Final

import requests
from contract import Credential, RejectedError, main

LOGIN: Final = "https://login.microsoftonline.com"
GRAPH: Final = "https://graph.microsoft.com"
MANAGEMENT: Final = "https://management.azure.com"

_REJECTED: Final = {7000215, 7000222}
"""AADSTS: the secret is invalid; it is expired."""
_HINT: Final = 3
"""How much of a password Graph tells again: by that it is known which one a credential has."""


class Passwords:
    """The passwords of the application that one of them signs in as."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential
        self._application = f"{GRAPH}/v1.0/applications(appId='{credential['clientID']}')"

    def test(self) -> None:
        """Sign in."""
        self._sign_in(GRAPH)

    def identify(self) -> tuple[str, str]:
        """Return the id of the subscription and that of the password."""
        path = f"/subscriptions/{self._credential['subscriptionID']}?api-version=2022-12-01"
        subscription = self._call("GET", f"{MANAGEMENT}{path}", MANAGEMENT)["subscriptionId"]
        hint = self._credential["clientSecret"][:_HINT]
        found = [each["keyId"] for each in self._passwords() if each["hint"] == hint]
        if len(found) != 1:
            raise SystemExit(f"{len(found)} passwords begin as this one: remove the others by hand")
        return subscription, found[0]

    def list(self) -> list[str]:
        """Return the ids of the application's passwords."""
        return [each["keyId"] for each in self._passwords()]

    def create(self) -> tuple[str, Credential]:
        """Add a password."""
        made = self._call("POST", f"{self._application}/addPassword", json={"passwordCredential": {}})
        if made["secretText"][:_HINT] == self._credential["clientSecret"][:_HINT]:
            raise SystemExit("the new password begins as the one in use does: run this again")
        return made["keyId"], {**self._credential, "clientSecret": made["secretText"]}

    def remove(self, key_id: str) -> None:
        """Remove a password."""
        self._call("POST", f"{self._application}/removePassword", json={"keyId": key_id})

    def _passwords(self) -> list[dict[str, Any]]:
        return self._call("GET", f"{self._application}?$select=passwordCredentials")["passwordCredentials"]

    def _call(self, method: str, url: str, audience: str = GRAPH, **body: Any) -> Any:
        token = {"Authorization": f"Bearer {self._sign_in(audience)}"}
        answer = requests.request(method, url, headers=token, timeout=30, **body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def _sign_in(self, audience: str) -> str:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._credential["clientID"],
            "client_secret": self._credential["clientSecret"],
            "scope": f"{audience}/.default",
        }
        url = f"{LOGIN}/{self._credential['tenantID']}/oauth2/v2.0/token"
        answer = requests.post(url, data=form, timeout=30)
        if answer.status_code == 401 and _REJECTED & {*answer.json().get("error_codes", [])}:
            raise RejectedError
        answer.raise_for_status()
        return str(answer.json()["access_token"])


if __name__ == "__main__":
    main(Passwords)
