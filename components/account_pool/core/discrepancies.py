"""Inconsistencies between claim records and accounts, each with its fix.

The API server judges one object at a time (`transitions.py`). A claimer that is allowed to take, bind and
release could therefore do so partially or out of order. The status command, the sweep and the doctor report
the results. Pure functions.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Container, Iterable, Iterator

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.identity import find_twins
from components.account_pool.core.judgement import is_restored, misconfiguration
from components.account_pool.core.model import Member, Phase, record_name
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot, list_displaced
from components.account_pool.core.tokens import Token
from components.errors import Misconfigured, Problem
from components.labels import TENANT_NAME


def discrepancies(snapshot: PoolSnapshot, settings: PoolConfigMap) -> Iterator[Problem]:
    """Yield problems of claims: unreadable ones, lost ones, and claims whose account carries another token.

    A token without a live claim is not reported: the sweep removes it.
    """
    keys = settings.partition_keys
    yield from snapshot.problems
    yield from list_displaced(snapshot.records, keys)
    yield from _one_account_each(snapshot)
    by_name = {member.name: member for member in snapshot.members}
    moving = {str(record.moves) for record in snapshot.records if record.moves is not None}
    for record in snapshot.records:
        member = by_name.get(record.member)
        if record.name != record_name(record.partition, record.tenant, record.slot):
            yield _misnamed(record, snapshot.namespace)
        elif member is not None and _has_restored(member, record, keys):
            yield Problem(
                f"claim {record.name}",
                f"it came back from a backup, so account {record.member} does not carry it any more; tenant"
                f" {record.tenant} may still use it, and the sweep leaves it alone",
                f"run `credfleet pool recover --namespace {snapshot.namespace}`, which binds them again",
            )
        elif member is not None and _is_moving(member, record, moving):
            yield Problem(
                f"claim {record.tenant}/{record.slot}",
                f"its move to another name was stopped half-way; tenant {record.tenant} keeps account"
                f" {record.member}",
                "run `up` in the stack that renamed it",
            )
        elif record.phase is Phase.BOUND and (member is None or not _carries(member, record)):
            yield _lost(record, member, snapshot.namespace, settings)
    claims = {str(record.token): record for record in snapshot.records}
    for member in snapshot.members:
        for token in () if misconfiguration(member, keys) else member.tokens:
            record = claims.get(str(token))
            if record is not None and not is_of(member, token, record):
                yield _doubled(member, record, snapshot.namespace)


def _one_account_each(snapshot: PoolSnapshot) -> Iterator[Problem]:
    accounts = {member.name: member.account_id for member in snapshot.members}
    twins = find_twins(snapshot.members)
    for names in sorted({tuple(sorted((name, *others))) for name, others in twins.items()}):
        yield Problem(
            f"account {accounts[names[0]]}",
            f"Secrets {', '.join(names)} are one account: cleaning one would wipe the others, so it goes to"
            " no new holder, and is not cleaned",
            "keep one of them, and quarantine or decommission the others",
        )


def is_of(member: Member, token: Token, record: Record) -> bool:
    """Return whether this token on the member is alive: its record names this member with the same token.

    Each attempt of a claim on another member has a new token, so no two members carry the same one.
    """
    return record.token == token and record.member == member.name


def in_use(member: Member, records: Iterable[Record]) -> Record | None:
    """Return a claim on a member that was not released: its tenant might use the account, or be about to.

    A release starts with the record. If the member does not carry an unreleased claim, its token was removed
    manually, or the claim is about to try another member.
    """
    standing = (each for each in records if each.phase is not Phase.RELEASING)
    return next((each for each in standing if each.member == member.name), None)


def _lost(record: Record, member: Member | None, namespace: str, settings: PoolConfigMap) -> Problem:
    ((key, label),) = settings.scheme.labels({TENANT_NAME: record.tenant_label}).items()
    bears = member is not None and member.bears(record.token) and not member.shared
    back = f"put {key}: {label} back on it, or " if bears else ""
    return Problem(
        f"claim {record.name}",
        f"account {record.member} does not carry it: it was deleted, relabelled or released manually, and"
        f" tenant {record.tenant} may still use it",
        f"{back}release it with {releases(record, namespace)}",
    )


def _misnamed(record: Record, namespace: str) -> Problem:
    holders = max([record.retired, *record.holders.values()])
    data = {"phase": str(Phase.RELEASING), "holders": "{}", **({"retired": str(holders)} if holders else {})}
    patch = json.dumps({"data": data})
    return Problem(
        f"claim {record.name}",
        f"it is not the name of a claim of tenant {record.tenant}, slot {record.slot}, so no request"
        f" finds it: it was made manually, and account {record.member} may be the slot's second one",
        f"end it manually: run `kubectl patch configmap {record.name} -n {namespace} --type merge"
        f" -p {shlex.quote(patch)}`, then `credfleet pool sweep -n {namespace}`",
    )


def _doubled(member: Member, record: Record, namespace: str) -> Problem:
    return Problem(
        f"Secret {member.name}",
        f"it carries the claim of tenant {record.tenant}, slot {record.slot}, which is on account"
        f" {record.member}: it was written manually, and would be the slot's second account",
        f"run `credfleet pool sweep -n {namespace}`, which takes it off",
    )


def _carries(member: Member, record: Record) -> bool:
    """Return whether the member carries the claim; True if unreadable, which is reported for the member."""
    try:
        return record.is_carried_by(member)
    except Misconfigured:
        return True


def _is_moving(member: Member, record: Record, moving: Container[str]) -> bool:
    """Return whether the account is moving from or to this record. `moving`: tokens of former names."""
    if record.moves is not None and member.bears(record.moves):
        return True
    return str(record.token) in moving and not member.bears(record.token)


def _has_restored(member: Member, record: Record, keys: Iterable[str]) -> bool:
    if misconfiguration(member, keys):
        return False
    return any(is_restored(member, token, record) for token in member.tokens if token.record == record.name)


def releases(record: Record, namespace: str) -> str:
    """Return the commands that release a claim, one for each holder."""
    asked = [f"--type={record.partition.type}", f"--tenant={record.tenant}", f"--slot={record.slot}"]
    asked += [f"--partition={key}={value}" for key, value in record.partition.values if value]
    if record.partition.shared:
        asked.append("--shared")
    by_holder = (shlex.join([*asked, f"--holder={each}"]) for each in sorted(record.holders))
    return " and ".join(f"`credfleet pool release -n {namespace} {each} --yes`" for each in by_holder)
