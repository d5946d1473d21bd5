"""Whose the labels and annotations of a Secret are that a stack declares and others mark."""

from __future__ import annotations

from typing import Any

import pytest

from components.errors import ProjectionError
from components.projection.provider import read_applied, render_marks

DECLARED = {"type": "aws", "kept-back": "true"}
CLAIMED = {"tenant": "globex"}


def entry(manager: str, labels: dict[str, str]) -> dict[str, Any]:
    fields = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in labels}}}
    return {"manager": manager, "operation": "Apply", "fieldsV1": fields}


def handed_over() -> dict[str, Any]:
    managers = [entry("pulumi-kubernetes-0a1b2c3d", DECLARED), entry("credfleet-claims", CLAIMED)]
    metadata = {"namespace": "pool", "name": "aws-1", "labels": {**DECLARED, **CLAIMED}}
    return {"metadata": {**metadata, "managedFields": managers}}


def test_labels_that_were_declared_and_are_no_more_go_and_those_of_a_claim_stay() -> None:
    now = {"labels": {"type": "aws-eu"}, "annotations": {}}
    left = render_marks(handed_over(), read_applied(handed_over()), now)
    assert left["metadata"]["labels"] == {"type": "aws-eu", **CLAIMED}


def test_the_owner_that_a_claim_wrote_is_not_declared_over() -> None:
    now = {"labels": {"type": "aws", "tenant": "acme"}, "annotations": {}}
    with pytest.raises(ProjectionError, match="globex"):
        render_marks(handed_over(), read_applied(handed_over()), now)
