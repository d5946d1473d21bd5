"""Resource providers the sandbox serves itself, so that none has to be downloaded."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STAND_INS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "azure-native": "pulumi_sandbox.providers.azure_native",
        "gcp": "pulumi_sandbox.providers.gcp",
        "kubernetes": "pulumi_sandbox.providers.kubernetes",
    }
)
"""The module that serves a package, started with `python -m`."""
