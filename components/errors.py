"""The errors a user can meet: each says what is wrong, where, why, and how to fix it.

ExplainedError
├── NotSignedIn             the API server does not accept the credential of the kubeconfig
└── CredfleetError          all others, by their subject:
├── ConfigurationError      everything wrong with the configuration of a stack, at once
├── Misused                 a command line lacks something, or says what makes no sense
├── ClusterError            the cluster that is meant cannot be found or reached, or another one answers
├── PoolError               the account pool
│   ├── Exhausted           no account is free
│   ├── LimitReached        the account has as many holders as it may have
│   ├── QuotaReached        the consumer has as many accounts as the pool gives it
│   ├── LostMember          the account of a claim was deleted, replaced or relabelled manually
│   ├── Misconfigured       a pool, account, record or request that makes no sense
│   ├── NotAllowed          the API server, or the state of an account, does not allow it
│   │   └── Withheld        the pool is held, or the account takes no new holder
│   ├── Restored            the pool came back from a backup
│   └── Unreachable         the time given was over before the cluster had answered
├── ProjectionError         the copy of a Secret
├── PullSecretError         a pull secret, or the service that is told of it
├── SecretManagerError      Google Secret Manager
├── StoreError              a read from a secret store, or a push to it
└── EsoError                a store that External Secrets Operator cannot have

`Problem` is one thing wrong that is found by looking, many at a time; it is told, not raised. None of them
ever holds a credential, nor words of a server that could.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from components.naming import HELD_AS, config_path


def held_by_another_state(tenant: str, slot: str, holder: str) -> NotAllowed:
    """Return the error for a claim that another Pulumi state holds under this name."""
    stack = holder.split("/")[3] if holder.count("/") > 2 else "STACK"
    return NotAllowed(
        place=f"claim {tenant}/{slot}",
        problem=f"{holder} holds it from another Pulumi state: another backend has a stack of this name",
        fix="give this stack another name; if that state is lost, run"
        f" `pulumi config set {config_path(HELD_AS)} {stack} --stack {stack}`, then this again",
    )


def how_many(count: int, noun: str) -> str:
    """Return a count with its noun: `1 claim`, `2 claims`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun.endswith('sh') else 's'}"


def first_named(names: Sequence[str], joint: str = ", ") -> str:
    """Return the first five names, and how many more there are."""
    more = f"{joint.rstrip(', ')} and {len(names) - 5} more" if len(names) > 5 else ""
    return joint.join(names[:5]) + more


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: where, what and why, and the fix. No field contains a credential value.

    `at`: file, line and column of the entry, if known.
    """

    place: str
    problem: str
    fix: str
    at: tuple[str, int, int] | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.problem} → {self.fix}"

    @property
    def where(self) -> str:
        """Place, after its file, line and column."""
        return located(self.place, self.at)

    def within(self, place: str) -> Problem:
        """Return the same problem at another place, where its subject is configured."""
        return replace(self, place=place)


def located(place: str, at: tuple[str, int, int] | None) -> str:
    """Return a place after its file, line and column, in a form that terminals make clickable."""
    if at is None:
        return place
    file = re.escape(at[0].rpartition("/")[2])
    rest = re.sub(rf"^(\S*/)?{file}(:\d+)*(: |, | |$)", "", place)
    return f"{':'.join(map(str, at))} {rest}".rstrip()


class ExplainedError(Exception):
    """Expected error, shown in two lines.

    `code`: stable kebab-case code for programs. `place`: configuration path or object. `problem`: what is
    wrong and why it matters. `fix`: what to do. `at`: file, line and column, if known. No field contains a
    credential.
    """

    def __init__(
        self, *, code: str, place: str, problem: str, fix: str, at: tuple[str, int, int] | None = None
    ) -> None:
        super().__init__(code, place, problem, fix)
        self.at = at
        self.code = code
        self.place = place
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}\n→ {self.fix}"

    @classmethod
    def of(cls, found: Problem | ExplainedError, code: str, place: str) -> Self:
        """Return a problem or error as an error at another place."""
        return cls(code=code, place=place, problem=found.problem, fix=found.fix)


class NotSignedIn(ExplainedError):  # noqa: N818 - as Misconfigured
    """The API server answers 401. Not a CredfleetError, because previews must not ignore it."""

    def __init__(self, *, server: str, fix: str) -> None:
        super().__init__(
            code="not-signed-in",
            place=server,
            problem="the API server rejects the credential of this user (401): it expired, was revoked, or is"
            " of another cluster; permissions were not checked",
            fix=fix,
        )


class CredfleetError(ExplainedError):
    """Error about a subject; a preview can ignore one that it cannot read."""


class ConfigurationError(CredfleetError):
    """All problems of a stack's configuration, reported together."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            code="bad-configuration",
            place="configuration",
            problem=f"{how_many(count, 'problem')} found, nothing was written",
            fix="fix what is listed and run again",
        )

    def __str__(self) -> str:
        listed = "\n".join(f"{p.where}: {p.problem}\n→ {p.fix}" for p in self.problems)
        return f"{listed}\n{self.problem}"


class Misused(CredfleetError):  # noqa: N818 - as Misconfigured
    """Invalid or incomplete command line; nothing was called."""

    def __init__(self, *, place: str, problem: str, fix: str) -> None:
        super().__init__(code="usage", place=place, problem=problem, fix=fix)


class ClusterError(CredfleetError):
    """The cluster is not found, or is another one; nothing was written."""


class NoReply(Exception):  # noqa: N818 - not an error of the program: a fact about a call
    """No answer from the stack's cluster: the call might have been carried out."""

    def as_error(self, fix: str) -> ClusterError:
        """Return it as an error for callers that require an answer. `fix`: what to do."""
        problem = f"the API server does not answer ({self})"
        return ClusterError(code="unreachable", place="credfleet:cluster", problem=problem, fix=fix)


class PoolError(CredfleetError):
    """Rejection or failure of the account pool. `CODE`: of the class."""

    CODE: ClassVar[str]

    def __init__(self, *, place: str, problem: str, fix: str) -> None:
        super().__init__(code=self.CODE, place=place, problem=problem, fix=fix)


class Exhausted(PoolError):  # noqa: N818 - the word of the protocol
    """No member of the partition is free: nothing was claimed or left behind."""

    CODE = "exhausted"

    def __init__(self, *, pool: str, account_type: str, partition: str, counts: str) -> None:
        super().__init__(
            place=f"pool {pool}",
            problem=f"no free {account_type} account is left (partition {partition}): {counts};"
            " nothing was claimed",
            fix="add accounts, or clean or release some, and run again",
        )


class LimitReached(PoolError):  # noqa: N818 - the word of the protocol
    """The claim has the maximum number of holders."""

    CODE = "limit-reached"

    def __init__(self, *, tenant: str, account_type: str, member: str, holders: int, limit: int) -> None:
        super().__init__(
            place=f"account {member}",
            problem=f"tenant {tenant} already uses this {account_type} account with {holders} of {limit}"
            " consumers",
            fix="release one, raise the limit, or use another slot",
        )


class QuotaReached(PoolError):  # noqa: N818 - as LimitReached
    """The consumer has its maximum number of accounts of the type."""

    CODE = "quota-reached"

    def __init__(self, *, consumer: str, account_type: str, most: int, who: str) -> None:
        super().__init__(
            place=f"consumer {consumer}",
            problem=f"it may have {how_many(most, f'{account_type} account')} at most"
            + (f", and {who} have them" if who else ""),
            fix="release one, or raise its quota under accountPool.consumers in the stack of the pool",
        )


class Misconfigured(PoolError):  # noqa: N818 - the word of the protocol
    """Invalid pool, member, record or request; never retried."""

    CODE = "misconfigured"


class LostMember(PoolError):  # noqa: N818 - the word of the protocol
    """The member of a bound claim was deleted, replaced or relabelled manually."""

    CODE = "lost-member"

    def __init__(self, *, member: str, owner: str | None, tenant: str) -> None:
        now = f"owned by {owner}" if owner else "without an owner, or gone"
        super().__init__(
            place=f"account {member}",
            problem=f"the account of tenant {tenant} was deleted, replaced or relabelled manually"
            f" (now: {now}); existing resources may still use it",
            fix="restore the label, or release this claim and claim again",
        )


class NotAllowed(PoolError):  # noqa: N818 - the word of the protocol
    """Denied by the API server, or not allowed in the state of a member."""

    CODE = "not-allowed"


class Withheld(NotAllowed):
    """The pool gives out no new accounts, or the account takes no new holder, until an operator acts."""


class Restored(PoolError):  # noqa: N818 - the word of the protocol
    """The pool was restored from a backup: every token looks dead, so every process rejects it.

    `member`: the account that shows this, if the pool as a whole does not.
    """

    CODE = "pool-restored"

    def __init__(self, *, namespace: str, member: str | None = None) -> None:
        super().__init__(
            place=f"pool {namespace}" if member is None else f"account {member}",
            problem="it was restored from a backup, so every claim looks dead; nothing was written"
            if member is None
            else "its claim came back from a backup and looks dead, though the account may be in use;"
            " nothing was taken off it",
            fix=f"run `credfleet pool recover --namespace {namespace}`, which binds them again",
        )


class Unreachable(PoolError):  # noqa: N818 - the word of the protocol
    """Timeout before the cluster answered."""

    CODE = "unreachable"

    def __init__(self, *, place: str, seconds: float = 0, last: str, has_begun: bool = False) -> None:
        after = f" after {seconds:g} s" if seconds else ""
        super().__init__(
            place=place,
            problem=f"not finished{after} ({last or 'others kept changing the same claim'})"
            if has_begun
            else f"its cluster does not answer{after} ({last or 'it is slow'}); nothing was begun",
            fix="run again: what was begun is finished by the next run"
            if has_begun
            else "start it or name another, by KUBECONFIG or in credfleet:cluster, and run again",
        )


def contended(error: type[CredfleetError], place: str, what: str, attempts: int) -> CredfleetError:
    """Return the error for repeated write conflicts."""
    problem = f"others changed {what} {attempts} times while it was written"
    return error(code="contended", place=place, problem=problem, fix="find the other writer, then run again")


class ProjectionError(CredfleetError):
    """A projection cannot be written, read or removed."""


class PullSecretError(CredfleetError):
    """A pull secret differs from the stored one, or a service rejects a report about it."""


class SecretManagerError(CredfleetError):
    """Secret Manager cannot be read or written.

    Codes: absent; exists; not-allowed; no-identity; unreachable (temporary errors lasted longer than the
    timeout); refused.
    """


class StoreError(CredfleetError):
    """A consumer cannot read from its store, or push to it.

    Codes: refused (by the rule of references, before any call); no-client; not-allowed; unreachable;
    misconfigured; absent; taken; contended; not-ready.
    """


class EsoError(CredfleetError):
    """Rejected by the rule of references, or not expressible in ESO; nothing was compiled."""

    def __init__(self, place: str, refusals: Sequence[Problem]) -> None:
        super().__init__(
            code="not-for-eso",
            place=place,
            problem="; ".join(dict.fromkeys(refusal.problem for refusal in refusals)),
            fix="; ".join(dict.fromkeys(refusal.fix for refusal in refusals)),
        )
