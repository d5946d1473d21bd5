"""The state as JSON, whether it is well-formed, and which files hold one."""

import copy
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret

from components.errors import CredfleetError
from operations.stack.passphrase import PassphraseCrypter
from operations.stack.state import (
    Resource,
    Snapshot,
    decode,
    deployment_in,
    encode,
    state_text,
)
from sandbox.tests.protocol.values_strategies import properties

_CRYPTER = PassphraseCrypter(key=bytes(32), salt="v1:salt")
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"


def _urn(name: str, type_: str = "shop:index:Shelf") -> str:
    return f"urn:pulumi:dev::shop::{type_}::{name}"


def _resource(name: str, **fields: Any) -> Resource:
    return replace(Resource(_urn(name), "shop:index:Shelf", custom=True, id=name), **fields)


def _component(name: str, **fields: Any) -> Resource:
    return _resource(name, custom=False, id="", **fields)


_PROVIDER = Resource(_urn("default", "pulumi:providers:shop"), "pulumi:providers:shop", custom=True, id="p-1")
_PROVIDER_REFERENCE = f"{_PROVIDER.urn}::p-1"


def _written(snapshot: Snapshot, encrypt: Callable[[str], str] | None = None) -> Any:
    return json.loads(json.dumps(encode(snapshot, encrypt)))


def test_a_record_has_the_names_of_the_format_and_only_fields_that_say_something():
    rest: Any = {
        "protect": True,
        "external": True,
        "pendingReplacement": True,
        "additionalSecretOutputs": ["colour"],
        "customTimeouts": {"create": 300},
        "importID": "x",
        "resourceHooks": {"beforeCreate": ["h"]},
        "stackTrace": [{"sourcePosition": "project:///__main__.py#1"}],
    }
    full = Resource(
        urn=_urn("a"),
        type="shop:index:Shelf",
        custom=True,
        delete=True,
        id="i-1",
        inputs={"size": 3},
        outputs={"size": 3, "colour": "red"},
        parent=_urn("p"),
        dependencies=(_urn("d"),),
        init_errors=("slow",),
        provider=_PROVIDER_REFERENCE,
        property_dependencies={"size": (_urn("d"),), "colour": ()},
        aliases=(_urn("old"),),
        deleted_with=_urn("d"),
        replace_with=(_urn("d"),),
        created="2026-01-01T00:00:00Z",
        replacement_trigger="t",
        other=rest,
    )
    snapshot = Snapshot((*map(_component, ("bare", "p", "d")), _PROVIDER, full))
    bare, *_, written = _written(snapshot)["resources"]
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
        "dependencies": [_urn("d")],
        "initErrors": ["slow"],
        "provider": _PROVIDER_REFERENCE,
        "propertyDependencies": {"size": [_urn("d")], "colour": []},
        "aliases": [_urn("old")],
        "deletedWith": _urn("d"),
        "replaceWith": [_urn("d")],
        "created": "2026-01-01T00:00:00Z",
        "replacementTrigger": "t",
        **rest,
    }
    assert decode(_written(snapshot)) == snapshot


def test_a_state_is_written_as_the_cli_keeps_it_its_secrets_encrypted():
    snapshot = Snapshot((_resource("a", outputs={"x": Secret({"password": "hunter2"})}),))
    text = state_text("shop", "dev", snapshot, _CRYPTER)
    assert "hunter2" not in text
    written = json.loads(text)
    assert (written["version"], written["checkpoint"]["stack"]) == (3, "organization/shop/dev")
    latest = written["checkpoint"]["latest"]
    manifest = latest["manifest"]
    assert manifest["magic"] == hashlib.sha256(manifest["version"].encode()).hexdigest()
    assert latest["secrets_providers"] == {"type": "passphrase", "state": {"salt": "v1:salt"}}
    assert decode(latest, _CRYPTER.decrypt) == snapshot


@pytest.mark.parametrize(
    ("encrypt", "decrypt"), [(None, str), (str, str), (_CRYPTER.encrypt, _CRYPTER.decrypt)]
)
@given(inputs=properties, outputs=properties)
def test_any_properties_come_back_from_the_state_as_they_went(
    encrypt: Callable[[str], str] | None,
    decrypt: Callable[[str], str],
    inputs: Properties,
    outputs: Properties,
):
    snapshot = Snapshot((_resource("a", inputs=inputs, outputs=outputs),))
    assert decode(_written(snapshot, encrypt), decrypt) == snapshot


def test_a_secret_is_encrypted_json_and_one_inside_it_is_not_encrypted_twice():
    inputs: Properties = {"s": Secret({"user": "u", "in": Secret([1])}), "u": UNKNOWN}
    written = _written(Snapshot((_resource("a", inputs=inputs),)), _CRYPTER.encrypt)["resources"][0]["inputs"]
    assert written["u"] == "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    assert written["s"][_SIGNATURE] == _SECRET
    assert json.loads(_CRYPTER.decrypt(written["s"]["ciphertext"])) == {
        "user": "u",
        "in": {_SIGNATURE: _SECRET, "ciphertext": "[1]"},
    }


def test_a_secret_that_nobody_decrypts_is_its_ciphertext_and_still_a_secret():
    sealed = _written(Snapshot((_resource("a", outputs={"s": Secret("x")}),)), lambda _: "v1:sealed")
    assert decode(sealed).resources[0].outputs == {"s": Secret("v1:sealed")}


ODD: Final = (None, "", 0, 1.5, True, [], {}, "x", ["x"], [[]], {"a": 1}, {"a": ["b"]}, "\ud800", 10**30)


def test_a_deployment_with_any_one_part_replaced_is_read_or_refused_and_empty_only_where_it_says_so():
    shelf = _resource("a", inputs={"size": 3, "key": Secret("hidden")}, property_dependencies={"size": ()})
    written = _written(Snapshot((shelf,)))
    written["pending_operations"] = [{"resource": written["resources"][0] | {"id": "b"}, "type": "creating"}]
    assert decode(written).pending == (shelf.urn,)

    def outcome(deployment: Any) -> str:
        try:
            return f"{len(decode(deployment).resources)} read"
        except (CredfleetError, SandboxError) as refused:
            return refused.code

    outcomes = {place: outcome(deployment) for place, deployment in _damaged(written)}
    assert {*outcomes.values()} <= {"state-unreadable", "0 read", "1 read"}
    assert {each for (each, _), said in outcomes.items() if said == "0 read"} == {
        ("resources",),
        ("resources", 0),
    }


def _places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if above:
        yield above
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from _places(child, (*above, key))


def _damaged(deployment: Any) -> Iterator[tuple[tuple[tuple[str | int, ...], str], Any]]:
    """Yield which part is replaced or left out, and the deployment then."""
    for place in _places(deployment):
        for odd in (*ODD, ...):
            changed = copy.deepcopy(deployment)
            parent = changed
            for key in place[:-1]:
                parent = parent[key]
            if odd is ...:
                del parent[place[-1]]
            else:
                parent[place[-1]] = odd
            yield (place, repr(odd)), changed


def test_a_record_without_its_required_fields_is_told_with_its_name():
    with pytest.raises(CredfleetError, match="no custom and no type") as caught:
        decode({"resources": [{"urn": "u"}]})
    assert caught.value.code == "state-unreadable"


STATE = {
    "version": 3,
    "checkpoint": {
        "stack": "organization/shop/dev",
        "latest": {
            "manifest": {"time": "2026-01-01T00:00:00Z"},
            "resources": [{"urn": "a"}, {"urn": "b", "outputs": {"s": {"ciphertext": "v1:sealed"}}}],
            "pending_operations": [{"resource": {"urn": "c"}, "type": "creating"}],
        },
    },
}


def test_a_state_is_read_as_exported_and_as_backends_keep_it_packed_or_not():
    latest = STATE["checkpoint"]["latest"]  # pyright: ignore[reportIndexIssue, reportArgumentType, reportCallIssue]
    text = json.dumps(STATE).encode()
    exported = json.dumps({"version": 3, "deployment": latest}).encode()
    assert [deployment_in(each, "it") for each in (text, gzip.compress(text), exported)] == [latest] * 3
    assert deployment_in(b'{"version":3,"checkpoint":{"stack":"organization/shop/dev"}}', "it") == {}


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"null", b"[]", b"{}", b"\x00", b"\xff", b"\x1f\x8bno", b"[" * 100_000),
        *(b'{"version":3}', b'{"version":3,"checkpoint":{}}'),
    ],
)
def test_what_is_no_state_never_counts_as_a_stack_without_resources(content: bytes):
    with pytest.raises(CredfleetError) as refused:
        deployment_in(content, "it")
    assert refused.value.code == "state-unreadable"


def test_a_state_that_is_cut_off_is_refused_wherever_it_ends():
    text = json.dumps(STATE).encode()
    for end in range(0, len(text), 7):
        with pytest.raises(CredfleetError):
            deployment_in(text[:end], "it")
