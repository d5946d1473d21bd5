"""What the credentials of Azure Service Operator register, to the letter."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.aso_credentials import keys
from components.fleet import Fleet
from components.seals import UNSEEN
from tests.support.aso import (
    CANARY,
    CLIENT,
    GROUP_SCOPE,
    ISSUER,
    OTHER_SUB,
    SUB,
    TENANT,
    aso_stack,
    manifest,
    put_files,
)
from tests.support.cases import table
from tests.support.recorder import Recorder, Secret, Unknown, plain, record
from tests.support.stacks import SECRET_KEYS, settings

SECRET = "kubernetes:core/v1:Secret"
PIN = "pulumi-python:dynamic/credfleet:SubscriptionPin"
GROUP = "azure-native:resources:ResourceGroup"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
FEDERATION = "azure-native:managedidentity:FederatedIdentityCredential"
ROLE = "azure-native:authorization:RoleAssignment"
ASO_GROUP = "kubernetes:resources.azure.com/v1api20200601:ResourceGroup"
ASO_STORAGE = "kubernetes:storage.azure.com/v1api20230101:StorageAccount"
OF_IDENTITY = "00000000-0000-4000-8000-0000000000c1"
PRINCIPAL = "00000000-0000-4000-8000-0000000000d1"
OPERATOR = "azureserviceoperator-system_azureserviceoperator-default"
AZURE_SAYS = {
    IDENTITY: {"clientId": OF_IDENTITY, "principalId": PRINCIPAL, "tenantId": TENANT, "name": "as-made"},
    GROUP: {"name": "rg-identities"},
    "pulumi-python:dynamic/credfleet:AccountClaim": {"secretName": "azure-1", "accountId": "222"},
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return put_files(tmp_path)


def declared(values: Mapping[str, str] | None = None, *, preview: bool = False) -> Recorder:
    values = aso_stack() if values is None else values

    def program() -> None:
        fleet = Fleet("fleet", settings(values, Path.cwd()))
        pulumi.export("asoCredentials", fleet.aso_credentials)

    return record(
        program,
        preview=preview,
        config=values,
        secret_keys=SECRET_KEYS,
        outputs={} if preview else AZURE_SAYS,
    )


def data(recorder: Recorder, name: str) -> dict[str, str]:
    """Read what a Secret holds, which travels marked as secret."""
    given = recorder.named(SECRET, name).inputs["data"]
    assert isinstance(given, Secret)
    return {key: base64.b64decode(value).decode() for key, value in plain(given).items()}


def test_each_secret_has_its_name_and_exactly_the_keys_of_its_method() -> None:
    recorder = declared()
    assert {
        name: plain(one.inputs["metadata"])
        for name, one in recorder.of_type(SECRET).items()
        if not name.startswith("account-pool")
    } == table(__file__, "SECRETS")
    ids = {"AZURE_SUBSCRIPTION_ID": SUB, "AZURE_TENANT_ID": TENANT}
    assert data(recorder, "aso-secret") == {**dict.fromkeys(keys.REQUIRED, ""), "AZURE_SYNC_PERIOD": "1h"}
    assert data(recorder, "team-a-secret") == {
        **ids,
        "AZURE_CLIENT_ID": CLIENT,
        "AZURE_CLIENT_SECRET": CANARY,
    }
    assert data(recorder, "team-b-secret") == {**ids, "AZURE_CLIENT_ID": OF_IDENTITY}
    assert not any("stringData" in one.inputs for one in recorder.of_type(SECRET).values())


def test_a_credential_that_nobody_can_see_is_handed_on_as_such() -> None:
    texts = json.loads(aso_stack()["credfleet:credentials"]) | {"team-a-sp": json.dumps({UNSEEN: "x"})}
    recorder = declared({**aso_stack(), "credfleet:credentials": json.dumps(texts)})

    made = data(recorder, "team-a-secret")
    assert made.keys() == {*keys.REQUIRED, keys.CLIENT_SECRET}
    assert UNSEEN in made[keys.CLIENT_SECRET]


def test_an_identity_its_trust_and_its_roles_are_drawn_to_the_letter() -> None:
    recorder = declared()
    assert recorder.named(GROUP, "rg-identities-group").own_inputs == {
        "resourceGroupName": "rg-identities",
        "location": "westeurope",
    }
    assert recorder.named(IDENTITY, "team-b-identity").own_inputs == {
        "resourceGroupName": "rg-identities",
        "resourceName": "team-b",
        "location": "westeurope",
    }
    assert recorder.named(FEDERATION, f"team-b-{OPERATOR}-federation").own_inputs == table(__file__, "TRUST")
    role = recorder.named(ROLE, "team-b-own-group-role")
    name = role.inputs["roleAssignmentName"]
    assert role.own_inputs == {
        "scope": GROUP_SCOPE,
        "roleDefinitionId": f"/subscriptions/{SUB}/providers/Microsoft.Authorization/roleDefinitions/"
        "b24988ac-6180-42a0-ab88-20f7382dd24c",
        "roleAssignmentName": name,
        "principalId": PRINCIPAL,
        "principalType": "ServicePrincipal",
    }
    assert recorder.named(GROUP, "rg-identities-group").urn in role.dependencies
    assert role.request.deleteBeforeReplace
    assert [one.name for one in recorder.registrations if one.request.deleteBeforeReplace] == [role.name]


def test_the_name_of_a_role_assignment_is_known_in_the_first_preview_though_its_principal_is_not() -> None:
    before, after = declared(preview=True), declared()
    foreseen = before.named(ROLE, "team-b-own-group-role").inputs
    made = after.named(ROLE, "team-b-own-group-role").inputs
    assert foreseen["principalId"] == Unknown()
    assert foreseen["roleAssignmentName"] == made["roleAssignmentName"]


def test_everything_in_azure_is_made_by_the_one_explicit_provider_and_only_if_there_is_something() -> None:
    recorder = declared()
    (provider,) = recorder.of_type("pulumi:providers:azure-native").values()
    made = {one.provider for one in recorder.registrations if one.type.startswith("azure-native:")}
    assert made == {f"{provider.urn}::azure-native-id"}
    nothing: dict[str, Any] = {"namespaces": {}, "named": {}, "identities": {}, "resourceGroups": {}}
    without = declared(aso_stack(**nothing, resources={"acme": {"file": "acme.yaml"}}))
    assert without.of_type("pulumi:providers:azure-native") == {}


def test_identities_of_two_subscriptions_are_made_by_a_provider_of_each() -> None:
    group = {"location": "westeurope", "subscriptionId": OTHER_SUB}
    own = {"location": "westeurope", "subscriptionId": SUB}
    recorder = declared(
        aso_stack(
            resourceGroups={"rg-identities": own, "rg-b": group}, identities__billing__resourceGroup="rg-b"
        )
    )
    providers = recorder.of_type("pulumi:providers:azure-native")
    assert [*sorted(providers)] == ["azure-native", f"azure-native-{OTHER_SUB}"]
    assert providers[f"azure-native-{OTHER_SUB}"].inputs["subscriptionId"] == OTHER_SUB
    used = {name: one.provider.split("::")[-2] for name, one in recorder.of_type(IDENTITY).items()}
    assert used == {"billing-identity": f"azure-native-{OTHER_SUB}", "team-b-identity": "azure-native"}
    groups = {name: one.provider.split("::")[-2] for name, one in recorder.of_type(GROUP).items()}
    assert groups == {"rg-b-group": f"azure-native-{OTHER_SUB}", "rg-identities-group": "azure-native"}


def test_what_the_operator_ran_as_is_trusted_beside_what_it_runs_as() -> None:
    relaxed, both = (
        declared(aso_stack()),
        declared(
            aso_stack(
                operator__workloadIdentityMode="strict",
                operator__formerly={"workloadIdentityMode": "relaxed"},
            )
        ),
    )
    before, after = ({*recorder.of_type(FEDERATION)} for recorder in (relaxed, both))
    assert before < after
    assert "team-b-team-b_aso-workload-federation" in after
    pin = both.named("pulumi-python:dynamic/credfleet:OperatorPin", "aso-operator").inputs
    assert pin["trusted"] == [
        f"{mode} {ISSUER} azureserviceoperator-default" for mode in ("strict", "relaxed")
    ]
    assert "aso-operator" in both.waits_for(both.named(SECRET, "aso-secret"))


def test_a_stack_back_in_relaxed_mode_keeps_the_serviceaccounts_until_the_operator_was_started() -> None:
    recorder = declared(strict("b", operator__workloadIdentityMode="relaxed"))
    assert "team-b/aso-workload-account" not in recorder.of_type("kubernetes:core/v1:ServiceAccount")
    formerly = {"workloadIdentityMode": "strict"}
    changed = strict("b", operator__workloadIdentityMode="relaxed", operator__formerly=formerly)
    accounts = declared(changed).of_type("kubernetes:core/v1:ServiceAccount")
    assert "team-b/aso-workload-account" in accounts


def strict(namespaces: str, **changes: Any) -> dict[str, str]:
    """A stack in strict mode, with one identity for these namespaces, each named by a letter."""
    section = {
        f"team-{letter}": {"workloadIdentity": {"subscriptionId": SUB, "identity": "team-b"}}
        for letter in namespaces
    }
    tenants = {f"tenants__team-{letter}": {"namespace": f"team-{letter}"} for letter in namespaces}
    given = {"operator__workloadIdentityMode": "strict", "namespaces": section, "named": {}, "resources": {}}
    return aso_stack(**{**given, **tenants, **changes})


SHARED = {"workloadIdentity": {"subscriptionId": SUB, "identity": "team-b"}}


def test_a_serviceaccount_of_ones_own_lets_the_operator_ask_for_its_tokens_and_nobody_elses() -> None:
    own = {**SHARED["workloadIdentity"], "serviceAccount": "mine"}
    recorder = declared(strict("b", **{"namespaces__team-b": {"workloadIdentity": own}}))
    metadata = {"name": "mine-tokens", "namespace": "team-b"}
    role = recorder.named("kubernetes:rbac.authorization.k8s.io/v1:Role", "team-b/mine-tokens-role")
    binding = recorder.named(
        "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", "team-b/mine-tokens-binding"
    )
    account = recorder.named("kubernetes:core/v1:ServiceAccount", "team-b/mine-account")
    assert account.inputs["metadata"] == {"name": "mine", "namespace": "team-b"}
    assert account.inputs["automountServiceAccountToken"] is False
    assert (role.inputs["metadata"], role.inputs["rules"]) == (
        metadata,
        table(__file__, "RULES"),
    )
    assert (binding.inputs["metadata"], binding.inputs["roleRef"], binding.inputs["subjects"]) == (
        metadata,
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "mine-tokens"},
        table(__file__, "SUBJECTS"),
    )
    assert data(recorder, "team-b-secret")["AZURE_WORKLOAD_IDENTITY_SERVICE_ACCOUNT"] == "mine"
    needed = recorder.waits_for(recorder.named(SECRET, "team-b-secret"))
    assert needed >= {account.name, role.name, binding.name}


def test_relaxed_credentials_trust_the_serviceaccount_that_the_operator_runs_as() -> None:
    recorder = declared(aso_stack(operator__serviceAccount="aso-of-ours"))
    subjects = {one.inputs["subject"] for one in recorder.of_type(FEDERATION).values()}
    assert subjects == {"system:serviceaccount:azureserviceoperator-system:aso-of-ours"}


def test_a_resource_has_the_annotation_of_its_entry_and_is_else_as_its_file_says() -> None:
    recorder = declared()
    assert recorder.named(ASO_GROUP, "billing/team-a/ResourceGroup/billing").own_inputs == table(
        __file__, "RESOURCE"
    )
    assert (
        "annotations" not in recorder.named(ASO_GROUP, "team-a/team-a/ResourceGroup/shop").inputs["metadata"]
    )


def two_of_one_name() -> dict[str, str]:
    """Each of two tenants has a Secret `billing`, and a resource that it serves."""
    identity = {"workloadIdentity": {"subscriptionId": SUB, "identity": "billing"}}
    return aso_stack(
        named__billing=None,
        resources__billing=None,
        **{
            f"named__{team}-billing": {"namespace": team, "secretName": "billing", **identity}
            for team in ("team-a", "team-b")
        },
        **{
            f"resources__{name}": {"file": f"{name}.yaml", "credential": f"{name}-billing"}
            for name in ("team-a", "team-b")
        },
    )


def test_two_tenants_have_a_credential_of_one_name_each() -> None:
    recorder = declared(two_of_one_name())
    for team, kind in (("team-a", ASO_GROUP), ("team-b", ASO_STORAGE)):
        secret = recorder.named(SECRET, f"{team}-billing-secret")
        assert plain(secret.inputs["metadata"]) == {"name": "billing", "namespace": team}
        (served,) = [
            one for one in recorder.of_type(kind).values() if one.inputs["metadata"]["namespace"] == team
        ]
        assert served.inputs["metadata"]["annotations"][keys.CREDENTIAL_FROM] == "billing"
        assert secret.urn in served.dependencies
    told = recorder.stack_outputs["asoCredentials"]
    assert told["named"] == {f"{team}-billing": f"{team}/billing" for team in ("team-a", "team-b")}
    assert {told["resources"][name] for name in told["resources"] if "team-" in name} == {
        "team-a/billing",
        "team-b/billing",
    }


def test_kinds_of_two_groups_may_share_their_name_and_that_of_a_resource(project: Path) -> None:
    groups = ("dbformysql.azure.com", "dbforpostgresql.azure.com")
    servers = [
        {**manifest("team-a", "db"), "apiVersion": f"{group}/v1", "kind": "FlexibleServer"}
        for group in groups
    ]
    put_files(project, team_a=servers)
    recorder = declared()
    made = [one for one in recorder.registrations if one.type.endswith(":FlexibleServer")]
    assert [one.type for one in made] == [f"kubernetes:{group}/v1:FlexibleServer" for group in groups]
    told = recorder.stack_outputs["asoCredentials"]["resources"]
    assert {f"team-a/FlexibleServer.{group}/db" for group in groups} <= set(told)


def test_a_manifest_is_declared_with_the_annotations_it_has_and_with_texts_for_keys(project: Path) -> None:
    text = """apiVersion: resources.azure.com/v1api20200601
kind: ResourceGroup
metadata: {name: billing, namespace: team-a, annotations: {mine: kept}}
spec: {location: westeurope, tags: {2024: budget}}
"""
    put_files(project, billing=text)
    one = declared().named(ASO_GROUP, "billing/team-a/ResourceGroup/billing")
    named = {"serviceoperator.azure.com/credential-from": "billing"}
    assert one.inputs["metadata"]["annotations"] == {"mine": "kept", **named}
    assert one.inputs["spec"] == {"location": "westeurope", "tags": {"2024": "budget"}}


def test_a_resource_waits_for_all_its_deletion_needs() -> None:
    recorder = declared()
    waits = {
        one.name: recorder.waits_for(one)
        for type_ in (ASO_GROUP, ASO_STORAGE)
        for one in recorder.of_type(type_).values()
    }
    assert waits["team-a/team-a/ResourceGroup/shop"] == {
        "team-a-secret",
        "team-a-subscription",
        "team-a-namespace",
    }
    assert waits["team-b/team-b/StorageAccount/search"] == {
        "team-b-secret",
        "team-b-subscription",
        "team-b-namespace",
        f"team-b-{OPERATOR}-federation",
        "team-b-own-group-role",
        "team-b-identity",
        "rg-identities-group",
    }
    assert waits["billing/team-a/ResourceGroup/billing"] >= {
        "billing-secret",
        f"billing-{OPERATOR}-federation",
    }
    assert "acme/azure-copy" in waits["acme/tenant-acme/ResourceGroup/acme"]


def test_a_resource_that_the_operators_credential_serves_waits_for_its_settings(project: Path) -> None:
    own = {"podIdentity": {"subscriptionId": SUB, "tenantId": TENANT, "clientId": CLIENT}}
    changes = {"globalSettings": {"credential": own}, "namespaces": {}, "named": {}, "identities": {}}
    recorder = declared(aso_stack(**changes, resources={"team-a": {"file": "team-a.yaml"}}))
    assert data(recorder, "aso-secret") == {
        "AZURE_SUBSCRIPTION_ID": SUB,
        "AZURE_TENANT_ID": TENANT,
        "AZURE_CLIENT_ID": CLIENT,
    }
    shop = recorder.named(ASO_GROUP, "team-a/team-a/ResourceGroup/shop")
    assert recorder.waits_for(shop) >= {"aso-secret", "aso-subscription"}
    assert "aso-operator" in recorder.waits_for(recorder.named(SECRET, "aso-secret"))
    assert recorder.stack_outputs["asoCredentials"]["resources"] == {
        "team-a/ResourceGroup.resources.azure.com/shop": "azureserviceoperator-system/aso-controller-settings"
    }


def test_every_credential_is_pinned_to_its_subscription_before_its_secret() -> None:
    recorder = declared(aso_stack(**{"named__billing__allowSubscriptionChange": True}))
    assert {name: one.own_inputs for name, one in recorder.of_type(PIN).items()} == {
        f"{name}-subscription": {
            "secret": reference,
            "subscriptionId": SUB,
            "allowChange": name == "billing",
            "place": f"credfleet:asoCredentials.{place}",
        }
        for name, reference, place in (
            ("team-a", "team-a/aso-credential", "namespaces.team-a"),
            ("team-b", "team-b/aso-credential", "namespaces.team-b"),
            ("billing", "team-a/billing", "named.billing"),
        )
    }
    for name in ("team-a", "team-b", "billing"):
        pin = recorder.named(PIN, f"{name}-subscription")
        assert pin.urn in recorder.named(SECRET, f"{name}-secret").dependencies


def test_outputs_name_secrets_identities_and_what_serves_each_resource() -> None:
    ids = {"clientId": OF_IDENTITY, "principalId": PRINCIPAL}
    assert declared().stack_outputs["asoCredentials"] == {
        "globalSettings": "azureserviceoperator-system/aso-controller-settings",
        "namespaces": {"team-a": "team-a/aso-credential", "team-b": "team-b/aso-credential"},
        "named": {"billing": "team-a/billing"},
        "identities": {"team-b": ids, "billing": ids},
        "resources": {
            "team-a/ResourceGroup.resources.azure.com/shop": "team-a/aso-credential",
            "team-b/StorageAccount.storage.azure.com/search": "team-b/aso-credential",
            "team-a/ResourceGroup.resources.azure.com/billing": "team-a/billing",
            "tenant-acme/ResourceGroup.resources.azure.com/acme": "tenant-acme/aso-credential",
        },
    }


def test_an_annotation_that_is_not_inherited_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = manifest("team-a", "files", "StorageAccount")
    child["spec"]["owner"] = {"name": "billing"}
    put_files(project, billing=[manifest("team-a", "billing")], team_a=[child])
    told: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", told.append)
    declared()
    (warning,) = told
    assert "team-a/StorageAccount/files" in warning
    assert "of team-a/ResourceGroup/billing is not inherited" in warning


def test_a_credential_in_the_cluster_is_made_there_behind_its_pin_and_resources_wait_for_it() -> None:
    recorder = declared(aso_stack(**table(__file__, "CERTIFICATE")))
    made = recorder.of_type("pulumi-python:dynamic/credfleet:AsoProjection")
    recipe = made["team-a-projection"].inputs["recipe"]
    ids = dict(zip(keys.REQUIRED, (SUB, TENANT, CLIENT), strict=True))
    assert (recipe["plain"], recipe["proofs"], recipe["settings"]) == (ids, ["AZURE_CLIENT_SECRET"], [])
    (source,) = made["team-a-projection"].inputs["sources"]
    assert (source["namespace"], source["name"], source["key"]) == ("team-a", "app", "password")
    own = made["aso-projection"].inputs["recipe"]
    assert (own["proofs"], own["settings"]) == (["AZURE_CLIENT_CERTIFICATE"], ["AZURE_SYNC_PERIOD"])
    assert {"team-a-secret", "aso-secret"}.isdisjoint(recorder.of_type(SECRET))
    assert any(one.endswith("team-a-subscription") for one in made["team-a-projection"].dependencies)
    shop = recorder.of_type(ASO_GROUP)["team-a/team-a/ResourceGroup/shop"]
    assert any(one.endswith("team-a-projection") for one in shop.dependencies)
