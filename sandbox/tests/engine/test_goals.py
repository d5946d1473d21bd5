"""Reading registrations: aliases, durations, providers."""

import pytest
from pulumi_sandbox.engine.deploy.resources import former_urns
from pulumi_sandbox.engine.model.goal import (
    Goal,
    goal_of,
    inherit,
    options_of,
    package_of,
    provider_for,
    seconds,
)
from pulumi_sandbox.engine.plugins.provider_processes import attached_providers
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.stubs import alias_pb2, resource_pb2

REQUEST = resource_pb2.RegisterResourceRequest


def urn(name: str, type_: str = "a:b:C", stack: str = "dev", project: str = "shop") -> str:
    return f"urn:pulumi:{stack}::{project}::{type_}::{name}"


SPEC = alias_pb2.Alias.Spec


def spelled(spec: alias_pb2.Alias.Spec) -> alias_pb2.Alias:
    return alias_pb2.Alias(spec=spec)


ROOT = urn("shop-dev", "pulumi:pulumi:Stack")
PARENT = urn("p", "x:y:P")
CHILD = urn("p-child", "x:y:P$a:b:C")


@pytest.mark.parametrize(
    ("resource", "parent", "alias", "former"),
    [
        pytest.param(urn("n"), ROOT, alias_pb2.Alias(urn=urn("o", "z:z:Z")), urn("o", "z:z:Z"), id="urn"),
        pytest.param(urn("n"), ROOT, spelled(SPEC(name="o")), urn("o"), id="name"),
        pytest.param(urn("n"), ROOT, spelled(SPEC(type="a:b:D")), urn("n", "a:b:D"), id="type"),
        pytest.param(urn("n"), ROOT, spelled(SPEC(stack="old")), urn("n", stack="old"), id="stack"),
        pytest.param(urn("n"), ROOT, spelled(SPEC(project="old")), urn("n", project="old"), id="project"),
        pytest.param(CHILD, PARENT, spelled(SPEC(noParent=True)), urn("p-child"), id="no-parent"),
        pytest.param(CHILD, PARENT, spelled(SPEC(parentUrn=ROOT)), urn("p-child"), id="under-the-stack"),
        pytest.param(
            urn("n"), ROOT, spelled(SPEC(parentUrn=PARENT)), urn("n", "x:y:P$a:b:C"), id="parent-that-was"
        ),
    ],
)
def test_an_alias_names_a_former_urn_in_whole_or_by_its_parts(
    resource: str, parent: str, alias: alias_pb2.Alias, former: str
):
    assert former_urns(resource, parent, [alias], {}) == (former,)


def test_children_of_a_renamed_parent_had_other_names_as_well():
    renamed = {PARENT: urn("q", "x:y:P")}
    assert former_urns(CHILD, PARENT, [], renamed) == (urn("q-child", "x:y:P$a:b:C"),)
    assert former_urns(urn("free", "x:y:P$a:b:C"), PARENT, [], renamed) == (urn("free", "x:y:P$a:b:C"),)


def test_own_aliases_multiply_with_the_parents():
    renamed = {PARENT: urn("q", "x:y:P")}
    assert former_urns(CHILD, PARENT, [spelled(SPEC(type="a:b:D"))], renamed) == (
        urn("p-child", "x:y:P$a:b:D"),
        urn("q-child", "x:y:P$a:b:C"),
        urn("q-child", "x:y:P$a:b:D"),
    )


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("30s", 30), ("5m", 300), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25)]
)
def test_durations_are_read_in_seconds(text: str, length: float):
    assert seconds(text) == pytest.approx(length)


@pytest.mark.parametrize("text", ["5", "m", "five", "5 m", "5m!"])
def test_what_is_no_duration_is_refused(text: str):
    with pytest.raises(SandboxError) as refused:
        seconds(text)
    assert refused.value.code == "timeout-invalid"


@pytest.mark.parametrize(
    ("token", "package"),
    [
        ("kubernetes:core/v1:Secret", "kubernetes"),
        ("pulumi:providers:gcp", "gcp"),
        ("pulumi-python:dynamic/x:Y", "pulumi-python"),
        ("pulumi:pulumi:getResource", "pulumi"),
    ],
)
def test_the_package_of_a_token(token: str, package: str):
    assert package_of(token) == package


def goal(**fields: object) -> Goal:
    request = REQUEST(type="kubernetes:core/v1:Secret", name="n", custom=True, **fields)  # pyright: ignore[reportArgumentType] - any field of a registration
    return goal_of(request, {}, options_of(request))


def provider(package: str) -> str:
    return f"{urn(package, f'pulumi:providers:{package}')}::id"


@pytest.mark.parametrize(
    ("own", "parent", "expected"),
    [
        pytest.param({"provider": provider("kubernetes")}, None, provider("kubernetes"), id="own"),
        pytest.param(
            {"providers": {"kubernetes": provider("kubernetes")}}, None, provider("kubernetes"), id="own-map"
        ),
        pytest.param({}, {"provider": provider("kubernetes")}, provider("kubernetes"), id="parents"),
        pytest.param({}, {"provider": provider("gcp")}, "", id="parents-of-another-package"),
        pytest.param(
            {},
            {"providers": {"kubernetes": provider("kubernetes")}},
            provider("kubernetes"),
            id="parents-map",
        ),
        pytest.param({}, None, "", id="default"),
    ],
)
def test_the_provider_is_the_own_one_or_the_parents_for_the_same_package(
    own: dict[str, object], parent: dict[str, object] | None, expected: str
):
    assert provider_for(goal(**own), goal(**parent) if parent else None) == expected


@pytest.mark.parametrize("option", ["protect", "retainOnDelete"])
def test_options_not_said_come_from_the_parent(option: str):
    field = "protect" if option == "protect" else "retain_on_delete"
    parent = goal(**{option: True})
    assert getattr(inherit(goal(), parent), field) is True
    assert getattr(inherit(goal(**{option: False}), parent), field) is False
    assert getattr(inherit(goal(), goal()), field) is None


def test_property_dependencies_are_kept_in_order_and_only_for_what_is_sent():
    dependencies = REQUEST.PropertyDependencies
    request = REQUEST(
        type="a:b:C",
        name="n",
        custom=True,
        dependencies=["urn-b", "urn-a"],
        propertyDependencies={
            "x": dependencies(urns=["urn-b", "urn-a"]),
            "gone": dependencies(urns=["urn-a"]),
        },
    )
    read = goal_of(request, {"x": 1}, options_of(request))
    assert read.dependencies == ("urn-a", "urn-b")
    assert read.property_dependencies == {"x": ("urn-a", "urn-b")}


def test_providers_that_run_already_are_read_from_the_environment():
    assert attached_providers("kubernetes:4001,gcp:4002") == {"kubernetes": 4001, "gcp": 4002}
    assert attached_providers("") == {}
    with pytest.raises(SandboxError) as refused:
        attached_providers("kubernetes")
    assert refused.value.code == "debug-providers-invalid"
