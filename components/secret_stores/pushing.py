"""Push: write keys of the cluster's Secrets to a store, without touching values of other owners.

Every decision uses the present content, and every write names what it replaces. The next run therefore
completes a run that was killed or lost an answer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from components.errors import StoreError, contended
from components.go_json import write_texts
from components.projection.model import JsonObject, SecretRef, data_of
from components.secret_stores.clients.client import Kept, SecretsClient
from components.secret_stores.consumers import DeletionPolicy, Place, Pushed, PushSecret, UpdatePolicy

_ATTEMPTS: Final = 5


class Move(StrEnum):
    """Action of a push at one place."""

    WRITE = "write"
    KEEP = "keep"
    REFUSE = "refuse"


def decide(there: Kept | None, content: bytes, policy: UpdatePolicy) -> Move:
    """Return the action of a push for the present content of a place.

    A value of another owner is kept under IfNotExists, as that policy requires, and rejected under Replace.
    """
    if there is None:
        return Move.WRITE
    if policy is UpdatePolicy.IF_NOT_EXISTS and (there.content is not None or there.exists):
        return Move.KEEP
    if not there.owned:
        return Move.REFUSE
    return Move.KEEP if there.content == content else Move.WRITE


@dataclass(frozen=True, slots=True)
class Pusher:
    """Executor of one push from Secrets of a cluster to a store. Its methods raise CredfleetError.

    `get`: returns a Secret of the source cluster; None if not found.
    """

    push: PushSecret
    owner: str
    get: Callable[[SecretRef], JsonObject | None]
    client: SecretsClient

    def write(self, former: Iterable[Place] = ()) -> Mapping[str, str]:
        """Write what differs, and remove values of the push at former places.

        `former`: places of the push before the update. Returns the digest of its content and the versions of
        its source Secrets, as outputs of a dynamic resource.
        """
        sources, contents = self._contents()
        for where, content in contents.items():
            self._settle(where, content)
        self.remove(where for where in former if where not in contents)
        return {"digest": _digest(contents, sources), "sourceVersion": _versions(sources)}

    def is_current(self, known: str) -> bool:
        """Return whether the Secrets have this digest, and nothing must be written."""
        sources, contents = self._contents()
        return _digest(contents, sources) == known and all(
            decide(self.client.look(where, self.owner), content, self.push.update_policy) is Move.KEEP
            for where, content in contents.items()
        )

    def is_there(self) -> bool:
        """Return whether the store has any value of the push."""
        return any(self._keeps(self.client.look(each.place, self.owner)) for each in self.push.data)

    def conflicts(self) -> Iterator[StoreError]:
        """Yield an error for each place that has another owner."""
        for each in self.push.data:
            there = self.client.look(each.place, self.owner)
            if decide(there, b"", self.push.update_policy) is Move.REFUSE:
                yield self._taken(each.place)

    def remove(self, places: Iterable[Place]) -> None:
        """Remove values of the push, if its deletion policy is Delete; other owners' values stay."""
        if self.push.deletion_policy is DeletionPolicy.NONE:
            return
        for where in places:
            for _ in range(_ATTEMPTS):
                there = self.client.look(where, self.owner)
                if there is None or not there.owned or self.client.remove(where, there):
                    break
            else:
                raise contended(StoreError, self.push.title, str(where), _ATTEMPTS)

    def _keeps(self, there: Kept | None) -> bool:
        return there is not None and (there.owned or self.push.update_policy is UpdatePolicy.IF_NOT_EXISTS)

    def _settle(self, where: Place, content: bytes) -> None:
        for _ in range(_ATTEMPTS):
            there = self.client.look(where, self.owner)
            match decide(there, content, self.push.update_policy):
                case Move.KEEP:
                    return
                case Move.REFUSE:
                    raise self._taken(where)
                case Move.WRITE:
                    if self.client.write(where, content, self.owner, there):
                        return
        raise contended(StoreError, self.push.title, str(where), _ATTEMPTS)

    def _contents(self) -> tuple[Mapping[str, JsonObject], Mapping[Place, bytes]]:
        sources: dict[str, JsonObject] = {}
        for name in dict.fromkeys(each.secret for each in self.push.data):
            ref = SecretRef(self.push.namespace, name)
            found = self.get(ref)
            if found is None:
                raise StoreError(
                    code="absent",
                    place=self.push.title,
                    problem=f"{ref.place} is not there, so there is nothing to push",
                    fix="make it, or correct the push",
                )
            sources[name] = found
        return sources, {each.place: self._content(each, sources) for each in self.push.data}

    def _content(self, pushed: Pushed, sources: Mapping[str, JsonObject]) -> bytes:
        data = data_of(sources[pushed.secret])
        if pushed.key is None:
            return write_texts({key: base64.b64decode(value) for key, value in data.items()})
        if pushed.key not in data:
            raise StoreError(
                code="absent",
                place=self.push.title,
                problem=f"Secret {self.push.namespace}/{pushed.secret} has no key {pushed.key}",
                fix=f"name one of its keys: {', '.join(sorted(data)) or 'there are none'}",
            )
        return base64.b64decode(data[pushed.key])

    def _taken(self, where: Place) -> StoreError:
        way = ", or remove that one"
        if self.push.update_policy is UpdatePolicy.REPLACE:
            way = ", remove that one, or choose updatePolicy: IfNotExists"
        return StoreError(
            code="taken",
            place=self.push.title,
            problem=f"{where} is in {self.push.store.name} already; this push did not write it, so it stays",
            fix=f"push to another place{way}",
        )


def _digest(contents: Mapping[Place, bytes], sources: Mapping[str, JsonObject]) -> str:
    """Return a digest of contents that does not reveal them: an HMAC keyed with the uids of the sources."""
    key = "".join(str(each["metadata"]["uid"]) for each in sources.values())
    digest = hmac.new(key.encode(), digestmod=hashlib.sha256)
    for where, content in sorted(contents.items(), key=lambda each: str(each[0])):
        digest.update(hashlib.sha256(str(where).encode()).digest() + hashlib.sha256(content).digest())
    return digest.hexdigest()


def _versions(sources: Mapping[str, JsonObject]) -> str:
    return ", ".join(f"{name}@{one['metadata']['resourceVersion']}" for name, one in sources.items())
