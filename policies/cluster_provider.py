"""Policies for the Kubernetes provider, whose flags decide whether a claim survives an update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rule import UNKNOWN, Resource, resource_rule

_REQUIRED: Final[Mapping[str, bool]] = {
    "enableSecretMutable": True,
    "enableConfigMapMutable": True,
    "enableServerSideApply": True,
    "enablePatchForce": False,
    "upsertExistingObjects": False,
}


@resource_rule(
    types=["pulumi:providers:kubernetes"],
    description="The Kubernetes provider must update Secrets in place, and must not force or take over.",
    fix="make providers with components/providers.py, and give every resource one",
)
def kubernetes_provider_keeps_claims(provider: Resource) -> Iterator[str]:
    """Reject flags with which an update can drop the claim on a Secret or the account of a tenant."""
    for flag, required in _REQUIRED.items():
        # The SDK sends a provider's flags as JSON text.
        given = provider.inputs.get(flag)
        if given is not UNKNOWN and given not in (required, str(required).lower()):
            yield f"{flag} is not {str(required).lower()}"
    if provider.inputs.get("clusterIdentifier") in ("", None):
        yield "clusterIdentifier is missing, so an API server behind a new address replaces every Secret"
    if provider.inputs.get("context") in ("", None):
        yield "context is missing, so the cluster is chosen by accident"
