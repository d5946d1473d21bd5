"""Which inputs of a resource are there, and which changes of them replace it."""

import pytest
from pulumi_sandbox.protocol.values import UNKNOWN, Properties
from pulumi_sandbox.providers.contract import Input, changes, problems

SCHEMA = {
    "name": Input(required=True, replaces=True),
    "place": Input(replaces=True),
    "tags": Input(),
}


def told(inputs: Properties) -> dict[str, str]:
    return {problem.place: problem.reason for problem in problems(inputs, SCHEMA)}


@pytest.mark.parametrize(
    ("inputs", "places"),
    [
        ({"name": UNKNOWN, "tags": {"a": UNKNOWN}, "place": {"row": "1"}}, []),
        ({"name": "n", "__defaults": [], "tags": None}, []),
        ({}, ["name"]),
        ({"name": None}, ["name"]),
        ({"name": "n", "nmae": "x"}, ["nmae"]),
    ],
)
def test_problems_are_told_at_their_place(inputs: Properties, places: list[str]):
    assert list(told(inputs)) == places


def test_whatever_changes_within_a_replacing_input_replaces():
    old: Properties = {"name": "n", "place": {"row": "1"}, "tags": {"a": "b"}}
    new: Properties = {"name": "n", "place": {"row": "2"}, "tags": {"a": "c"}}
    assert [(each.path, each.replaces) for each in changes(old, new, SCHEMA, ())] == [
        (("place", "row"), True),
        (("tags", "a"), False),
    ]
    assert changes(old, new, SCHEMA, (("place",), ("tags", "a"))) == ()
