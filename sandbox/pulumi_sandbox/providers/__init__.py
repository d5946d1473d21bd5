"""Resource providers the sandbox serves itself, so that none has to be downloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pulumi_sandbox.providers.importing import import_alone

if TYPE_CHECKING:
    from pathlib import Path

    from pulumi_sandbox.protocol.calls import Calls

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
"""In place of a URN: what is recorded of whatever nobody looked at. An engine takes nothing unknown there."""


def _azure_native(_program: Path) -> Calls:
    from pulumi_sandbox.providers.azure_native.package import package
    from pulumi_sandbox.providers.server import calls

    import_alone("requests.adapters")
    return calls(package())


def _gcp(_program: Path) -> Calls:
    from pulumi_sandbox.providers.gcp.package import package
    from pulumi_sandbox.providers.server import calls

    import_alone("requests.adapters")
    return calls(package())


def _kubernetes(program: Path) -> Calls:
    from pulumi_sandbox.providers.kubernetes.package import package
    from pulumi_sandbox.providers.server import calls

    import_alone("kubernetes.config", "kubernetes.utils.quantity")
    return calls(package(program))


STAND_INS: Final[Mapping[str, Callable[[Path], Calls]]] = MappingProxyType(
    {"azure-native": _azure_native, "gcp": _gcp, "kubernetes": _kubernetes}
)
"""What serves a package within the engine's process, given the program's folder, for each provider."""
