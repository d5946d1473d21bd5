"""Resolution of the credential that Azure Service Operator uses for a resource, and its faults.

Follows ASO 2.21. A chosen Secret is used even if it is invalid: only a missing `aso-credential` falls back to
the global credential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from components.aso_credentials import keys
from components.aso_credentials.azure import subscription_of
from components.aso_credentials.model import faults_of, method_of
from components.aso_credentials.resolution import (
    TRUE,
    WITHHELD,
    NotReady,
    Operator,
    Reason,
    Resolution,
    Resource,
    Scope,
    Secrets,
    Severity,
)
from components.aso_credentials.scoped import (
    incompleteness,
    list_borrowed,
    refusal,
    refused_by_entra,
    subject_of,
)
from components.naming import is_guid
from components.projection.keys import AsoMethod
from components.projection.model import SecretRef

_NO_RETRY: Final = (
    "ASO does not try again by itself: after the fix, change the resource's spec or annotations,"
    " or restart the operator"
)


def resolve(resources: Sequence[Resource], secrets: Secrets, operator: Operator) -> tuple[Resolution, ...]:
    """Resolve resources together, in their order; raises as `Operator.with_settings`.

    An owner that is not among them is assumed to be ready, since the list might be incomplete. A Secret can
    be missing if ASO writes it for another of the resources.
    """
    resolver = _Resolver(resources, secrets, operator.with_settings(secrets))
    return tuple(map(resolver.resolve, resources))


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Context of a resolution: all resources, the Secrets, and the operator."""

    resources: Sequence[Resource]
    secrets: Secrets
    operator: Operator

    def resolve(self, resource: Resource) -> Resolution:
        chosen = self.guarded(resource)
        owners = [*self.owners(resource)]
        chosen = self.judged(replace(chosen, fault=chosen.fault or self.waiting(owners)))
        hints = (*_passed_over(resource, self.operator), *_hints(resource, owners), *chosen.hints)
        return replace(chosen, hints=hints)

    def guarded(self, resource: Resource) -> Resolution:
        chosen = self.credential(resource)
        if chosen.fault is None and chosen.subscription is not None:
            fault = _guard(resource, chosen) or self.parent(resource, chosen.subscription)
            return replace(chosen, fault=fault)
        return chosen

    def credential(self, resource: Resource) -> Resolution:
        name = resource.annotations.get(keys.CREDENTIAL_FROM)
        if name is not None:
            return self.annotated(resource, name)
        secret = SecretRef(resource.namespace, keys.NAMESPACE_SECRET)
        if self.data_of(secret, resource) is not None:
            return self.scoped(resource, secret, Scope.NAMESPACE)
        return self.of_operator(resource)

    def annotated(self, resource: Resource, name: str) -> Resolution:
        if not name or "/" in name:
            why = "cannot contain '/'" if name else "is empty, and that is not a name of a Secret"
            message = (
                f"{keys.CREDENTIAL_FROM} {why}: give the bare name of a Secret in namespace"
                f" {resource.namespace}; ASO falls back to no other credential"
            )
            return Resolution(resource, scope=Scope.RESOURCE, fault=_failed(message))
        secret = SecretRef(resource.namespace, name)
        if self.data_of(secret, resource) is not None:
            return self.scoped(resource, secret, Scope.RESOURCE)
        elsewhere = sorted(str(other) for other in self.secrets if other.name == name)
        where = f" (there is {', '.join(elsewhere)}, but only the same namespace counts)" if elsewhere else ""
        message = (
            f"credential Secret {secret} does not exist{where}, and ASO falls back to no other: create it,"
            " ASO looks again within 3 minutes; until then it cannot delete the resource either"
        )
        return Resolution(resource, secret, Scope.RESOURCE, fault=_failed(message))

    def writers(self, secret: SecretRef, reader: Resource) -> Sequence[Resource]:
        """Return the other resources for which ASO writes a Secret."""
        near = (one for one in self.resources if one.namespace == secret.namespace and one is not reader)
        return [one for one in near if secret.name in one.writes]

    def data_of(self, secret: SecretRef, reader: Resource) -> Mapping[str, bytes] | None:
        """Return the present or future data of a Secret; None if nothing writes it."""
        writers = self.writers(secret, reader)
        if not writers:
            return self.secrets.get(secret)
        written = {key: WITHHELD for one in writers for key in one.writes[secret.name]}
        return {**written, **self.secrets.get(secret, {})}

    def scoped(self, resource: Resource, secret: SecretRef, scope: Scope) -> Resolution:
        data = self.data_of(secret, resource) or {}
        chosen = Resolution(resource, secret, scope)
        if lacks := incompleteness(data):
            message = f"credential Secret {secret} {lacks}, and ASO falls back to no other: complete it"
            return replace(chosen, fault=_failed(message))
        subscription = data[keys.SUBSCRIPTION]
        known = None if subscription == WITHHELD else subscription.decode(errors="replace")
        chosen = replace(chosen, method=method_of(data), subscription=known)
        if refused := refusal(data, self.operator):
            return replace(chosen, fault=_failed(f"invalid credential for {secret}: {refused}"))
        return replace(chosen, subject=subject_of(data, secret, self.operator))

    def of_operator(self, resource: Resource) -> Resolution:
        secret = SecretRef(self.operator.namespace, keys.GLOBAL_SETTINGS)
        settings = self.secrets.get(secret, {})
        if not settings.get(keys.SUBSCRIPTION):
            message = (
                "global credential not configured, and no other applies: add Secret"
                f" {keys.NAMESPACE_SECRET} to namespace {resource.namespace}, or name one with"
                f" annotation {keys.CREDENTIAL_FROM}"
            )
            return Resolution(resource, fault=_failed(message))
        method = _global_method(settings)
        subject = (
            replace(self.operator, strict=False).subject(secret.namespace)
            if method is AsoMethod.WORKLOAD_IDENTITY
            else None
        )
        subscription = settings[keys.SUBSCRIPTION].decode(errors="replace")
        return Resolution(resource, secret, Scope.GLOBAL, method, subject, subscription)

    def parent(self, resource: Resource, subscription: str) -> NotReady | None:
        try:
            of_parent = self.subscription_of_parent(resource)
        except ValueError:
            return _error(Reason.FAILED, "the ARM id of the owner cannot be parsed: correct it")
        if of_parent is None or of_parent.lower() == subscription.lower():
            return None
        message = (
            f"resource subscription {subscription} does not match parent subscription {of_parent}:"
            " give the resource a credential of its owner's subscription"
        )
        by_id = resource.owner is not None and resource.owner.arm_id
        return _error(Reason.SUBSCRIPTION_MISMATCH if by_id else Reason.FAILED, message)

    def subscription_of_parent(self, resource: Resource) -> str | None:
        if resource.owner and resource.owner.arm_id:
            return subscription_of(resource.owner.arm_id)
        owner = self.owner(resource)
        if owner is None:
            return None
        arm_id = owner.annotations.get(keys.RESOURCE_ID)
        return subscription_of(arm_id) if arm_id else self.credential(owner).subscription

    def owner(self, resource: Resource) -> Resource | None:
        wanted = resource.owner
        if wanted is None or wanted.name is None:
            return None
        found = [
            other
            for other in self.resources
            if other is not resource
            and (other.namespace, other.name) == (resource.namespace, wanted.name)
            and wanted.kind in (None, other.kind)
        ]
        return min(found, key=lambda other: other.kind != "ResourceGroup", default=None)

    def owners(self, resource: Resource) -> Iterator[Resource]:
        """Yield the owners of a resource, direct owner first."""
        seen = [resource]
        while (owner := self.owner(seen[-1])) is not None and owner not in seen:
            yield owner
            seen.append(owner)

    def waiting(self, owners: Sequence[Resource]) -> NotReady | None:
        for owner in owners:
            if self.guarded(owner).fault:
                message = f"blocked until its owner {owner} is ready, which it cannot be: fix that first"
                return NotReady(Severity.WARNING, Reason.WAITING_FOR_OWNER, message)
        return None

    def judged(self, chosen: Resolution) -> Resolution:
        """Add what Entra will reject, and oddities of a Secret that ASO accepts."""
        if chosen.fault or chosen.secret is None:
            return chosen
        data = self.data_of(chosen.secret, chosen.resource) or {}
        if chosen.scope is Scope.GLOBAL:
            ids = [(key, data[key]) for key in keys.REQUIRED if data.get(key) not in (None, b"", WITHHELD)]
            odd = [f"{key} is not a GUID" for key, id_ in ids if not is_guid(id_.decode("latin-1").strip())]
            hint = f"ASO takes Secret {chosen.secret}, but {', '.join(odd)}"
            return replace(chosen, hints=(hint,) if odd else ())
        if bad := refused_by_entra(data, self.operator):
            message = f"of Secret {chosen.secret}, {bad}: write the bare GUID"
            return replace(chosen, fault=NotReady(Severity.WARNING, Reason.UNKNOWN_ERROR, message))
        hints = [
            f"Secret {chosen.secret} is written by ASO itself, and is there once {writer} is ready"
            for writer in self.writers(chosen.secret, chosen.resource)
        ]
        if taken := list_borrowed(data, self.operator):
            hints.append(
                f"{', '.join(taken)} of Secret {chosen.secret} is empty, and azidentity takes the environment"
                " of the operator's pod instead: the resource is served by the operator's own identity"
            )
        is_known = WITHHELD not in data.values()  # otherwise its writer is responsible
        if is_known and (odd := faults_of(data, strict=self.operator.strict)):
            hints.append(f"ASO takes Secret {chosen.secret}, but {', '.join(odd)}")
        return replace(chosen, hints=(*hints,))


def _failed(message: str) -> NotReady:
    return NotReady(Severity.WARNING, Reason.FAILED, message)


def _error(reason: Reason, message: str) -> NotReady:
    return NotReady(Severity.ERROR, reason, f"{message}; {_NO_RETRY}")


def _guard(resource: Resource, chosen: Resolution) -> NotReady | None:
    """Compare the subscription in which a resource was created with that of its credential."""
    arm_id = resource.annotations.get(keys.RESOURCE_ID)
    if not arm_id:
        return None
    try:
        made_in = subscription_of(arm_id)
    except ValueError as error:
        return _error(
            Reason.FAILED, f"{keys.RESOURCE_ID} cannot be parsed: {error}; restore what ASO wrote there"
        )
    if made_in is None or made_in.lower() == str(chosen.subscription).lower():
        return None
    stuck = ", and its deletion is stuck" if resource.deleting else ""
    return _error(
        Reason.SUBSCRIPTION_MISMATCH,
        f"subscription {made_in} of {arm_id} is not that of the credential, {chosen.subscription}{stuck}:"
        " give it a credential of the subscription it was made in",
    )


def _global_method(settings: Mapping[str, bytes]) -> AsoMethod | None:
    """Return the method of the global credential, whose precedence differs from a scoped Secret's."""
    if settings.get(keys.USE_WORKLOAD_IDENTITY) in TRUE:
        return AsoMethod.WORKLOAD_IDENTITY
    if settings.get(keys.CERTIFICATE):
        return AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE
    if settings.get(keys.IDENTITY_FILE):
        return None
    if settings.get(keys.CLIENT_SECRET):
        return AsoMethod.SERVICE_PRINCIPAL_SECRET
    return AsoMethod.POD_IDENTITY


def _passed_over(resource: Resource, operator: Operator) -> Iterator[str]:
    owner = resource.annotations.get(keys.OWNING_OPERATOR, operator.namespace)
    if owner != operator.namespace:
        yield (
            f"it belongs to the operator in namespace {owner}, and the one in {operator.namespace} passes it"
            " over (event Overlap)"
        )
    if operator.targets and resource.namespace not in operator.targets:
        yield f"the operator does not look at it: {keys.TARGET_NAMESPACES} does not name {resource.namespace}"


def _hints(resource: Resource, owners: Sequence[Resource]) -> Iterator[str]:
    if keys.CREDENTIAL_FROM in resource.misplaced:
        yield f"{keys.CREDENTIAL_FROM} stands under metadata.annotation, not annotations, and is not read"
    if keys.CREDENTIAL_FROM in resource.annotations:
        return
    bare = {
        key: key.rpartition("/")[2].lower().replace("-", "").replace("_", "") for key in resource.annotations
    }
    if near := [key for key, word in bare.items() if word == "credentialfrom"]:
        yield f"annotation {near[0]} means nothing to ASO: write {keys.CREDENTIAL_FROM}"
    for owner in owners:
        if keys.CREDENTIAL_FROM in owner.annotations:
            yield (
                f"{keys.CREDENTIAL_FROM} of {owner} is not inherited: annotate this resource too,"
                " if it is meant to use the same credential"
            )
            return
