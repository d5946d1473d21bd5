from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.engine.values import Properties, Secret
from sandbox.providers.kubernetes import errors
from sandbox.providers.kubernetes.api import RefusedError

OBJECT: Properties = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "n", "namespace": "ns"}}


@given(st.text(min_size=5).filter(lambda text: text not in "[secret]"), st.text(), st.text())
def test_no_form_of_a_secret_stays_in_a_message(secret: str, before: str, after: str) -> None:
    encoded = base64.b64encode(secret.encode()).decode()
    cleaned = errors.without_secrets(f"{before}|{encoded}|{secret}|{after}", {"data": Secret({"k": secret})})
    assert encoded not in cleaned
    assert f"|{secret}|" not in cleaned


def test_a_secret_that_is_given_as_base64_is_hidden_decoded_too() -> None:
    cleaned = errors.without_secrets("bad value hunter2!", {"data": {"k": Secret("aHVudGVyMiE=")}})
    assert cleaned == "bad value [secret]"


def test_a_message_without_secrets_stays_as_it_is() -> None:
    assert errors.without_secrets("plain", {"data": {"k": "plain"}, "short": Secret("a")}) == "plain"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "not-authenticated"),
        (403, "not-allowed"),
        (404, "not-found"),
        (409, "conflict"),
        (422, "invalid"),
    ],
)
def test_a_refusal_says_what_where_and_how_to_mend_it(status: int, code: str) -> None:
    refused = errors.refused("create", OBJECT, RefusedError(status, {"message": "because."}))
    assert refused.code == code
    first, second = str(refused).splitlines()
    assert first == "Secret ns/n: the Kubernetes API refused to create it: because"
    assert second.startswith("→ ")


def test_a_field_conflict_names_both_managers_and_the_way_out() -> None:
    causes: Properties = {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "credfleet-claims" using v1'}]
    }
    refused = errors.refused(
        "update", OBJECT, RefusedError(409, {"message": "m", "details": causes}), manager="mine"
    )
    assert refused.code == "apply-conflict"
    assert all(word in refused.mend for word in ("credfleet-claims", "'mine'", "pulumi.com/patchForce"))


def test_an_object_that_exists_already_can_be_imported_with_the_printed_line() -> None:
    urn = "urn:pulumi:dev::fleet::a:b:Pool$kubernetes:core/v1:Secret::my::name"
    assert "pulumi import kubernetes:core/v1:Secret my::name ns/n" in errors.already_exists(OBJECT, urn).mend
