"""What the steps of an update come to: resources below their parents, claims, and the headline."""

from typing import Any

import pytest
from pulumi_sandbox.protocol.values import Secret

from operations.sandbox import results
from operations.sandbox.deployment import Outcome, Step
from operations.sandbox.report import Claimed, Declared
from operations.stack.state import Resource
from tests.support.cases import tabled

STACK = "urn:pulumi:dev::credfleet::pulumi:pulumi:Stack::credfleet-dev"


def resource(type_: str, name: str, parent: str = STACK, **fields: Any) -> Resource:
    urn = f"urn:pulumi:dev::credfleet::{type_}::{name}"
    custom = fields.pop("custom", True)
    return Resource(urn, type_, custom, parent=parent, **fields)


def finished(op: str, of: Resource, *, failed: bool = False) -> Step:
    return Step(op, of.urn, of.type, of.id, of.inputs, done=True, failed=failed)


ROOT = Resource(STACK, "pulumi:pulumi:Stack", custom=False)
POOL = resource("credfleet:index:AccountPool", "account-pool", custom=False)
SECRET = resource("kubernetes:core/v1:Secret", "account-pool-aws-1", POOL.urn, id="account-pool/aws-1")
OTHER = resource("kubernetes:core/v1:Namespace", "acme-namespace")
DEFAULT = resource("pulumi:providers:kubernetes", "default_4_34_2")


def test_children_stand_below_their_parents_and_the_engines_own_resources_are_left_out() -> None:
    told = results.list_declared([ROOT, DEFAULT, POOL, OTHER, SECRET], [])
    assert [(each.name, each.depth) for each in told] == [
        ("account-pool", 0),
        ("account-pool-aws-1", 1),
        ("acme-namespace", 0),
    ]


@tabled("op, failed, action")
def test_a_step_decides_what_is_said_of_its_resource(op: str, action: str, *, failed: bool) -> None:
    (told,) = results.list_declared([ROOT, OTHER], [finished(op, OTHER, failed=failed)])
    assert told.action == action


def test_the_old_half_of_a_replacement_is_not_declared() -> None:
    old = resource("kubernetes:core/v1:Secret", "account-pool-aws-1", POOL.urn, delete=True)
    assert [each.action for each in results.list_declared([POOL, SECRET, old], [])] == [
        "unchanged",
        "unchanged",
    ]


@pytest.mark.parametrize(
    ("op", "reused", "is_new"), [("create", False, True), ("create", True, False), ("same", False, False)]
)
def test_claims_are_read_off_the_claims_of_the_stack(op: str, *, reused: bool, is_new: bool) -> None:
    claim = resource(
        "pulumi-python:dynamic/credfleet:AccountClaim",
        "acme/aws",
        outputs={
            "tenant": "acme",
            "slot": "aws",
            "type": "aws",
            "secretName": "aws-1",
            "namespace": "account-pool",
            "phase": "Bound",
            "reused": reused,
            "__provider": Secret("pickled"),
        },
    )
    assert results.list_claimed([SECRET, claim], [finished(op, claim)]) == (
        Claimed("acme", "aws", "aws", "aws-1", "account-pool", "Bound", reused=reused, is_new=is_new),
    )


def declared(*actions: str) -> list[Declared]:
    return [Declared("urn", "kind", "name", "", action, 0, "kind") for action in actions]


@tabled("actions, deleted, outcome, sentence")
def test_the_headline_says_what_was_done_and_what_there_is(
    actions: list[str], deleted: int, outcome: Outcome, sentence: str
) -> None:
    assert results.headline(declared(*actions), deleted, 2, 1, outcome) == sentence


@tabled("types, part")
def test_a_resource_belongs_to_the_part_right_below_the_root_however_deep_it_lies(
    types: str, part: str
) -> None:
    (told,) = results.list_declared([resource(types, "n")], [])
    assert told.part == part


def test_what_a_preview_foresaw_and_an_update_did_not_do_is_what_would_change() -> None:
    steps = [
        finished("update", SECRET),
        finished("create", OTHER),
        finished("same", POOL),
        finished("create", ROOT),
    ]
    done = [finished("update", SECRET, failed=True), finished("create", OTHER)]
    assert [(each.name, each.action) for each in results.pending(steps, ())] == [
        ("account-pool-aws-1", "to update"),
        ("acme-namespace", "to create"),
    ]
    assert [each.name for each in results.pending(steps, done)] == ["account-pool-aws-1"]


@pytest.mark.parametrize(
    ("found", "namespace"),
    [
        (resource("kubernetes:core/v1:Secret", "a", inputs={"metadata": {"namespace": "acme"}}), "acme"),
        (resource("kubernetes:core/v1:Namespace", "a", inputs={"metadata": {"name": "acme"}}), "acme"),
        (resource("pulumi-python:dynamic/credfleet:Copy", "a", inputs={"namespace": "acme"}), "acme"),
        (resource("kubernetes:core/v1:Secret", "a", id="acme/key"), "acme"),
        (resource("credfleet:index:Fleet", "a"), ""),
    ],
)
def test_the_namespace_of_an_object_is_where_its_inputs_or_its_id_say(
    found: Resource, namespace: str
) -> None:
    assert results.namespace_of(found) == namespace
