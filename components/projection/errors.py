"""The errors of a projection. None ever holds a value of a Secret, nor words of the server that could."""

from __future__ import annotations

from components.errors import CredfleetError


class ProjectionError(CredfleetError):
    """What keeps a projection from being written, read or removed."""
