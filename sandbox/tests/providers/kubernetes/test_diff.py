"""Which changes of an object update it, which replace it, and in which order."""

from __future__ import annotations

import pytest
from pulumi_sandbox.protocol import values
from pulumi_sandbox.protocol.values import UNKNOWN, Path, Properties, Value
from pulumi_sandbox.providers.contract import InputDiff, State
from pulumi_sandbox.providers.kubernetes.connection import Connection, KubernetesOptions
from pulumi_sandbox.providers.kubernetes.provider import KubernetesObject

URN = "urn:pulumi:dev::fleet::kubernetes:core/v1:Secret::n"


def judged(
    old: Properties,
    new: Properties,
    *,
    live: Properties | None = None,
    ignored: tuple[Path, ...] = (),
    mutable: bool = True,
) -> InputDiff:
    chosen = KubernetesOptions(secrets_mutable=mutable, config_maps_mutable=mutable)
    served = KubernetesObject(URN, chosen, Connection(chosen), lambda _: None)
    return served.diff(State("ns/n", {**(live or old), "__inputs": old}, old), new, ignored)


def obj(kind: str, api_version: str = "v1", *, name: str = "n", **fields: Value) -> Properties:
    metadata: Properties = {"name": name, "namespace": "ns"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def shown(verdict: InputDiff) -> list[tuple[str, str, bool]]:
    return [(values.render_path(change.path), change.kind, change.replaces) for change in verdict.changes]


def test_additions_updates_and_removals_are_told_apart():
    verdict = judged(obj("Secret", data={"a": "1", "b": "1"}), obj("Secret", data={"b": "2", "c": "1"}))
    assert shown(verdict) == [
        ("data.a", "delete", False),
        ("data.b", "update", False),
        ("data.c", "add", False),
    ]


def test_an_unknown_input_is_a_change():
    assert shown(judged(obj("ConfigMap", data={"a": "b"}), obj("ConfigMap", data={"a": UNKNOWN}))) == [
        ("data.a", "update", False)
    ]


def test_ignored_changes_are_left_out_with_all_below_them():
    old, new = obj("Secret", data={"a": "1"}, type="x"), obj("Secret", data={"a": "2"}, type="y")
    assert shown(judged(old, new, ignored=(values.parse_path("data"),))) == [("type", "update", True)]


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
@pytest.mark.parametrize(
    ("mutable", "sealed", "replaces"), [(True, False, False), (False, False, True), (True, True, True)]
)
def test_changed_data_replaces_unless_the_provider_calls_it_mutable(
    kind: str, *, mutable: bool, sealed: bool, replaces: bool
):
    old, new = obj(kind, data={"a": "1"}, immutable=sealed), obj(kind, data={"a": "2"}, immutable=sealed)
    assert shown(judged(old, new, mutable=mutable)) == [("data.a", "update", replaces)]


@pytest.mark.parametrize(
    ("api_version", "kind", "old", "new"),
    [
        ("v1", "Secret", {"type": "Opaque"}, {"type": "kubernetes.io/tls"}),
        (
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            {"roleRef": {"name": "a"}},
            {"roleRef": {"name": "b"}},
        ),
    ],
)
def test_a_field_that_cannot_change_replaces_the_object(
    api_version: str, kind: str, old: Properties, new: Properties
):
    verdict = judged({**obj(kind, api_version), **old}, {**obj(kind, api_version), **new})
    assert [change.replaces for change in verdict.changes] == [True]


def test_an_object_with_a_fixed_name_goes_before_its_successor_comes():
    assert judged(obj("Secret", type="a"), obj("Secret", type="b")).delete_first


def test_a_renamed_object_goes_after_its_successor_came():
    verdict = judged(obj("Secret", name="old"), obj("Secret", name="new"))
    assert shown(verdict) == [("metadata.name", "update", True)]
    assert not verdict.delete_first


def test_inputs_recorded_in_the_servers_form_equal_those_of_the_program():
    declared = obj("ResourceQuota", spec={"hard": {"cpu": "1"}, "scopes": []})
    servers = obj("ResourceQuota", spec={"hard": {"cpu": "1"}})
    assert judged(servers, declared, live=servers).changes == ()
    assert judged(declared, declared, live=servers).changes == ()
