"""Specs of the provider kinds that have a client here, with ESO's fields and defaults."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, Strict

from components.config.field_types import ConfigModel, exactly_one, must, refused_if
from components.secret_stores.model import (
    CaBundle,
    CaSelector,
    DataKey,
    NamespaceName,
    ProviderSpec,
    SecretSelector,
    Selector,
    ServiceAccountSelector,
)

_REGION: Final = re.compile("[a-z0-9-]{1,50}")
_SERVICE_ACCOUNT: Final = re.compile(r".*@.*\.iam\.gserviceaccount\.com")

NotEmpty: TypeAlias = Annotated[str, must(bool, "it is empty", "give its text")]
ServiceAccountEmail: TypeAlias = Annotated[
    str,
    must(
        _SERVICE_ACCOUNT.fullmatch,
        "Google has no service account of such a name",
        "write name@project.iam.gserviceaccount.com",
    ),
]


class FakeEntry(ConfigModel):
    """One secret of the fake provider, given in its own spec."""

    key: NotEmpty
    value: NotEmpty = Field(repr=False)
    version: str | None = None


class FakeSpec(ProviderSpec):
    """Secrets written in the provider itself, for tests."""

    data: tuple[FakeEntry, ...]
    validation_result: Annotated[int, Strict(), Field(ge=0, le=2)] | None = None


class KubernetesServer(ConfigModel):
    """The API server secrets are read from."""

    url: str = "kubernetes.default"
    ca_bundle: CaBundle | None = None
    ca_provider: CaSelector | None = None


class ClientCertificate(ConfigModel):
    """A certificate and its key."""

    client_cert: SecretSelector
    client_key: SecretSelector


class BearerToken(ConfigModel):
    """A token kept in a Secret."""

    bearer_token: SecretSelector


class KubernetesAuth(ConfigModel):
    """How to log in: exactly one way."""

    _is_one_way = exactly_one(
        "there is exactly one way to log in",
        "give cert, token or serviceAccount",
        *("cert", "token", "service_account"),
    )
    cert: ClientCertificate | None = None
    token: BearerToken | None = None
    service_account: ServiceAccountSelector | None = None


class KubernetesSpec(ProviderSpec):
    """Secrets of a namespace of a cluster; `auth_ref` names a kubeconfig."""

    _logs_in_one_way = refused_if(
        lambda one: one.auth and one.auth_ref,
        "auth and authRef are two ways to log in, and only one is taken",
        "leave one out",
    )
    server: KubernetesServer | None = None
    auth: KubernetesAuth | None = None
    auth_ref: SecretSelector | None = None
    remote_namespace: NamespaceName = "default"


class GcpSecretAuth(ConfigModel):
    """A key of a service account, kept in a Secret."""

    secret_access_key_secret_ref: SecretSelector | None = None


class WorkloadIdentity(ConfigModel):
    """A ServiceAccount of a GKE cluster that Google knows."""

    service_account_ref: ServiceAccountSelector
    cluster_location: str | None = None
    cluster_name: str | None = None
    cluster_project_id: Annotated[str | None, Field(alias="clusterProjectID")] = None


class AwsCredentials(ConfigModel):
    """An AWS identity that Google trusts."""

    aws_credentials_secret_ref: Selector
    region: Annotated[str, must(_REGION.fullmatch, "AWS has no such region", "write such as eu-central-1")]


class ConfigMapSelector(Selector):
    """One key of a ConfigMap."""

    KIND = "ConfigMap"
    key: DataKey


class WorkloadIdentityFederation(ConfigModel):
    """An identity of another issuer that Google trusts."""

    audience: str | None = None
    aws_security_credentials: AwsCredentials | None = None
    cred_config: ConfigMapSelector | None = None
    external_token_endpoint: str | None = None
    gcp_service_account_email: ServiceAccountEmail | None = None
    service_account_ref: ServiceAccountSelector | None = None


class GcpAuth(ConfigModel):
    """How to log in to Google; none means the identity the process runs with."""

    secret_ref: GcpSecretAuth | None = None
    workload_identity: WorkloadIdentity | None = None
    workload_identity_federation: WorkloadIdentityFederation | None = None


class GcpSecretManagerSpec(ProviderSpec):
    """Google's Secret Manager."""

    auth: GcpAuth | None = None
    project_id: Annotated[str | None, Field(alias="projectID")] = None
    location: str | None = None
    secret_version_selection_policy: Literal["LatestOrFail", "LatestOrFetch"] = "LatestOrFail"  # noqa: S105 - a policy, no secret
