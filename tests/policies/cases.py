"""What the rules over clouds, operators and environments let through, and what they refuse."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import aso
import azure
import environments
import gcp
import pool_members
import readable_data
import rights
import secret_objects
import stores
from pulumi_policy import ResourceValidationPolicy

from tests.support.policies import secret

Compliant = tuple[ResourceValidationPolicy, str, Mapping[str, Any]]
Violation = tuple[ResourceValidationPolicy, str, Mapping[str, Any], str]

SECRET = "kubernetes:core/v1:Secret"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
ASO = "kubernetes:resources.azure.com/v1api20200601:ResourceGroup"
FEDERATION = "azure-native:managedidentity:FederatedIdentityCredential"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
ELIGIBILITY = "azure-native:authorization:PimRoleEligibilitySchedule"
ROLE = "azure-native:authorization:RoleDefinition"
GENERATED = "azure-native_authorization_v20220401:authorization:RoleAssignment"
ASO_FEDERATION = "kubernetes:managedidentity.azure.com/v1api20230131:FederatedIdentityCredential"
ASO_ASSIGNMENT = "kubernetes:authorization.azure.com/v1api20220401:RoleAssignment"
ASO_ELIGIBILITY = "kubernetes:authorization.azure.com/v20201001:RoleEligibilityScheduleRequest"
ASO_ROLE = "kubernetes:authorization.azure.com/v1api20220401:RoleDefinition"
COSMOS = "azure-native:cosmosdb:DatabaseAccount"
GCP_SECRET = "gcp:secretmanager/secret:Secret"
VERSION = "gcp:secretmanager/secretVersion:SecretVersion"
GRANT = "gcp:secretmanager/secretIamMember:SecretIamMember"
GRANTS = "gcp:projects/iAMBinding:IAMBinding"
POLICY = "gcp:secretmanager/secretIamPolicy:SecretIamPolicy"
STORE = "kubernetes:external-secrets.io/v1:ClusterSecretStore"
CLAIM = "pulumi-python:dynamic/credfleet:AccountClaim"
READ = "pulumi-python:dynamic/credfleet:SecretRead"
PUSH = "pulumi-python:dynamic/credfleet:SecretPush"
CANARY = "canary-7f3a"
FROM = "serviceoperator.azure.com/credential-from"
WORKLOAD = "serviceAccount:work@example.iam.gserviceaccount.com"

KYMA = pool_members.pool_section(
    {"credfleet:accountPool": json.dumps({"labels": {"type": "hyperscalerType", "tenant": "tenantName"}})}
)
"""What a stack says whose accounts have labels of other names."""

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "azure-federation-issuer": {"issuers": ["https://oidc.example/prod/"]},
    "gcp-secret-deletion-protection": {"required": True},
    "gcp-secret-replication": {"policy": "user-managed"},
    "estate-resource-types": {"allowed": ["kubernetes:*"]},
    "estate-regions": {"gcp": ["europe-west1"], "azure": ["westeurope"]},
    "estate-account-types": {"allowed": ["aws", "gcp*"]},
    "estate-owner-labels": {
        "required": {
            IDENTITY: ["owner"],
            GCP_SECRET: ["owner"],
            "kubernetes:*": ["owner"],
            "aws:*": ["owner"],
            "*:Role": ["team"],
        }
    },
}
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
AS_CONTRIBUTOR = [
    "Microsoft.Authorization/*/Delete",
    "Microsoft.Authorization/*/Write",
    "Microsoft.Authorization/elevateAccess/Action",
]
MAKES_OWNERS = "permissions[0].actions may make owners"
SUBSCRIPTION = "/subscriptions/00000000-0000-4000-8000-0000000000aa"
MANAGEMENT_GROUP = "/providers/Microsoft.Management/managementGroups/platform"


def assignment(**changes: Any) -> dict[str, Any]:
    return {
        "scope": f"{SUBSCRIPTION}/resourceGroups/rg",
        "roleDefinitionId": "/subscriptions/aa/providers/Microsoft.Authorization/roleDefinitions/bb",
        "principalType": "ServicePrincipal",
        **changes,
    }


def of_aso(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "namespace": "team-a"}, "spec": {"owner": {"name": "team-a"}, **spec}}


def aso_federation(**changes: Any) -> dict[str, Any]:
    given = federation(**changes)
    return of_aso(**{key: given[key] for key in given if not key.startswith("resource")})


def permitting(*actions: str, without: Sequence[str] = ()) -> dict[str, Any]:
    return {"permissions": [{"actions": [*actions], "notActions": [*without]}]}


LABELS = {
    "managed-by": "hyperfleet",
    "adapter": "pullsecret",
    "resource-type": "pull-secret",
    "hyperfleet-version": "v1",
    "cluster-id": "cls-1",
}


def pull_secret(**changes: Any) -> dict[str, Any]:
    return {"secretId": "hyperfleet-cls-1-pull-secret", "labels": LABELS, **changes}


def replicated(*places: Any) -> dict[str, Any]:
    return {"replication": {"userManaged": {"replicas": [{"location": place} for place in places]}}}


def policy_data(role: str, *members: str) -> dict[str, Any]:
    return {"policyData": json.dumps({"bindings": [{"role": role, "members": list(members)}]})}


def store(*conditions: Any) -> dict[str, Any]:
    return {"spec": {"provider": {}, "conditions": list(conditions)}}


COMPLIANT: list[Compliant] = [
    (readable_data.kubernetes_readable_no_credential, DEPLOYMENT, container(name="LOG_LEVEL", value="debug")),
    (
        readable_data.kubernetes_readable_no_credential,
        DEPLOYMENT,
        container(name="DB_PASSWORD", valueFrom={"secretKeyRef": {"name": "db", "key": "password"}}),
    ),
    (
        rights.kubernetes_binding_not_for_default_account,
        BINDING,
        {"subjects": [{"kind": "ServiceAccount", "name": "work"}]},
    ),
    *(
        (
            rights.kubernetes_binding_not_for_default_account,
            BINDING,
            {"subjects": [{"kind": "User", "name": name}]},
        )
        for name in ("default", "system:serviceaccount:default:work")
    ),
    (secret_objects.kubernetes_secret_no_lasting_token, SECRET, {"type": "Opaque"}),
    *(
        (rule, SECRET, in_two_places())
        for rule in (
            aso.aso_secret_reserved_name,
            aso.aso_secret_required_keys,
            aso.aso_secret_one_method,
            aso.aso_secret_no_empty_key,
        )
    ),
    (aso.aso_secret_reserved_name, SECRET, scoped()),
    (
        aso.aso_secret_reserved_name,
        SECRET,
        named("aso-controller-settings", "azureserviceoperator-system", AZURE_SYNC_PERIOD="MWg="),
    ),
    (aso.aso_secret_reserved_name, SECRET, named("a-workloads-own", password="eA==")),
    (aso.aso_secret_required_keys, SECRET, scoped()),
    (aso.aso_secret_required_keys, SECRET, named("a-workloads-own", AZURE_CLIENT_ID="aWQ=")),
    (
        aso.aso_secret_required_keys,
        SECRET,
        scoped(AZURE_CLIENT_CERTIFICATE="eA==", AZURE_CLIENT_CERTIFICATE_PASSWORD="eA=="),
    ),
    (aso.aso_secret_one_method, SECRET, scoped(AZURE_CLIENT_SECRET="eA==")),
    (aso.aso_secret_one_method, SECRET, scoped(AUTH_MODE=encoded("podidentity"))),
    (aso.aso_secret_one_method, SECRET, named("a-workloads-own", AUTH_MODE="eA==")),
    (aso.aso_secret_no_empty_key, SECRET, scoped()),
    (aso.aso_secret_no_empty_key, SECRET, named("a-workloads-own", AZURE_CLIENT_ID="")),
    (aso.aso_secret_no_global_key, SECRET, scoped()),
    (aso.aso_secret_no_global_key, SECRET, named("aso-controller-settings", AZURE_SYNC_PERIOD="MWg=")),
    (aso.aso_annotation_spelled, ASO, annotated(**{FROM: "billing"})),
    (aso.aso_annotation_spelled, ASO, annotated(note="x")),
    (aso.aso_annotation_value, ASO, annotated(**{FROM: "billing"})),
    (aso.aso_annotation_value, ASO, annotated()),
    (azure.azure_federation_issuer, FEDERATION, federation()),
    (azure.azure_federation_subject, FEDERATION, federation()),
    (azure.azure_federation_audience, FEDERATION, federation()),
    (azure.azure_federation_issuer, ASO_FEDERATION, aso_federation()),
    (
        azure.azure_federation_issuer,
        ASO_FEDERATION,
        of_aso(issuerFromConfig={"name": "cluster", "key": "issuer"}),
    ),
    (azure.azure_federation_subject, ASO_FEDERATION, aso_federation()),
    (
        azure.azure_federation_subject,
        ASO_FEDERATION,
        of_aso(subjectFromConfig={"name": "account", "key": "subject"}),
    ),
    (azure.azure_federation_audience, ASO_FEDERATION, aso_federation()),
    (azure.azure_role_principal_type, ASSIGNMENT, assignment()),
    (azure.azure_role_principal_type, GENERATED, assignment()),
    (azure.azure_role_no_owner, ELIGIBILITY, assignment()),
    *(
        (azure.azure_role_no_owner, type_, of_aso(roleDefinitionReference={"wellKnownName": "Reader"}))
        for type_ in (ASO_ASSIGNMENT, ASO_ELIGIBILITY)
    ),
    (azure.azure_role_no_owner, ROLE, permitting("Microsoft.Authorization/*/read", "Microsoft.KeyVault/*")),
    (azure.azure_role_no_owner, ROLE, permitting("*", without=AS_CONTRIBUTOR)),
    (azure.azure_role_no_owner, ASO_ROLE, of_aso(**permitting("*/read"))),
    (azure.azure_role_scope, ASO_ASSIGNMENT, of_aso()),
    (azure.azure_role_scope, ASO_ASSIGNMENT, of_aso(owner={"armId": f"{SUBSCRIPTION}/resourceGroups/rg"})),
    (azure.azure_role_no_owner, ASSIGNMENT, assignment()),
    (azure.azure_role_scope, ASSIGNMENT, assignment()),
    (azure.azure_role_scope, ASSIGNMENT, assignment(scope=SUBSCRIPTION)),
    (azure.azure_role_scope, ASSIGNMENT, assignment(scope=MANAGEMENT_GROUP)),
    (gcp.gcp_pull_secret_name, GCP_SECRET, pull_secret()),
    (gcp.gcp_pull_secret_name, GCP_SECRET, {"secretId": "something-else"}),
    (gcp.gcp_pull_secret_name, GCP_SECRET, pull_secret(secretId="a-name-of-its-own")),
    (gcp.gcp_pull_secret_labels, GCP_SECRET, pull_secret()),
    (gcp.gcp_pull_secret_labels, GCP_SECRET, {"secretId": "something-else"}),
    (gcp.gcp_secret_replication, GCP_SECRET, replicated("europe-west1", "europe-west4")),
    (gcp.gcp_secret_replication, GCP_SECRET, replicated("europe-west1")),
    *(
        (rule, GCP_SECRET, {"replication": {"auto": None, **replicated("europe-west1")["replication"]}})
        for rule in (gcp.gcp_secret_replication, environments.estate_regions)
    ),
    (gcp.gcp_secret_deletion_protection, GCP_SECRET, {"deletionProtection": True}),
    (gcp.gcp_secret_version_marked, VERSION, {"secretData": secret(CANARY)}),
    (gcp.gcp_iam_not_public, GRANT, {"role": "roles/viewer", "member": WORKLOAD}),
    (gcp.gcp_iam_not_public, POLICY, policy_data("roles/x", WORKLOAD)),
    (gcp.gcp_iam_not_public, POLICY, {"policyData": "no JSON"}),
    *(
        (gcp.gcp_iam_not_public, f"gcp:{type_}", inputs)
        for type_, inputs in (
            ("storage/bucketAccessControl:BucketAccessControl", {"entity": "user-x@example.com"}),
            (
                "storage/bucketACL:BucketACL",
                {"roleEntities": ["OWNER:project-owners-1"], "predefinedAcl": "private"},
            ),
            ("bigquery/datasetAccess:DatasetAccess", {"specialGroup": "projectReaders"}),
            ("bigquery/dataset:Dataset", {"accesses": [{"role": "READER", "domain": "example.com"}]}),
        )
    ),
    (
        gcp.gcp_iam_no_broad_role,
        GRANT,
        {"role": "roles/secretmanager.secretAccessor", "member": WORKLOAD},
    ),
    (
        gcp.gcp_iam_no_broad_role,
        GRANTS,
        {"role": "roles/owner", "members": ["group:people@example.com"]},
    ),
    (stores.stores_cluster_store_conditions, STORE, store({"namespaces": ["tenant-acme"]})),
    (stores.stores_cluster_store_conditions, READ, {"store": {"namespace": "a", "name": "s", "spec": {}}}),
    (stores.stores_cluster_store_conditions, READ, {"store": store({"namespaces": ["tenant-acme"]})}),
    (stores.stores_regex_anchored, READ, {"store": {"namespace": "a", **store({"namespaceRegexes": ["p"]})}}),
    (stores.stores_regex_anchored, STORE, store({"namespaceRegexes": ["^tenant-.*$"]})),
    (stores.stores_regex_anchored, STORE, store({"namespaces": ["tenant-acme"]})),
    *(
        (stores.stores_regex_anchored, STORE, store({"namespaceRegexes": [regex]}))
        for regex in ("^a$|^b$", "^(a|b)$", "^[|]$", r"^a\|b$")
    ),
    *(
        (stores.stores_cluster_store_conditions, STORE, store(condition))
        for condition in (
            {"namespaceSelector": {"matchLabels": {"team": "x"}}},
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
            {"namespaceRegexes": ["^tenant-.*$"]},
            {"namespaceRegexes": ["["]},
        )
    ),
    (environments.estate_resource_types, SECRET, {}),
    (environments.estate_resource_types, "pulumi:providers:gcp", {}),
    (environments.estate_regions, IDENTITY, {"location": "West Europe"}),
    (environments.estate_regions, GCP_SECRET, replicated("europe-west1")),
    (environments.estate_regions, "gcp:compute/instance:Instance", {"zone": "europe-west1-b"}),
    (environments.estate_regions, "gcp:container/cluster:Cluster", {"location": "europe-west1-b"}),
    (
        environments.estate_regions,
        COSMOS,
        {"location": "westeurope", "locations": [{"locationName": "West Europe"}]},
    ),
    (environments.estate_account_types, CLAIM, {"type": "gcp_cf-sa30"}),
    (environments.estate_required_claims_served, CLAIM, {"type": "aws", "skipped": {"code": "exhausted"}}),
    (environments.estate_owner_labels, IDENTITY, {"tags": {"owner": "fleet"}}),
    (environments.estate_owner_labels, GCP_SECRET, {"labels": {"owner": "fleet"}}),
    (environments.estate_owner_labels, SECRET, {"metadata": {"labels": {"owner": "fleet"}}}),
    (environments.estate_owner_labels, ASSIGNMENT, {}),
    (environments.estate_owner_labels, "aws:s3/bucket:Bucket", {"tags": {"owner": "fleet"}}),
    (environments.estate_owner_labels, "x:index:Role", {}),
    (environments.estate_owner_labels, "pulumi:providers:aws", {}),
]

VIOLATIONS: list[Violation] = [
    (
        readable_data.kubernetes_readable_no_credential,
        DEPLOYMENT,
        container(name="DB_PASSWORD", value=CANARY),
        "spec.template.spec.containers[0].env.DB_PASSWORD looks like a credential",
    ),
    (
        rights.kubernetes_binding_not_for_default_account,
        BINDING,
        {"subjects": [{"kind": "ServiceAccount", "name": "default"}]},
        "subjects[0].name is the default ServiceAccount",
    ),
    (
        rights.kubernetes_binding_not_for_default_account,
        BINDING,
        {"subjects": [{"kind": "User", "name": "system:serviceaccount:team-a:default"}]},
        "subjects[0].name is the default ServiceAccount",
    ),
    (
        secret_objects.kubernetes_secret_no_lasting_token,
        SECRET,
        {"type": "kubernetes.io/service-account-token"},
        "type makes a token that never expires",
    ),
    (
        aso.aso_secret_reserved_name,
        SECRET,
        named("aso-controller-settings"),
        "metadata.name is aso-controller-settings, outside the operator's namespace",
    ),
    (
        aso.aso_secret_reserved_name,
        SECRET,
        named("aso-credential", password=CANARY),
        "metadata.name is aso-credential, but no key is one of ASO's",
    ),
    *(
        (aso.aso_secret_required_keys, SECRET, scoped(key), f"data.{key} is missing")
        for key in ("AZURE_SUBSCRIPTION_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_ID")
    ),
    (
        aso.aso_secret_required_keys,
        SECRET,
        scoped(AZURE_CLIENT_CERTIFICATE_PASSWORD=CANARY),
        "data.AZURE_CLIENT_CERTIFICATE_PASSWORD stands without AZURE_CLIENT_CERTIFICATE",
    ),
    (
        aso.aso_secret_required_keys,
        SECRET,
        scoped(AZURE_AUTHORITY_HOST="eA==", AZURE_RESOURCE_MANAGER_ENDPOINT="eA=="),
        "data.AZURE_RESOURCE_MANAGER_AUDIENCE is missing beside the others of its cloud",
    ),
    (
        aso.aso_secret_one_method,
        SECRET,
        scoped(AZURE_CLIENT_SECRET=CANARY, AZURE_CLIENT_CERTIFICATE=CANARY),
        "data.AZURE_CLIENT_CERTIFICATE is ignored, as AZURE_CLIENT_SECRET is there",
    ),
    (
        aso.aso_secret_one_method,
        SECRET,
        scoped(AUTH_MODE=encoded("PodIdentity")),
        "data.AUTH_MODE is neither workloadidentity nor podidentity",
    ),
    (
        aso.aso_secret_one_method,
        SECRET,
        scoped(AUTH_MODE="no base64"),
        "data.AUTH_MODE is neither workloadidentity nor podidentity",
    ),
    (
        aso.aso_secret_no_empty_key,
        SECRET,
        scoped(AZURE_CLIENT_SECRET=""),
        "data.AZURE_CLIENT_SECRET is empty",
    ),
    *(
        (aso.aso_secret_no_global_key, SECRET, scoped(**{key: "eA=="}), f"data.{key} has no effect here")
        for key in ("USE_WORKLOAD_IDENTITY_AUTH", "AZURE_SYNC_PERIOD", "RATE_LIMIT_QPS")
    ),
    *(
        (
            aso.aso_annotation_spelled,
            ASO,
            annotated(**{key: "x"}),
            f"metadata.annotations.{key} is not what ASO reads",
        )
        for key in (
            "serviceoperator.azure.com/credentials-from",
            "serviceoperator.azure.com/credentialFrom",
            "credential-from",
        )
    ),
    (
        aso.aso_annotation_spelled,
        ASO,
        {"metadata": {"annotation": {FROM: "billing"}}},
        "metadata.annotation is no field of Kubernetes",
    ),
    (
        aso.aso_annotation_spelled,
        ASO,
        {"metadata": {"labels": {FROM: "billing"}}},
        f"metadata.labels.{FROM} is not what ASO reads",
    ),
    *(
        (aso.aso_annotation_value, ASO, annotated(**{FROM: value}), f"metadata.annotations.{FROM} {what}")
        for value, what in (
            ("", "is empty"),
            ("team-b/billing", "has a slash, and ASO reads no other namespace"),
            ("Billing!", "is no name a Secret can have"),
        )
    ),
    *(
        (azure.azure_federation_issuer, FEDERATION, federation(issuer=issuer), what)
        for issuer, what in (
            ("http://oidc.example/prod/", "issuer is no https URL without blanks"),
            ("https://oidc.example/prod/ ", "issuer is no https URL without blanks"),
            ("https://oidc.example/a b", "issuer is no https URL without blanks"),
            ("https://oidc.example/prod", "issuer is none of this environment"),
        )
    ),
    (azure.azure_federation_issuer, FEDERATION, {}, "issuer is missing"),
    *(
        (
            azure.azure_federation_subject,
            FEDERATION,
            federation(subject=subject),
            "subject is not that of one ServiceAccount",
        )
        for subject in (
            "system:serviceaccount:team-a",
            "system:serviceaccount:*:aso-workload",
            "team-a:aso-workload",
            "system:serviceaccount:team-a:aso-workload ",
            None,
        )
    ),
    *(
        (
            azure.azure_federation_audience,
            FEDERATION,
            federation(audiences=audiences),
            "audiences is not the one of Entra's token exchange",
        )
        for audiences in ([], ["api://azureadtokenexchange"], ["api://AzureADTokenExchange", "x"], None)
    ),
    *(
        (rule, ASO_FEDERATION, aso_federation(**changes), f"spec.{what}")
        for rule, changes, what in (
            (azure.azure_federation_issuer, {"issuer": "http://x"}, "issuer is no https URL without blanks"),
            (azure.azure_federation_subject, {"subject": "*"}, "subject is not that of one ServiceAccount"),
            (
                azure.azure_federation_audience,
                {"audiences": ["x"]},
                "audiences is not the one of Entra's token exchange",
            ),
        )
    ),
    (azure.azure_federation_issuer, ASO_FEDERATION, of_aso(), "spec.issuer is missing"),
    *(
        (
            azure.azure_role_no_owner,
            ASO_ASSIGNMENT,
            of_aso(roleDefinitionReference=reference),
            f"spec.roleDefinitionReference.{key} is {name}",
        )
        for key, reference, name in (
            ("wellKnownName", {"wellKnownName": "Owner"}, "Owner"),
            ("wellKnownName", {"wellKnownName": "user access administrator"}, "User Access Administrator"),
            ("armId", {"armId": f"/x/{OWNER}"}, "Owner"),
        )
    ),
    *(
        (azure.azure_role_no_owner, type_, assignment(roleDefinitionId=role), "roleDefinitionId is Owner")
        for type_ in (ELIGIBILITY, GENERATED, ASSIGNMENT)
        for role in (OWNER, f"/providers/Microsoft.Authorization/roleDefinitions/{OWNER}/")
    ),
    *(
        (azure.azure_role_no_owner, ROLE, permitting(action, without=without), MAKES_OWNERS)
        for action, without in (
            ("*", ()),
            ("Microsoft.Authorization/*", ()),
            ("microsoft.authorization/roleassignments/WRITE", ()),
            ("*/write", ["Microsoft.Authorization/*/Delete"]),
            ("Microsoft.Authorization/roleDefinitions/write", ()),
            ("*", AS_CONTRIBUTOR[:2]),
        )
    ),
    (azure.azure_role_no_owner, ASO_ROLE, of_aso(**permitting("*")), f"spec.{MAKES_OWNERS}"),
    *(
        (
            azure.azure_role_scope,
            type_,
            inputs,
            f"{path} is no subscription, nothing in one, and no management group",
        )
        for type_, inputs, path in (
            (ELIGIBILITY, assignment(scope="/"), "scope"),
            (GENERATED, assignment(scope="/"), "scope"),
            (ASO_ASSIGNMENT, of_aso(owner={"armId": "/providers/A/b/c"}), "spec.owner.armId"),
        )
    ),
    (
        azure.azure_role_principal_type,
        GENERATED,
        assignment(principalType="User"),
        "principalType is not ServicePrincipal",
    ),
    *(
        (
            azure.azure_role_principal_type,
            ASSIGNMENT,
            assignment(principalType=type_),
            "principalType is not ServicePrincipal",
        )
        for type_ in (None, "User", "Group")
    ),
    *(
        (
            azure.azure_role_no_owner,
            ASSIGNMENT,
            assignment(roleDefinitionId=f"/providers/Microsoft.Authorization/roleDefinitions/{role}"),
            f"roleDefinitionId is {name}",
        )
        for role, name in (
            ("8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "Owner"),
            ("18D7D88D-D35E-4FB5-A5C3-7773C20A72D9", "User Access Administrator"),
            ("f58310d9-a9f6-439a-9e8d-f62e7b41a168", "Role Based Access Control Administrator"),
        )
    ),
    *(
        (
            azure.azure_role_scope,
            ASSIGNMENT,
            assignment(scope=scope),
            "scope is no subscription, nothing in one, and no management group",
        )
        for scope in (
            "/",
            f"{MANAGEMENT_GROUP}/x",
            f"{SUBSCRIPTION}/",
            f"{SUBSCRIPTION}/foo/bar",
            f"{SUBSCRIPTION}/providers/../../..",
            f"{SUBSCRIPTION}/providers/A/b/.",
            "",
            None,
        )
    ),
    (
        gcp.gcp_pull_secret_name,
        GCP_SECRET,
        pull_secret(secretId="hyperfleet-cls-2-pull-secret"),
        "secretId is that of another cluster than labels.cluster-id",
    ),
    *(
        (
            gcp.gcp_pull_secret_labels,
            GCP_SECRET,
            pull_secret(labels={**LABELS, key: "x"}),
            f"labels.{key} is not {value}",
        )
        for key, value in LABELS.items()
        if key != "cluster-id"
    ),
    (
        gcp.gcp_pull_secret_labels,
        GCP_SECRET,
        pull_secret(labels={key: value for key, value in LABELS.items() if key != "cluster-id"}),
        "labels.cluster-id is missing",
    ),
    (
        gcp.gcp_pull_secret_labels,
        GCP_SECRET,
        pull_secret(labels={**LABELS, "cluster-id": ""}),
        "labels.cluster-id is missing",
    ),
    *(
        (gcp.gcp_secret_replication, GCP_SECRET, inputs, what)
        for inputs, what in (
            ({}, "replication is not declared in one way"),
            ({"replication": {"auto": {}}}, "replication is not the one of this environment"),
            (replicated(), "replication.userManaged.replicas does not name each location once"),
            (replicated("a", "a"), "replication.userManaged.replicas does not name each location once"),
            (replicated(None), "replication.userManaged.replicas does not name each location once"),
        )
    ),
    (gcp.gcp_secret_deletion_protection, GCP_SECRET, {}, "deletionProtection is not true"),
    (
        gcp.gcp_secret_deletion_protection,
        GCP_SECRET,
        {"deletionProtection": False},
        "deletionProtection is not true",
    ),
    *(
        (gcp.gcp_secret_version_marked, VERSION, {key: CANARY}, f"{key} is not marked as secret")
        for key in ("secretData", "secretDataWo")
    ),
    (gcp.gcp_iam_not_public, GRANT, {"role": "roles/x", "member": "allUsers"}, "member is everybody"),
    (
        gcp.gcp_iam_not_public,
        GRANTS,
        {"role": "roles/x", "members": [WORKLOAD, "allAuthenticatedUsers"]},
        "members[1] is everybody",
    ),
    (
        gcp.gcp_iam_not_public,
        POLICY,
        policy_data("roles/x", "allUsers"),
        "policyData.bindings[0].members[0] is everybody",
    ),
    (
        gcp.gcp_iam_not_public,
        POLICY,
        {"policyData": json.dumps({"Bindings": [{"Role": "roles/x", "MEMBERS": ["allUsers"]}]})},
        "policyData.bindings[0].members[0] is everybody",
    ),
    *(
        (gcp.gcp_iam_not_public, f"gcp:{type_}", inputs, f"{path} is everybody")
        for type_, inputs, path in (
            ("storage/bucketAccessControl:BucketAccessControl", {"entity": "allUsers"}, "entity"),
            (
                "storage/defaultObjectAccessControl:DefaultObjectAccessControl",
                {"entity": "allUsers"},
                "entity",
            ),
            ("storage/bucketACL:BucketACL", {"roleEntities": ["READER:allUsers"]}, "roleEntities[0]"),
            ("storage/bucketACL:BucketACL", {"predefinedAcl": "publicRead"}, "predefinedAcl"),
            ("storage/bucketACL:BucketACL", {"defaultAcl": "authenticatedRead"}, "defaultAcl"),
            ("storage/objectACL:ObjectACL", {"predefinedAcl": "publicReadWrite"}, "predefinedAcl"),
            (
                "bigquery/datasetAccess:DatasetAccess",
                {"specialGroup": "allAuthenticatedUsers"},
                "specialGroup",
            ),
            ("bigquery/datasetAccess:DatasetAccess", {"iamMember": "allUsers"}, "iamMember"),
            (
                "bigquery/dataset:Dataset",
                {"accesses": [{"domain": "example.com"}, {"iamMember": "allUsers"}]},
                "accesses[1].iamMember",
            ),
        )
    ),
    *(
        (
            gcp.gcp_iam_no_broad_role,
            GRANT,
            {"role": role, "member": member},
            "member is a workload with a primitive or admin role",
        )
        for role in (
            "roles/owner",
            "roles/editor",
            "roles/viewer",
            "roles/secretmanager.admin",
            "roles/iam.roleAdmin",
        )
        for member in (WORKLOAD, "principal://iam/x", "principalSet://iam/x")
    ),
    (
        gcp.gcp_iam_no_broad_role,
        POLICY,
        policy_data("roles/owner", "user:x@example.com", WORKLOAD),
        "policyData.bindings[0].members[1] is a workload with a primitive or admin role",
    ),
    (
        stores.stores_cluster_store_conditions,
        STORE,
        store(),
        "spec.conditions is empty, so every namespace may use the store",
    ),
    (
        stores.stores_cluster_store_conditions,
        STORE,
        {"spec": {}},
        "spec.conditions is empty, so every namespace may use the store",
    ),
    (
        stores.stores_cluster_store_conditions,
        STORE,
        store({"namespaceSelector": {}}),
        "spec.conditions[0].namespaceSelector is empty, so it selects every namespace",
    ),
    (
        stores.stores_cluster_store_conditions,
        STORE,
        store({"namespaceSelector": {"matchLabels": {}, "matchExpressions": []}}),
        "spec.conditions[0].namespaceSelector is empty, so it selects every namespace",
    ),
    *(
        (
            stores.stores_cluster_store_conditions,
            STORE,
            store({"namespaces": ["a"]}, {"namespaceRegexes": ["^a$", regex]}),
            "spec.conditions[1].namespaceRegexes[1] selects every namespace",
        )
        for regex in ("^.*$", ".", "", "^[a-z0-9-]+$", "^$|.*")
    ),
    (
        stores.stores_cluster_store_conditions,
        READ,
        {"store": {"name": "s", "spec": {"conditions": []}}},
        "store.spec.conditions is empty, so every namespace may use the store",
    ),
    (
        stores.stores_regex_anchored,
        PUSH,
        {"store": store({"namespaceRegexes": ["prod"]})},
        "store.spec.conditions[0].namespaceRegexes[0] is not anchored",
    ),
    *(
        (
            stores.stores_regex_anchored,
            STORE,
            store({"namespaces": ["a"]}, {"namespaceRegexes": ["^a$", regex]}),
            "spec.conditions[1].namespaceRegexes[1] is not anchored",
        )
        for regex in ("prod", "^prod", "prod$", "^a|b$", "^a|^b$", r"^a\$")
    ),
    (environments.estate_resource_types, GCP_SECRET, {}, "its type is none of those allowed"),
    (
        environments.estate_regions,
        IDENTITY,
        {"location": "eastus"},
        "location is none of the environment's",
    ),
    (
        environments.estate_regions,
        GCP_SECRET,
        {"replication": {"auto": {}}},
        "replication.auto puts replicas anywhere",
    ),
    (
        environments.estate_regions,
        GCP_SECRET,
        replicated("europe-west1", "us-east1"),
        "replication.userManaged.replicas[1].location is none of the environment's",
    ),
    *(
        (environments.estate_regions, type_, inputs, f"{path} is none of the environment's")
        for type_, inputs, path in (
            ("gcp:compute/instance:Instance", {"zone": "us-east1-b"}, "zone"),
            ("gcp:compute/instance:Instance", {"zone": "https://x/zones/us-east1-b"}, "zone"),
            ("gcp:container/cluster:Cluster", {"location": "us-east1-b"}, "location"),
            (
                COSMOS,
                {"locations": [{"locationName": "westeurope"}, {"locationName": "East US"}]},
                "locations[1].locationName",
            ),
        )
    ),
    (environments.estate_account_types, CLAIM, {"type": "azure"}, "type is none that the environment offers"),
    (
        environments.estate_required_claims_served,
        CLAIM,
        {"doomed": "none free"},
        "the update is expected to fail here; the preview says why",
    ),
    *(
        (environments.estate_owner_labels, type_, inputs, "the label owner is missing")
        for type_, inputs in (
            (IDENTITY, {}),
            (IDENTITY, {"tags": {"owner": ""}}),
            (GCP_SECRET, {"labels": {"team": "x"}}),
            (GCP_SECRET, {"tags": ["owner"]}),
            ("aws:s3/bucket:Bucket", {}),
            (SECRET, {"metadata": {"name": "x"}}),
        )
    ),
]

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
}
"""Rule over the stack → resources that break it once, with their inputs."""
