"""The state as JSON, and whether it is well-formed."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from pulumi_sandbox.engine.model.resource import CustomTimeouts, PendingOperation, Resource, Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.checkpoint import Encoder, decode, verify
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret

from sandbox.tests.engine.values_strategies import properties

_QUICK = PassphraseCrypter(passphrase="", key=bytes(32), salt="")
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"


def _urn(name: str, type_: str = "shop:index:Shelf") -> str:
    return urns.make("dev", "shop", "", type_, name)


def _resource(name: str, **fields: Any) -> Resource:
    return replace(Resource(_urn(name), "shop:index:Shelf", custom=True, id=name), **fields)


def _component(name: str, **fields: Any) -> Resource:
    return _resource(name, custom=False, id="", **fields)


_PROVIDER = Resource(_urn("default", "pulumi:providers:shop"), "pulumi:providers:shop", custom=True, id="p-1")
_PROVIDER_REFERENCE = f"{_PROVIDER.urn}::p-1"


def _written(snapshot: Snapshot, crypter: PassphraseCrypter = _QUICK) -> dict[str, Any]:
    return json.loads(Encoder(crypter).deployment(snapshot))


def test_a_record_has_the_names_of_the_format_and_only_fields_that_say_something():
    full = Resource(
        urn=_urn("a"),
        type="shop:index:Shelf",
        custom=True,
        delete=True,
        id="i-1",
        inputs={"size": 3},
        outputs={"size": 3, "colour": "red"},
        parent=_urn("p"),
        protect=True,
        taint=True,
        external=True,
        dependencies=(_urn("d"),),
        init_errors=("slow",),
        provider=_PROVIDER_REFERENCE,
        property_dependencies={"size": (_urn("d"),), "colour": ()},
        pending_replacement=True,
        additional_secret_outputs=("colour",),
        aliases=(_urn("old"),),
        custom_timeouts=CustomTimeouts(create=300),
        import_id="x",
        retain_on_delete=True,
        deleted_with=_urn("d"),
        replace_with=(_urn("d"),),
        created="2026-01-01T00:00:00Z",
        modified="2026-01-02T00:00:00Z",
        ignore_changes=("size",),
        replace_on_changes=("*",),
        replacement_trigger="t",
        resource_hooks={"beforeCreate": ("h",)},
        source_position="project:///__main__.py#1",
        other={"stackTrace": [{"sourcePosition": "project:///__main__.py#1"}]},
    )
    bare, written = _written(Snapshot((_component("bare"), full)))["resources"]
    assert bare == {"urn": _urn("bare"), "custom": False, "type": "shop:index:Shelf"}
    assert written == {
        "urn": _urn("a"),
        "custom": True,
        "type": "shop:index:Shelf",
        "delete": True,
        "id": "i-1",
        "inputs": {"size": 3},
        "outputs": {"size": 3, "colour": "red"},
        "parent": _urn("p"),
        "protect": True,
        "taint": True,
        "external": True,
        "dependencies": [_urn("d")],
        "initErrors": ["slow"],
        "provider": _PROVIDER_REFERENCE,
        "propertyDependencies": {"size": [_urn("d")], "colour": []},
        "pendingReplacement": True,
        "additionalSecretOutputs": ["colour"],
        "aliases": [_urn("old")],
        "customTimeouts": {"create": 300},
        "importID": "x",
        "retainOnDelete": True,
        "deletedWith": _urn("d"),
        "replaceWith": [_urn("d")],
        "created": "2026-01-01T00:00:00Z",
        "modified": "2026-01-02T00:00:00Z",
        "sourcePosition": "project:///__main__.py#1",
        "ignoreChanges": ["size"],
        "replaceOnChanges": ["*"],
        "replacementTrigger": "t",
        "resourceHooks": {"beforeCreate": ["h"]},
        "stackTrace": [{"sourcePosition": "project:///__main__.py#1"}],
    }
    assert decode({"resources": [written]}, _QUICK).resources == (full,)


def test_a_deployment_has_manifest_provider_operations_and_metadata(crypter: PassphraseCrypter):
    snapshot = Snapshot((_component("a"),), (PendingOperation(_resource("b"), "creating"),))
    written = _written(snapshot, crypter)
    assert [*written] == ["manifest", "secrets_providers", "resources", "pending_operations", "metadata"]
    manifest = written["manifest"]
    assert manifest["version"].startswith("v3.")
    assert manifest["magic"] == hashlib.sha256(manifest["version"].encode()).hexdigest()
    assert written["secrets_providers"] == {"type": "passphrase", "state": {"salt": crypter.salt}}
    assert written["pending_operations"][0]["type"] == "creating"
    assert decode(written, crypter) == snapshot


def test_an_empty_deployment_has_neither_resources_nor_operations():
    assert [*_written(Snapshot())] == ["manifest", "secrets_providers", "metadata"]


@given(properties, properties)
def test_any_properties_come_back_from_the_state_as_they_went(inputs: Properties, outputs: Properties):
    snapshot = Snapshot((_resource("a", inputs=inputs, outputs=outputs),))
    written = json.loads(json.dumps(_written(snapshot)["resources"]))
    assert decode({"resources": written}, _QUICK) == snapshot


def test_a_secret_is_encrypted_json_and_one_inside_it_is_not_encrypted_twice():
    inputs: Properties = {"s": Secret({"user": "u", "in": Secret([1])}), "u": UNKNOWN}
    written = _written(Snapshot((_resource("a", inputs=inputs),)))["resources"][0]["inputs"]
    assert written["u"] == "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    assert written["s"][_SIGNATURE] == _SECRET
    assert json.loads(_QUICK.decrypt(written["s"]["ciphertext"])) == {
        "user": "u",
        "in": {_SIGNATURE: _SECRET, "ciphertext": "[1]"},
    }


def test_an_export_with_shown_secrets_is_read_too():
    record = {
        "urn": _urn("a"),
        "custom": False,
        "type": "t",
        "outputs": {"s": {_SIGNATURE: _SECRET, "plaintext": '{"n":1}'}},
    }
    assert decode({"resources": [record]}, _QUICK).resources[0].outputs == {"s": Secret({"n": 1})}


@given(properties)
def test_a_state_nobody_changed_is_written_the_same_again(inputs: Properties):
    first = _written(Snapshot((_resource("a", inputs=inputs | {"s": Secret("x")}),)))["resources"]
    fresh = PassphraseCrypter(passphrase="", key=bytes(32), salt="")
    assert _written(decode({"resources": first}, fresh), fresh)["resources"] == first


def test_no_secret_stands_in_the_state_in_plain():
    secret = Secret({"password": "hunter2"})
    pending = PendingOperation(_resource("b", inputs={"x": [secret]}), "updating")
    snapshot = Snapshot((_resource("a", outputs={"x": secret}),), (pending,))
    text = Encoder(_QUICK).deployment(snapshot)
    assert decode(json.loads(text), _QUICK) == snapshot
    assert "hunter2" not in text


def test_a_state_of_a_clouds_key_is_refused_by_name(crypter: PassphraseCrypter):
    with pytest.raises(SandboxError, match="cloud keys") as caught:
        decode({"secrets_providers": {"type": "cloud", "state": {}}}, crypter)
    assert caught.value.code == "secrets-provider-unsupported"


def test_a_state_under_another_salt_of_the_passphrase_is_read(crypter: PassphraseCrypter):
    other = PassphraseCrypter.new("correct horse")
    snapshot = Snapshot((_resource("a", outputs={"s": Secret("x")}),))
    assert decode(_written(snapshot, other), crypter) == snapshot


def test_a_record_without_its_required_fields_is_told_with_its_name():
    with pytest.raises(SandboxError, match="no custom and no type") as caught:
        decode({"resources": [{"urn": "u"}]}, _QUICK)
    assert caught.value.code == "state-unreadable"


_A, _B = _component("a"), _component("b")


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param((), id="nothing"),
        pytest.param((_A, _component("b", parent=_A.urn, dependencies=(_A.urn,))), id="in order"),
        pytest.param((_PROVIDER, _resource("a", provider=_PROVIDER_REFERENCE)), id="with its provider"),
        pytest.param((_resource("a"), _resource("a", delete=True)), id="an old one to delete"),
        pytest.param((_resource("a", delete=True), _resource("a", delete=True)), id="two to delete"),
        pytest.param((_resource("a", provider="gone::1", pending_replacement=True),), id="to be replaced"),
    ],
)
def test_a_well_formed_state_passes(resources: tuple[Resource, ...]):
    verify(Snapshot(resources))


@pytest.mark.parametrize(
    ("resources", "named", "cause"),
    [
        pytest.param((_component("a", parent=_B.urn), _B), "a", "does not stand before", id="parent later"),
        pytest.param((_component("a", parent=_B.urn),), "a", "does not stand before", id="parent missing"),
        pytest.param((_component("a", dependencies=(_B.urn,)), _B), "a", "before it", id="dependency"),
        pytest.param(
            (_component("a", property_dependencies={"x": (_B.urn,)}), _B), "a", "before it", id="property"
        ),
        pytest.param((_component("a", deleted_with=_B.urn), _B), "a", "before it", id="deletedWith"),
        pytest.param((_component("a", replace_with=(_B.urn,)), _B), "a", "before it", id="replaceWith"),
        pytest.param(
            (_resource("a", provider=_PROVIDER_REFERENCE), _PROVIDER),
            "a",
            "its provider",
            id="provider later",
        ),
        pytest.param(
            (_PROVIDER, _resource("a", provider=f"{_PROVIDER.urn}::p-2")), "a", "its provider", id="other id"
        ),
        pytest.param((_A, _A), "a", "twice", id="twice"),
        pytest.param((_component("a", type=""),), "a", "no urn or no type", id="no type"),
        pytest.param((replace(_A, id="x"),), "a", "must not have an id", id="component with id"),
        pytest.param((replace(_PROVIDER, id=""),), "default", "must have an id", id="provider without id"),
    ],
)
def test_a_state_the_genuine_cli_would_refuse_is_refused_by_name(
    resources: tuple[Resource, ...], named: str, cause: str
):
    with pytest.raises(SandboxError, match=cause) as caught:
        verify(Snapshot(resources))
    assert caught.value.code == "state-invalid"
    assert caught.value.place.endswith(f"::{named}")
