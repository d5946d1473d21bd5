"""`credfleet pool status`: the status of live pools, as a whole or grouped, as tables or JSON."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.consumers import stack_of
from components.account_pool.core.holds import WHOLE
from components.account_pool.core.pool import Pool
from components.account_pool.core.status import Account, AccountUse, PoolStatus, status_of
from components.connection import Connection, NoReply, reach
from components.errors import ClusterError, CredfleetError, Problem
from components.labels import HYPERSCALER_TYPE
from operations.cli.answer import CommandResult, Part, as_documents, as_lines
from operations.cli.tables import Column, Table
from operations.pool.access import PoolTarget
from operations.pool.options import By

WAIT: Final = (AccountUse.DIRTY, AccountUse.CLEANING, AccountUse.QUARANTINED)
"""States that end only when a cleaner or an operator acts."""

LONG_SECONDS: Final = 86_400.0
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_EVERYWHERE: Final = f"/api/v1/configmaps?fieldSelector=metadata.name%3D{CONFIG_MAP}"
_OK: Final = 200


def pool_namespaces(connection: Connection) -> list[str]:
    """Return the namespaces with a pool; without the right to list ConfigMaps everywhere, the readable ones.

    Raises ClusterError `not-allowed` if neither ConfigMaps nor namespaces can be listed, `unreachable`.
    """
    try:
        found = connection.call("GET", _EVERYWHERE)
        if found.status == _OK:
            return sorted(each["metadata"]["namespace"] for each in found.body["items"])
        listed = connection.call("GET", "/api/v1/namespaces")
        if listed.status != _OK:
            raise ClusterError(
                code="not-allowed",
                place=connection.server,
                problem=f"this user may not list the pools: {listed.text}",
                fix="name a pool with --namespace, or let this user list namespaces",
            )
        names = sorted(each["metadata"]["name"] for each in listed.body["items"])
        paths = {name: f"/api/v1/namespaces/{name}/configmaps/{CONFIG_MAP}" for name in names}
        return [name for name, path in paths.items() if connection.call("GET", path).status == _OK]
    except NoReply as silence:
        raise silence.as_error("start it, or name another --kubeconfig") from None


_ALWAYS_TOLD: Final = frozenset(
    {AccountUse.FREE, AccountUse.CLAIMED, AccountUse.DIRTY, AccountUse.CLEANING, AccountUse.QUARANTINED}
)

_SHOWN: Final = 5
"""Maximum number of tenants, slots and holders per account in a table."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The status of one pool. is_one_of: shown with others, so that names include its namespace.

    advise: completes advice with the options that name it.
    """

    namespace: str
    status: PoolStatus
    is_one_of: bool = False
    advise: Callable[[str], str] = str

    def name(self, account: Account) -> str:
        """Return the name of an account among all that are shown."""
        return f"{self.namespace}/{account.secret_name}" if self.is_one_of else account.secret_name


def status(where: PoolTarget, *, by: By | None) -> CommandResult:
    """Return the status of a pool's accounts; raises as `PoolTarget.open_existing`."""
    return _told([Seen(where.namespace, where.open_existing().status(), advise=where.advise)], [], by)


def status_everywhere(where: PoolTarget, *, by: By | None) -> CommandResult:
    """Return the status of accounts in every readable pool; raises as `pool_namespaces`.

    An unreadable pool does not hide the others.
    """
    target = where.told()
    seen, problems = list[Seen](), list[Problem]()
    for name in pool_namespaces(reach(target, "start it, or name another --kubeconfig")):
        try:
            settings = Pool.settings_of(target, name) or PoolConfigMap()
            status = status_of(Pool.snapshot(target, name), settings)
            advise = replace(where, namespace=name).advise
            seen.append(Seen(name, status, is_one_of=True, advise=advise))
        except CredfleetError as error:
            problems.append(Problem(f"pool {name}: {error.place}", error.problem, error.fix))
    return _told(seen, problems, by)


def _told(seen: Sequence[Seen], problems: Sequence[Problem], by: By | None) -> CommandResult:
    lines = as_lines(problems)
    if by is not None:
        documents: list[dict[str, Any]] = [
            {
                "namespace": each.namespace,
                "name": each.key,
                "types": Counter(one.type for one in each.accounts),
                "states": Counter(str(one.standing) for one in each.accounts),
                "accounts": [one.secret_name for one in each.accounts],
            }
            for each in group(seen, by)
        ]
        document = {"by": str(by), "groups": documents}
        parts: list[Part] = [_group_table(documents, by), *lines]
    else:
        documents = [as_document(each.namespace, each.status) for each in seen]
        is_one = len(seen) == 1 and not seen[0].is_one_of
        document = documents[0] if is_one else {"pools": documents}
        parts = [*_parts(seen, datetime.now(UTC)), *lines]
    if problems:
        document |= {"unreadable": as_documents(problems)}
    return CommandResult(document, parts)


def _parts(seen: Sequence[Seen], now: datetime) -> Iterator[Part]:
    for each in seen:
        yield from map(each.advise, _held(each.status, each.namespace))
        if not each.status.accounts:
            yield f"Pool {each.namespace} has no accounts."
    if any(each.status.accounts for each in seen):
        yield render_counts(seen)
        if any(each.status.shares for each in seen):
            yield shared_out(seen)
        yield render_list(seen, now)
    elif not seen:
        yield "There is no pool that this user may read."
    for each in seen:
        yield from as_lines(each.status.problems)


@dataclass(frozen=True, slots=True)
class Group:
    """Accounts of one pool that are shown together, under a common tenant, stack or type."""

    namespace: str
    key: str
    accounts: tuple[Account, ...]


def group(seen: Iterable[Seen], by: By) -> Iterator[Group]:
    """Group the accounts of each pool; those without holder are free, shared ones are everybody's."""
    for pool in seen:
        groups: dict[str, list[Account]] = defaultdict(list)
        for account in pool.status.accounts:
            for key in sorted(_keys(account, by)):
                groups[key].append(account)
        yield from (Group(pool.namespace, key, tuple(of)) for key, of in sorted(groups.items()))


def _keys(account: Account, by: By) -> set[str]:
    match by:
        case By.TYPE:
            return {account.type}
        case By.TENANT:
            tenants = {each.tenant for each in account.claims} | {account.tenant}
            return {each for each in tenants if each is not None}
        case By.STACK:
            return {stack_of(holder) or holder for holder in account.holders}


def _group_table(groups: Iterable[Mapping[str, Any]], by: By) -> Table:
    rows = [
        (
            *(each["name"], each["namespace"], str(len(each["accounts"]))),
            *(_tally(each["types"]), _tally(each["states"]), ", ".join(each["accounts"])),
        )
        for each in groups
    ]
    columns = (
        Column(by.capitalize(), names=True),
        Column("Pool", leaves=2),
        "Accounts",
        Column("Types", leaves=1),
        "States",
        Column("Which", leaves=3),
    )
    return Table(f"By {by}", columns, rows)


def _tally(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))


def as_document(namespace: str, status: PoolStatus) -> dict[str, Any]:
    """Return a pool as JSON: counts by type and partition (with zeros), then every account."""
    return {
        "namespace": namespace,
        "hold": dict(status.holds.all()).get(WHOLE),
        "holds": {scope: why for scope, why in status.holds.all() if scope != WHOLE},
        "partitions": [
            {
                "type": type_,
                "partition": values(partition),
                "total": sum(counts.values()),
                **{str(standing): counts[standing] for standing in AccountUse},
            }
            for (type_, partition), counts in status.counts.items()
        ],
        "accounts": [
            {
                "secretName": account.secret_name,
                "type": account.type,
                "partition": values(account.partition),
                "state": str(account.standing),
                "tenant": account.tenant,
                "slot": account.slot,
                "holders": [*account.holders],
                "since": account.since or None,
                "reason": account.reason or None,
                "keyEnds": account.key_ends or None,
                "accountId": account.account_id,
                "keyPhase": account.key_phase,
                "keyReason": account.key_reason or None,
                "used": account.used,
                "capacity": account.capacity,
                "claims": [
                    {
                        "tenant": each.tenant,
                        "slot": each.slot,
                        "holders": [*each.holders],
                        "since": each.since or None,
                    }
                    for each in account.claims
                ],
            }
            for account in status.accounts
        ],
        "consumers": [
            {
                "consumer": each.consumer,
                "type": each.type,
                "partition": values(each.partition),
                "has": each.has,
                "quota": each.most,
                "available": each.available,
            }
            for each in status.shares
        ],
        "problems": as_documents(status.problems),
    }


def render_counts(seen: Sequence[Seen]) -> Table:
    """Return the counts; unusual states only have a column if some account is in them."""
    every = [counts for each in seen for counts in each.status.counts.values()]
    shown = [each for each in AccountUse if each in _ALWAYS_TOLD or any(counts[each] for counts in every)]
    rows = [
        (pool.namespace, type_, place(partition), *(str(counts[each] or "·") for each in shown))
        for pool in seen
        for (type_, partition), counts in pool.status.counts.items()
    ]
    columns = ("Pool", "Type", "Partition", *(each.capitalize() for each in shown))
    if any(each.is_one_of for each in seen):
        return Table("Pools", columns, rows)
    return Table("Pool", columns[1:], (row[1:] for row in rows))


def values(partition: str) -> Mapping[str, str]:
    """Return the keys and values of a partition, given in the protocol's notation."""
    terms = (term.partition("=") for term in partition.split(",") if not term.startswith("!"))
    return {key: value for key, _, value in terms if key != HYPERSCALER_TYPE}


def place(partition: str) -> str:
    """Return a partition as users write it: `eu-access=true`, empty without keys."""
    return ",".join(f"{key}={value}" for key, value in values(partition).items())


def _held(status: PoolStatus, namespace: str) -> Iterator[str]:
    for scope, why in status.holds.all():
        of = f" of {scope}" if scope else ""
        yield f"This pool gives no new accounts{of}: {why}\n→ {status.holds.fix(scope, namespace)}"


def _few(names: Collection[str]) -> str:
    """Return the first of some names and the number of the others; JSON has all."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(sorted(names)[:_SHOWN]) + more


def shared_out(seen: Sequence[Seen]) -> Table:
    """Return what each consumer has and could get, in pools that declare consumers."""
    rows = [
        (
            share.consumer,
            pool.namespace,
            share.type,
            place(share.partition),
            str(share.has),
            "" if share.most is None else str(share.most),
            str(share.available),
        )
        for pool in seen
        for share in pool.status.shares
    ]
    pool_column = Column("Pool", leaves=2)
    columns = ("Consumer", pool_column, "Type", Column("Partition", leaves=1), "Has", "May have", "Could get")
    return Table("Consumers", columns, rows)


def render_list(seen: Sequence[Seen], now: datetime) -> Table:
    """Return all accounts: those in use, then those that wait for an operator, oldest first, then free ones.

    A column for keys appears while some are rotated.
    """
    rotates = any(account.key_phase for pool in seen for account in pool.status.accounts)
    rows = [
        (
            pool.name(account),
            account.type,
            place(account.partition),
            f"{account.standing} {account.used}/{account.capacity}" if account.capacity else account.standing,
            account.tenant or _few({each.tenant or "?" for each in account.claims}),
            account.slot or _few({each.slot for each in account.claims}),
            f"{account.since} ({describe(account, now)})" if account.standing in WAIT else account.since,
            _few(account.holders),
            *([": ".join(filter(None, (account.key_phase, account.key_reason)))] if rotates else []),
            account.reason,
        )
        for pool in seen
        for account in _in_turn(pool.status.accounts)
    ]
    columns = (
        Column("Account", names=True),
        "Type",
        Column("Partition", leaves=3),
        "State",
        "Tenant",
        Column("Slot", leaves=1),
        Column("Since", leaves=2),
        Column("Holders", leaves=4),
        *([Column("Key", folds=True)] if rotates else []),
        Column("Reason", folds=True),
    )
    return Table("Accounts", columns, rows)


def _in_turn(accounts: Iterable[Account]) -> Iterator[Account]:
    accounts = tuple(accounts)
    yield from (each for each in accounts if each.standing not in {*WAIT, AccountUse.FREE})
    yield from oldest_first(accounts, *WAIT)
    yield from (each for each in accounts if each.standing is AccountUse.FREE)


def oldest_first(accounts: Iterable[Account], *standings: AccountUse) -> list[Account]:
    """Return accounts in these states, oldest first; those of unknown age last."""
    found = (each for each in accounts if each.standing in standings)
    return sorted(found, key=lambda each: (not each.since, each.since, each.secret_name))


def seconds_since(since: str, now: datetime) -> float:
    """Return the seconds since a server time; 0 if unknown or in the future of this clock."""
    return max(0.0, (now - datetime.fromisoformat(since)).total_seconds()) if since else 0.0


def is_long(account: Account, now: datetime) -> bool:
    """Return whether an account has been in its state for over a day: cleaners run at least nightly."""
    return seconds_since(account.since, now) > LONG_SECONDS


def describe(account: Account, now: datetime) -> str:
    """Return how long an account has been in its state: `3 d`; empty if unknown."""
    seconds = seconds_since(account.since, now)
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{int(seconds // size)} {unit}" if account.since else ""
