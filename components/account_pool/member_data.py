"""Data of an account's Secret, taken from its credential: a JSON object of strings."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from components.account_pool.core.rotation import key_digest
from components.credentials import Credentials, Shape
from components.naming import is_data_key

OWNER: Final = "accountPool"
"""Owner of the Secrets of accounts with external references. It is constant, as a pool has one stack."""


def data_fault(what: str, shape: Shape) -> tuple[str, str] | None:
    """Return why a credential of this shape cannot be the data of an account's Secret, and the fix."""
    if not shape.fields:
        return (
            f"{what} is not a JSON object with fields, which become the keys of the account's Secret",
            'give it as JSON text such as {"clientID": "…", "clientSecret": "…"}',
        )
    if shape.unfit:
        return (
            f"of {what}, {', '.join(shape.unfit)} is given twice or is not a string",
            "give each field once, as text; a nested object as JSON text in quotes",
        )
    strange = [field for field in shape.fields if not is_data_key(field)]
    if strange:
        return (
            f"of {what}, {', '.join(strange)} cannot be a key of a Secret",
            "name fields with letters, digits, '-', '_' and '.'",
        )
    return None


def shape_of(content: bytes) -> Shape:
    """Return the shape of a credential that is not in the configuration."""
    try:
        shape = Credentials({"": content.decode()}).shape("")
    except ValueError:
        shape = None
    return shape or Shape(fields=None)


def account_data(content: bytes) -> Mapping[str, bytes]:
    """Return the values of the account's Secret by key, from a valid credential."""
    return {key: str(value).encode() for key, value in json.loads(content).items()}


def configured_digest(credentials: Credentials, entry: str, uid: str) -> str | None:
    """Return the digest that identifies an entry among credentials of a Secret; None if unreadable."""

    def digest(content: bytes) -> str:
        data = account_data(content)
        return key_digest({key: b64encode(value).decode() for key, value in data.items()}, uid)

    return credentials.judged(entry, digest)
