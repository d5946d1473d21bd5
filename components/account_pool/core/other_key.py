"""Second Secret of an account whose key is rotated: it stores both keys before either is used elsewhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from components.account_pool.core.calls import Create, Delete, Kind, Pause, Steps
from components.account_pool.core.model import Member
from components.account_pool.core.steps import read, write
from components.documents import read_json
from components.errors import Misconfigured

OTHER_KEY: Final = ".other-key"
"""Suffix of the name of an account's second Secret, which stores both keys."""


_FIRST, _SECOND = "first", "second"


@dataclass(frozen=True, slots=True)
class OtherKey:
    """Second Secret of an account: key id → credential, for both keys."""

    uid: str
    resource_version: str
    credentials: Mapping[str, Mapping[str, str]]

    def besides(self, key_id: str) -> tuple[str, Mapping[str, str]]:
        """Return the id and credential of the other key."""
        return next((other, data) for other, data in self.credentials.items() if other != key_id)


def store(member: Member, namespace: str, keys: Mapping[str, Mapping[str, str]]) -> Steps[OtherKey | None]:
    """Store both keys in the second Secret; return None if it already holds other keys."""
    name = f"{member.name}{OTHER_KEY}"
    data = {
        place: base64.b64encode(json.dumps({"keyId": key_id, "data": dict(data)}).encode()).decode()
        for place, (key_id, data) in zip((_FIRST, _SECOND), keys.items(), strict=True)
    }
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {}, "annotations": {}},
        "type": "Opaque",
        "data": data,
    }
    for attempt in count():
        yield from write(Create(Kind.MEMBER, body))
        stored = yield from find_stored(member)
        if stored is not None:
            return stored if stored.credentials == keys else None
        yield Pause(attempt)
    raise AssertionError


def find_stored(member: Member) -> Steps[OtherKey | None]:
    """Return the keys in the second Secret of an account; raises Misconfigured if they are invalid."""
    body = yield from read(Kind.CREDENTIAL, f"{member.name}{OTHER_KEY}")
    if body is None:
        return None
    try:
        both = [read_json(base64.b64decode(body["data"][place]).decode()) for place in (_FIRST, _SECOND)]
        credentials = {str(each["keyId"]): dict(each["data"]) for each in both}
        if len(credentials) == len(both):
            return OtherKey(body["metadata"]["uid"], body["metadata"]["resourceVersion"], credentials)
    except (KeyError, TypeError, ValueError):
        pass
    raise Misconfigured(
        place=f"Secret {member.name}{OTHER_KEY}",
        problem="it does not hold the keys of an account, so which one is not in use is not known",
        fix="restore it; or delete it, remove that key at the cloud, and rotate again",
    )


def remove(member: Member, keys: OtherKey) -> Steps[None]:
    """Delete the second Secret of an account, if it is unchanged since it was read."""
    yield from write(Delete(Kind.MEMBER, f"{member.name}{OTHER_KEY}", keys.uid, keys.resource_version))
