"""Objects as plain values: kinds, names, and the form in which the API keeps them."""

import base64
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret, Value, reveal
from pulumi_sandbox.providers.kubernetes import objects
from pulumi_sandbox.providers.kubernetes.objects import declared_part, folded, in_live_form


@pytest.mark.parametrize(
    "type_token",
    [
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:helm.sh/v4:Chart",
        "kubernetes:yaml:ConfigFile",
        "kubernetes:yaml/v2:ConfigGroup",
        "kubernetes:kustomize/v2:Directory",
        "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition",
        "kubernetes:core/v1:SecretList",
        "kubernetes:rbac.authorization.k8s.io/v1:RoleList",
        "kubernetes:core/v1:ConfigMapPatch",
        "gcp:secretmanager/secret:Secret",
    ],
)
def test_types_that_are_no_objects_are_not_served(type_token: str):
    assert not objects.is_served(type_token)


def test_a_custom_kind_may_be_called_a_list():
    assert objects.is_served("kubernetes:example.com/v1:AllowList")


URN = "urn:pulumi:dev::fleet::kubernetes:core/v1:Secret::pool"
SECRET: Properties = {"apiVersion": "v1", "kind": "Secret"}


SERVERS: Properties = {"uid": "u", "resourceVersion": "1", "managedFields": [], "generation": 3}


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({**SECRET, "data": {"k": "aGVs\nbG8=\n"}}, {**SECRET, "data": {"k": "aGVsbG8="}}),
        ({**SECRET, "data": {"k": "no base64!", "n": 7}}, {**SECRET, "data": {"k": "no base64!", "n": 7}}),
        (
            {**SECRET, "stringData": {"a": UNKNOWN, "b": "c"}},
            {**SECRET, "stringData": {"a": UNKNOWN, "b": "c"}},
        ),
        ({"kind": "Secret", "stringData": {"a": "b"}}, {"kind": "Secret", "stringData": {"a": "b"}}),
        ({"metadata": {"name": "n", **SERVERS}}, {"metadata": {"name": "n"}}),
    ],
    ids=["base64", "left to the server", "waits to be known", "another kind's", "only the server writes"],
)
def test_inputs_are_folded_into_what_the_api_keeps(written: Properties, kept: Properties):
    assert folded(written) == kept


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.binary()))
def test_folding_twice_is_folding_once(string_data: dict[str, str], data: dict[str, bytes]):
    encoded: Properties = {key: base64.b64encode(value).decode() for key, value in data.items()}
    once = folded({**SECRET, "data": encoded, "stringData": {**string_data}})
    assert folded(once) == once


BUILT_IN: Properties = {"apiVersion": "apps/v1"}
CUSTOM: Properties = {"apiVersion": "example.com/v1"}

leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
keys = st.text("abc", min_size=1, max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize("empty", [None, False, 0, "", [], {}])
def test_an_empty_field_that_a_built_in_kind_drops_counts_as_live(empty: Value):
    inputs: Properties = {**BUILT_IN, "spec": {"template": {"hostNetwork": empty}}}
    assert declared_part({**BUILT_IN, "spec": {"template": {}}}, inputs) == inputs


def test_a_custom_kind_drops_nothing():
    inputs: Properties = {**CUSTOM, "spec": {"paused": False}}
    assert declared_part({**CUSTOM, "spec": {}}, inputs) == {**CUSTOM, "spec": {}}


@settings(suppress_health_check=[HealthCheck.too_slow])  # how slow is the machine's affair
@given(st.dictionaries(keys, values), st.dictionaries(st.text("xyz", min_size=1), values))
def test_whatever_else_an_object_holds_what_was_declared_is_seen_as_declared(
    inputs: Properties, others: Properties
):
    assert declared_part({**inputs, **others}, inputs) == inputs


def test_inputs_take_the_form_the_server_keeps():
    live: Properties = {**BUILT_IN, "spec": {"cpu": "1", "steps": [{"cpu": "1"}]}}
    declared: Properties = {"cpu": UNKNOWN, "hostNetwork": False, "steps": [{"cpu": "2", "names": []}]}
    kept: Properties = {"cpu": UNKNOWN, "steps": [{"cpu": "2"}]}
    assert in_live_form({**BUILT_IN, "spec": declared}, live) == {**BUILT_IN, "spec": kept}


def test_inputs_of_a_custom_kind_are_kept_as_they_are():
    inputs: Properties = {**CUSTOM, "spec": {"cpu": "1000m", "paused": False}}
    assert in_live_form(inputs, {**CUSTOM, "spec": {"cpu": "1"}}) == inputs


@given(st.dictionaries(keys, values))
def test_what_is_live_is_in_the_live_form(obj: Properties):
    assert in_live_form({**BUILT_IN, **obj}, obj) == {**BUILT_IN, **obj}


LIVE: Properties = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "n"}, "data": {"k": "dg=="}}


def test_the_copy_of_a_secret_that_kubectl_leaves_on_it_is_secret():
    key = "kubectl.kubernetes.io/last-applied-configuration"
    live: Properties = {**LIVE, "metadata": {"name": "n", "annotations": {key: '{"data":{"k":"dg=="}}'}}}
    shown = objects.outputs(live, live, recorded={}, urn=URN)
    kept = {"name": "n", "annotations": {key: Secret('{"data":{"k":"dg=="}}')}}
    inputs = shown["__inputs"]
    assert isinstance(inputs, dict)
    assert (shown["metadata"], inputs["metadata"]) == (kept, kept)
    assert shown["data"] == inputs["data"] == Secret({"k": "dg=="})


def test_the_inputs_recorded_in_the_outputs_go_before_those_the_engine_kept():
    outputs = objects.outputs({}, LIVE, recorded={}, urn=URN)
    kept = cast("Properties", reveal(outputs))
    assert objects.declared(kept, {"kind": "Old"}) == LIVE
    assert objects.declared({}, {"kind": "Old"}) == {"kind": "Old"}


def test_the_first_api_version_is_kept_for_good():
    first = objects.outputs(LIVE, LIVE, recorded={}, urn=URN)
    later = objects.outputs(LIVE, {"apiVersion": "v2"}, recorded=first, urn=URN)
    assert later["__initialApiVersion"] == "v1"
