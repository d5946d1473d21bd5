"""What a refusal of the API server is called, and how it says to fix it."""

import pytest
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.contract import already_exists
from pulumi_sandbox.providers.kubernetes import errors
from pulumi_sandbox.providers.kubernetes.errors import ApiRefusedError

OBJECT: Properties = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "n", "namespace": "ns"}}


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
def test_a_refusal_says_what_where_and_how_to_fix_it(status: int, code: str):
    refused = errors.refused("create", OBJECT, ApiRefusedError(status, {"message": "because."}))
    assert refused.code == code
    first, second = str(refused).splitlines()
    assert first == "Secret ns/n: the Kubernetes API refused to create it: because"
    assert second.startswith("→ ")


def test_a_field_conflict_names_both_managers_and_the_way_out():
    causes: Properties = {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "credfleet-claims" using v1'}]
    }
    refused = errors.refused(
        "update", OBJECT, ApiRefusedError(409, {"message": "m", "details": causes}), manager="mine"
    )
    assert refused.code == "apply-conflict"
    assert all(word in refused.fix for word in ("credfleet-claims", "'mine'"))


def test_an_object_that_exists_already_can_be_imported_with_the_printed_line():
    urn = "urn:pulumi:dev::fleet::a:b:Pool$kubernetes:core/v1:Secret::my::name"
    assert "kubernetes:core/v1:Secret my::name and the id ns/n" in already_exists(urn, "ns/n").fix
