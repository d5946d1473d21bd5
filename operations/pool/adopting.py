"""`credfleet pool adopt`: claims accounts that only have an owner, in the slots that stacks declare."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.account_pool.core.adoption import SlotNames
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool import OPERATOR
from components.account_pool.core.records import Claimed
from components.account_pool.rules import Fault
from components.account_pool.settings import AccountPool
from components.errors import Misconfigured, Misused, Withheld
from components.naming import stack_holder
from components.stack_config.models import Tenant
from operations.cli.answer import CommandResult
from operations.cli.tables import Column, Table
from operations.config.settings import pool_of, read_settings
from operations.folders import stack_here
from operations.pool.access import PoolTarget
from operations.pool.options import AdoptionOptions

_TERM = re.compile(r"(?P<tenant>.+?)/(?P<type>[a-z0-9][-a-z0-9_.]*)=(?P<slot>.*)")


def adopt(asked: AdoptionOptions, where: PoolTarget) -> CommandResult:
    """Report the accounts that have an owner and no claim; with `--yes`, claim each for its owner.

    Slots and holders come from the claims of the stack, if one is given. Raises Misused for an invalid term;
    as `stack_claims`, `open_existing` and `PoolOperator.adopt`.
    """
    claims = stack_claims(where.stack, asked.organization) if where.stack else ()
    slots, yes = by_tenant_and_type(asked.mapped or ()), where.yes
    pool = (where if yes else where.for_a_look()).open_existing(OPERATOR)
    adoptable = pool.adoptable(SlotNames(slots, claims, asked.slot, asked.holder or "cli"))
    found: list[dict[str, Any]] = [
        {
            "secretName": each.member,
            "tenant": each.tenant,
            "slot": each.claim and each.claim.slot,
            "problem": each.problem,
        }
        for each in adoptable
    ]
    sound = {each.member: each.claim for each in adoptable if each.claim is not None}
    adopted: list[Claimed] = []
    with pool.flushed():
        for told in (each for each in found if yes and each["problem"] is None):
            try:
                adopted.append(pool.adopt(told["secretName"], sound[told["secretName"]]))
            except (Misconfigured, Withheld) as error:
                told["problem"] = f"{error.place}: {error.problem} → {error.fix}"
    document = {
        "found": found,
        "adopted": [
            {"secretName": each.secret_name, "tenant": each.tenant, "slot": each.slot, "holder": each.holder}
            for each in adopted
        ],
    }
    title, none = "Accounts with an owner and no claim", "Every account with an owner has its claim."
    columns = {"secretName": Column("Account", names=True), "tenant": "Tenant", "slot": "Slot"}
    table = Table.of(title, {**columns, "problem": Column("Problem", folds=True)}, found, empty=none)
    if not found:
        return CommandResult(document, [table])
    done = (
        f"✓ {len(adopted)} of them claimed for their owners"
        if yes
        else f"Nothing was written; --yes claims {len(sound)} of them for their owners."
    )
    failed = yes and (len(adopted) < len(sound) or not adopted)
    return CommandResult(document, [table, done], exit_code=int(failed))


def by_tenant_and_type(terms: Sequence[str]) -> Mapping[tuple[str, str], Sequence[str]]:
    """Parse the slots of `TENANT/TYPE=SLOT` terms; raises Misused for an invalid one."""
    slots: dict[tuple[str, str], list[str]] = defaultdict(list)
    for term in terms:
        parts = _TERM.fullmatch(term)
        if parts is None or not parts["slot"].strip():
            raise Misused(
                place=f"--map {term}",
                problem="it is not a tenant and a type with the slot that its account is to be",
                fix="write --map acme/aws=main, once for each account of a tenant and type",
            )
        slots[parts["tenant"], parts["type"]].append(parts["slot"])
    return slots


def stack_claims(stack: str, organization: str) -> tuple[ClaimRequest, ...]:
    """Return the claims of a stack, with its holder IDs; raises as `read_settings` and `pool_of`."""
    at_rest = stack_here(stack)
    settings = read_settings(at_rest)
    pool = pool_of(settings, stack)
    whose = (organization, at_rest.project.name, settings.held_as or stack)
    return tuple(
        claim for name, tenant in settings.tenants.items() for claim in _claims_of(name, tenant, pool, whose)
    )


def _claims_of(
    name: str, tenant: Tenant, pool: AccountPool, whose: tuple[str, str, str]
) -> Iterator[ClaimRequest]:
    """Yield the claims that a stack makes for a tenant; whose: organization, project and stack."""
    for slot, account in tenant.accounts.items():
        served = account.pool(pool.ruleset)
        if not isinstance(served, Fault):
            yield account.claim_on(served, name, slot, stack_holder(*whose, name, slot))
