"""Resource providers the sandbox serves itself, so that none has to be downloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pulumi_sandbox.providers.offline import Recorded

STAND_INS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "azure-native": "pulumi_sandbox.providers.azure_native",
        "gcp": "pulumi_sandbox.providers.gcp",
        "kubernetes": "pulumi_sandbox.providers.kubernetes",
    }
)
"""The module that serves a package, started with `python -m`."""


def recorded_providers(recorded: Recorded) -> Mapping[str, Callable[[], object]]:
    """Return what serves each package within a process, and asks nobody."""
    from pulumi_sandbox.providers.offline import offline

    return offline(recorded)
