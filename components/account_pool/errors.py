"""The errors of the account pool: five that a claim can meet, two that keep anybody from writing."""

from __future__ import annotations

from components.errors import CredfleetError


class PoolError(CredfleetError):
    """Whatever the account pool refuses or cannot do."""


class Exhausted(PoolError):  # noqa: N818 - the word of the protocol
    """No member of the partition is free: nothing was claimed, nothing is left behind."""

    def __init__(self, *, pool: str, account_type: str, partition: str, census: str) -> None:
        super().__init__(
            code="exhausted",
            place=f"pool {pool}",
            cause=(
                f"no free {account_type} account is left (partition {partition}): {census}; "
                "nothing was claimed"
            ),
            mend="add accounts, or clean or release some, and run again",
        )


class LimitReached(PoolError):  # noqa: N818 - the word of the protocol
    """The claim has as many holders as its limit allows."""

    def __init__(self, *, tenant: str, account_type: str, member: str, holders: int, limit: int) -> None:
        super().__init__(
            code="limit-reached",
            place=f"account {member}",
            cause=(
                f"tenant {tenant} already uses this {account_type} account "
                f"with {holders} of {limit} consumers"
            ),
            mend="release one, raise the limit, or use another slot",
        )


class Misconfigured(PoolError):  # noqa: N818 - the word of the protocol
    """A pool, member, record or request that no protocol step can make sense of; never retried."""

    def __init__(self, *, place: str, cause: str, mend: str) -> None:
        super().__init__(code="misconfigured", place=place, cause=cause, mend=mend)


class LostMember(PoolError):  # noqa: N818 - the word of the protocol
    """A bound claim whose member was deleted, replaced or relabelled by hand."""

    def __init__(self, *, member: str, owner: str | None, tenant: str) -> None:
        now = f"owned by {owner}" if owner else "without an owner, or gone"
        super().__init__(
            code="lost-member",
            place=f"account {member}",
            cause=(
                f"the account of tenant {tenant} was deleted, replaced or relabelled by hand (now: {now}); "
                "existing resources may still use it"
            ),
            mend="restore the label, or release this claim and claim again",
        )


class NotAllowed(PoolError):  # noqa: N818 - the word of the protocol
    """The API server, or the state of a member, does not allow it."""

    def __init__(self, *, place: str, cause: str, mend: str) -> None:
        super().__init__(code="not-allowed", place=place, cause=cause, mend=mend)


class Restored(PoolError):  # noqa: N818 - the word of the protocol
    """The pool came back from a backup: every token would look dead, so everybody refuses."""

    def __init__(self, *, namespace: str) -> None:
        super().__init__(
            code="pool-restored",
            place=f"pool {namespace}",
            cause="it was restored from a backup, so every claim looks dead; nothing was written",
            mend=f"run `credfleet pool recover --namespace {namespace}`, which binds them again",
        )


class Unreachable(PoolError):  # noqa: N818 - the word of the protocol
    """The time given was over before the cluster had answered."""

    def __init__(self, *, place: str, seconds: float, last: str) -> None:
        super().__init__(
            code="unreachable",
            place=place,
            cause=f"not finished after {seconds:g} s ({last or 'others kept changing the same claim'})",
            mend="run again: what was begun is finished by the next run",
        )
