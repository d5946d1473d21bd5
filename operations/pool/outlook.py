"""`credfleet pool outlook`: what all claims of a stack can expect, told together and before any is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from components.account_pool.declared import Declaration
from components.account_pool.model import ClaimRequest
from components.account_pool.outlook import Expectation, Prospect, leaving, outlook
from components.account_pool.pool import Pool
from components.account_pool.rules import Fault
from components.account_pool.settings import AccountPool
from components.naming import stack_holder
from components.settings.nouns import Tenant
from components.settings.shards import Stacks
from operations.cli.answer import Answer
from operations.cli.tables import Column, Table
from operations.config.settings import judged, pool_of
from operations.pool.access import Where
from operations.sandbox.stack_state import stack_here

Whose: TypeAlias = tuple[str, str, str]
"""Organization, project and stack."""

BAD: Final = frozenset({Prospect.EXHAUSTED, Prospect.REFUSED})


def expected_of(stack: str, organization: str, kubeconfig: Path | None) -> Answer:
    """Return what each claim of a stack's configuration can expect of the pool as it is; nothing is written.

    Raises as `stack_claims` and `Pool.census`.
    """
    claimed = stack_claims(stack, organization, kubeconfig)
    pool, where, claims = claimed.pool, claimed.where, claimed.claims
    census = Pool.census(where.target(), where.namespace)
    members = {name: member.declared for name, member in pool.members.items()}
    declared = Declaration(where.namespace, pool.partition_keys, members)
    ours = [record for record in census.records if claimed.is_ours(record.tenant)]
    gone = leaving(ours, claims)
    expected = outlook(declared.with_census(census), claims, pool.partition_keys, gone)
    rows = [
        ("✗" if each.prospect in BAD else "✓", f"{each.tenant}/{each.slot}", each.type, each.text)
        for each in expected
    ]
    columns = ("", Column("Claim", names=True), "Type", Column("What", folds=True))
    table = Table(f"Expected of pool {where.namespace} as it is now", columns, rows)
    return Answer(
        as_document(stack, where.namespace, expected),
        [
            table if rows else f"Stack {stack} claims no account.",
            *(f"✗ {each.place}: {each.cause}\n→ {each.mend}" for each in census.problems),
        ],
    )


@dataclass(frozen=True, slots=True)
class StackClaims:
    """The pool of a stack, where it is, and the claims the stack makes, under its holder ids.

    is_ours: whether a tenant is this stack's, by its name: stacks may hold accounts under one name.
    """

    pool: AccountPool
    where: Where
    whose: Whose
    claims: tuple[ClaimRequest, ...]
    is_ours: Callable[[str], bool]


def stack_claims(stack: str, organization: str, kubeconfig: Path | None) -> StackClaims:
    """Return what a stack's configuration claims; raises as `judged` and `pool_of`."""
    at_rest = stack_here(stack)
    settings = judged(at_rest)
    pool = pool_of(settings, stack)
    whose = (organization, at_rest.project.name, settings.held_as or stack)
    claims = (c for name, tenant in settings.tenants.items() for c in claims_of(name, tenant, pool, whose))
    return StackClaims(
        pool,
        Where.of_stack(pool, settings.cluster, kubeconfig),
        whose,
        tuple(claims),
        Stacks.read(at_rest.project.directory).tenants_of(stack),
    )


def claims_of(name: str, tenant: Tenant, pool: AccountPool, whose: Whose) -> Iterator[ClaimRequest]:
    """Return the claims that a stack makes for a tenant, under the holder ids it makes them with."""
    for slot, account in tenant.accounts.items():
        served = account.pool(pool.ruleset)
        if not isinstance(served, Fault):
            yield account.claim_on(served, name, slot, stack_holder(*whose, name, slot))


def as_document(stack: str, namespace: str, expected: Sequence[Expectation]) -> dict[str, Any]:
    """Return an outlook for machines; `secretName` is null where any of several accounts will do."""
    return {
        "stack": stack,
        "namespace": namespace,
        "expected": [
            {
                "tenant": each.tenant,
                "slot": each.slot,
                "type": each.type,
                "prospect": str(each.prospect),
                "secretName": each.member,
                "text": each.text,
            }
            for each in expected
        ],
    }
