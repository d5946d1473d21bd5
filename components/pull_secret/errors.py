"""The error of pull secrets. It never holds a part of one, nor words of a server that could."""

from __future__ import annotations

from components.errors import CredfleetError


class PullSecretError(CredfleetError):
    """A pull secret that is not what was stored, or a service that does not take what it is told."""
