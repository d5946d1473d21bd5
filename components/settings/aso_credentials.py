"""What `credfleet:asoCredentials` holds: credentials of Azure Service Operator, identities, resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from components.aso_credentials import keys
from components.aso_credentials.nouns import SecretName
from components.naming import config_path
from components.settings.aso_words import (
    Duration,
    FederationName,
    GroupName,
    Guid,
    IdentityName,
    Issuer,
    RoleName,
    Scope,
    Subject,
)
from components.settings.noun import Noun
from components.settings.section import Written
from components.settings.words import FilePath, Name, NamespaceName, ObjectName, Text, unfit

Positive: TypeAlias = Annotated[int, Field(ge=1)]


class Operator(Noun):
    """How Azure Service Operator runs in the cluster; its chart makes it, not this stack."""

    namespace: NamespaceName = Field(
        default=keys.OPERATOR_NAMESPACE, description="Namespace it runs in, which is there already."
    )
    workload_identity_mode: Literal["relaxed", "strict"] = Field(
        default="relaxed",
        description="Whose token identities trust: the operator's, or one of each namespace.",
    )
    issuer: Issuer | None = Field(default=None, description="OIDC issuer URL of the cluster, byte for byte.")
    multi_env: bool = Field(
        default=False, description="Whether it serves several clouds (ALLOW_MULTI_ENV_MANAGEMENT)."
    )

    @property
    def strict(self) -> bool:
        """Whether workload identity is in strict mode."""
        return self.workload_identity_mode == "strict"


class ServicePrincipal(Noun):
    """An application of Entra that proves itself with a secret or a certificate."""

    subscription_id: Guid = Field(description="Subscription its resources are made in.")
    tenant_id: Guid = Field(description="Tenant of Entra.")
    client_id: Guid = Field(description="Client id of the application.")
    secret_from: Text | None = Field(
        default=None, description="Entry of credentials: the secret, or JSON with clientSecret."
    )
    certificate_from: Text | None = Field(
        default=None, description="Entry of credentials: PEM or PKCS12 with its private key."
    )
    password_from: Text | None = Field(
        default=None, description="Entry of credentials: password of a PKCS12 file."
    )

    @model_validator(mode="after")
    def _proves_itself_one_way(self) -> Self:
        if (self.secret_from is None) == (self.certificate_from is None):
            raise unfit(
                "of a secret and a certificate ASO silently takes the secret; with neither it has no proof",
                "give secretFrom or certificateFrom, one of the two",
            )
        if self.password_from is not None and self.certificate_from is None:
            raise unfit("a password without a certificate has no effect", "leave passwordFrom out")
        return self


class WorkloadIdentity(Noun):
    """A managed identity that trusts a ServiceAccount: one of `identities`, or one somebody else made."""

    subscription_id: Guid = Field(description="Subscription its resources are made in.")
    identity: Name | None = Field(default=None, description="Entry of identities.")
    tenant_id: Guid | None = Field(default=None, description="Of an identity that is not declared here.")
    client_id: Guid | None = Field(
        default=None, description="Of an identity that is not declared here; never its principal id."
    )
    service_account: ObjectName | None = Field(
        default=None, description="ServiceAccount of strict mode; absent: aso-workload."
    )

    @model_validator(mode="after")
    def _is_one_identity(self) -> Self:
        own = self.identity is not None
        if own in (self.client_id is not None, self.tenant_id is not None):
            raise unfit(
                "it is either an identity of this stack, which knows its own ids, or one by its ids",
                "give identity alone, or tenantId and clientId",
            )
        return self


class PodIdentity(Noun):
    """A managed identity of the node or pod the operator runs on."""

    subscription_id: Guid = Field(description="Subscription its resources are made in.")
    tenant_id: Guid = Field(description="Tenant of Entra.")
    client_id: Guid = Field(description="Client id of the identity, never its principal id.")


class Cloud(Noun):
    """Another cloud than the operator's."""

    authority_host: Text = Field(description="https:// address that tokens come from.")
    resource_manager_endpoint: Text = Field(description="https:// address of its Resource Manager.")
    resource_manager_audience: Text = Field(description="https:// audience of tokens for it.")


class AsoCredential(Noun):
    """One credential, by one method."""

    service_principal: ServicePrincipal | None = Field(
        default=None, description="An application with a secret or a certificate."
    )
    workload_identity: WorkloadIdentity | None = Field(
        default=None, description="A managed identity that trusts a ServiceAccount."
    )
    pod_identity: PodIdentity | None = Field(
        default=None, description="A managed identity of the node or pod the operator runs on."
    )
    additional_tenants: tuple[Guid, ...] = Field((), description="Further tenants its resources may name.")
    cloud: Cloud | None = Field(
        default=None, description="Another cloud than the operator's; needs operator.multiEnv."
    )
    allow_subscription_change: bool = Field(
        default=False, description="Whether the subscription may change; its resources are gone already."
    )

    @model_validator(mode="after")
    def _has_one_method(self) -> Self:
        methods = (self.service_principal, self.workload_identity, self.pod_identity)
        if sum(method is not None for method in methods) != 1:
            raise unfit(
                "ASO takes the first method it finds in an order of its own, so there is exactly one",
                "give one of servicePrincipal, workloadIdentity and podIdentity",
            )
        return self

    @property
    def method(self) -> ServicePrincipal | WorkloadIdentity | PodIdentity:
        """Say how it proves itself."""
        found = self.service_principal or self.workload_identity or self.pod_identity
        if found is None:
            raise TypeError("a credential without a method was let through")
        return found


class NamedCredential(AsoCredential):
    """A credential for the resources that name it."""

    namespace: NamespaceName = Field(description="Namespace of its Secret and of its resources.")


class RateLimit(Noun):
    """How fast the operator calls Azure."""

    qps: Positive = Field(description="Requests a second.")
    bucket_size: Positive = Field(description="Requests at once.")


class GlobalSettings(Noun):
    """`aso-controller-settings`. The operator reads it when it starts."""

    credential: AsoCredential | None = Field(
        default=None, description="For resources that no other credential serves; best absent."
    )
    sync_period: Duration | None = Field(default=None, description="Such as 1h, or never.")
    operator_mode: Literal["watchers", "webhooks", "watchers-and-webhooks"] | None = Field(
        default=None, description="What it runs."
    )
    target_namespaces: tuple[NamespaceName, ...] = Field((), description="The only ones it looks at.")
    default_reconcile_policy: Literal["manage", "skip", "detach-on-delete"] | None = Field(
        default=None, description="For resources that say none."
    )
    max_concurrent_reconciles: Positive | None = Field(default=None, description="Of each kind.")
    rate_limit: RateLimit | None = Field(default=None, description="How fast it calls Azure.")
    user_agent_suffix: Text | None = Field(default=None, description="Behind its name in calls to Azure.")


class AssignedRole(Noun):
    """What an identity may do, and where."""

    role: RoleName = Field(description="Name of a role known here, or the GUID of any.")
    scope: Scope = Field(description="ARM id of a subscription or of what is in it.")


class TrustedAccount(Noun):
    """A ServiceAccount of another cluster that may use an identity."""

    issuer: Issuer = Field(description="OIDC issuer URL of that cluster, byte for byte.")
    subject: Subject = Field(description="system:serviceaccount:NAMESPACE:NAME.")


class ResourceGroup(Noun):
    """A resource group of Azure that this stack makes."""

    location: Text = Field(description="Region of Azure, such as westeurope.")
    tags: Mapping[Text, Text] = Field(default={}, description="Tags in Azure.")


class Identity(Noun):
    """A managed identity. Whom it trusts follows from the credentials that name it."""

    resource_group: GroupName = Field(description="One of resourceGroups, or one that is there already.")
    location: Text | None = Field(default=None, description="Absent: that of its entry in resourceGroups.")
    tags: Mapping[Text, Text] = Field(default={}, description="Tags in Azure.")
    roles: Mapping[Name, AssignedRole] = Field(default={}, description="Name → role it has.")
    federations: Mapping[FederationName, TrustedAccount] = Field(
        default={}, description="Name → ServiceAccount of another cluster it trusts as well."
    )


class Resources(Noun):
    """A file of ASO resources, declared with the stack."""

    file: FilePath = Field(description="Kubernetes YAML, relative to Pulumi.yaml.")
    credential: ObjectName | None = Field(
        default=None, description="Entry of named; written as their annotation."
    )


class AsoCredentials(Noun):
    """Credentials of Azure Service Operator, the identities behind them, and resources that use them."""

    operator: Operator = Field(default=Operator(), description="How the operator runs.")
    global_settings: GlobalSettings | None = Field(
        default=None, description="aso-controller-settings, declared when this is given, even if empty."
    )
    namespaces: Mapping[NamespaceName, AsoCredential] = Field(
        default={}, description="Namespace → its aso-credential."
    )
    named: Mapping[ObjectName, NamedCredential] = Field(
        default={}, description="Secret → credential of the resources that name it."
    )
    resource_groups: Mapping[GroupName, ResourceGroup] = Field(
        default={}, description="Resource groups of identities; others are there already."
    )
    identities: Mapping[IdentityName, Identity] = Field(default={}, description="Name → managed identity.")
    resources: Mapping[Name, Resources] = Field(default={}, description="Name → file of resources.")

    @property
    def global_name(self) -> SecretName:
        """Where the operator's settings are."""
        return SecretName(self.operator.namespace, keys.GLOBAL_SETTINGS)

    def entries(self) -> Iterator[Entry]:
        """Give every credential of a namespace or of resources."""
        for namespace, credential in self.namespaces.items():
            secret = SecretName(namespace, keys.NAMESPACE_SECRET)
            yield Entry(namespace, config_path("asoCredentials", "namespaces", namespace), secret, credential)
        for name, named in self.named.items():
            secret = SecretName(named.namespace, name)
            yield Entry(name, config_path("asoCredentials", "named", name), secret, named)

    def global_entry(self) -> Entry | None:
        """Give the operator's own credential, if it has one."""
        if self.global_settings is None or self.global_settings.credential is None:
            return None
        place = config_path("asoCredentials", "globalSettings", "credential")
        return Entry("global", place, self.global_name, self.global_settings.credential)


@dataclass(frozen=True, slots=True)
class Entry:
    """A credential in the configuration: its key, its place, its Secret and what it says."""

    key: str
    place: str
    secret: SecretName
    credential: AsoCredential


def secrets_of(section: AsoCredentials) -> Iterator[Written]:
    """Name every Secret that is declared: namespace, name and place in the configuration."""
    if section.global_settings is not None:
        namespace, name = section.global_name
        yield namespace, name, config_path("asoCredentials", "globalSettings")
    for entry in section.entries():
        yield entry.secret.namespace, entry.secret.name, entry.place
