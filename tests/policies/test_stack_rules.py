"""Rules over a whole stack, and remedies."""

import json
from typing import Any, TypeAlias

import aso
import azure
import gcp
import pool_members
import pytest
import secret_objects
import stores
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct
from pack import POLICIES
from pulumi_policy import StackValidationPolicy
from pulumi_sandbox.protocol import wire
from pulumi_sandbox.providers.azure_native import resources
from pulumi_sandbox.providers.azure_native.resources import RESOURCES

from tests.policies import cases
from tests.policies.cases import (
    ASO,
    ASO_FEDERATION,
    CLAIM,
    DEPLOYMENT,
    FEDERATION,
    FROM,
    IDENTITY,
    READ,
    SECRET,
    VERSION,
    annotated,
    aso_federation,
    federation,
    in_two_places,
    named,
    scoped,
)
from tests.support.cases import cases as cases_of
from tests.support.cases import table
from tests.support.policies import UNKNOWN, judge, judge_stack, remedied, secret, with_each_part

Declared: TypeAlias = tuple[str, dict[str, Any]]

DYNAMIC = "pulumi-python:dynamic/credfleet:"
PROJECTION = f"{DYNAMIC}SecretProjection"
EXTERNAL = "kubernetes:external-secrets.io/v1:ExternalSecret"
NO_WORKLOADS = pool_members.kubernetes_pool_namespace_no_workloads
NAMING = (ASO, annotated(**{FROM: "aso-credential"}))


def of_eso(kind: str, name: str = "s", **spec: Any) -> Declared:
    metadata = {"name": name} | ({} if kind.startswith("Cluster") else {"namespace": "a"})
    return f"kubernetes:external-secrets.io/v1:{kind}", {"metadata": metadata, "spec": spec}


def pod(namespace: str) -> tuple[str, dict[str, Any]]:
    return DEPLOYMENT, {"metadata": {"name": "web", "namespace": namespace}}


def member(namespace: str) -> tuple[str, dict[str, Any]]:
    metadata = {"name": "aws-1", "namespace": namespace, "labels": {"hyperscaler-type": "aws"}}
    return SECRET, {"metadata": metadata}


_OF_THE_STACK = {policy.name: policy for policy in POLICIES if isinstance(policy, StackValidationPolicy)}


@cases_of("case", table(__file__, "test_a_rule_over_the_stack_tells_what_it_should"))
def test_a_rule_over_the_stack_tells_what_it_should(case: dict[str, Any]) -> None:
    found = judge_stack(_OF_THE_STACK[case["rule"]], case["declared"], case.get("config"))

    assert [list(each) for each in found] == case["told"]


@pytest.mark.parametrize(
    ("pool", "refused"), table(__file__, "test_a_namespace_of_the_name_of_a_pool_in_another_cluster_is_none")
)
def test_a_namespace_of_the_name_of_a_pool_in_another_cluster_is_none(
    monkeypatch: pytest.MonkeyPatch, pool: dict[str, Any], refused: list[str]
) -> None:
    said = pool_members.pool_section({"credfleet:accountPool": json.dumps(pool)})
    monkeypatch.setattr(pool_members, "_section", lambda: said)
    claim = (CLAIM, {"namespace": "pool"})

    assert [urn for urn, _ in judge_stack(NO_WORKLOADS, [claim, pod("pool")])] == refused


@pytest.mark.parametrize(("type_", "inputs"), table(__file__, "test_whatever_starts_pods_is_a_workload"))
def test_whatever_starts_pods_is_a_workload(type_: str, inputs: dict[str, Any]) -> None:
    there = {"metadata": {"namespace": "pool"}, **inputs}

    assert [urn for urn, _ in judge_stack(NO_WORKLOADS, [member("pool"), (type_, there)])] == ["1"]


@pytest.mark.parametrize(("type_", "inputs"), table(__file__, "test_what_starts_no_pods_is_no_workload"))
def test_what_starts_no_pods_is_no_workload(type_: str, inputs: dict[str, Any]) -> None:
    assert (
        judge_stack(NO_WORKLOADS, [member("pool"), (type_, {**inputs, "metadata": {"namespace": "pool"}})])
        == []
    )


def test_an_account_with_labels_of_other_names_makes_its_namespace_a_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_members, "_section", lambda: cases.KYMA)
    theirs = (SECRET, {"metadata": {"namespace": "pool", "labels": {"hyperscalerType": "aws"}}})

    assert [urn for urn, _ in judge_stack(NO_WORKLOADS, [theirs, pod("pool"), member("other")])] == ["1"]


@pytest.mark.parametrize(
    "credential",
    [
        (SECRET, scoped()),
        (SECRET, in_two_places()),
        (PROJECTION, {"targetNamespace": "team-a", "targetName": "aso-credential"}),
        (f"{DYNAMIC}AsoProjection", {"namespace": "team-a", "targetName": "aso-credential"}),
        (READ, {"namespace": "team-a", "target": "aso-credential"}),
        (EXTERNAL, {**annotated(), "spec": {"target": {"name": "aso-credential"}}}),
        (EXTERNAL, {"metadata": {"name": "aso-credential", "namespace": "team-a"}, "spec": {}}),
        (
            "kubernetes:external-secrets.io/v1:ClusterExternalSecret",
            {
                "metadata": {"name": "x"},
                "spec": {"externalSecretSpec": {"target": {"name": "aso-credential"}}},
            },
        ),
        ("kubernetes:bitnami.com/v1alpha1:SealedSecret", named("aso-credential")),
    ],
)
def test_a_credential_that_is_declared_or_delivered_in_the_namespace_is_found(credential: Declared) -> None:
    type_, inputs = credential
    for each in (inputs, *with_each_part(inputs, UNKNOWN)):
        assert judge_stack(aso.aso_annotation_target, [NAMING, (type_, each)]) == [], each


@pytest.mark.parametrize("name", cases.OF_THE_STACK)
def test_what_stands_where_something_else_belongs_stops_no_rule(name: str) -> None:
    rule = _OF_THE_STACK[name]
    declared = cases.OF_THE_STACK[name]
    for place, (type_, inputs) in enumerate(declared[:2]):
        for odd in (None, 5432, True, "", "x", [], ["x"], [None], {}, {"x": 5}, UNKNOWN):
            for each in with_each_part(inputs, odd):
                judge_stack(rule, [*declared[:place], (type_, each), *declared[place + 1 :]], {"most": 1})


def previewed(*declared: Declared) -> list[Declared]:
    """Return each resource of azure-native with the outputs it has in a preview, its inputs judged before."""
    for index, (type_, inputs) in enumerate(declared):
        if type_ == FEDERATION:
            judge(azure.azure_federation_subject, type_, inputs, urn=str(index))
    return [(type_, outputs(type_, inputs)) for type_, inputs in declared]


def outputs(type_: str, inputs: dict[str, Any]) -> dict[str, Any]:
    known = wire.decode(ParseDict(inputs, Struct()))
    return MessageToDict(wire.encode(resources.previewed(RESOURCES[type_], known, {})))


def test_the_outputs_of_a_federated_credential_do_not_say_whose_it_is() -> None:
    assert outputs(FEDERATION, federation()).keys() & {"issuer", "resourceGroupName", "resourceName"} == {
        "issuer"
    }


def test_the_twenty_first_federated_credential_of_an_identity_is_refused() -> None:
    many = [(FEDERATION, federation(subject=f"s{index}")) for index in range(21)]
    others = [(FEDERATION, federation(resourceName="other")), (FEDERATION, federation(resourceName=UNKNOWN))]

    assert judge_stack(azure.azure_identity_federation_limit, previewed(*many[:20], *others)) == []
    assert judge_stack(azure.azure_identity_federation_limit, previewed(*many)) == [
        ("20", "resourceName is an identity with more than 20 federated credentials")
    ]


def test_an_identity_trusts_a_pair_of_issuer_and_subject_once() -> None:
    one, other = (FEDERATION, federation()), (FEDERATION, federation(resourceName="other"))
    unknown = (FEDERATION, federation(issuer=UNKNOWN))

    assert judge_stack(azure.azure_identity_federation_unique, previewed(one, other, unknown, unknown)) == []
    assert judge_stack(azure.azure_identity_federation_unique, previewed(one, one)) == [
        ("1", "issuer and subject are those of another credential of the identity")
    ]


def test_an_identity_whose_name_only_the_update_knows_is_the_one_that_the_name_comes_from() -> None:
    rule, unnamed = azure.azure_identity_federation_unique, (FEDERATION, federation(resourceName=UNKNOWN))
    new = (IDENTITY, {"location": "westeurope", "resourceGroupName": "rg"})
    declared = previewed(new, new, unnamed, unnamed)

    def clashes(*identities: int) -> list[str]:
        sources = {place: {"resourceName": one} for place, one in enumerate(identities, start=2)}
        return [urn for urn, _ in judge_stack(rule, declared, sources=sources)]

    assert clashes(0, 0) == ["3"]
    assert clashes(0, 1) == clashes(0) == clashes() == []


def test_a_name_that_comes_from_something_else_than_an_identity_may_be_any() -> None:
    unnamed = (FEDERATION, federation(resourceName=UNKNOWN))
    declared = [(CLAIM, {}), *previewed((FEDERATION, {}), unnamed, unnamed)[1:]]
    sources = {1: {"resourceName": 0}, 2: {"resourceName": 0}}

    assert judge_stack(azure.azure_identity_federation_unique, declared, sources=sources) == []


def test_federated_credentials_of_aso_count_for_their_identity_too() -> None:
    one, other = aso_federation(), {**aso_federation(), "metadata": {"namespace": "team-b"}}
    named, by_id = (
        {**one, "spec": {**one["spec"], "owner": owner}} for owner in ({"name": "b"}, {"armId": "/i"})
    )
    declared = [(ASO_FEDERATION, each) for each in (one, other, named, by_id)]
    clash = "spec.issuer and subject are those of another credential of the identity"
    unique, limit = azure.azure_identity_federation_unique, azure.azure_identity_federation_limit

    assert judge_stack(unique, declared) == []
    assert judge_stack(unique, [*declared, declared[0], declared[3]]) == [("4", clash), ("5", clash)]
    assert judge_stack(limit, declared[:1] * 20 + declared[1:]) == []
    assert judge_stack(limit, declared[:1] * 21) == [
        ("20", "spec.owner is an identity with more than 20 federated credentials")
    ]


def test_of_two_that_clash_the_same_one_is_named_in_whatever_order_they_come() -> None:
    same = previewed(*[(FEDERATION, federation())] * 2)
    rule = azure.azure_identity_federation_unique

    assert judge_stack(rule, same, backwards=True) == judge_stack(rule, same) != []


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


@pytest.mark.parametrize(("consumer", "ref", "refused"), table(__file__, "test_a_store_is_used_as_it_can_be"))
def test_a_store_is_used_as_it_can_be(consumer: list[Any], ref: dict[str, Any], refused: str | None) -> None:
    kind, spec = consumer
    declared = [
        of_eso("SecretStore", "read", provider={"conjur": {}}),
        of_eso("SecretStore", "written", provider={"github": {}}),
        of_eso("ClusterSecretStore", "read", provider={"github": {}}),
        of_eso("SecretStore", "both", provider={"vault": {}}),
        of_eso("SecretStore", "own", provider={"mine": {}}),
        of_eso("SecretStore", UNKNOWN, provider={"github": {}}),
        of_eso(kind, "x", **json.loads(json.dumps(spec).replace('"REF"', json.dumps(ref)))),
    ]
    found = judge_stack(stores.stores_used_as_they_can, declared)
    assert [each for _, each in found] == ([] if refused is None else [refused])
