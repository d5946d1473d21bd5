"""Pure judgments of doctor's checks: fine, noteworthy, not visible, or wrong, with a fix."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from components.account_pool.admission.policies import BINDING, POLICY, admission_manifests
from components.account_pool.admission.roles import RIGHTS, Right, rights_to_clean
from components.account_pool.admission.state_machine import Verb
from components.account_pool.core.cleaning import undecided
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.holds import Holds, describe_hold
from components.account_pool.core.model import JsonObject, KeyPhase, Phase
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import Account, AccountUse, status_of
from components.account_pool.core.sweeping import SweepReport
from components.connection import Reply
from components.errors import CredfleetError
from operations.pool.status import describe, is_long, oldest_first, place

OK: Final = 200
ABSENT: Final = 404

_GRANTS: Final[Mapping[str, str]] = {
    Verb.CLAIM: "add this user to accountPool.claimers and run `up`",
    Verb.CLEAN: "add this user to accountPool.cleaners and run `up`",
    Verb.OPERATE: "give this user a Role with these verbs in the namespace of the pool",
}


class Health(StrEnum):
    """The result of a check: fine; fine, but noteworthy; not visible to this user; wrong."""

    WELL = "well"
    NOTED = "noted"
    UNKNOWN = "unknown"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The finding of a check. fix: what to do about it; empty if nothing."""

    subject: str
    health: Health
    text: str
    fix: str = ""


def rights(
    may: Callable[[Right, str], bool], namespace: str, new_keys: Collection[str] = ()
) -> Iterator[Diagnosis]:
    """Yield what the current user can do with the pool; partial rights for a task, or none, are wrong.

    may: whether the API server allows a verb. new_keys: types whose keys cleaners change.
    """
    is_idle = True
    for work, powers in {**RIGHTS, Verb.CLEAN: rights_to_clean(new_keys)}.items():
        lacking = [(power, verb) for power in powers for verb in power.verbs if not may(power, verb)]
        named = ", ".join(f"{verb} {power.resource}" for power, verb in lacking)
        needed = {power for power, _ in lacking if power.resource != "events"}
        is_idle = is_idle and not needed <= {powers[-1]}
        if not lacking:
            yield Diagnosis("rights", Health.WELL, f"this user may {work} accounts of {namespace}")
        elif not needed:
            text = f"this user may {work} accounts, but leaves no Events behind (it may not {named})"
            yield Diagnosis("rights", Health.NOTED, text, _GRANTS[work])
        elif powers[-1] in needed:
            limit = "only where no admission policy asks for more" if needed == {powers[-1]} else "not at all"
            text = f"this user may {work} accounts {limit} (it lacks {named})"
            yield Diagnosis("rights", Health.NOTED, text, _GRANTS[work])
        else:
            yield wrong("rights", f"this user should {work} accounts, but may not {named}", _GRANTS[work])
    if is_idle:
        text = f"this user may do none of the work on pool {namespace}"
        yield wrong("rights", text, "use the --kubeconfig of a user who may, or add this one as above")


def admission(
    get: Callable[[str, str], Reply], namespace: str, settings: PoolConfigMap
) -> Iterator[Diagnosis]:
    """Yield whether admission policies protect the pool; get: reads an object by kind and name."""
    found: dict[str, list[str]] = {"in force": [], "unseen": [], "missing": [], "strange": []}
    manifests = admission_manifests(namespace, settings, allow_destroy=True)
    for policy, binding in zip(manifests[::2], manifests[1::2], strict=True):
        bound = get(BINDING, binding["metadata"]["name"])
        looked_up = [(binding, binding["metadata"]["name"], bound)]
        if bound.status == OK:
            name = bound.body["spec"]["policyName"]
            looked_up.append((policy, name, get(POLICY, name)))
        for manifest, name, reply in looked_up:
            if reply.status == ABSENT:
                state = "missing"
            elif reply.status != OK:
                state = "unseen"
            else:
                state = "in force" if _is_in_force(manifest, reply.body) else "strange"
            found[state].append(f"{manifest['kind']} {name}")
    named = {state: ", ".join(names) for state, names in found.items()}
    if found["in force"]:
        text = f"{len(found['in force'])} policies and bindings keep the rules of claims"
        yield Diagnosis("admission", Health.WELL, text)
    if found["unseen"]:
        yield Diagnosis("admission", Health.UNKNOWN, f"this user may not read {named['unseen']}")
    if found["missing"]:
        text = f"nothing keeps kubectl and others from breaking claims, for want of {named['missing']}"
        yield wrong("admission", text, "set accountPool.admissionPolicy: true in the stack and run `up`")
    if found["strange"]:
        text = f"this version of credfleet expects other rules in {named['strange']}"
        yield wrong("admission", text, "run `up` with this version")


def _is_in_force(expected: JsonObject, live: JsonObject) -> bool:
    """Return whether an object has all expected rules, and denies; rules on deletion are optional."""
    spec, wanted = live["spec"], expected["spec"]
    if expected["kind"] == BINDING:
        return "Deny" in spec.get("validationActions", ())
    return all(
        {rule["expression"] for rule in wanted[part]} <= {rule["expression"] for rule in spec.get(part, ())}
        for part in ("variables", "validations")
    )


def settings_of_pool(reply: Reply, namespace: str) -> tuple[PoolConfigMap | None, Diagnosis]:
    """Return the pool's settings from its ConfigMap (`reply`); without one, the defaults apply."""
    fix = "declare accountPool in a stack and run `up`"
    if reply.status == ABSENT:
        text = f"{namespace} has no ConfigMap {CONFIG_MAP}: taken for a pool without partitions and limits"
        return PoolConfigMap(), Diagnosis("pool", Health.NOTED, text, fix)
    if reply.status != OK:
        text = f"ConfigMap {CONFIG_MAP} of {namespace} cannot be read: {reply.text}"
        return None, wrong("pool", text, "use the --kubeconfig of a user who may claim")
    try:
        settings = PoolConfigMap.parse(reply.body)
    except CredfleetError as error:
        return None, wrong("pool", f"{error.place}: {error.problem}", error.fix)
    keys = ", ".join(settings.partition_keys) or "no keys"
    text = f"{namespace} is partitioned by {keys}; released accounts: {settings.policy}"
    return settings, Diagnosis("pool", Health.WELL, text)


def held(holds: Holds, namespace: str) -> Iterator[Diagnosis]:
    """Yield where the pool gives no new accounts."""
    for scope, why in holds.all():
        yield Diagnosis("pool", Health.NOTED, describe_hold(scope, why), holds.fix(scope, namespace))


def accounts(
    snapshot: PoolSnapshot,
    settings: PoolConfigMap,
    namespace: str,
    now: datetime,
    lacking: Callable[[str], str] = lambda _: "",
) -> Iterator[Diagnosis]:
    """Yield the accounts that wait for an operator, oldest first, and types without free accounts.

    lacking: what must be done before accounts of a type can be cleaned from here; empty for nothing.
    """
    status = status_of(snapshot, settings)
    if not status.accounts:
        yield wrong(
            "accounts", f"pool {namespace} has no accounts", "add members to accountPool, and run `up`"
        )
        return
    total = {each: sum(count[each] for count in status.counts.values()) for each in AccountUse}
    counted = ", ".join(f"{count} {standing}" for standing, count in total.items() if count)
    yield Diagnosis("accounts", Health.WELL, f"{len(status.accounts)} in all: {counted}")
    empty = [
        " ".join(filter(None, (account_type, place(partition))))
        for (account_type, partition), count in status.counts.items()
        if not count[AccountUse.FREE] and not count[AccountUse.SHARED]
    ]
    if empty:
        text = f"none is free of: {', '.join(empty)}"
        yield Diagnosis("accounts", Health.NOTED, text, "add some before the next tenant asks")
    by_standing = {each: oldest_first(status.accounts, each) for each in AccountUse}
    why_left = {each.name: why for each in snapshot.members if (why := undecided(each, namespace))}
    left = [each for each in by_standing[AccountUse.DIRTY] if each.secret_name in why_left]
    for account in left:
        why = why_left[account.secret_name]
        problem = "; ".join(filter(None, (why.problem, account.key_reason)))
        yield Diagnosis("accounts", Health.NOTED, f"{_aged([account], now)} is dirty: {problem}", why.fix)
    dirty = [each for each in by_standing[AccountUse.DIRTY] if each not in left]
    first = dict.fromkeys(filter(None, (lacking(each.type) for each in dirty)))
    clean = ", then ".join([*first, f"`credfleet pool clean -n {namespace}`"])
    if late := [each for each in dirty if is_long(each, now)]:
        text = f"dirty for more than a day, so no cleaner runs: {_aged(late, now)}"
        yield Diagnosis("accounts", Health.NOTED, text, clean)
    if recent := [each for each in dirty if not is_long(each, now)]:
        text = f"dirty, waiting for a cleaner: {_aged(recent, now)}"
        yield Diagnosis("accounts", Health.NOTED, text, clean)
    for account in by_standing[AccountUse.OWNED]:
        if account.retained:
            text = f"{account.secret_name} is retained by tenant {account.tenant}, without a claim"
            fix = f"`credfleet pool return {account.secret_name} -n {namespace}` once it is done with it"
            yield Diagnosis("accounts", Health.NOTED, text, fix)
    if owned := [each for each in by_standing[AccountUse.OWNED] if not (each.retained or each.brought)]:
        text = f"have an owner and no claim: {', '.join(each.secret_name for each in owned)}"
        yield Diagnosis("accounts", Health.NOTED, text, f"`credfleet pool adopt -n {namespace}` shows more")
    for account in status.accounts:
        if account.key_phase is not None and account not in left:
            way = "" if account.key_phase in (KeyPhase.PREPARING, KeyPhase.PREPARED) else " --complete"
            text = f"the rotation of the key of {account.secret_name} is {account.key_phase}"
            text += f": {account.key_reason}" if account.key_reason else ""
            fix = f"`credfleet pool rotate {account.secret_name}{way} -n {namespace}` goes on with it"
            yield Diagnosis("accounts", Health.NOTED, text, fix)
    for account in (each for each in by_standing[AccountUse.QUARANTINED] if not each.given_up):
        command = f"credfleet pool unquarantine {account.secret_name} -n {namespace}"
        fix = f"`{command}` once it is sound"
        text = f"{_aged([account], now)} is quarantined: {account.reason or 'no reason given'}"
        yield Diagnosis("accounts", Health.NOTED, text, fix)


def claims(snapshot: PoolSnapshot, survey: SweepReport, namespace: str) -> Iterator[Diagnosis]:
    """Yield claims and accounts that no longer match, and unfinished operations."""
    bound = sum(record.phase is Phase.BOUND for record in snapshot.records)
    yield Diagnosis("claims", Health.WELL, f"{bound} bound")
    sweep = f"`credfleet pool sweep -n {namespace}`"
    if survey.withheld:
        names = ", ".join(sorted({*survey.withheld}))
        yield wrong("claims", f"these accounts carry claims that are gone: {names}", sweep)
    unfinished = [record.name for record in snapshot.records if record.phase is not Phase.BOUND]
    if unfinished:
        text = f"not finished: {', '.join(unfinished)}; the next run of their holder does it"
        yield Diagnosis("claims", Health.NOTED, text, sweep)
    for finding in survey.findings:
        yield wrong("claims", f"{finding.place}: {finding.problem}", finding.fix)


def _aged(found: Iterable[Account], now: datetime) -> str:
    return ", ".join(
        f"{each.secret_name}{f' ({age})' if (age := describe(each, now)) else ''}" for each in found
    )


def wrong(subject: str, text: str, fix: str) -> Diagnosis:
    """Return a diagnosis of a problem."""
    return Diagnosis(subject, Health.WRONG, text, fix)
