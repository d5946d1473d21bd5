"""Whose fields of an object may be taken over from its creator."""

from typing import cast

import pytest
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.kubernetes import apply

MANAGER = "pulumi-kubernetes-0123abcd"


def entry(manager: str, operation: str, fields: Properties, **more: str) -> Properties:
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **more}


def live(*entries: Properties) -> Properties:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"managedFields": [*entries]}}


@pytest.mark.parametrize(
    ("manager", "operation", "expected"),
    [
        ("pulumi-kubernetes", "Update", True),
        ("kubectl", "Apply", True),
        ("pulumi-kubernetes", "Apply", False),
        ("credfleet-claims", "Update", False),
    ],
)
def test_only_the_creators_fields_are_there_to_take_over(manager: str, operation: str, *, expected: bool):
    assert apply.is_client_side(live(entry(manager, operation, {"f:data": {}}))) is expected


def test_taking_over_joins_the_creators_fields_and_leaves_those_of_others():
    others = entry("credfleet-claims", "Update", {"f:metadata": {"f:labels": {"f:tenant": {}}}})
    status = entry("pulumi-kubernetes", "Update", {"f:status": {}}, subresource="status")
    taken = apply.taken_over(
        live(
            entry("pulumi-kubernetes", "Update", {"f:data": {".": {}, "f:a": {}}}),
            others,
            entry(MANAGER, "Apply", {"f:data": {"f:b": {}}, "f:type": {}}),
            status,
        ),
        MANAGER,
    )
    own = cast(Properties, taken[0])
    assert (own["manager"], own["operation"]) == (MANAGER, "Apply")
    assert own["fieldsV1"] == {"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:type": {}}
    assert taken[1:] == [others, status]
