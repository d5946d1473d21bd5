"""Where two sets of properties differ."""

import pytest
from hypothesis import given
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret, differences, equal, render

from sandbox.tests.protocol.values_strategies import properties


def _told(old: Properties, new: Properties) -> list[tuple[str, str]]:
    return [(render(each.path), each.kind) for each in differences(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param({}, {"a": 1}, [("a", "add")], id="added"),
        pytest.param({"a": 1}, {}, [("a", "delete")], id="deleted"),
        pytest.param({"a": 1}, {"a": 2}, [("a", "update")], id="updated"),
        pytest.param({"a": None}, {}, [], id="null is absent"),
        pytest.param({"a": 1}, {"a": Secret(1)}, [], id="turned secret"),
        pytest.param({"a": Secret({"b": 1})}, {"a": Secret({"b": 2})}, [("a.b", "update")], id="in a secret"),
        pytest.param({"a": 1}, {"a": UNKNOWN}, [("a", "update")], id="turned unknown"),
        pytest.param({"l": [1, 2]}, {"l": [1, 3, 4]}, [("l[1]", "update"), ("l[2]", "add")], id="lists"),
        pytest.param({"l": [1, 2]}, {"l": [1]}, [("l[1]", "delete")], id="shorter list"),
        pytest.param({"m": {"x": 1}}, {"m": [1]}, [("m", "update")], id="another kind"),
        pytest.param({"m": {"c.d": 1}}, {"m": {"c.d": 2}}, [('m["c.d"]', "update")], id="an odd name"),
    ],
)
def test_each_difference_is_told_with_its_place(
    old: Properties, new: Properties, told: list[tuple[str, str]]
):
    assert _told(old, new) == told


@given(properties, properties)
def test_properties_differ_somewhere_exactly_if_they_are_not_equal(old: Properties, new: Properties):
    assert (differences(old, new) == []) is equal(old, new)


@given(properties, properties)
def test_differences_mirror_when_the_sides_are_swapped(old: Properties, new: Properties):
    swapped = {"add": "delete", "delete": "add", "update": "update"}
    assert [(path, swapped[kind]) for path, kind in _told(old, new)] == _told(new, old)
