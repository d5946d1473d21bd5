"""Which packages the sandbox serves itself, so that no provider has to be downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STAND_INS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "azure-native": "sandbox.providers.azure_native",
        "gcp": "sandbox.providers.gcp",
        "kubernetes": "sandbox.providers.kubernetes",
    }
)
"""The module that serves a package, started with `python -m`."""
