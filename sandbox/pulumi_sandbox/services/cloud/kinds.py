"""Which services there are to stand in for."""

from __future__ import annotations

from enum import StrEnum


class Cloud(StrEnum):
    """A service, by the word that starts its process and names its folder and log."""

    SECRET_MANAGER = "secret-manager"  # noqa: S105 - the name of a service
    RESOURCE_MANAGER = "resource-manager"
    HYPERFLEET = "hyperfleet"

    @property
    def scheme(self) -> str:
        """The scheme it is spoken to by: clients of Resource Manager take nothing but HTTPS."""
        return "https" if self is Cloud.RESOURCE_MANAGER else "http"
