"""Retention of versions that a stack no longer requires: a replaced one, and all when a cluster leaves.

The Google Cloud provider has one policy for both, so it abandons versions, and this module applies the
configured retention after the new version was verified. An update that failed in between might have left
versions with unknown numbers, so all after the last one in use are handled with it; and all that were kept,
when `keep` ends.
"""

from __future__ import annotations

from enum import StrEnum

from components.secret_manager import SecretManager, Version, VersionState


class Retention(StrEnum):
    """What to do with versions that are no longer required."""

    KEEP = "keep"
    DISABLE = "disable"
    DESTROY = "destroy"


def settle_replaced(
    versions: SecretManager, secret: str, retention: Retention, *, since: int, former: int, now: int
) -> str:
    """Apply the retention to the former version, now that another is in use; return the result.

    `since`: first number to handle. If only the policy changed, the former is the one in use. Others might
    have another owner, or were kept: unless all are kept, they are disabled, never destroyed.
    """
    earlier = [each for each in versions.versions(secret) if since <= each.number < now]
    others = [each for each in earlier if each.number != former and each.state is VersionState.ENABLED]
    told = [
        f"version {former} is {_settled(versions, each, retention)}"
        for each in earlier
        if each.number == former
    ]
    if former != now and not told:
        told.append(f"version {former} was gone already")
    if others and retention is not Retention.KEEP:
        numbers = ", ".join(str(versions.disable(each).number) for each in reversed(others))
        told.append(f"what else was there before is disabled ({numbers})")
    return "; ".join(told) or "nothing was there before"


def settle_all(versions: SecretManager, secret: str, retention: Retention) -> str:
    """Apply the retention to every version; return what happens to the secret.

    DESTROY means the whole secret, which the Google Cloud provider deletes afterwards.
    """
    match retention:
        case Retention.KEEP:
            return "stays, and so do its versions"
        case Retention.DESTROY:
            return "is deleted with all its versions"
        case Retention.DISABLE:
            enabled = [each for each in versions.versions(secret) if each.state is VersionState.ENABLED]
            numbers = ", ".join(str(versions.disable(each).number) for each in enabled)
            return f"stays; its versions are disabled ({numbers or 'none was enabled'})"


def _settled(versions: SecretManager, found: Version, retention: Retention) -> str:
    """Apply the retention; safe to repeat after any failure."""
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
