"""What is recorded of a live object, and what of that is secret."""

from pulumi_sandbox.protocol.values import Properties, Secret, contains_secret, reveal
from pulumi_sandbox.providers.kubernetes import objects

LIVE: Properties = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "n", "annotations": {"token": "t"}},
    "data": {"k": "dg=="},
}


def recorded(model: Properties) -> Properties:
    inputs = {key: value for key, value in LIVE.items() if key != "metadata"}
    return objects.outputs(LIVE, inputs, model=model, field_manager="m", initial_api_version="v1")


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
    shown = objects.outputs(live, live, model={}, field_manager="m", initial_api_version="v1")
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


def test_dashes_of_schema_extensions_are_underscores_in_programs_and_outputs():
    schema: Properties = {"spec": {"versions": [{"schema": {"x-kubernetes-preserve-unknown-fields": True}}]}}
    outputs = objects.outputs(schema, schema, model={}, field_manager="m", initial_api_version="v1")
    assert outputs["spec"] == {"versions": [{"schema": {"x_kubernetes_preserve_unknown_fields": True}}]}
    assert objects.declared(outputs, {}) == objects.live_object(outputs) == schema


def test_the_inputs_recorded_in_the_outputs_go_before_those_the_engine_kept():
    outputs = recorded({})
    assert objects.declared(outputs, {"kind": "Old"}) == reveal(outputs["__inputs"])
    assert objects.declared({}, {"kind": "Old"}) == {"kind": "Old"}


def test_the_first_api_version_is_kept_for_good():
    assert objects.initial_api_version(recorded({}), {"apiVersion": "v2"}) == "v1"
    assert objects.initial_api_version({}, {"apiVersion": "v2"}) == "v2"
