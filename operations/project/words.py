"""Words of new projects that the help of commands shows; imports nothing."""

from enum import StrEnum
from typing import Final

ROOMS: Final = ("accountPool", "asoCredentials", "pullSecrets", "services", "secretStores")
"""The sections of a stack's configuration that a room reads."""

PASSPHRASE: Final = "passphrase"  # noqa: S105 - who encrypts, where no cloud does


class Cloud(StrEnum):
    """Whose accounts the first pool holds."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
