"""What becomes of versions a stack no longer needs: one that was replaced, and all when a cluster leaves.

The provider of Google Cloud knows one policy for both, so it abandons versions and this carries out what was
asked for. It runs after the new version was verified. An update that failed in between has left
versions nobody knows the numbers of, so all that came since the last one in use are settled with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from components.secret_manager import Version, VersionState


class Retention(StrEnum):
    """What to do with versions nobody needs any more."""

    KEEP = "keep"
    DISABLE = "disable"
    DESTROY = "destroy"


class Versions(Protocol):
    """What of Secret Manager a retention needs. All raise SecretManagerError."""

    def versions(self, secret: str) -> Sequence[Version]:
        """List all versions, the newest first."""
        ...

    def disable(self, version: Version) -> Version:
        """Keep a version from being read."""
        ...

    def destroy(self, version: Version) -> Version:
        """Take its payload away for good."""
        ...


def settle_replaced(versions: Versions, secret: str, former: int, now: int, retention: Retention) -> str:
    """Do with the former version what was asked for, now another is in use; and return what became of it.

    Those between the two were never in use: unless all are kept they are disabled, never destroyed, since
    somebody else may have added them.
    """
    earlier = [each for each in versions.versions(secret) if former <= each.number < now]
    skipped = [each for each in earlier if each.number > former and each.state is VersionState.ENABLED]
    told = [
        f"version {former} is {_settled(versions, each, retention)}"
        for each in earlier
        if each.number == former
    ] or [f"version {former} was gone already"]
    if skipped and retention is not Retention.KEEP:
        numbers = ", ".join(str(versions.disable(each).number) for each in reversed(skipped))
        told.append(f"what was added since and never used is disabled ({numbers})")
    return "; ".join(told)


def settle_all(versions: Versions, secret: str, retention: Retention) -> Sequence[int]:
    """Do with every version what was asked for; and return the numbers of those that changed.

    To destroy means the whole secret, which the provider of Google Cloud deletes right after.
    """
    if retention is not Retention.DISABLE:
        return ()
    enabled = [each for each in versions.versions(secret) if each.state is VersionState.ENABLED]
    return [versions.disable(each).number for each in enabled]


def _settled(versions: Versions, found: Version, retention: Retention) -> str:
    """Run again after any failure, it finds what was done and leaves it."""
    match retention:
        case Retention.KEEP:
            return "kept"
        case Retention.DISABLE if found.state is VersionState.ENABLED:
            found = versions.disable(found)
        case Retention.DESTROY if found.state is not VersionState.DESTROYED:
            found = versions.destroy(found)
        case _:
            pass
    return found.state.lower()
