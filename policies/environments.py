"""Limits of an environment, from its file in `policies/config/`; whatever the file omits is not limited."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from pulumi_policy import EnforcementLevel
from rule import UNKNOWN, Resource, resource_rule, stack_rule

_CLAIM: Final = "pulumi-python:dynamic/credfleet:AccountClaim"
_TEXTS: Final = {"type": "array", "items": {"type": "string"}, "default": []}
_LABELS: Final = (("metadata", "labels"), ("labels",), ("tags",))
"""Paths of labels in Kubernetes, Google Cloud and others."""

_LABELLED: Final = ("kubernetes:*", "gcp:*", "azure-native*:*")
_ZONE: Final = re.compile(r"(?<=\d)-[a-z]$")


@resource_rule(
    types=["*"],
    description="A resource must be of a type that the environment allows.",
    fix="leave the resource out, or add its type to `allowed` in policies/config (* matches anything)",
    config={"allowed": _TEXTS},
)
def estate_resource_types(resource: Resource) -> Iterator[str]:
    """Reject resource types that the environment does not allow."""
    allowed = resource.config.get("allowed", [])
    if allowed and not resource.is_a("pulumi:*", *allowed):
        yield "its type is not allowed"


@resource_rule(
    types=["gcp:*", "azure-native*:*"],
    description="Data must stay in the regions of the environment.",
    fix="choose one of the regions in policies/config",
    config={"gcp": _TEXTS, "azure": _TEXTS},
)
def estate_regions(resource: Resource) -> Iterator[str]:
    """Reject regions outside the environment, also of replicas, and automatic replication."""
    is_google = resource.is_a("gcp:*")
    allowed = {_region(one) for one in resource.config.get("gcp" if is_google else "azure", [])}
    if not allowed:
        return
    for path in ("location", "region", "zone"):
        if (given := resource.text(path)) is not None and _region(given) not in allowed:
            yield f"{path} is not a region of the environment"
    if resource.is_known("replication", "auto") and resource.mapping("replication").get("auto") is not None:
        yield "replication.auto puts replicas anywhere"
    for index, replica in resource.objects("replication", "userManaged", "replicas"):
        if (given := replica.text("location")) is not None and _region(given) not in allowed:
            yield f"replication.userManaged.replicas[{index}].location is not a region of the environment"
    for index, place in resource.objects("locations"):
        if (given := place.text("locationName")) is not None and _region(given) not in allowed:
            yield f"locations[{index}].locationName is not a region of the environment"


def _region(name: str) -> str:
    """Return a region for comparison: Azure accepts `West Europe`; Google has zones (`europe-west1-b`)."""
    return _ZONE.sub("", name.rpartition("/")[2].replace(" ", "").lower())


@resource_rule(
    types=[_CLAIM],
    description="Tenants must claim accounts of types that the environment offers.",
    fix="claim another type, or add it to `allowed` in policies/config",
    config={"allowed": _TEXTS},
)
def estate_account_types(claim: Resource) -> Iterator[str]:
    """Reject a claim for an account type that is reserved for another environment."""
    allowed, type_ = claim.config.get("allowed", []), claim.text("type")
    if allowed and type_ is not None and not any(fnmatchcase(type_, one) for one in allowed):
        yield "type is not offered by the environment"


@resource_rule(
    types=[_CLAIM],
    level=EnforcementLevel.ADVISORY,
    description="A required claim must have an account in the forecast, because the update fails otherwise.",
    fix="add accounts, or clean or release some; or leave out `required`, and the update goes on without it",
)
def estate_required_claims_served(claim: Resource) -> Iterator[str]:
    """Report a claim that is expected to fail the update."""
    if claim.inputs.get("doomed"):
        yield "the update is expected to fail here; the preview says why"


@stack_rule(
    types=[_CLAIM],
    description="A tenant must not claim more accounts than the environment grants.",
    fix="drop a claim, or raise `most` or the tenant's number in `tenants` in policies/config",
    config={
        "most": {"type": "integer", "minimum": 0},
        "tenants": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}},
    },
)
def estate_claims_per_tenant(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Reject each claim beyond the limit of its tenant."""
    claimed: Counter[str] = Counter()
    for one in resources:
        tenant = one.text("tenant")
        if one.type != _CLAIM or tenant is None:
            continue
        claimed[tenant] += 1
        most = one.config.get("tenants", {}).get(tenant, one.config.get("most"))
        if most is not None and claimed[tenant] > most:
            yield one.urn, f"tenant claims more accounts than {int(most)}"


@resource_rule(
    types=["*"],
    description="A resource must have the labels or tags that the environment requires.",
    fix="set the label; policies/config says which type needs which",
    config={
        "required": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
            "default": {},
        }
    },
)
def estate_owner_labels(resource: Resource) -> Iterator[str]:
    """Reject resources without the labels that name an owner."""
    may_be_any = resource.is_a(*_LABELLED)
    wanted = [
        label
        for type_, labels in resource.config.get("required", {}).items()
        if resource.is_a(type_) and (may_be_any or not type_.startswith("*"))
        for label in labels
    ]
    # If no label is required, nothing is read: a placeholder for a secret could not be judged.
    held = next((one for path in _LABELS if wanted and (one := _held(resource, path)) is not None), {})
    for label in wanted:
        if held is not UNKNOWN and held.get(label) in ("", None):
            yield f"the label {label} is missing"


def _held(resource: Resource, path: tuple[str, ...]) -> Any:
    """Return the labels at a path; UNKNOWN, or None without labels: a list of tags does not count."""
    if not resource.is_known(*path):
        return UNKNOWN
    held = resource.mapping(*path[:-1]).get(path[-1])
    return held if isinstance(held, dict) else None
