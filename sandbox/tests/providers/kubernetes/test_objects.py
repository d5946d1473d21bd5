"""Objects as plain values: kinds, names, and the form in which the API keeps them."""

import base64
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret, Value, contains_secret, reveal
from pulumi_sandbox.providers.kubernetes import objects
from pulumi_sandbox.providers.kubernetes.objects import KubernetesKind, declared_part, folded, in_live_form


@pytest.mark.parametrize(
    ("type_token", "api_version", "kind"),
    [
        ("kubernetes:core/v1:Secret", "v1", "Secret"),
        ("kubernetes:apps/v1:Deployment", "apps/v1", "Deployment"),
        ("kubernetes:example.com/v1beta1:Bucket", "example.com/v1beta1", "Bucket"),
    ],
)
def test_a_type_names_a_kind_as_the_api_does(type_token: str, api_version: str, kind: str):
    assert objects.of_type(type_token) == (api_version, kind)
    assert objects.refusal(type_token) == ""


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
def test_types_that_are_no_objects_are_refused_by_name(type_token: str):
    assert type_token in objects.refusal(type_token)


def test_a_custom_kind_may_be_called_a_list():
    assert objects.refusal("kubernetes:example.com/v1:AllowList") == ""


@pytest.mark.parametrize(
    ("kind", "namespace", "collection"),
    [
        (KubernetesKind("v1", "secrets", namespaced=True), "ns", "/api/v1/namespaces/ns/secrets"),
        (KubernetesKind("v1", "secrets", namespaced=True), "", "/api/v1/namespaces/default/secrets"),
        (KubernetesKind("v1", "namespaces", namespaced=False), "", "/api/v1/namespaces"),
        (KubernetesKind("a.b/v1", "roles", namespaced=False), "ns", "/apis/a.b/v1/roles"),
    ],
)
def test_a_kind_is_served_at_one_path(kind: KubernetesKind, namespace: str, collection: str):
    assert kind.path(namespace) == collection
    assert kind.path(namespace, "n") == f"{collection}/n"


URN = "urn:pulumi:dev::fleet::kubernetes:core/v1:Secret::pool"


def test_an_object_without_a_name_gets_its_logical_name_with_eight_hex_digits():
    named = objects.make_up_name({"kind": "Secret"}, "pool", b"seed")
    assert re.fullmatch("pool-[0-9a-f]{8}", objects.name(named))
    assert objects.is_true(named, objects.AUTONAMED)


def test_a_made_up_name_depends_on_the_seed_alone():
    names = {objects.name(objects.make_up_name({}, "pool", seed)) for seed in (b"one", b"one", b"two")}
    assert len(names) == 2


def test_without_a_seed_two_made_up_names_differ():
    first, second = (objects.name(objects.make_up_name({}, "pool", b"")) for _ in range(2))
    assert first != second


@pytest.mark.parametrize("name", ["mine", UNKNOWN])
def test_a_name_the_program_gives_is_left_alone(name: str):
    inputs: Properties = {"metadata": {"name": name}}
    assert objects.make_up_name(inputs, "pool", b"seed") == inputs


def test_a_made_up_name_stays_until_the_program_gives_one():
    old = objects.make_up_name({}, "pool", b"seed")
    assert objects.keep_old_name({"kind": "Secret"}, old) == {"kind": "Secret", **old}
    assert objects.name(objects.keep_old_name({"metadata": {"name": "mine"}}, old)) == "mine"


def test_a_name_the_program_took_back_is_not_kept():
    assert objects.keep_old_name({}, {"metadata": {"name": "mine"}}) == {}


def test_annotations_that_are_not_known_yet_stay_unknown_beside_a_made_up_name():
    named = objects.make_up_name({"metadata": {"annotations": UNKNOWN}}, "pool", b"seed")
    assert objects.metadata(named)["annotations"] is UNKNOWN


def test_the_field_manager_is_the_same_in_every_run_and_another_for_another_resource():
    assert objects.manager_of(URN) == objects.manager_of(URN)
    assert re.fullmatch("pulumi-kubernetes-[0-9a-f]{8}", objects.manager_of(URN))
    assert objects.manager_of(URN) != objects.manager_of(URN + "2")


@pytest.mark.parametrize(("id_", "parts"), [("ns/name", ("ns", "name")), ("name", ("", "name"))])
def test_an_id_names_its_object_with_its_namespace_if_it_has_one(id_: str, parts: tuple[str, str]):
    namespace, name = parts
    assert objects.parse_id(id_) == parts
    assert objects.object_id({"metadata": {"name": name, "namespace": namespace}}) == id_


SECRET: Properties = {"apiVersion": "v1", "kind": "Secret"}


def test_string_data_becomes_base64_data_which_it_overrides():
    given_data: Properties = {"data": {"a": "b2xk", "b": "b2xk"}, "stringData": {"a": "new", "ü": "naïve"}}
    expected = {"a": "bmV3", "b": "b2xk", "ü": base64.b64encode("naïve".encode()).decode()}
    assert folded({**SECRET, **given_data}) == {**SECRET, "data": expected}


def test_only_secrets_have_string_data():
    other: Properties = {"apiVersion": "example.com/v1", "kind": "Secret", "stringData": {"a": "b"}}
    assert folded(other) == other


def test_a_secret_with_unknown_parts_waits_until_they_are_known():
    waiting: Properties = {**SECRET, "stringData": {"a": UNKNOWN, "b": "c"}}
    assert folded(waiting) == waiting


@pytest.mark.parametrize(
    ("written", "kept"),
    [("aGVs\nbG8=\n", "aGVsbG8="), ("aGVsbG8=", "aGVsbG8="), ("no base64!", "no base64!"), (7, 7)],
)
def test_data_is_kept_in_canonical_base64_and_bad_data_is_left_to_the_server(
    written: str | int, kept: str | int
):
    assert folded({**SECRET, "data": {"k": written}}) == {**SECRET, "data": {"k": kept}}


def test_what_only_the_server_writes_is_no_input():
    metadata: Properties = {
        "name": "n",
        "uid": "u",
        "resourceVersion": "1",
        "managedFields": [],
        "generation": 3,
    }
    assert folded({"metadata": metadata}) == {"metadata": {"name": "n"}}


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


def test_fields_of_others_and_defaults_are_no_drift():
    inputs: Properties = {"metadata": {"labels": {"a": "b"}}, "spec": {"ports": [{"port": 80}]}}
    live: Properties = {
        "metadata": {"labels": {"a": "b", "credfleet.io/owner": "x"}, "uid": "u"},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}], "type": "ClusterIP"},
        "status": {},
    }
    assert declared_part(live, inputs) == inputs


def test_a_declared_field_shows_the_value_another_gave_it():
    assert declared_part({"data": {"k": "theirs"}}, {"data": {"k": "mine"}}) == {"data": {"k": "theirs"}}


def test_a_declared_field_that_another_removed_is_missing():
    inputs: Properties = {**BUILT_IN, "metadata": {"labels": {"a": "b", "c": ""}}}
    assert declared_part({**BUILT_IN, "metadata": {"labels": {}}}, inputs) == {
        **BUILT_IN,
        "metadata": {"labels": {}},
    }


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


LIVE: Properties = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "n", "annotations": {"token": "t"}},
    "data": {"k": "dg=="},
}


def recorded(model: Properties) -> Properties:
    inputs = {key: value for key, value in LIVE.items() if key != "metadata"}
    return objects.outputs(LIVE, inputs, model=model, recorded={}, urn=URN)


def test_outputs_are_the_object_and_what_the_genuine_provider_keeps_beside_it():
    outputs = recorded({})
    assert outputs.keys() - LIVE.keys() == {"__inputs", "__fieldManager", "__initialApiVersion"}
    assert objects.live_object(outputs) == LIVE


def test_data_of_a_secret_is_secret_whatever_the_program_said():
    outputs = recorded({})
    assert outputs["data"] == Secret({"k": "dg=="})
    assert contains_secret(outputs["__inputs"])


def test_the_copy_of_a_secret_that_kubectl_leaves_on_it_is_secret():
    key = "kubectl.kubernetes.io/last-applied-configuration"
    live: Properties = {**LIVE, "metadata": {"name": "n", "annotations": {key: '{"data":{"k":"dg=="}}'}}}
    shown = objects.outputs(live, live, model={}, recorded={}, urn=URN)
    kept = {"name": "n", "annotations": {key: Secret('{"data":{"k":"dg=="}}')}}
    inputs = shown["__inputs"]
    assert isinstance(inputs, dict)
    assert (shown["metadata"], inputs["metadata"]) == (kept, kept)


def test_other_secrets_of_a_secret_object_stay_secret_too():
    outputs = recorded({"metadata": {"annotations": {"token": Secret("t")}}})
    assert outputs["metadata"] == {"name": "n", "annotations": {"token": Secret("t")}}


def test_secrets_of_other_kinds_stay_where_they_were():
    live: Properties = {"kind": "Bucket", "spec": {"password": "p", "size": 1}}
    assert objects.concealed(live, {"spec": {"password": Secret("p")}}) == {
        "kind": "Bucket",
        "spec": {"password": Secret("p"), "size": 1},
    }


def test_the_inputs_recorded_in_the_outputs_go_before_those_the_engine_kept():
    outputs = recorded({})
    assert objects.declared(outputs, {"kind": "Old"}) == reveal(outputs["__inputs"])
    assert objects.declared({}, {"kind": "Old"}) == {"kind": "Old"}


def test_the_first_api_version_is_kept_for_good():
    later = objects.outputs(LIVE, {"apiVersion": "v2"}, model={}, recorded=recorded({}), urn=URN)
    assert later["__initialApiVersion"] == "v1"
