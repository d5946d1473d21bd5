"""What the rules over clouds, operators and environments let through, and what they refuse."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pool_members
import yaml

from tests.support.policies import secret

SECRET = "kubernetes:core/v1:Secret"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
ASO = "kubernetes:resources.azure.com/v1api20200601:ResourceGroup"
FEDERATION = "azure-native:managedidentity:FederatedIdentityCredential"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
ROLE = "azure-native:authorization:RoleDefinition"
ASO_FEDERATION = "kubernetes:managedidentity.azure.com/v1api20230131:FederatedIdentityCredential"
VERSION = "gcp:secretmanager/secretVersion:SecretVersion"
CLAIM = "pulumi-python:dynamic/credfleet:AccountClaim"
READ = "pulumi-python:dynamic/credfleet:SecretRead"
PUSH = "pulumi-python:dynamic/credfleet:SecretPush"
CANARY = "canary-7f3a"
FROM = "serviceoperator.azure.com/credential-from"

KYMA = pool_members.pool_section(
    {"credfleet:accountPool": json.dumps({"labels": {"type": "hyperscalerType", "tenant": "tenantName"}})}
)
"""What a stack says whose accounts have labels of other names."""

_PAGE: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())

CONFIGS: Mapping[str, Mapping[str, Any]] = _PAGE["configs"]
"""What an environment says to the rules that ask it."""


def named(name: str, namespace: str = "team-a", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"metadata": metadata, "data": secret({key: value for key, value in data.items()})}


def scoped(*left_out: str, **more: str) -> dict[str, Any]:
    keys = {"AZURE_SUBSCRIPTION_ID": "aWQ=", "AZURE_TENANT_ID": "aWQ=", "AZURE_CLIENT_ID": "aWQ=", **more}
    return named("aso-credential", **{key: value for key, value in keys.items() if key not in left_out})


def in_two_places() -> dict[str, Any]:
    given = scoped("AZURE_TENANT_ID")
    return {**given, "stringData": given["data"], "data": secret({"AZURE_TENANT_ID": "aWQ="})}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def annotated(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": "x", "namespace": "team-a", "annotations": annotations}}


def container(**variable: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [variable]}]}}}}


def federation(**changes: Any) -> dict[str, Any]:
    return {
        "resourceGroupName": "rg",
        "resourceName": "team-a",
        "issuer": "https://oidc.example/prod/",
        "subject": "system:serviceaccount:team-a:aso-workload",
        "audiences": ["api://AzureADTokenExchange"],
        **changes,
    }


OWNER = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
SUBSCRIPTION = "/subscriptions/00000000-0000-4000-8000-0000000000aa"


def of_aso(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "namespace": "team-a"}, "spec": {"owner": {"name": "team-a"}, **spec}}


def aso_federation(**changes: Any) -> dict[str, Any]:
    given = federation(**changes)
    return of_aso(**{key: given[key] for key in given if not key.startswith("resource")})


LABELS = {
    "managed-by": "hyperfleet",
    "adapter": "pullsecret",
    "resource-type": "pull-secret",
    "hyperfleet-version": "v1",
    "cluster-id": "cls-1",
}


def pull_secret(**changes: Any) -> dict[str, Any]:
    return {"secretId": "hyperfleet-cls-1-pull-secret", "labels": LABELS, **changes}


def store(*conditions: Any) -> dict[str, Any]:
    return {"spec": {"provider": {}, "conditions": list(conditions)}}


def of(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rule and case: of what `complies`, or `violates` it and is `told` so."""
    for rule, rows in _PAGE[kind].items():
        yield from ((rule, row) for row in rows)


OF_ESO: Final = "kubernetes:external-secrets.io/v1"

OF_THE_STACK: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
    "aso-annotation-target": [
        ("kubernetes:resources.azure.com/v1:ResourceGroup", annotated(**{FROM: "nowhere"}))
    ],
    "azure-identity-federation-limit": [
        (FEDERATION, federation(resourceName="many", subject=f"system:serviceaccount:a:s{index}"))
        for index in range(21)
    ],
    "azure-identity-federation-unique": [(FEDERATION, federation(resourceName="twice"))] * 2,
    "estate-claims-per-tenant": [(CLAIM, {"tenant": "acme", "type": "aws"})] * 2,
    "kubernetes-pool-namespace-no-workloads": [
        (
            SECRET,
            {"metadata": {"namespace": "pool", "labels": {"hyperscaler-type": "aws"}}},
        ),
        (DEPLOYMENT, {"metadata": {"namespace": "pool"}}),
    ],
    "secrets-stay-marked-everywhere": [
        ("a:b:C", {"a": "marked-by-the-next-one"}),
        ("a:b:C", {"b": secret("marked-by-the-next-one")}),
    ],
    "stores-used-as-they-can": [
        (f"{OF_ESO}:{kind}", {"metadata": {"namespace": "acme", "name": "gitlab"}, "spec": spec})
        for kind, spec in {
            "SecretStore": {"provider": {"gitlab": {}}},
            "PushSecret": {"secretStoreRefs": [{"name": "gitlab"}]},
        }.items()
    ],
}
"""Rule over the stack → resources that break it once, with their inputs."""
