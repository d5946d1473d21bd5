"""Secrets of any kind."""

from __future__ import annotations

from collections.abc import Iterator

from pool_members import SECRETS
from pulumi_policy import EnforcementLevel
from rule import Resource, resource_rule


@resource_rule(
    "kubernetes-secret-data-only",
    types=SECRETS,
    level=EnforcementLevel.MANDATORY,
    description="A Secret is declared by data alone, so that a key taken out also leaves the cluster.",
    mend="give the values in base64 under data",
)
def have_data_only(secret: Resource) -> Iterator[str]:
    """Refuse stringData: under server-side apply a key removed from it stays live (decision 9)."""
    if "stringData" in secret.inputs:
        yield "stringData is used"
