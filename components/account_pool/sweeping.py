"""The sweep: takes dead tokens off members and finishes what nobody finishes. Never needed for safety.

Any number may run at any time. Members are listed before records, so that a token seen on a member and not
in the records after it is dead for ever; the other way round a claim made in between would look dead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from components.account_pool import changes
from components.account_pool.calls import Kind, Steps
from components.account_pool.errors import Misconfigured
from components.account_pool.judgement import misconfiguration
from components.account_pool.model import JsonObject, Member, Phase, Record, State, Token
from components.account_pool.protocol import finish
from components.account_pool.selection import MEMBERS, RECORDS
from components.account_pool.steps import change_member, list_all, replace_record
from components.labels import TENANT_NAME

FREED_UNASKED = 5
"""How many members a sweep frees unless somebody says yes: more look like a restored backup."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """A member that carries a token whose claim is gone."""

    member: str
    token: Token


@dataclass(frozen=True, slots=True)
class Finding:
    """Something only people can judge: where, what is wrong, and what to do about it."""

    place: str
    cause: str
    mend: str


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did, or would do, and what it leaves to people.

    freed: dead tokens taken off. withheld: dead tokens left on, because they were more than allowed, or
    nothing was to be written. finished: releases finished, or to be finished. aborted: claims nobody pursued.
    """

    freed: tuple[Orphan, ...] = ()
    withheld: tuple[Orphan, ...] = ()
    finished: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def pending_records() -> Steps[Mapping[str, str]]:
    """Look at the claims in progress: record name → resourceVersion, to be compared with a later look."""
    records, _ = _read_all((yield from list_all(Kind.RECORD, RECORDS)))
    return {r.name: r.resource_version for r in records.values() if r.phase is Phase.PENDING}


def sweep(
    namespace: str, keys: Iterable[str], *, most: int, write: bool, pending: Mapping[str, str]
) -> Steps[SweepReport]:
    """Run one pass. most: tokens taken off at most. write: False only reports. pending: an earlier look."""
    bodies = yield from list_all(Kind.MEMBER, MEMBERS)  # (1)
    members = [Member.parse(body) for body in bodies]
    records, unreadable = _read_all((yield from list_all(Kind.RECORD, RECORDS)))  # (2)
    orphans = [
        (member, token)
        for member in members
        for token in (() if misconfiguration(member, ()) else member.tokens)
        if token.record not in unreadable and not _is_alive(token, records)
    ]
    found = tuple(Orphan(member.name, token) for member, token in orphans)
    stale = [r for r in records.values() if pending.get(r.name) == r.resource_version]
    releasing = [r for r in records.values() if r.phase is Phase.RELEASING]
    findings = tuple(_findings(namespace, members, records, unreadable, list(keys)))
    if not write:
        return SweepReport((), found, tuple(record.name for record in releasing), (), findings)
    freed: list[Orphan] = []
    if len(orphans) <= most:
        for orphan, (member, token) in zip(found, orphans, strict=True):
            patch = changes.remove(member, token, records.get(token.record))
            if (yield from change_member(patch)) is not None:
                freed.append(orphan)
    finished: list[str] = []
    for record in releasing:  # (3)
        if (yield from finish(record)):
            finished.append(record.name)
    aborted: list[str] = []
    for record in stale:
        given_up = yield from replace_record(replace(record, phase=Phase.RELEASING, holders={}), namespace)
        if given_up is not None and (yield from finish(given_up)):
            aborted.append(record.name)
    withheld = () if len(orphans) <= most else found
    return SweepReport(tuple(freed), withheld, tuple(finished), tuple(aborted), findings)


def _read_all(bodies: Iterable[JsonObject]) -> tuple[dict[str, Record], frozenset[str]]:
    """Read records by name, and the names of those nobody can read: their tokens are not judged."""
    records: dict[str, Record] = {}
    unreadable: set[str] = set()
    for body in bodies:
        try:
            record = Record.parse(body)
            records[record.name] = record
        except Misconfigured:
            unreadable.add(str(body["metadata"]["name"]))
    return records, frozenset(unreadable)


def _is_alive(token: Token, records: Mapping[str, Record]) -> bool:
    record = records.get(token.record)
    return record is not None and record.token == token


def _findings(
    namespace: str,
    members: Iterable[Member],
    records: Mapping[str, Record],
    unreadable: Iterable[str],
    keys: list[str],
) -> Iterator[Finding]:
    """(4) What only people can judge."""
    by_name = {member.name: member for member in members}
    for name in sorted(unreadable):
        yield Finding(
            f"ConfigMap {name}",
            "it bears the name of a claim but cannot be read, so its account is nobody's and stays taken",
            "restore it from a backup; if nobody uses the account, delete it and run `credfleet pool sweep`",
        )
    for record in records.values():
        member = by_name.get(record.member)
        if record.phase is Phase.BOUND and (member is None or not member.carries(record)):
            yield Finding(
                f"claim {record.name}",
                f"account {record.member} does not carry it: it was deleted or relabelled by hand, and tenant"
                f" {record.tenant} may still use it",
                f"put {TENANT_NAME}: {record.tenant_label} back on it, or release each holder with"
                f" {_release(record, namespace)}",
            )
    for member in by_name.values():
        if wrong := misconfiguration(member, keys):
            yield Finding(
                f"Secret {member.name}",
                f"{wrong}; nobody can claim or clean it",
                "correct its labels and annotations with kubectl, or in the stack that declares it",
            )
        if member.state == State.CLEANING:
            yield Finding(
                f"Secret {member.name}",
                "it is being cleaned, and nothing tells whether its cleaner is still at work",
                "run that cleaner again under its id; if it is gone, run"
                f" `credfleet pool clean --take-over {member.name}` with a new credential",
            )
    accounts: dict[str, list[str]] = defaultdict(list)
    for member in by_name.values():
        if member.account_id:
            accounts[member.account_id].append(member.name)
    for account, names in accounts.items():
        if len(names) > 1:
            yield Finding(
                f"account {account}",
                f"Secrets {', '.join(sorted(names))} are one account: cleaning one would wipe the others",
                "keep one of them, and quarantine or decommission the others",
            )


def _release(record: Record, namespace: str) -> str:
    shown = " ".join(f"--partition {key}={value}" for key, value in record.partition.values if value)
    asked = f"--type {record.partition.type} --tenant {record.tenant} --slot {record.slot} {shown}".rstrip()
    return f"`credfleet pool release --namespace {namespace} {asked} --holder HOLDER --yes`"
