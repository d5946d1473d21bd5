"""Which inputs of a resource have the right type, and which changes of them replace it."""

import pytest
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value
from pulumi_sandbox.providers.inputs import Input, Type, changes, problems

SCHEMA = {
    "name": Input(required=True, replaces=True),
    "place": Input("object", replaces=True, fields={"row": Input(required=True)}),
    "rows": Input("objects", fields={"row": Input(required=True)}),
    "tags": Input("map"),
}


def told(inputs: Properties) -> dict[str, str]:
    return {problem.place: problem.reason for problem in problems(inputs, SCHEMA, frozenset({"later"}))}


@pytest.mark.parametrize(
    ("inputs", "places"),
    [
        ({"name": "n", "tags": {"a": "b"}, "place": {"row": "1"}, "rows": [{"row": "1"}]}, []),
        ({"name": UNKNOWN, "tags": {"a": UNKNOWN}, "place": UNKNOWN, "rows": [UNKNOWN]}, []),
        ({"name": "n", "__defaults": [], "tags": None}, []),
        ({}, ["name"]),
        ({"name": None}, ["name"]),
        ({"name": "n", "later": "x"}, ["later"]),
        ({"name": "n", "nmae": "x"}, ["nmae"]),
        ({"name": "n", "place": {}}, ["place.row"]),
        ({"name": "n", "rows": [{"row": "1"}, {"column": "1"}]}, ["rows[1].column", "rows[1].row"]),
        ({"name": 5}, ["name"]),
    ],
)
def test_problems_are_told_at_their_place(inputs: Properties, places: list[str]):
    assert list(told(inputs)) == places


@pytest.mark.parametrize(
    ("type_", "right", "wrong"),
    [
        ("text", "t", 1),
        ("flag", False, "false"),
        ("texts", ["t"], [1]),
        ("map", {"k": "t"}, {"k": 1}),
        ("object", {}, []),
        ("objects", [{}], ["t"]),
    ],
)
def test_each_type_takes_its_own(type_: Type, right: Value, wrong: Value):
    schema = {"it": Input(type_)}
    assert problems({"it": right}, schema) == []
    assert [problem.place for problem in problems({"it": wrong}, schema)] == ["it"]


def test_whatever_changes_within_a_replacing_input_replaces():
    old: Properties = {"name": "n", "place": {"row": "1"}, "tags": {"a": "b"}}
    new: Properties = {"name": "n", "place": {"row": "2"}, "tags": {"a": "c"}}
    assert [(each.path, each.replaces) for each in changes(old, new, SCHEMA, ())] == [
        (("place", "row"), True),
        (("tags", "a"), False),
    ]
    assert changes(old, new, SCHEMA, (("place",), ("tags", "a"))) == ()
