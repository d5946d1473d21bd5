"""Rules over a whole stack, and remedies."""

from typing import Any

import aso
import azure
import environments
import gcp
import pool_members
import pytest
import secret_objects

from tests.policies.cases import (
    ASO,
    CLAIM,
    DEPLOYMENT,
    FEDERATION,
    FROM,
    SECRET,
    VERSION,
    annotated,
    federation,
    named,
    scoped,
)
from tests.support.policies import UNKNOWN, judge_stack, remedied, secret

PROJECTION = "pulumi-python:dynamic/credfleet:SecretProjection"
NAMING = (ASO, annotated(**{FROM: "aso-credential"}))
NOT_DECLARED = f"metadata.annotations.{FROM} names a Secret that is not declared in the namespace"


def pod(namespace: str) -> tuple[str, dict[str, Any]]:
    return DEPLOYMENT, {"metadata": {"name": "web", "namespace": namespace}}


def member(namespace: str) -> tuple[str, dict[str, Any]]:
    metadata = {"name": "aws-1", "namespace": namespace, "labels": {"hyperscaler-type": "aws"}}
    return SECRET, {"metadata": metadata}


def test_a_workload_beside_the_accounts_of_a_pool_is_refused() -> None:
    rule = pool_members.kubernetes_pool_namespace_no_workloads

    assert judge_stack(rule, [member("pool"), pod("pool"), pod("tenant-acme")]) == [
        ("1", "metadata.namespace is that of an account pool")
    ]
    assert judge_stack(rule, [member(UNKNOWN), pod(UNKNOWN), pod("pool")]) == []


def test_objects_of_kubernetes_are_judged_together_as_what_their_outputs_make_them() -> None:
    called, accounts, web = "kubernetes:example.com/v1:Anything", member("pool")[1], pod("pool")[1]
    accounts = {"apiVersion": "v1", "kind": "Secret", **accounts}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", **web}

    assert judge_stack(
        pool_members.kubernetes_pool_namespace_no_workloads, [(called, accounts), (called, web)]
    ) == [("1", "metadata.namespace is that of an account pool")]


def test_a_credential_that_is_declared_or_delivered_in_the_namespace_is_found() -> None:
    delivered = (PROJECTION, {"targetNamespace": "team-a", "targetName": "aso-credential"})

    assert judge_stack(aso.aso_annotation_target, [NAMING, (SECRET, scoped())]) == []
    assert judge_stack(aso.aso_annotation_target, [NAMING, delivered]) == []


def test_a_credential_that_is_declared_nowhere_or_elsewhere_is_missed() -> None:
    elsewhere = (SECRET, named("aso-credential", "team-b", AZURE_SUBSCRIPTION_ID="eA=="))

    assert judge_stack(aso.aso_annotation_target, [NAMING]) == [("0", NOT_DECLARED)]
    assert judge_stack(aso.aso_annotation_target, [elsewhere, NAMING]) == [("1", NOT_DECLARED)]


def test_a_named_secret_without_the_ids_of_azure_is_no_credential() -> None:
    assert judge_stack(aso.aso_annotation_target, [NAMING, (SECRET, scoped("AZURE_TENANT_ID"))]) == [
        ("0", f"metadata.annotations.{FROM} names a Secret that is no credential of ASO")
    ]


def test_a_secret_of_which_a_preview_knows_half_may_be_the_one_that_is_named() -> None:
    half = (SECRET, named("aso-credential", UNKNOWN))

    assert judge_stack(aso.aso_annotation_target, [NAMING, half]) == []
    assert judge_stack(aso.aso_annotation_target, [(ASO, annotated(**{FROM: UNKNOWN}))]) == []


def test_the_twenty_first_federated_credential_of_an_identity_is_refused() -> None:
    many = [(FEDERATION, federation(subject=f"s{index}")) for index in range(21)]
    others = [(FEDERATION, federation(resourceName="other")), (FEDERATION, federation(resourceName=UNKNOWN))]

    assert judge_stack(azure.azure_identity_federation_limit, [*many[:20], *others]) == []
    assert judge_stack(azure.azure_identity_federation_limit, many) == [
        ("20", "resourceName is an identity with more than 20 federated credentials")
    ]


def test_an_identity_trusts_a_pair_of_issuer_and_subject_once() -> None:
    one, other = (FEDERATION, federation()), (FEDERATION, federation(resourceName="other"))
    unknown = (FEDERATION, federation(issuer=UNKNOWN))

    assert judge_stack(azure.azure_identity_federation_unique, [one, other, unknown, unknown]) == []
    assert judge_stack(azure.azure_identity_federation_unique, [one, one]) == [
        ("1", "issuer and subject are those of another credential of the identity")
    ]


def test_of_two_that_clash_the_same_one_is_named_in_whatever_order_they_come() -> None:
    same = [(FEDERATION, federation())] * 2
    rule = azure.azure_identity_federation_unique

    assert judge_stack(rule, same, backwards=True) == judge_stack(rule, same) != []


def test_a_tenant_claims_as_many_accounts_as_its_environment_grants_it() -> None:
    claims = [(CLAIM, {"tenant": tenant}) for tenant in ("acme", "acme", "acme", "globex", "globex", UNKNOWN)]
    config = {"most": 1.0, "tenants": {"acme": 3.0}}

    assert judge_stack(environments.estate_claims_per_tenant, claims, config) == [
        ("4", "tenant claims more accounts than 1")
    ]
    assert judge_stack(environments.estate_claims_per_tenant, claims) == []


def test_string_data_becomes_data_and_stays_secret() -> None:
    given = {
        "metadata": {"name": "x"},
        "data": secret({"a": "YQ==", "b": "old"}),
        "stringData": secret({"b": "b", "c": UNKNOWN}),
    }

    assert remedied(secret_objects.kubernetes_secret_data_only, SECRET, given) == {
        "metadata": {"name": "x"},
        "data": secret({"a": "YQ==", "b": "Yg==", "c": UNKNOWN}),
    }


def test_string_data_that_only_the_update_knows_is_left_to_it() -> None:
    assert remedied(secret_objects.kubernetes_secret_data_only, SECRET, {"stringData": UNKNOWN}) is None
    assert (
        remedied(secret_objects.kubernetes_secret_data_only, SECRET, {"data": secret({"a": "YQ=="})}) is None
    )


@pytest.mark.parametrize("key", ["secretData", "secretDataWo"])
def test_the_payload_of_a_version_is_marked_unless_it_is_already(key: str) -> None:
    assert remedied(gcp.gcp_secret_version_marked, VERSION, {"secret": "s", key: "canary"}) == {
        "secret": "s",
        key: secret("canary"),
    }
    for already in ({key: secret("canary")}, {key: UNKNOWN}, {}):
        assert remedied(gcp.gcp_secret_version_marked, VERSION, already) is None
