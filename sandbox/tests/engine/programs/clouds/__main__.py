"""Every resource that the stand-in providers of the clouds serve, declared with the genuine SDKs."""

import pulumi
from pulumi_azure_native import Provider as Azure
from pulumi_azure_native.authorization import RoleAssignment
from pulumi_azure_native.managedidentity import FederatedIdentityCredential, UserAssignedIdentity
from pulumi_azure_native.resources import ResourceGroup
from pulumi_gcp import Provider as Google
from pulumi_gcp.secretmanager import Secret, SecretIamMember, SecretVersion, get_secrets

config = pulumi.Config()
google_config, azure_config = pulumi.Config("gcp"), pulumi.Config("azure-native")
google = pulumi.ResourceOptions(
    provider=Google(
        "google",
        access_token="any",
        project=google_config.require("project"),
        secret_manager_custom_endpoint=google_config.require("secretManagerCustomEndpoint"),
    )
)
azure = pulumi.ResourceOptions(
    provider=Azure(
        "azure",
        metadata_host=azure_config.require("metadataHost"),
        subscription_id=azure_config.require("subscriptionId"),
    )
)

entry = Secret(
    "entry",
    secret_id="pull",
    labels={"cluster": config.require("cluster")},
    replication={"auto": {}},
    opts=google,
)
version = SecretVersion(
    "version",
    secret=entry.id,
    secret_data=config.require_secret("payload"),
    deletion_policy="ABANDON",
    opts=google,
)
SecretIamMember(
    "reader",
    secret_id=entry.id,
    role="roles/secretmanager.secretAccessor",
    member="principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/subject/s",
    opts=google,
)

group = ResourceGroup("group", resource_group_name="aso", location="westeurope", opts=azure)
identity = UserAssignedIdentity(
    "identity", resource_group_name=group.name, resource_name_="reader", opts=azure
)
FederatedIdentityCredential(
    "federation",
    resource_group_name=group.name,
    resource_name_=identity.name,
    federated_identity_credential_resource_name="cluster",
    issuer="https://issuer.example/",
    subject=f"system:serviceaccount:{config.require('cluster')}:aso-workload",
    audiences=["api://AzureADTokenExchange"],
    opts=azure,
)
RoleAssignment(
    "assignment",
    role_assignment_name="11111111-0000-4000-8000-000000000001",
    role_definition_id="/providers/Microsoft.Authorization/roleDefinitions/"
    "acdd72a7-3385-48ef-bd42-f606fba81ae7",
    principal_id=identity.principal_id,
    principal_type="ServicePrincipal",
    scope=group.id,
    opts=azure,
)

listed = get_secrets(filter="labels.nobody=set", opts=pulumi.InvokeOptions(provider=google.provider))
pulumi.export("listed", len(listed.secrets))
pulumi.export("version", version.name)
pulumi.export("clientId", identity.client_id)
