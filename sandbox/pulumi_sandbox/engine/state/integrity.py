"""Whether a snapshot is well-formed, by the genuine CLI's rules; it reads no other."""

from __future__ import annotations

from collections import Counter

from pulumi_sandbox.engine.model.resource import Resource, Snapshot
from pulumi_sandbox.errors import SandboxError


def verify(snapshot: Snapshot) -> None:
    """Check that all a resource refers to stands before it, and that nobody is there twice.

    Raises SandboxError `state-invalid`, naming the first resource that breaks a rule.
    """
    seen: set[str] = set()
    providers: set[str] = set()
    for resource in snapshot.resources:
        _verify_record(resource)
        for reference in resource.references:
            if reference not in seen:
                raise _invalid(resource.urn, f"it refers to {reference}, which does not stand before it")
        if resource.provider and resource.provider not in providers and not resource.pending_replacement:
            raise _invalid(resource.urn, f"its provider {resource.provider} does not stand before it")
        if resource.is_provider:
            providers.add(f"{resource.urn}::{resource.id}")
        seen.add(resource.urn)
    alive = Counter(resource.urn for resource in snapshot.resources if not resource.delete)
    for urn, count in alive.items():
        if count > 1:
            raise _invalid(urn, "it is there twice, and not marked for deletion")


def _verify_record(resource: Resource) -> None:
    if not resource.urn or not resource.type:
        raise _invalid(resource.urn or "a resource", "it has no urn or no type")
    if not resource.custom and resource.id:
        raise _invalid(resource.urn, "it is a component and must not have an id")
    if resource.is_provider and not resource.id:
        raise _invalid(resource.urn, "it is a provider and must have an id")


def _invalid(urn: str, cause: str) -> SandboxError:
    return SandboxError(
        code="state-invalid",
        place=f"state of {urn}",
        cause=cause,
        mend="restore the state from its backup (beside it, with .bak behind its name)",
    )
