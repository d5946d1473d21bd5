"""What a step of a row came to, as plain data: equal of two engines that did the same.

Left out is what no two runs share, or what tells of the machine: times, random seeds, addresses, tokens,
places in the source. Random ids are numbered as they appear, dependencies have no order. Left out as well
is how a provider is greeted (`Handshake`, what an engine can do) and dismissed (`Cancel`, with which the CLI
ends each run).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from google.protobuf import json_format
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.protocol import signatures

from sandbox.tests.support.recording_provider import Call

PREFIX: Final = "urn:pulumi:dev::test::"
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LEFT_OUT: Final = frozenset(
    {"created", "modified", "sourcePosition", "stackTrace", "stackTraceHandle", "randomSeed"}
)
_OF_THE_MACHINE: Final = re.compile(r"Address|Token|Target|Endpoint|Directory")


def requests(calls: Iterable[Call | tuple[str, str]]) -> list[Any]:
    """Return what a provider was asked, and which hooks ran, in order."""
    return [
        _request(each) if isinstance(each, Call) else {"hook": [*each]}
        for each in calls
        if not isinstance(each, Call) or each.method not in ("Handshake", "Cancel")
    ]


def _request(call: Call) -> dict[str, Any]:
    told = json_format.MessageToDict(call.message)
    kept = {
        key: _value(value)
        for key, value in told.items()
        if key not in _LEFT_OUT and not _OF_THE_MACHINE.search(key)
    }
    if "urn" in kept:
        kept.pop("name", None)
        kept.pop("type", None)
    return {call.method: kept.pop("urn", ""), **dict(sorted(kept.items()))}


def state(deployment: Mapping[str, Any], crypter: PassphraseCrypter) -> list[Any]:
    """Return the resources of a state, decrypted, and the operations that never ended."""

    def record(record: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: _value(value, crypter) for key, value in sorted(record.items()) if key not in _LEFT_OUT}
        kept["dependencies"] = sorted(kept.get("dependencies") or ())
        of_properties = kept.get("propertyDependencies") or {}
        kept["propertyDependencies"] = {key: sorted(urns) for key, urns in of_properties.items() if urns}
        kept = {key: value for key, value in kept.items() if value}
        return {"urn": kept.pop("urn"), **kept}

    pending = deployment.get("pending_operations") or ()
    resources = [record(each) for each in deployment.get("resources") or ()]
    return [*resources, *({"pending": each["type"], **record(each["resource"])} for each in pending)]


def _value(value: Any, crypter: PassphraseCrypter | None = None) -> Any:
    """Return a property without the signatures that mark it on the wire and in a state."""
    if isinstance(value, list):
        return [_value(each, crypter) for each in value]
    if isinstance(value, str):
        return value.replace(_UNKNOWN, "(unknown)")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, Mapping):
        return value
    signature = value.get(signatures.KEY)
    if signature == signatures.SECRET:
        sealed = value.get("ciphertext")
        held = json.loads(crypter.decrypt(sealed)) if crypter and sealed else value["value"]
        return {"(secret)": _value(held, crypter)}
    kind = {"(is)": _KINDS.get(signature, signature)} if signature else {}
    return kind | {key: _value(each, crypter) for key, each in sorted(value.items()) if key != signatures.KEY}


_KINDS: Final = {
    signatures.OUTPUT: "output",
    signatures.RESOURCE: "resource",
    signatures.ASSET: "asset",
    signatures.ARCHIVE: "archive",
}


def in_one_order(steps: Sequence[Any]) -> list[Any]:
    """Return steps, those by URN that the CLI takes in any order: deletions, and what a refresh reads."""
    ordered: list[Any] = []
    for is_free, some in groupby(steps, lambda step: bool(_FREE.match(_head(step)))):
        together = list(some)
        ordered += sorted(together, key=lambda step: _head(step).partition(" ")[2]) if is_free else together
    return ordered


_FREE: Final = re.compile(r"!?(delete|discard|refresh|Delete|Read|Diff)")


def _head(step: Any) -> str:
    return step if isinstance(step, str) else " ".join(map(str, next(iter(step.items()))))


def plain(told: Any) -> Any:
    """Return what was told with short URNs, and random ids by number."""
    numbers: dict[str, str] = {}
    text = json.dumps(told).replace(PREFIX, "")
    text = _UUID.sub(lambda found: numbers.setdefault(found[0], f"uuid-{len(numbers) + 1}"), text)
    return json.loads(text)
