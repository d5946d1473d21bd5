"""What a rule says of a value that stands in for one nobody can read: that it could not decide, if it looked.

Not proved: that a rule looks at all it should.
"""

import base64
from collections.abc import Iterator
from typing import Any, Final

import environments
import pytest
from rule import Resource, resource_rule, stack_rule

from components.seals import COULD_NOT, SEALED, UNSEEN
from tests.support.policies import judge, judge_stack, secret

TYPE: Final = "kubernetes:core/v1:Secret"


def encoded(mark: str) -> str:
    return base64.b64encode(f"{mark}-1".encode()).decode()


def inputs(mark: str) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "data": secret({"key": encoded(mark)}), "tags": [{"of": mark}]}


@resource_rule(types=[TYPE], description="d", fix="m")
def looks(one: Resource) -> Iterator[str]:
    """Look for a key of the data."""
    if "password" in one.mapping("data"):
        yield "data.password is there"


@resource_rule(types=[TYPE], description="d", fix="m")
def passes_by(one: Resource) -> Iterator[str]:
    """Look at the name alone."""
    if one.mapping("metadata").get("name") == "y":
        yield "metadata.name is y"


@resource_rule(types=[TYPE], description="d", fix="m")
def objects_all_the_same(one: Resource) -> Iterator[str]:
    """Object to each key there is."""
    yield from (f"data.{key} is there" for key in one.mapping("data"))


@stack_rule(types=[TYPE], description="d", fix="m")
def looks_at_all(resources: Any) -> Iterator[tuple[str, str]]:
    """Look at the values of all."""
    for one in resources:
        if "password" in one.mapping("data").values():
            yield one.urn, "it is there"


def test_a_rule_over_the_stack_reads_the_resources_of_its_types_alone() -> None:
    others = "kubernetes:core/v1:ConfigMap"

    assert judge_stack(looks_at_all, [(others, inputs(UNSEEN))]) == []


@pytest.mark.parametrize(
    ("rule", "mark", "said"),
    [
        (looks, UNSEEN, [COULD_NOT]),
        (looks, SEALED, []),
        (passes_by, UNSEEN, []),
        (objects_all_the_same, UNSEEN, ["data.key is there", COULD_NOT]),
    ],
)
def test_a_rule_that_looked_at_an_unseen_value_could_not_decide(
    rule: Any, mark: str, said: list[str]
) -> None:
    assert judge(rule, TYPE, inputs(mark)) == said


def test_a_rule_over_the_stack_could_not_decide_for_those_it_looked_at() -> None:
    found = judge_stack(looks_at_all, [(TYPE, inputs(UNSEEN)), (TYPE, inputs(SEALED))])

    assert [sentence for _, sentence in found] == [COULD_NOT]


def test_a_rule_for_every_type_looks_only_where_the_environment_asks_for_a_label() -> None:
    given = {"value": encoded(UNSEEN)}

    assert judge(environments.estate_owner_labels, "x:y:Z", given, {"required": {"a:*": ["owner"]}}) == []
    assert judge(environments.estate_owner_labels, "x:y:Z", given, {"required": {"x:*": ["owner"]}}) == [
        "the label owner is missing",
        COULD_NOT,
    ]
