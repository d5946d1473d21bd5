"""Addresses whose port is 0 in a stack's file: sandbox services, whose address is in the environment.

The clouds' own variables are used if they exist, so that providers read them too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from components.errors import CredfleetError

SECRET_MANAGER: Final = "gcp:secretManagerCustomEndpoint"  # noqa: S105 - the key of an address
HYPERFLEET: Final = "credfleet:pullSecrets.hyperfleet.apiUrl"

VARIABLES: Final[Mapping[str, str]] = {
    SECRET_MANAGER: "GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT",
    "azure-native:metadataHost": "ARM_METADATA_HOSTNAME",
    HYPERFLEET: "HYPERFLEET_API_URL",
}
"""Key of a stack file → the variable with the address to use if the file has port 0."""


def leaves_port_open(address: str) -> bool:
    """Return whether an address has port 0."""
    try:
        return urlsplit(address if "://" in address else f"//{address}").port == 0
    except ValueError:
        return False


def is_in_environment(key: str) -> bool:
    """Return whether the environment has the address of this key, or of one below it."""
    return any(path.startswith(key) and os.environ.get(name) for path, name in VARIABLES.items())


def settle(key: str, address: str) -> str:
    """Return an address of a stack's file, or that of the environment if its port is 0.

    Raises CredfleetError, code `sandbox-unknown`, if the environment has none.
    """
    if not leaves_port_open(address):
        return address
    known = os.environ.get(VARIABLES[key])
    if not known:
        raise CredfleetError(
            code="sandbox-unknown",
            place=key,
            problem=f"port 0 means the sandbox's service, and {VARIABLES[key]} is not set",
            fix='run `credfleet sandbox up`, then `eval "$(credfleet sandbox env)"` in this shell',
        )
    return known
