"""The layout of the CLI's file backend, read by its description alone: nothing here is the engine's.

A checkpoint is `{version, checkpoint: {stack, latest}}`; `latest` has a manifest, the secrets provider,
resources in an order in which each stands behind what it refers to, and the calls that were begun.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
_CALLS: Final = frozenset({"creating", "updating", "deleting", "reading", "importing"})

Record = dict[str, Any]


@dataclass(frozen=True)
class State:
    """What a file says: the records in their order, and the calls under way as kind and record."""

    resources: tuple[Record, ...] = ()
    pending: tuple[tuple[str, Record], ...] = ()

    @property
    def by_id(self) -> dict[str, Record]:
        """The records of what a provider made, by the provider's id."""
        return {each["id"]: each for each in self.resources if each.get("id")}

    @property
    def creating(self) -> set[str]:
        """The names that were chosen for what was begun to be created."""
        return {record.get("inputs", {}).get("name") for kind, record in self.pending if kind == "creating"}

    def began(self, kind: str, urn: str) -> Record | None:
        """Return the record of a call of this kind that was begun for a resource."""
        return next((record for call, record in self.pending if (call, record["urn"]) == (kind, urn)), None)


def read(text: str, passphrase: str, steps: str = "") -> State:
    """Return what a file and the steps behind it say, secrets in plain; asserts what the format promises."""
    file = json.loads(text)
    _follow(file["checkpoint"]["latest"], text, steps.splitlines())
    assert file["version"] == (4 if file.get("features") else 3)
    assert file["checkpoint"]["stack"].startswith("organization/")
    latest = file["checkpoint"]["latest"]
    assert latest["manifest"].keys() == {"time", "magic", "version"}
    assert latest["manifest"]["magic"] == hashlib.sha256(latest["manifest"]["version"].encode()).hexdigest()
    assert latest["secrets_providers"]["type"] == "passphrase"
    cipher = _cipher(latest["secrets_providers"]["state"]["salt"], passphrase)
    resources = tuple(_plain(each, cipher) for each in latest.get("resources", ()))
    pending = tuple(
        (each["type"], _plain(each["resource"], cipher)) for each in latest.get("pending_operations", ())
    )
    assert all(kind in _CALLS for kind, _ in pending)
    _judge(resources)
    return State(resources, pending)


def _follow(latest: dict[str, Any], text: str, steps: list[str]) -> None:
    """Put in place what the lines beside the state say of it."""
    if not steps:
        return
    assert json.loads(steps[0]) == {"follows": hashlib.sha256(text.encode()).hexdigest()}
    pending = [each["resource"] for each in latest.get("pending_operations", ())]
    records = [*latest.get("resources", ()), *pending]
    for line in map(json.loads, steps[1:]):
        assert [*line["new"]] == [str(len(records) + index) for index in range(len(line["new"]))]
        records += line["new"].values()
        latest["resources"] = [each for first, end in line["order"] for each in records[first:end]]
        latest["pending_operations"] = [
            {"type": kind, "resource": records[number]} for number, kind in line["pending"]
        ]


def _judge(resources: tuple[Record, ...]) -> None:
    stand: set[str] = set()
    alive: set[str] = set()
    for each in resources:
        urn = each["urn"]
        assert urn.split("::", 3)[2].rsplit("$", 1)[-1] == each["type"], f"{urn} is of another type"
        by_property = [to for urns in each.get("propertyDependencies", {}).values() for to in urns or ()]
        single = [each[key] for key in ("parent", "deletedWith") if key in each]
        for to in (*single, *each.get("dependencies", ()), *by_property, *each.get("replaceWith", ())):
            assert to in stand, f"{urn} stands before {to}, which it refers to"
        if provider := each.get("provider"):
            assert provider in stand or each.get("pendingReplacement"), f"{urn} has no provider {provider}"
        stand |= {urn, f"{urn}::{each.get('id')}"}
        if not each.get("delete"):
            assert urn not in alive, f"{urn} is there twice"
            alive.add(urn)
        assert each["custom"] or "id" not in each, f"{urn} is a component with an id"


def _plain(value: Any, cipher: AESGCM) -> Any:
    if isinstance(value, list):
        return [_plain(each, cipher) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get(_SIGNATURE) == _SECRET:
        version, nonce, sealed = value["ciphertext"].split(":")
        assert version == "v1"
        return json.loads(cipher.decrypt(base64.b64decode(nonce), base64.b64decode(sealed), None))
    return {key: _plain(each, cipher) for key, each in value.items()}


@cache
def _cipher(salt: str, passphrase: str) -> AESGCM:
    version, encoded, _ = salt.split(":", 2)
    assert version == "v1"
    rounds = 1_000_000
    return AESGCM(hashlib.pbkdf2_hmac("sha256", passphrase.encode(), base64.b64decode(encoded), rounds, 32))
