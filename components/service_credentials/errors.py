"""The error of service credentials. It names keys inside the credentials, never a value."""

from __future__ import annotations

from components.errors import CredfleetError


class ServiceError(CredfleetError):
    """Credentials that cannot become Secrets, or a Secret that stands in the way."""
