"""Names, annotations and Secret keys of Azure Service Operator (docs/compatibility.md)."""

from __future__ import annotations

from typing import Final

from components.labels import ASO_CREDENTIAL
from components.naming import is_guid

GLOBAL_SETTINGS: Final = "aso-controller-settings"
NAMESPACE_SECRET: Final = ASO_CREDENTIAL
RESERVED: Final = (GLOBAL_SETTINGS, NAMESPACE_SECRET)
"""Names of Secrets that ASO reads by itself."""

SETTINGS_FIX: Final = "if the operator's chart made it: createAzureOperatorSecret: false in its values"
"""Fix for operator settings that the stack did not write."""

OPERATOR_NAMESPACE: Final = "azureserviceoperator-system"
OPERATOR_ACCOUNT: Final = "azureserviceoperator-default"
STRICT_ACCOUNT: Final = "aso-workload"

CREDENTIAL_FROM: Final = "serviceoperator.azure.com/credential-from"
RESOURCE_ID: Final = "serviceoperator.azure.com/resource-id"
OWNING_OPERATOR: Final = "serviceoperator.azure.com/operator-namespace"

SUBSCRIPTION: Final = "AZURE_SUBSCRIPTION_ID"
TENANT: Final = "AZURE_TENANT_ID"
CLIENT: Final = "AZURE_CLIENT_ID"
REQUIRED: Final = (SUBSCRIPTION, TENANT, CLIENT)

CLIENT_SECRET: Final = "AZURE_CLIENT_SECRET"  # noqa: S105 - the name of a key
CERTIFICATE: Final = "AZURE_CLIENT_CERTIFICATE"
CERTIFICATE_PASSWORD: Final = "AZURE_CLIENT_CERTIFICATE_PASSWORD"  # noqa: S105 - the name of a key
PROOFS: Final = (CLIENT_SECRET, CERTIFICATE, CERTIFICATE_PASSWORD)
"""Keys whose values are secret."""
IDENTITY_FILE: Final = "AZURE_USER_ASSIGNED_IDENTITY_CREDENTIALS"
AUTH_MODE: Final = "AUTH_MODE"
POD_IDENTITY: Final = "podidentity"
WORKLOAD_IDENTITY: Final = "workloadidentity"
ADDITIONAL_TENANTS: Final = "AZURE_ADDITIONAL_TENANTS"
SERVICE_ACCOUNT: Final = "AZURE_WORKLOAD_IDENTITY_SERVICE_ACCOUNT"

AUTHORITY_HOST: Final = "AZURE_AUTHORITY_HOST"
MANAGER_ENDPOINT: Final = "AZURE_RESOURCE_MANAGER_ENDPOINT"
MANAGER_AUDIENCE: Final = "AZURE_RESOURCE_MANAGER_AUDIENCE"
CLOUD: Final = (AUTHORITY_HOST, MANAGER_ENDPOINT, MANAGER_AUDIENCE)

USE_WORKLOAD_IDENTITY: Final = "USE_WORKLOAD_IDENTITY_AUTH"
WORKLOAD_IDENTITY_MODE: Final = "AZURE_WORKLOAD_IDENTITY_AUTH_MODE"
ALLOW_MULTI_ENV: Final = "ALLOW_MULTI_ENV_MANAGEMENT"
TARGET_NAMESPACES: Final = "AZURE_TARGET_NAMESPACES"


def is_tenant(text: str) -> bool:
    """Return whether azidentity accepts a string as an allowed tenant: its id, or * for all."""
    return text == "*" or is_guid(text)
