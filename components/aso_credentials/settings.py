"""Section `credfleet:asoCredentials`: credentials of Azure Service Operator, identities, resources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field

from components.aso_credentials import keys
from components.aso_credentials.azure import Federation, assignment_name, federation_faults, federation_name
from components.aso_credentials.credential import AsoCredential, NamedCredential
from components.aso_credentials.field_types import (
    FederationName,
    GroupName,
    Guid,
    IdentityName,
    Issuer,
    RoleName,
    Scope,
    Subject,
)
from components.aso_credentials.manifests import KEY, DeclaredResource, Resources, read_resources
from components.aso_credentials.model import Data
from components.aso_credentials.operator_settings import GlobalSettings, Operator
from components.aso_credentials.resolution import WITHHELD, Resolution, Secrets
from components.aso_credentials.resolver import resolve
from components.aso_credentials.scoped import refusal
from components.config.document import nearest
from components.config.field_types import ConfigModel, Name, NamespaceName, ObjectName, Text, optional
from components.config.section import Problems, ReviewContext, Section, Written
from components.errors import Problem
from components.projection.model import SecretRef
from components.projection.settings import CredentialSource, Delivery

_ORIGINS: Final[Mapping[str, tuple[str, str]]] = {
    keys.CLIENT_SECRET: (
        "servicePrincipal.secretFrom",
        "store the bare secret, or JSON with a field clientSecret, in that entry of credentials",
    ),
    keys.CERTIFICATE: (
        "servicePrincipal.certificateFrom",
        "store PEM with its RSA key, or PKCS12 with its password as passwordFrom",
    ),
    keys.CERTIFICATE_PASSWORD: ("servicePrincipal.passwordFrom", "leave it out"),
    keys.SERVICE_ACCOUNT: (
        "workloadIdentity.serviceAccount",
        "leave it out; only namespaces and named look at it, with operator.workloadIdentityMode: strict",
    ),
    keys.ADDITIONAL_TENANTS: ("additionalTenants", "leave it out"),
    keys.AUTHORITY_HOST: ("cloud.authorityHost", "write it with https://"),
    keys.MANAGER_ENDPOINT: ("cloud.resourceManagerEndpoint", "write it with https://"),
    keys.MANAGER_AUDIENCE: ("cloud.resourceManagerAudience", "write it with https://"),
}
"""Key of a credential's Secret → the configuration key that sets it, and how to fix it there."""


class AssignedRole(ConfigModel):
    """What an identity may do, and where."""

    role: RoleName = Field(description="Name of a role known here, or the GUID of any.")
    scope: Scope = Field(description="ARM id of a subscription, of what is in it, or of a management group.")


class TrustedAccount(ConfigModel):
    """A ServiceAccount of another cluster that may use an identity."""

    issuer: Issuer = Field(description="OIDC issuer URL of that cluster, byte for byte.")
    subject: Subject = Field(description="system:serviceaccount:NAMESPACE:NAME.")


class ResourceGroup(ConfigModel):
    """A resource group of Azure that this stack makes."""

    subscription_id: Guid | None = optional("Subscription it is in; absent: azure-native:subscriptionId.")
    location: Text = Field(description="Region of Azure, such as westeurope.")
    tags: Mapping[Text, Text] = optional("Tags in Azure.", {})


class Identity(ConfigModel):
    """A managed identity. Whom it trusts follows from the credentials that name it."""

    resource_group: GroupName = Field(description="Entry of resourceGroups, or an existing one.")
    subscription_id: Guid | None = optional(
        "Subscription it is in; absent: its group's, or azure-native:subscriptionId."
    )
    location: Text | None = optional("Absent: that of its entry in resourceGroups.")
    tags: Mapping[Text, Text] = optional("Tags in Azure.", {})
    roles: Mapping[Name, AssignedRole] = optional("Name → role it has.", {})
    federations: Mapping[FederationName, TrustedAccount] = optional(
        "Name → ServiceAccount of another cluster it trusts as well.", {}
    )


class AsoCredentials(Section):
    """Credentials of Azure Service Operator, the identities behind them, and resources that use them."""

    KEY: ClassVar = KEY
    operator: Operator = Field(default=Operator(), description="How the operator runs.")
    global_settings: GlobalSettings | None = optional(
        "aso-controller-settings, declared when this is given, even if empty."
    )
    namespaces: Mapping[NamespaceName, AsoCredential] = optional("Namespace → its aso-credential.", {})
    named: Mapping[ObjectName, NamedCredential] = optional(
        "Secret → credential of the resources that name it.", {}
    )
    resource_groups: Mapping[GroupName, ResourceGroup] = optional(
        "Resource groups of identities. Others must exist.", {}
    )
    identities: Mapping[IdentityName, Identity] = optional("Name → managed identity.", {})
    resources: Mapping[Name, Resources] = optional("Name → file of resources.", {})

    @property
    def is_in_azure(self) -> bool:
        """Whether resources are declared in Azure itself."""
        return bool(self.identities or self.resource_groups)

    @property
    def global_name(self) -> SecretRef:
        """Secret of the operator's settings."""
        return SecretRef(self.operator.namespace, keys.GLOBAL_SETTINGS)

    def entries(self) -> Iterator[Entry]:
        """Yield every credential of a namespace or of resources."""
        for namespace, credential in self.namespaces.items():
            secret = SecretRef(namespace, keys.NAMESPACE_SECRET)
            yield Entry(namespace, self.place("namespaces", namespace), secret, credential)
        for name, named in self.named.items():
            secret = SecretRef(named.namespace, named.secret_name or name)
            yield Entry(name, self.place("named", name), secret, named, named.previously)

    def strict_accounts(self) -> Collection[tuple[str, str]]:
        """Return namespace and name of each ServiceAccount that credentials use in strict mode."""
        is_strict = any(running.strict for running, _ in self.operator.trusted)
        entries = self.entries() if is_strict else ()
        return dict.fromkeys(entry.account for entry in entries if entry.credential.workload_identity)

    def global_entry(self) -> Entry | None:
        """Return the operator's own credential, or None."""
        if self.global_settings is None or self.global_settings.credential is None:
            return None
        place = self.place("globalSettings", "credential")
        return Entry("global", place, self.global_name, self.global_settings.credential)

    def subscription_of(self, identity: Identity) -> str | None:
        """Return the subscription of an identity: its own or its group's; None for the provider's."""
        group = self.resource_groups.get(identity.resource_group)
        return identity.subscription_id or (group.subscription_id if group else None)

    def location_of(self, identity: Identity) -> str | None:
        """Return the location of an identity: its own, or that of its declared resource group."""
        group = self.resource_groups.get(identity.resource_group)
        return identity.location or (group.location if group else None)

    def federations(self, identity: str) -> Mapping[str, Federation]:
        """Return the federated credentials of an identity by name, including those for other clusters."""
        declared = self.identities[identity].federations
        others = {name: Federation(one.issuer, one.subject) for name, one in declared.items()}
        return {**others, **self.own_federations(identity)}

    def own_federations(self, identity: str) -> Mapping[str, Federation]:
        """Return the federated credentials of an identity for this cluster, by name.

        In relaxed mode, all its credentials share the operator's subject; in strict mode, each namespace and
        ServiceAccount has one. Without an issuer there are none.
        """
        found: dict[str, Federation] = {}
        for running, issuer in self.operator.trusted:
            if issuer is None:
                continue
            users = [(entry, running) for entry in self.entries()]
            if (own := self.global_entry()) is not None:
                users.append((own, replace(running, strict=False)))
            subjects = {
                operator.subject(entry.secret.namespace, given.service_account)
                for entry, operator in users
                if (given := entry.credential.workload_identity) and given.identity == identity
            }
            for subject in sorted(subjects):
                federation = Federation(issuer, subject)
                taken = found.get(federation_name(subject), federation) != federation
                found[federation_name(subject, issuer if taken else None)] = federation
        return found

    def trusted(self) -> Sequence[str]:
        """Return what the identities trust, `MODE ISSUER ACCOUNT`, present configuration first."""
        if not any(self.own_federations(name) for name in self.identities):
            return []
        ways = [
            f"{'strict' if running.strict else 'relaxed'} {issuer} {running.account}"
            for running, issuer in self.operator.trusted
        ]
        return [*dict.fromkeys(ways)]

    def read_resources(self, root: Path) -> tuple[Sequence[DeclaredResource], Sequence[Problem]]:
        """Read the files of resources; return the valid ones, and the problems of the others."""
        secrets = {name: named.secret_name or name for name, named in self.named.items()}
        return read_resources(self.resources, root, secrets)

    def secrets(self, context: ReviewContext) -> Secrets:
        """Return the data of the Secrets that resources might use, as far as known in a preview.

        The values of copies of claimed accounts are unknown before the update.
        """
        found = {
            SecretRef(account.namespace, account.delivery.target): _copied(account.delivery)
            for account in context.accounts.values()
            if account.delivery is not None
        }
        for entry in self.entries():
            data, _ = entry.credential.judged(context.credentials, strict=self.operator.strict)
            found[entry.secret] = data
        if self.global_settings is not None:
            own = self.global_settings.credential
            data = own.judged(context.credentials, strict=False)[0] if own else {}
            found[self.global_name] = self.global_settings.data(self.operator, data)
        return found

    def resolved(
        self, resources: Sequence[DeclaredResource], context: ReviewContext
    ) -> Sequence[tuple[DeclaredResource, Resolution]]:
        """Return the credential that ASO will use for each resource, by the future keys of the Secrets."""
        operator = self.operator.as_it_runs(strict=self.operator.strict)
        resolutions = resolve([one.resource for one in resources], self.secrets(context), operator)
        return [*zip(resources, resolutions, strict=True)]

    def sources(self) -> Iterator[tuple[str, CredentialSource]]:
        """Yield the sources of the credentials' secret parts."""
        for entry in filter(None, (*self.entries(), self.global_entry())):
            for key, source in entry.credential.sources.items():
                yield f"{entry.place}.servicePrincipal.{key}", source

    def written(self) -> Iterator[Written]:
        """Yield every declared Secret."""
        if self.global_settings is not None:
            yield self.global_name.namespace, self.global_name.name, self.place("globalSettings")
        for entry in self.entries():
            yield entry.secret.namespace, entry.secret.name, entry.place

    def review(self, context: ReviewContext) -> Problems:
        """Check namespaces, references, contents of credentials, identities, and every resource.

        Resources are checked only if no part of the section or the tenants was removed as invalid; otherwise
        their credentials are unknown.
        """
        if self.global_settings is not None:
            yield from context.review_namespace(self.place("operator", "namespace"), self.operator.namespace)
        for entry in self.entries():
            own = entry.secret.name == keys.NAMESPACE_SECRET
            place = entry.place if own else f"{entry.place}.namespace"
            yield from context.review_namespace(place, entry.secret.namespace)
            yield from self._review_credential(entry, context, strict=self.operator.strict)
        if (entry := self.global_entry()) is not None:
            yield from self._review_credential(entry, context, strict=False)
        for name, named in self.named.items():
            if (taken := named.secret_name or name) in keys.RESERVED:
                place = self.place("named", name, *(["secretName"] if named.secret_name else []))
                problem = f"{taken} is a name that ASO reads by itself"
                yield Problem(place, problem, "rename it, such as billing")
        yield from self._review_identities(context)
        resources, problems = self.read_resources(context.root)
        yield from problems
        yield from self._review_resources(resources, context)
        if context.whole(self.KEY, "tenants"):
            served = [one for one in resources if one.resource.namespace in context.namespaces]
            resolved = self.resolved(served, context)
            yield from self._review_resolutions(resolved, context)

    def _review_resolutions(
        self, resolved: Sequence[tuple[DeclaredResource, Resolution]], context: ReviewContext
    ) -> Problems:
        """Reject a resource that ASO could not serve, or a tenant's that would use the global credential."""
        for one, found in resolved:
            if (fault := found.fault) is not None:
                fix = "fix it where it says, in the manifest or in asoCredentials"
                if found.secret is None and found.scope is None:
                    home = one.resource.namespace
                    fix = f"add {home} to asoCredentials.namespaces, or credential to its entry"
                problem = f"{fault.severity}, {fault.reason}: {fault.message}"
                yield Problem(f"{one.place} {one.resource}", problem, fix, one.at)
            is_of_a_tenant = self.place("resources", one.entry) in context.confined
            if is_of_a_tenant and found.secret == self.global_name:
                problem = (
                    f"{one.resource} would be made with the operator's own credential, which has no owner"
                )
                fix = "give its namespace a credential, or name the resource in the stack's file"
                yield Problem(one.place, problem, fix, one.at)

    def _review_credential(self, entry: Entry, context: ReviewContext, *, strict: bool) -> Problems:
        """Check references of a credential, its contents, and whether the operator would accept it."""
        for key, source in entry.credential.sources.items():
            place = f"{entry.place}.servicePrincipal.{key}"
            yield from context.review_source(place, source, entry.secret.namespace)
        yield from self._review_identity_of(entry, context)
        data, faults = entry.credential.judged(context.credentials, strict=strict)
        for fault in faults:
            key, fix = _ORIGINS[fault.split(maxsplit=1)[0].removesuffix(":")]
            yield Problem(f"{entry.place}.{key}", fault, fix)
        refused = refusal(data, self.operator.as_it_runs(strict=strict))
        if refused is not None and not faults and entry.secret != self.global_name:
            yield Problem(
                f"{entry.place}.cloud",
                f"ASO would refuse it: {refused}",
                "set operator.multiEnv: true if it runs so, or leave it out",
            )

    def _review_identity_of(self, entry: Entry, context: ReviewContext) -> Problems:
        given = entry.credential.workload_identity
        if given is None or given.identity is None:
            return
        place = f"{entry.place}.workloadIdentity.identity"
        if given.identity not in self.identities:
            problem = f"{given.identity} is not an entry of identities"
            yield Problem(place, problem, nearest(given.identity, self.identities))
        elif self.operator.issuer is None and context.whole(f"{self.KEY}.operator"):
            yield Problem(
                place,
                "the issuer of the cluster's tokens is not named, so Azure cannot trust them",
                f"give the cluster's OIDC issuer URL as {self.place('operator', 'issuer')}",
            )

    def _review_identities(self, context: ReviewContext) -> Problems:
        """Check each identity, and that names are unique in Azure, which ignores their case."""
        seen: dict[tuple[str, str], str] = {}
        for name, identity in self.identities.items():
            first = seen.setdefault((identity.resource_group.lower(), name.lower()), name)
            if first != name:
                yield _same_to_azure(self.place("identities", name), first)
            yield from self._review_identity(name, identity, context)
        groups: dict[str, str] = {}
        for name in self.resource_groups:
            first = groups.setdefault(name.lower(), name)
            if first != name:
                yield _same_to_azure(self.place("resourceGroups", name), first)

    def _review_identity(self, name: str, identity: Identity, context: ReviewContext) -> Problems:
        place, group = self.place("identities", name), identity.resource_group
        if self.location_of(identity) is None and context.whole(f"{self.KEY}.resourceGroups"):
            near = nearest(group, self.resource_groups)
            yield Problem(
                f"{place}.location",
                f"resource group {group} is not declared here, so its location is not known",
                f"{near} Else add the location, or {group} to resourceGroups",
            )
        declared, own = self.resource_groups.get(group), identity.subscription_id
        if declared and own and own.lower() != str(declared.subscription_id).lower():
            yield Problem(
                f"{place}.subscriptionId",
                f"resource group {group} is declared in another subscription, where the identity would be",
                "leave it out, or write the same in both",
            )
        for key in sorted(identity.federations.keys() & self.own_federations(name).keys()):
            problem = "the stack itself makes a federated credential of this name, for this cluster"
            yield Problem(f"{place}.federations.{key}", problem, "rename it, such as blue-cluster")
        for fault in federation_faults(self.federations(name)):
            yield Problem(place, fault, "use another identity for some of its ServiceAccounts")
        assigned: dict[str, str] = {}
        for key, role in identity.roles.items():
            first = assigned.setdefault(assignment_name(role.scope, role.role, name), key)
            if first != key:
                problem = (
                    f"it is the same role in the same scope as {first}, and Azure takes an assignment once"
                )
                yield Problem(f"{place}.roles.{key}", problem, "remove one of the two")

    def _review_resources(self, resources: Sequence[DeclaredResource], context: ReviewContext) -> Problems:
        """Check namespaces of resources, duplicates, and the credentials that entries name."""
        for name, entry in self.resources.items():
            if entry.credential is not None and entry.credential not in self.named:
                yield Problem(
                    self.place("resources", name, "credential"),
                    f"{entry.credential} is not an entry of named",
                    nearest(entry.credential, self.named),
                )
        seen: dict[str, str] = {}
        for one in resources:
            if not one.manifest["metadata"].get("namespace"):
                problem = "it says no namespace, and nothing is declared in default"
                yield Problem(one.place, problem, "add metadata.namespace", one.at)
            else:
                unknown = context.review_namespace(one.place, one.resource.namespace)
                yield from (replace(each, at=one.at) for each in unknown)
            namespace = context.confined.get(self.place("resources", one.entry), one.resource.namespace)
            if namespace != one.resource.namespace:
                problem = f"it is in namespace {one.resource.namespace}, and its tenant's is {namespace}"
                yield Problem(
                    one.place, problem, f"write {namespace}, or name it in the stack's file", one.at
                )
            first = seen.setdefault(one.name, one.place)
            if first != one.place:
                yield Problem(
                    one.place, f"{one.resource} is also declared at {first}", "keep one of the two", one.at
                )


@dataclass(frozen=True, slots=True)
class Entry:
    """Configured credential: its key, place, Secret and model."""

    key: str
    place: str
    secret: SecretRef
    credential: AsoCredential
    previously: Sequence[str] = ()

    @property
    def account(self) -> tuple[str, str]:
        """Namespace and name of the ServiceAccount that it uses in strict mode."""
        given = self.credential.workload_identity
        account = given.service_account if given else None
        return self.secret.namespace, account or keys.STRICT_ACCOUNT


def _same_to_azure(place: str, first: str) -> Problem:
    problem = f"to Azure it is the same as {first}: the case of a name does not count there"
    return Problem(place, problem, "rename one of the two, or remove it")


def _copied(delivery: Delivery) -> Data:
    plan = delivery.plan
    fixed = {key: text.encode() for key, text in plan.fixed.items()}
    return dict.fromkeys(plan.keys.keys() - plan.optional, WITHHELD) | fixed
