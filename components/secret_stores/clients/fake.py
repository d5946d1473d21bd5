"""Client of kind Fake: secrets in the provider's own spec, and pushed values in memory."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from components.secret_stores.clients.client import (
    ClientRequest,
    Gathered,
    Kept,
    SecretsClient,
    Validity,
    Value,
    fields_of,
    gather,
    matches,
    property_of,
)

if TYPE_CHECKING:
    from components.secret_stores.consumers import Find, Place, RemoteRef
    from components.secret_stores.specs import FakeSpec


@dataclass(frozen=True, slots=True)
class _Pushed:
    content: bytes
    owner: str
    number: int


class FakeClient:
    """Entries of the spec, which pushes never overwrite; pushed values live as long as the client."""

    def __init__(self, title: str, spec: FakeSpec) -> None:
        self._title = title
        self._spec = spec
        self._pushed: dict[str, _Pushed] = {}
        self._pushing = Lock()

    def validate(self) -> Validity:
        """Return the result that the spec sets, by ESO's numbers."""
        return [*Validity][self._spec.validation_result or 0]

    def read(self, ref: RemoteRef) -> Value | None:
        """Read a value; of several entries with one key the last, as ESO does."""
        place = f"{self._title}: {ref.key}"
        for entry in reversed(self._spec.data):
            if entry.key == ref.key and entry.version == ref.version:
                content = property_of(entry.value.encode(), ref.property_name, place)
                return Value(content, entry.version or "")
        pushed = self._pushed.get(ref.key)
        if pushed is None or ref.version is not None:
            return None
        return Value(property_of(pushed.content, ref.property_name, place), str(pushed.number))

    def extract(self, ref: RemoteRef) -> Gathered | None:
        """Read the fields of a value that is a JSON object."""
        return fields_of(self.read(ref), f"{self._title}: {ref.key}")

    def find(self, wanted: Find) -> Gathered:
        """Read the highest version (compared as strings) of every secret with a matching name."""
        found: dict[str, Value] = {}
        for entry in self._spec.data:
            version, there = entry.version or "", found.get(entry.key)
            if matches(wanted, entry.key) and (there is None or there.version <= version):
                found[entry.key] = Value(entry.value.encode(), version)
        return gather(found)

    def look(self, place: Place, owner: str) -> Kept | None:
        """Read the present value; spec entries, identified by key and version, belong to no push."""
        for entry in self._spec.data:
            if entry.key + (entry.version or "") == place.key:
                return Kept(entry.value.encode(), owned=False)
        pushed = self._pushed.get(place.key)
        return pushed and Kept(pushed.content, owned=pushed.owner == owner, edition=pushed.number)

    def write(self, place: Place, content: bytes, owner: str, over: Kept | None) -> bool:
        """Store a value in memory."""
        with self._pushing:
            there = self._pushed.get(place.key)
            if (there and there.number) != (over and over.edition):
                return False
            self._pushed[place.key] = _Pushed(content, owner, 1 + (there.number if there else 0))
            return True

    def remove(self, place: Place, seen: Kept) -> bool:
        """Delete a pushed value."""
        with self._pushing:
            there = self._pushed.get(place.key)
            if there is None or there.number != seen.edition:
                return False
            del self._pushed[place.key]
            return True


def open_fake(request: ClientRequest) -> SecretsClient:
    """Create the client."""
    spec: FakeSpec = request.spec
    return FakeClient(request.title, spec)
