"""Whether External Secrets Operator (ESO) did what its objects say, told by the update they are of.

A dynamic resource that writes nothing, declared after the objects. A preview looks at what is there; an
update waits for what it changed. Its path is written into the state of stacks and never moves. Import-pure.
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
    """objects: each {place, apiVersion, kind, namespace?, name, type? of its Secret}. within: how long.

    undelivered: `Kind name` → why ESO has not done what an object says; the check looks.
    """

    objects: Sequence[Mapping[str, Any]]
    within: str = field(compare=False)
    undelivered: Mapping[str, str] | None = field(default=None, compare=False)


class EsoDeliveryProvider(DynamicProvider):
    """Looks at objects of ESO, and waits for them."""

    args = EsoDeliveryArgs

    def prepare(self, inputs: Properties, _olds: Properties) -> Properties:
        """Return what is not delivered now; nothing is known of a cluster that cannot be seen."""
        with IMPORT_LOCK:
            from components.secret_stores.eso_cluster import shortcomings

        try:
            found = self._look(inputs)(self._named(inputs))
        except CredfleetError:
            return inputs
        return {**inputs, "undelivered": self._told(inputs, shortcomings(found))}

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Whether an object stands otherwise than it did."""
        seen = news.get("undelivered")
        return seen is not None and seen != (olds.get("undelivered") or {})

    def name(self, _state: Properties) -> str:
        """Return the one id there is in a stack."""
        return "external-secrets"

    def create_resource(self, props: Properties) -> Properties:
        """Wait for all objects."""
        return self._waited(props, self._named(props))

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Wait for those that do not stand as they did."""
        known, seen = olds.get("undelivered") or {}, self.prepare(news, olds).get("undelivered") or {}
        former, now = self._named(olds), self._named(news)
        changed = {name for name in now if now[name] != former.get(name) or seen.get(name) != known.get(name)}
        return self._waited(news, changed)

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return how they stand now."""
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
        """Say each reason at the place of the configuration that the object stands for."""
        objects = self._named(props)
        return {name: f"{objects[name]['place']}: {why}" for name, why in sorted(short.items())}


class EsoDelivery(DynamicResource[EsoDeliveryArgs]):
    """What of ESO's objects is not delivered, and why: undelivered, `Kind name` → why."""

    provider = EsoDeliveryProvider

    undelivered: Output[Mapping[str, str] | None]
