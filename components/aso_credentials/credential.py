"""A credential of Azure Service Operator in the configuration, and the data of the Secret it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import Field

from components.aso_credentials import keys
from components.aso_credentials.field_types import Guid, Tenant
from components.aso_credentials.model import Data, Unfit, client_secret_of, faults_of
from components.aso_credentials.resolution import WITHHELD
from components.config.field_types import (
    ConfigModel,
    Flag,
    FormerNames,
    Name,
    NamespaceName,
    ObjectName,
    Text,
    called_first,
    exactly_one,
    optional,
    refused_if,
)
from components.credentials import Credentials
from components.projection.settings import CredentialFrom, CredentialSource

_ANY_ID: Final = "00000000-0000-0000-0000-000000000000"
_IDS_ALONE: Final[Data] = dict.fromkeys(keys.REQUIRED, WITHHELD)


class ServicePrincipal(ConfigModel):
    """An application of Entra that proves itself with a secret or a certificate."""

    _proves_itself_one_way = exactly_one(
        "of a secret and a certificate ASO silently takes the secret; with neither it has no proof",
        "give either secretFrom or certificateFrom",
        *("secret_from", "certificate_from"),
    )
    _opens_a_certificate = refused_if(
        lambda one: one.password_from and not one.certificate_from,
        "a password without a certificate has no effect",
        "leave passwordFrom out",
    )
    _has_all_in_one_place = refused_if(
        lambda one: len({source.entry is None for source in one.sources.values()}) > 1,
        "one of certificate and password is in the cluster and the other in the configuration",
        "put both in one of the two",
    )
    subscription_id: Guid = Field(description="Subscription its resources are made in.")
    tenant_id: Guid = Field(description="Tenant of Entra.")
    client_id: Guid = Field(description="Client id of the application.")
    secret_from: CredentialFrom = optional("The secret, or JSON with clientSecret.")
    certificate_from: CredentialFrom = optional("PEM or PKCS12 with its private key.")
    password_from: CredentialFrom = optional("Password of a PKCS12 file.")

    @property
    def sources(self) -> Mapping[str, CredentialSource]:
        """Its credential sources, by the key that names each."""
        given = {
            "secretFrom": self.secret_from,
            "certificateFrom": self.certificate_from,
            "passwordFrom": self.password_from,
        }
        return {key: source for key, source in given.items() if source is not None}

    def proof(self, contents: Sequence[bytes]) -> Data:
        """Return the keys of this method; raises Unfit. `contents`: of its sources, in order."""
        if self.certificate_from is None:
            return {keys.CLIENT_SECRET: client_secret_of(contents[0]).encode()}
        if self.password_from is None:
            return {keys.CERTIFICATE: contents[0]}
        certificate, password = contents
        text = password.decode(errors="replace")
        return {keys.CERTIFICATE: certificate, keys.CERTIFICATE_PASSWORD: text.encode()}


class WorkloadIdentity(ConfigModel):
    """A managed identity that trusts a ServiceAccount: one of `identities`, or an existing one."""

    _is_one_identity = refused_if(
        lambda one: bool(one.identity) in (bool(one.client_id), bool(one.tenant_id)),
        "it is either an identity of this stack, which knows its own ids, or one by its ids",
        "give identity alone, or tenantId and clientId",
    )
    subscription_id: Guid = Field(description="Subscription its resources are made in.")
    identity: Name | None = optional("Entry of identities.")
    tenant_id: Guid | None = optional("Of an identity that is not declared here.")
    client_id: Guid | None = optional("Of an identity that is not declared here; never its principal id.")
    service_account: ObjectName | None = optional("ServiceAccount of strict mode; absent: aso-workload.")

    def proof(self, _contents: Sequence[bytes]) -> Data:
        """Return the keys of this method."""
        return {} if self.service_account is None else {keys.SERVICE_ACCOUNT: self.service_account.encode()}


class PodIdentity(ConfigModel):
    """A managed identity of the node or pod the operator runs on."""

    subscription_id: Guid = Field(description="Subscription its resources are made in.")
    tenant_id: Guid = Field(description="Tenant of Entra.")
    client_id: Guid = Field(description="Client id of the identity, never its principal id.")

    def proof(self, _contents: Sequence[bytes]) -> Data:
        """Return the keys of this method."""
        return {keys.AUTH_MODE: keys.POD_IDENTITY.encode()}


class Cloud(ConfigModel):
    """Another cloud than the operator's."""

    authority_host: Text = Field(description="https:// address that tokens come from.")
    resource_manager_endpoint: Text = Field(description="https:// address of its Resource Manager.")
    resource_manager_audience: Text = Field(description="https:// audience of tokens for it.")

    @property
    def data(self) -> Data:
        """The three keys of a cloud."""
        given = (self.authority_host, self.resource_manager_endpoint, self.resource_manager_audience)
        return {key: text.encode() for key, text in zip(keys.CLOUD, given, strict=True)}


class AsoCredential(ConfigModel):
    """One credential, by one method."""

    _has_one_method = exactly_one(
        "ASO takes the first method it finds in an order of its own, so there is exactly one",
        "give one of servicePrincipal, workloadIdentity and podIdentity",
        *("service_principal", "workload_identity", "pod_identity"),
    )
    service_principal: ServicePrincipal | None = optional("An application with a secret or a certificate.")
    workload_identity: WorkloadIdentity | None = optional("A managed identity that trusts a ServiceAccount.")
    pod_identity: PodIdentity | None = optional("A managed identity of the node or pod the operator runs on.")
    additional_tenants: tuple[Tenant, ...] = optional(
        "Further tenants its resources may name; *: every tenant.", ()
    )
    cloud: Cloud | None = optional("Another cloud than the operator's; needs operator.multiEnv.")
    allow_subscription_change: Flag = optional(
        "Whether the subscription may change; its resources are gone already.", False
    )

    @property
    def method(self) -> ServicePrincipal | WorkloadIdentity | PodIdentity:
        """Authentication method."""
        found = self.service_principal or self.workload_identity or self.pod_identity
        if found is None:
            raise TypeError("a credential without a method was let through")
        return found

    @property
    def sources(self) -> Mapping[str, CredentialSource]:
        """Its credential sources, by the key that names each."""
        return self.service_principal.sources if self.service_principal else {}

    @property
    def entries(self) -> Sequence[str]:
        """Entries of `credentials` that it uses."""
        return [one.entry for one in self.sources.values() if one.entry is not None]

    @property
    def is_referred(self) -> bool:
        """Whether its secret part is in the cluster, and read only by the update."""
        return len(self.entries) < len(self.sources)

    def plain(self) -> tuple[Data, Sequence[str]]:
        """Return its data that is not secret, and the keys of its sources, in their order."""
        data = self.data([b"x"] * len(self.sources))
        proofs = [key for key in keys.PROOFS if key in data]
        return {key: value for key, value in data.items() if key not in proofs}, proofs

    def data(self, contents: Sequence[bytes], *, tenant: str = "", client: str = "") -> Data:
        """Return the data of its Secret, with exactly the keys of this credential; raises Unfit.

        `contents`: of its sources, in order. `tenant`, `client`: ids of the stack's identity that it uses.
        """
        given = self.method
        ids = (given.subscription_id, given.tenant_id or tenant, given.client_id or client)
        data = {key: text.strip().encode() for key, text in zip(keys.REQUIRED, ids, strict=True)}
        if self.additional_tenants:
            data[keys.ADDITIONAL_TENANTS] = ",".join(self.additional_tenants).encode()
        return {**data, **given.proof(contents), **(self.cloud.data if self.cloud else {})}

    def judged(self, credentials: Credentials, *, strict: bool) -> tuple[Data, Sequence[str]]:
        """Return the future data of its Secret, with secret values withheld, and all its faults.

        With faults, or an absent or unreadable entry, the data is only the three ids. Ids of an identity of
        this stack, which are known only in the update, have placeholders.
        """
        if self.is_referred:
            plain, proofs = self.plain()
            return {**plain, **dict.fromkeys(proofs, WITHHELD)}, ()

        def judge(contents: Sequence[bytes]) -> tuple[Data, Sequence[str]]:
            try:
                data = self.data(contents, tenant=_ANY_ID, client=_ANY_ID)
            except Unfit as unfit:
                return _IDS_ALONE, (str(unfit),)
            faults = faults_of(data, strict=strict)
            known = {key: WITHHELD if key in keys.PROOFS else value for key, value in data.items()}
            return _IDS_ALONE if faults else known, faults

        return credentials.judged_together(self.entries, judge) or (_IDS_ALONE, ())


class NamedCredential(AsoCredential):
    """A credential for the resources that name it."""

    _keeps_its_secret = called_first("secretName")
    previously: FormerNames = ()

    secret_name: ObjectName | None = optional(
        "Its Secret; absent: its key. Each namespace may have one of a name."
    )
    namespace: NamespaceName = Field(description="Namespace of its Secret and of its resources.")
