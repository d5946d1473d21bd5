"""The record of a claim, which tests change by `dataclasses.replace`, and what a claim is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from components.account_pool.core.model import ClaimRequest, Member, Partition, Phase, Policy, record_name
from components.account_pool.core.records import Claimed, Record

BOUND: Final = Record(
    name="claim-0",
    uid="u",
    resource_version="1",
    tenant="acme",
    partition=Partition("aws"),
    slot="0",
    member="aws-1",
    member_uid="uid-aws-1",
    attempt=1,
    phase=Phase.BOUND,
    policy=Policy.CLEAN,
    limit=None,
    holders={"h": 1},
)
"""A claim of tenant acme on account aws-1, by holder h."""


def record_for(
    request: ClaimRequest, partition: Partition, account: str, phase: Phase, *holders: str
) -> Record:
    """Draw the record of a request, on an account."""
    return replace(
        BOUND,
        name=record_name(partition, request.tenant, request.slot),
        tenant=request.tenant,
        partition=partition,
        slot=request.slot,
        member=account,
        member_uid=f"uid-{account}",
        phase=phase,
        holders=dict.fromkeys(holders, 1),
    )


def claimed(request: ClaimRequest, account: str) -> Claimed:
    """Answer a request with an account that it is the first to hold."""
    record = replace(BOUND, tenant=request.tenant, slot=request.slot, holders={request.holder: 1})
    return Claimed.by(record, Member(account, f"uid-of-{account}", "1"), request.holder, reused=False)
