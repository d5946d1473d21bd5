"""Names of resources."""

import pytest
from pulumi_sandbox.protocol import urns


def test_the_root_stack_is_named_after_project_and_stack():
    name = urns.make("dev", "shop", "", urns.ROOT_STACK_TYPE, "shop-dev")
    assert name == "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"


def test_a_childs_name_holds_its_parents_types_but_not_the_stacks():
    stack = urns.make("dev", "shop", "", urns.ROOT_STACK_TYPE, "shop-dev")
    outer = urns.make("dev", "shop", stack, "shop:index:Outer", "o")
    inner = urns.make("dev", "shop", outer, "shop:index:Inner", "i")
    assert outer == "urn:pulumi:dev::shop::shop:index:Outer::o"
    assert inner == "urn:pulumi:dev::shop::shop:index:Outer$shop:index:Inner::i"
    assert urns.parse(inner).type == "shop:index:Inner"


def test_a_name_may_hold_the_separator_itself():
    parts = urns.parse("urn:pulumi:dev::shop::a:b:C::x::y")
    assert parts.name == "x::y"
    assert str(parts) == "urn:pulumi:dev::shop::a:b:C::x::y"


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
    urn = urns.make("dev", "shop", "", type_, name)
    assert urns.is_default_provider(urn) is made_by_the_engine
