"""Proposed claims for accounts that have an owner but no claim record.

Such an account was brought by its tenant, or predates claim records. The slot is part of the record's name:
if the account were adopted under a slot other than the one its stack uses, the stack would make a new claim
and take a second account. The slot therefore comes from a stack or an operator, and is never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from components.account_pool.core.judgement import judge
from components.account_pool.core.keys import CLAIM_TOKEN, TENANT_ID
from components.account_pool.core.model import ClaimRequest, Member, Partition, tenant_label
from components.account_pool.core.snapshot import PoolSnapshot
from components.errors import Misconfigured

_UNNAMED: Final = (
    "nothing names its slot, and a claim under another one would take a second account; name it with --stack,"
    " --map TENANT/TYPE=SLOT or --slot"
)


@dataclass(frozen=True, slots=True)
class SlotNames:
    """Sources of the slot names of accounts, most specific first.

    `mapped`: (tenant, type) → slots, for the accounts in order of name. `claims`: claims of stacks, each with
    its own holder, policy and limit. `slot`: for all other accounts. `holder`: of claims that no stack makes.
    """

    mapped: Mapping[tuple[str, str], Sequence[str]] = field(
        default_factory=dict[tuple[str, str], Sequence[str]]
    )
    claims: Sequence[ClaimRequest] = ()
    slot: str | None = None
    holder: str = "cli"

    def claims_on(self, member: Member, keys: Sequence[str]) -> Iterator[ClaimRequest]:
        """Yield the claims that the owner of a member could have on it, best match first."""
        place = member.place(keys)
        stated = [
            claim
            for claim in self.claims
            if (tenant_label(claim.tenant), claim.placed("", keys).place) == (member.tenant, place)
        ]
        named = {(claim.tenant, claim.slot): claim for claim in stated}
        mapped = [
            (tenant, slot)
            for (tenant, account_type), slots in self.mapped.items()
            if (tenant_label(tenant), account_type) == (member.tenant, member.type)
            for slot in slots
        ]
        for tenant, slot in mapped:
            yield named.get((tenant, slot)) or self._claim(tenant, slot, place)
        if mapped:
            return
        yield from stated
        tenant = member.annotations.get(TENANT_ID, member.tenant or "")
        if self.slot is not None and tenant_label(tenant) == member.tenant:
            yield self._claim(tenant, self.slot, place)

    def _claim(self, tenant: str, slot: str, place: Partition) -> ClaimRequest:
        return ClaimRequest(tenant, place.type, slot, place.given, holder=self.holder)


@dataclass(frozen=True, slots=True)
class Adoption:
    """Account with an owner and no claim. `claim`: the proposed claim; `problem`: why there is none."""

    member: str
    tenant: str
    claim: ClaimRequest | None = None
    problem: str | None = None


def adoptions(snapshot: PoolSnapshot, keys: Sequence[str], names: SlotNames) -> Iterator[Adoption]:
    """Propose a claim for each account that has an owner and no claim, in order of name.

    Raises Misconfigured if the pool could not serve one of the stacks' claims.
    """
    taken = {record.name: record.member for record in snapshot.records}
    for claim in names.claims:
        claim.placed("", keys)
    for member in sorted(snapshot.members, key=lambda m: m.name):
        is_unclaimed = CLAIM_TOKEN not in member.annotations and member.state is None and not member.shared
        if member.tenant is None or not is_unclaimed:
            continue
        found = Adoption(member.name, member.annotations.get(TENANT_ID, member.tenant))
        judged = judge(member, member.place(keys), member.tenant)
        if not judged.takes:
            yield replace(found, problem=judged.why)
            continue
        try:
            wished = {claim.placed("", keys).record: claim for claim in names.claims_on(member, keys)}
            is_named = tenant_label(found.tenant) == member.tenant
        except Misconfigured as error:
            yield replace(found, problem=f"{error.place}: {error.problem}")
            continue
        record = next((name for name in wished if name not in taken), None)
        if record is not None:
            taken[record] = member.name
            yield replace(found, tenant=wished[record].tenant, claim=wished[record])
        elif wished:
            theirs = ", ".join(f"{claim.slot} ({taken[name]})" for name, claim in wished.items())
            yield replace(found, problem=f"every slot named for it has an account already: {theirs}")
        elif not is_named:
            why = f"its owner {member.tenant} is encoded, and annotation {TENANT_ID} does not say of whom"
            yield replace(found, problem=why)
        else:
            yield replace(found, problem=_UNNAMED)
