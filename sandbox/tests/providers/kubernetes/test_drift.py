"""What of a live object counts as drift from its declaration."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value
from pulumi_sandbox.providers.kubernetes.objects import declared_part, in_live_form

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
