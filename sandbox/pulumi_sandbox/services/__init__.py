"""The processes the sandbox starts, so that a program meets real servers.

What others may use of it is what this module names; each is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pulumi_sandbox.services.build import CONTROL_PLANE as CONTROL_PLANE
    from pulumi_sandbox.services.build import PULUMI_CLI as PULUMI_CLI
    from pulumi_sandbox.services.build import binaries as binaries
    from pulumi_sandbox.services.build import build_together as build_together
    from pulumi_sandbox.services.build import cache_folder as cache_folder
    from pulumi_sandbox.services.build import kept_in as kept_in
    from pulumi_sandbox.services.cloud.front import Service as Service
    from pulumi_sandbox.services.cloud.registry import OWN as OWN
    from pulumi_sandbox.services.cloud.registry import CloudService as CloudService
    from pulumi_sandbox.services.cloud.registry import addresses as addresses
    from pulumi_sandbox.services.cloud.registry import named as named
    from pulumi_sandbox.services.clouds import Clouds as Clouds
    from pulumi_sandbox.services.control_plane import ControlPlane as ControlPlane
    from pulumi_sandbox.services.parts import Part as Part
    from pulumi_sandbox.services.parts import User as User
    from pulumi_sandbox.services.ports import LOOPBACK as LOOPBACK
    from pulumi_sandbox.services.progress import Progress as Progress
    from pulumi_sandbox.services.progress import Step as Step

_HOMES: Final = {
    "build": ("CONTROL_PLANE", "PULUMI_CLI", "binaries", "build_together", "cache_folder", "kept_in"),
    "cloud.front": ("Service",),
    "cloud.registry": ("OWN", "CloudService", "addresses", "named"),
    "clouds": ("Clouds",),
    "control_plane": ("ControlPlane",),
    "parts": ("Part", "User"),
    "ports": ("LOOPBACK",),
    "progress": ("Progress", "Step"),
}
"""Module → what it gives to the world."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
