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
"""The module that serves a package in a process of its own, started with `python -m`."""


OFFLINE: Final = "pulumi_sandbox.providers.offline"
"""The module that serves a package by what is recorded, started with `python -m`, PACKAGE and FILE."""
UNSEEN: Final = ""
"""In place of a URN: what is recorded of what was not looked at. An engine takes nothing unknown there."""
