"""What becomes of versions a stack no longer needs: one that was replaced, and all when a cluster leaves.

The provider of Google Cloud knows one policy for both, so it abandons versions and this carries out what was
asked for. It runs after the new version was verified. An update that failed in between has left
versions of unknown numbers, so all that came since the last one in use are settled with it; and all
that were kept, once they are kept no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from components.secret_manager import SecretManager, Version, VersionState


class Retention(StrEnum):
    """What to do with versions that are not needed any more."""

    KEEP = "keep"
    DISABLE = "disable"
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True)
class Replaced:
    """Numbers of versions: the one in use now, the one before, and the first that is settled with that one.

    When only the policy changed, the one before is the one in use.
    """

    since: int
    former: int
    now: int


def settle_replaced(versions: SecretManager, secret: str, replaced: Replaced, retention: Retention) -> str:
    """Do with the former version what was asked for, now another is in use; and return what became of it.

    Others may be another owner's, or were kept: unless all are kept they are disabled, never destroyed.
    """
    former, now = replaced.former, replaced.now
    earlier = [each for each in versions.versions(secret) if replaced.since <= each.number < now]
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


def settle_all(versions: SecretManager, secret: str, retention: Retention) -> Sequence[int]:
    """Do with every version what was asked for; and return the numbers of those that changed.

    To destroy means the whole secret, which the provider of Google Cloud deletes right after.
    """
    if retention is not Retention.DISABLE:
        return ()
    enabled = [each for each in versions.versions(secret) if each.state is VersionState.ENABLED]
    return [versions.disable(each).number for each in enabled]


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
