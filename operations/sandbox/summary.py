"""The output after an update: tables, page and next steps, or one JSON document."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Json, masked
from pulumi_sandbox.stack_cluster import StackCluster
from pydantic.alias_generators import to_camel

from components.errors import CredfleetError
from operations.cli.answer import Part, VerdictLine
from operations.cli.inputs import shown
from operations.cli.tables import Column, Commands, Table
from operations.folders import Folders
from operations.pool.access import DEFAULT_NAMESPACE, DEFAULT_STACK, PoolTarget
from operations.pool.status import place
from operations.sandbox import results
from operations.sandbox.deployment import Deployed, Prepared
from operations.sandbox.processes import status as services_status
from operations.sandbox.report import Report, Share, Skipped, Violation
from operations.stack.state import Snapshot

if TYPE_CHECKING:
    from components.account_pool.core.model import Member
    from components.account_pool.settings import AccountPool
    from components.stack_config.stack import Settings


def report_of(ready: Prepared, foreseen: Deployed, update: Deployed | None, state: Snapshot) -> Report:
    """Return the report of an update.

    foreseen: the result of its preview. update: None if there was none. state: the current one.
    """
    cluster, at_rest, settings = ready.cluster, ready.at_rest, ready.settings
    result, steps = update or foreseen, update.steps if update else ()
    declared = results.list_declared(state.resources, steps)
    shares, members, since = _pool(settings, at_rest.stack, cluster)
    claimed = results.list_claimed(state.resources, steps, since)
    pending = results.pending(foreseen.steps, steps)
    skipped = (
        *results.held_back(state.resources),
        *_skipped(at_rest.project.directory, settings.account_pool, members),
    )
    ok = result.exit_code == 0
    return Report(
        project=at_rest.project.name,
        stack=at_rest.stack,
        ok=ok,
        headline=results.headline(
            declared,
            result.changes.get("delete", 0) if update else 0,
            len(claimed),
            len(skipped),
            result.outcome,
        ),
        finished=datetime.now(UTC),
        seconds=result.seconds,
        server=cluster.server,
        namespaces={name: tenant.namespace for name, tenant in settings.tenants.items()},
        declared=declared,
        claimed=claimed,
        skipped=skipped,
        shares=shares,
        violations=tuple(
            Violation(
                each.policy_name,
                each.enforcement_level,
                each.message,
                urns.parse(each.resource_urn).name if each.resource_urn else "",
            )
            for each in result.policy
        ),
        outputs=tuple((key, _as_text(value)) for key, value in _outputs(state)),
        services=_services(ready.folders, cluster),
        pending=pending,
        next=tuple(
            (shown(command), purpose) for command, purpose in _next(settings, at_rest.stack, cluster, shares)
        ),
    )


def _outputs(state: Snapshot) -> Iterator[tuple[str, Json]]:
    """Yield the outputs of a stack by name, with secrets masked."""
    for each in state.resources:
        if each.type == urns.ROOT_STACK_TYPE:
            yield from ((key, masked(value)) for key, value in sorted(each.outputs.items()))


def _as_text(value: Json) -> str:
    """Return a text as it is, and others as JSON with sorted keys, as programs vary their order."""
    is_text = isinstance(value, str)
    return value if is_text else json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def _next(
    settings: Settings, stack: str, cluster: StackCluster, shares: Iterable[Share]
) -> Iterator[tuple[str, str]]:
    """Yield commands to run after an update, and their purposes, with all options needed here."""
    on = "" if stack == DEFAULT_STACK else f" --stack {stack}"
    if settings.account_pool is not None:
        free = [share.type for share in shares if dict(share.counts)["free"] and not share.partition]
        if free and settings.tenants:
            tenant = shlex.quote(next(iter(settings.tenants)))
            claim = f"credfleet pool claim --stack {stack} -t {free[0]} --tenant {tenant} --slot by-hand"
            yield claim, "claim one manually"
        is_usual = not on and cluster.own and settings.account_pool.namespace == DEFAULT_NAMESPACE
        status = f"credfleet pool status{'' if is_usual else f' --stack {stack}'}"
        yield status, "who has which account, and what is free"
    yield f'eval "$(credfleet sandbox env{on})"', "this stack for kubectl and pulumi, in this shell"
    yield f"pulumi preview --stack {stack}", "what the next update would change"
    yield f"pulumi destroy --stack {stack}", "delete what was declared"
    if cluster.own:
        yield "make down", "stop what runs; data and state are kept"


def as_parts(report: Report, page: Path) -> Iterator[Part]:
    """Yield what was claimed and skipped, the location of the page, and next steps."""
    yield from _tables(report) if report.ok else skipped_table(report.skipped)
    yield ""
    yield VerdictLine(report.ok, report.headline, bold=True)
    here = Path.cwd()
    yield f"  report  {page.relative_to(here) if page.is_relative_to(here) else page}"
    if report.ok:
        yield Commands("Next", report.next)


def _tables(report: Report) -> Iterator[Table]:
    if report.claimed:
        columns = ("Tenant", "Slot", Column("Type", leaves=1), Column("Account", names=True), "Phase", "")
        claimed = sorted(report.claimed, key=lambda each: (each.tenant, each.slot))
        rows = [
            (
                *(each.tenant, each.slot, each.type, f"{each.namespace}/{each.secret_name}", each.phase),
                "new" if each.is_new else "",
            )
            for each in claimed
        ]
        yield Table("Claimed", columns, rows)
    yield from skipped_table(report.skipped)
    if report.violations:
        columns = ("Level", "Rule", Column("Resource", leaves=1), Column("Remark", folds=True))
        remarks = [
            (each.level, each.rule, each.resource, _remark(each.message)) for each in report.violations
        ]
        yield Table("Policies", columns, remarks)


def skipped_table(skipped: Iterable[Skipped]) -> Iterator[Table]:
    """Yield a table of what was skipped and why, if anything was."""
    if rows := [*_by_reason(skipped)]:
        yield Table("Skipped", (Column("What", folds=True), Column("Why", folds=True)), rows)


def _by_reason(skipped: Iterable[Skipped]) -> Iterator[tuple[str, str]]:
    """Yield one row for each reason."""
    by_reason: dict[str, list[str]] = {}
    for each in skipped:
        by_reason.setdefault(each.reason, []).append(each.what)
    for reason, what in by_reason.items():
        kind = what[0].rpartition(" ")[0]
        alike = all(each.rpartition(" ")[0] == kind for each in what)
        first, *more = what
        yield ", ".join((first, *(each.rpartition(" ")[2] if alike else each for each in more))), reason


def _remark(message: str) -> str:
    """Return a policy's message about a resource, without the first line, its description."""
    about, *said = message.strip().splitlines()
    return " ".join(said) or about


def as_ended(stack: str, result: Deployed) -> dict[str, Any]:
    """Return the outcome as a JSON document; `changes` counts steps by operation."""
    return {
        "stack": stack,
        "outcome": result.outcome,
        "changes": dict(result.changes),
        "seconds": round(result.seconds, 3),
        "errors": list(result.errors),
    }


def as_document(report: Report, result: Deployed, page: Path) -> dict[str, Any]:
    """Return an update as a JSON document."""
    return {
        **as_ended(report.stack, result),
        "headline": report.headline,
        "server": report.server,
        "declared": [
            {"urn": each.urn, "type": each.kind, "name": each.name, "id": each.id, "action": each.action}
            for each in report.declared
        ],
        "claimed": [
            {to_camel(name): value for name, value in asdict(each).items() if name not in ("is_new", "since")}
            for each in report.claimed
        ],
        "skipped": [asdict(each) for each in report.skipped],
        "policies": [asdict(each) for each in report.violations],
        "outputs": dict(report.outputs),
        "report": str(page),
    }


def _pool(
    settings: Settings, stack: str, cluster: StackCluster
) -> tuple[tuple[Share, ...], Mapping[str, Member] | None, Mapping[str, str]]:
    """Read the pool: return counts of accounts by state, the accounts, and when each was claimed.

    The accounts are None if they cannot be read.
    """
    if (section := settings.account_pool) is None:
        return (), None, {}
    from components.account_pool.core.pool import Pool
    from components.account_pool.core.status import status_of

    try:
        where = PoolTarget.of_stack(stack, section, settings.cluster, cluster.kubeconfig)
        snapshot = Pool.snapshot(where.target(), where.namespace)
    except CredfleetError:
        return (), None, {}
    status = status_of(snapshot, section.config_map)
    shares = tuple(
        Share(type_, place(partition), tuple((str(standing), count) for standing, count in counts.items()))
        for (type_, partition), counts in status.counts.items()
    )
    members = {member.name: member for member in snapshot.members}
    return shares, members, {each.secret_name: each.since for each in status.accounts}


def _skipped(
    folder: Path, pool: AccountPool | None, members: Mapping[str, Member] | None
) -> tuple[Skipped, ...]:
    """Return the rows of the members file that are missing in the pool, or differ."""
    from components.account_pool.members_file import missing_or_different

    if pool is None or pool.members_from is None or members is None:
        return ()
    file = folder / pool.members_from
    found = missing_or_different(file, pool.namespace, pool.partition_keys, members)
    return tuple(Skipped(f"account {name}", f"{each.problem}: {each.fix}") for name, each in found)


def _services(folders: Folders, cluster: StackCluster) -> tuple[tuple[str, str], ...]:
    told = services_status(folders)
    running = {name: each for name, each in told["services"].items() if each["running"]}
    return (
        *([] if cluster.own else [("cluster of yours", cluster.server)]),
        *((name, f"{each['address'] or 'no port'}, pid {each['pid']}") for name, each in running.items()),
        ("kubeconfig", str(cluster.kubeconfig)),
        ("state", str(told["state"])),
    )
