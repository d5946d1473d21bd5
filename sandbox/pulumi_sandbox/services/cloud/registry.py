"""The cloud services the sandbox has stand-ins for; a project adds its own by describing them alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CloudService:
    """A service by the word that starts its process and names its folder and log.

    module: where `make_app(folder)` is, which returns the stand-in. scheme: what its clients speak.
    """

    name: str
    module: str
    scheme: str = "http"

    def __str__(self) -> str:
        """Return its name."""
        return self.name


SECRET_MANAGER: Final = CloudService("secret-manager", "pulumi_sandbox.services.cloud.secret_manager.app")

RESOURCE_MANAGER: Final = CloudService(
    "resource-manager", "pulumi_sandbox.services.cloud.resource_manager.app", scheme="https"
)
"""Its clients take nothing but HTTPS."""

OWN: Final = (SECRET_MANAGER, RESOURCE_MANAGER)
