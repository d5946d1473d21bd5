"""Names of resources."""

import pytest
from pulumi_sandbox.protocol import urns


def test_a_name_may_hold_the_separator_itself():
    parts = urns.parse("urn:pulumi:dev::shop::a:b:C$d:e:F::x::y")
    assert (parts.type, parts.name) == ("d:e:F", "x::y")
    assert str(parts) == "urn:pulumi:dev::shop::a:b:C$d:e:F::x::y"


@pytest.mark.parametrize("text", ["", "urn:pulumi:dev::shop::a:b:C", "id-1", "x urn:pulumi:a::b::c::d"])
def test_anything_else_is_no_name(text: str):
    with pytest.raises(ValueError, match="names no resource"):
        urns.parse(text)


@pytest.mark.parametrize(
    ("type_", "name", "made_by_the_engine"),
    [
        ("pulumi:providers:kubernetes", "default", True),
        ("pulumi:providers:kubernetes", "default_4_34_2", True),
        ("pulumi:providers:kubernetes", "default-cluster", False),
        ("pulumi:providers:kubernetes", "cluster", False),
        ("shop:index:Outer", "default", False),
    ],
)
def test_default_providers_are_known_by_type_and_name(type_: str, name: str, made_by_the_engine: bool):
    assert urns.is_default_provider(f"urn:pulumi:dev::shop::{type_}::{name}") is made_by_the_engine
