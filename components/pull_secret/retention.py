"""What becomes of versions a stack no longer needs: one that was replaced, and all when a cluster leaves.

The provider of Google Cloud knows one policy for both, so it abandons versions and this carries out what was
asked for (decision 24). It runs after the new version was verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from components.secret_manager import Version, VersionState, version_name


class Retention(StrEnum):
    """What to do with versions nobody needs any more."""

    KEEP = "keep"
    DISABLE = "disable"
    DESTROY = "destroy"


class Versions(Protocol):
    """What of Secret Manager a retention needs. All raise SecretManagerError."""

    def version(self, name: str) -> Version | None:
        """Read a version without its payload."""
        ...

    def versions(self, secret: str) -> Sequence[Version]:
        """List all versions, the newest first."""
        ...

    def disable(self, version: Version) -> Version:
        """Keep a version from being read."""
        ...

    def destroy(self, version: Version) -> Version:
        """Take its payload away for good."""
        ...


def settle_replaced(versions: Versions, secret: str, number: int, retention: Retention) -> str:
    """Do with a version that was replaced what was asked for; tell what became of it."""
    found = versions.version(version_name(secret, number))
    if found is None:
        return f"version {number} was gone already"
    settled = _settled(versions, found, retention)
    return f"version {number} is {'kept' if retention is Retention.KEEP else settled.state.lower()}"


def settle_all(versions: Versions, secret: str, retention: Retention) -> Sequence[int]:
    """Do with every version what was asked for; give the numbers of those that changed.

    To destroy means the whole secret, which the provider of Google Cloud deletes right after.
    """
    if retention is not Retention.DISABLE:
        return ()
    enabled = [each for each in versions.versions(secret) if each.state is VersionState.ENABLED]
    return [versions.disable(each).number for each in enabled]


def _settled(versions: Versions, found: Version, retention: Retention) -> Version:
    """Run again after any failure, it finds what was done and leaves it."""
    if retention is Retention.DISABLE and found.state is VersionState.ENABLED:
        return versions.disable(found)
    if retention is Retention.DESTROY and found.state is not VersionState.DESTROYED:
        return versions.destroy(found)
    return found
