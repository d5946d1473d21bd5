"""Read: write a Secret from values of a store, with the steps of a projection.

The values are presented as a virtual source Secret. Ownership of the target, comparison before a write, and
retries are therefore the same as for every copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, cast

from components.errors import StoreError
from components.projection.model import JsonObject, Wanted, data_of, encode, render_secret
from components.secret_stores.clients.client import GatheringClient, SecretsClient
from components.secret_stores.clients.kubernetes import KubernetesClient
from components.secret_stores.consumers import ExternalSecret, Find, FindOthers, Place, RemoteRef
from components.secret_stores.gathering import as_keys, decode
from components.secret_stores.templates import render

STORE: Final = "STORE"
"""Namespace of a source that is not a Secret; no namespace in a cluster has this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Wanted):
    """Secret that a read writes. `source`: virtual Secret of the values. `former`: previous read."""

    TAKEN = (
        "it exists and this read did not write it, so it is not overwritten",
        "give the read another target, or delete that Secret",
    )

    read: ExternalSecret
    former: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def data(self, source: JsonObject) -> Mapping[str, str]:
        """Return the values unchanged."""
        return data_of(source)

    def body(self, data: Mapping[str, str]) -> JsonObject:
        """Render the target."""
        store = f"{self.read.store.kind}/{self.read.store.name}"
        return render_secret(self.target, self.owner, store, data, type_=self.read.type or "Opaque")

    def dress(self, target: JsonObject) -> JsonObject:
        """Set labels and annotations of a target, and remove those that were set before."""
        metadata = {**target["metadata"]}
        for part, its in (("labels", self.read.labels), ("annotations", self.read.annotations)):
            live, former = metadata.get(part) or {}, self.former.get(part) or ()
            if (marks := {**{key: live[key] for key in live if key not in former}, **its}) != live:
                metadata[part] = marks
        return {**target, "metadata": metadata}

    def bears(self, target: JsonObject, /) -> bool:
        """Return whether a target has the right type, labels and annotations."""
        return target.get("type") == self.body({})["type"] and self.dress(target) == target


def list_versions(read: ExternalSecret, client: SecretsClient) -> JsonObject:
    """Return the virtual source Secret of a read: base64 data, and the versions of its values.

    Raises StoreError, also for a value that is not found.
    """
    data: dict[str, bytes] = {}
    versions: list[str] = []
    gathering = cast("GatheringClient", client)  # `data_from` with any other kind was rejected before
    for index, source in enumerate(read.data_from):
        place = f"{read.title}, dataFrom[{index}]"
        meant = source.find or source.extract
        if source.find is not None:
            gathered = gathering.find(_others(read, source.find, client))
        elif source.extract is not None:
            found = gathering.extract(source.extract)
            gathered = found or _absent(read, place, source.extract)
        else:
            continue
        for key, content in as_keys(gathered.contents, place).items():
            data[key] = decode(content, meant and meant.decoding_strategy, f"{place}, key {key}")
        versions.append(gathered.version)
    for key, remote in read.data.items():
        place = f"{read.title}, key {key}"
        value = client.read(remote) or _absent(read, place, remote)
        data[key] = decode(value.content, remote.decoding_strategy, place)
        versions.append(f"{remote.key}@{value.version}")
    if not data:
        raise StoreError(
            code="absent",
            place=read.title,
            problem=f"{read.store.kind} {read.store.name} has no key that dataFrom selects",
            fix="correct dataFrom, or see who was to put the values there",
        )
    if read.template:
        data = render(read.template, data, read.title)
    return {"metadata": {"resourceVersion": ", ".join(dict.fromkeys(versions))}, "data": encode(data)}


def _others(read: ExternalSecret, wanted: Find, client: SecretsClient) -> Find:
    """Exclude the target of a read from what it finds, otherwise it would grow with every update."""
    if not isinstance(client, KubernetesClient) or client.namespace != read.namespace:
        return wanted
    return FindOthers(name=wanted.name, tags=wanted.tags, without=read.target)


def _absent(read: ExternalSecret, place: str, remote: RemoteRef) -> NoReturn:
    raise StoreError(
        code="absent",
        place=place,
        problem=f"{read.store.kind} {read.store.name} has no {Place(remote.key, remote.property_name)}"
        + (f" in version {remote.version}" if remote.version else ""),
        fix="name a version that is there, or leave it out for the newest"
        if remote.version
        else "correct the key, or see who was to put the value there",
    )
