"""Resource providers that the sandbox serves itself, so that none must be downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "azure-native": "pulumi_sandbox.providers.azure_native",
        "gcp": "pulumi_sandbox.providers.gcp",
        "kubernetes": "pulumi_sandbox.providers.kubernetes",
    }
)
"""Package → module that serves it in a separate process, started with `python -m`."""


OFFLINE: Final = "pulumi_sandbox.providers.offline"
"""Module that serves a package from recorded values, started with `python -m`, PACKAGE and FILE."""
UNSEEN: Final = ""
"""In place of a URN: key of the outputs of objects that were not read. Engines accept no unknowns there."""
