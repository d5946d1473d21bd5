"""Check after an update of whether External Secrets Operator (ESO) reconciled its objects.

A dynamic resource without side effects, declared after the objects. A preview reads their status; an update
waits for those it changed. Its module path is stored in the state of stacks and must not change. Import-pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pulumi import Output

from components.connection import ClusterTarget
from components.dynamic import DynamicProvider, DynamicResource, Properties, log
from components.errors import CredfleetError
from components.importing import IMPORT_LOCK

if TYPE_CHECKING:
    from components.secret_stores.eso_cluster import Look


@dataclass(frozen=True, slots=True, kw_only=True)
class EsoDeliveryArgs:
    """`objects`: each {place, apiVersion, kind, namespace?, name, type? of its Secret}. `within`: timeout.

    `undelivered`: `Kind name` → why ESO has not reconciled an object; filled in by the check.
    """

    objects: Sequence[Mapping[str, Any]]
    within: str = field(compare=False)
    undelivered: Mapping[str, str] | None = field(default=None, compare=False)


class EsoDeliveryProvider(DynamicProvider):
    """Reads objects of ESO, and waits for them."""

    args = EsoDeliveryArgs

    def prepare(self, inputs: Properties, _olds: Properties) -> Properties:
        """Return what is not delivered now; unchanged inputs if the cluster is unreachable."""
        with IMPORT_LOCK:
            from components.secret_stores.eso_cluster import shortcomings

        try:
            found = self._look(inputs)(self._named(inputs))
        except CredfleetError:
            return inputs
        return {**inputs, "undelivered": self._told(inputs, shortcomings(found))}

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Return whether the status of an object has changed."""
        seen = news.get("undelivered")
        return seen is not None and seen != (olds.get("undelivered") or {})

    def name(self, _state: Properties) -> str:
        """Return the fixed id: there is one such resource per stack."""
        return "external-secrets"

    def create_resource(self, props: Properties) -> Properties:
        """Wait for all objects."""
        return self._waited(props, self._named(props))

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Wait for the objects whose status changed."""
        known, seen = olds.get("undelivered") or {}, self.prepare(news, olds).get("undelivered") or {}
        former, now = self._named(olds), self._named(news)
        changed = {name for name in now if now[name] != former.get(name) or seen.get(name) != known.get(name)}
        return self._waited(news, changed)

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return their present status."""
        return {"undelivered": self.prepare(props, props).get("undelivered")}

    def _waited(self, props: Properties, names: Collection[str]) -> Properties:
        with IMPORT_LOCK:
            from components.durations import nanoseconds
            from components.secret_stores.eso_cluster import await_states, recast, shortcomings

        look, seconds = self._look(props), nanoseconds(props["within"]) / 1e9
        waited = await_states(names, lambda of: recast(look(of), self.cluster), seconds) if names else {}
        others = shortcomings(look([name for name in self._named(props) if name not in names]))
        undelivered = self._told(props, {**others, **waited})
        for name in waited:
            log(f"{name}: {undelivered[name]}")
        return {"undelivered": undelivered}

    def _look(self, props: Properties) -> Look:
        with IMPORT_LOCK:
            from components.secret_stores.eso_cluster import path_of
            from components.secret_stores.stack_cluster import StackCluster

        cluster, objects = StackCluster(ClusterTarget.parse(self.cluster)), self._named(props)

        def look(names: Collection[str]) -> Mapping[str, Any]:
            found: dict[str, Any] = {}
            for name in names:
                each = objects[name]
                path = path_of(each["apiVersion"], each["kind"], each.get("namespace"), each["name"])
                if (live := cluster.found(path, name)) is not None:
                    found[name] = live
            return found

        return look

    @staticmethod
    def _named(props: Properties) -> Mapping[str, Mapping[str, Any]]:
        return {f"{each['kind']} {each['name']}": each for each in props["objects"]}

    def _told(self, props: Properties, short: Mapping[str, str]) -> Mapping[str, str]:
        """Prefix each reason with the configuration path of the object."""
        objects = self._named(props)
        return {name: f"{objects[name]['place']}: {why}" for name, why in sorted(short.items())}


class EsoDelivery(DynamicResource[EsoDeliveryArgs]):
    """ESO's objects that are not reconciled: `undelivered`, `Kind name` → reason."""

    provider = EsoDeliveryProvider

    undelivered: Output[Mapping[str, str] | None]
