"""The form in which the inputs of an object are compared and sent."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import UNKNOWN, Properties
from pulumi_sandbox.providers.kubernetes.objects import folded

SECRET: Properties = {"apiVersion": "v1", "kind": "Secret"}
DEFINITION: Properties = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}


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


def test_a_definition_loses_its_status_and_an_empty_preserve_unknown_fields():
    written: Properties = {
        **DEFINITION,
        "spec": {"preserveUnknownFields": False, "scope": "Cluster"},
        "status": {},
    }
    assert folded(written) == {**DEFINITION, "spec": {"scope": "Cluster"}}


def test_a_definition_that_preserves_unknown_fields_says_so():
    written: Properties = {**DEFINITION, "spec": {"preserveUnknownFields": True}}
    assert folded(written) == written


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.binary()))
def test_folding_twice_is_folding_once(string_data: dict[str, str], data: dict[str, bytes]):
    encoded: Properties = {key: base64.b64encode(value).decode() for key, value in data.items()}
    once = folded({**SECRET, "data": encoded, "stringData": {**string_data}})
    assert folded(once) == once
