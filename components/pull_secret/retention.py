"""What becomes of versions a stack no longer needs: one that was replaced, and all when a cluster leaves.

The provider of Google Cloud knows one policy for both, so it abandons versions and this carries out what was
asked for. It runs after the new version was verified. An update that failed in between has left
versions of unknown numbers, so all that came since the last one in use are settled with it; and all
that were kept, once they are kept no more.
"""

from __future__ import annotations

from enum import StrEnum

from components.secret_manager import SecretManager, Version, VersionState


class Retention(StrEnum):
    """What to do with versions that are not needed any more."""

    KEEP = "keep"
    DISABLE = "disable"
    DESTROY = "destroy"


def settle_replaced(
    versions: SecretManager, secret: str, retention: Retention, *, since: int, former: int, now: int
) -> str:
    """Do with the former version what was asked for, now another is in use; and return what became of it.

    since: the first number that is settled with it. When only the policy changed, the former is the one in
    use. Others may be another owner's, or were kept: unless all are kept they are disabled, never destroyed.
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
    """Do with every version what was asked for; and return what becomes of the secret.

    To destroy means the whole secret, which the provider of Google Cloud deletes right after.
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
