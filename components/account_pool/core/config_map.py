"""Parser and renderer of ConfigMap `credfleet-pool`, which holds the settings of a pool.

The pool component writes the declared keys. The first claimer adds `poolUid`, the ConfigMap's own uid, so
that a pool restored from a backup (same data, new uid) is detected before any token is judged.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from components.account_pool.core.calls import PoolApi
from components.account_pool.core.clock import Clock
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.holds import Holds
from components.account_pool.core.label_scheme import DIRTY, NAMED, LabelScheme, show_each
from components.account_pool.core.model import JsonObject, Policy, account_key
from components.documents import read_json
from components.errors import Misconfigured, Restored
from components.labels import HYPERSCALER_TYPE

CONFIG_MAP: Final = "credfleet-pool"
FORMAT_VERSION: Final = "1"
_LABELS: Final = "labels"
_SHARED_CAPACITY: Final = "sharedCapacity"
_CONSUMERS: Final = "consumers"
_PROTECTED: Final = "protected"
_NEW_KEYS: Final = "newKeys"
_LABEL_NAMES: Final = {name: name for name in (*NAMED, DIRTY)}
POOL_UID: Final = "poolUid"
"""The only key of the ConfigMap that claims write."""


@dataclass(frozen=True, slots=True)
class PoolConfigMap:
    """Settings of a pool: partition keys, and the default policy and limits of claims.

    `limits`: type, or `default` → consumers per claim; 0 means the default, and no default means no limit.
    `scheme`: label names of its accounts. `holds`: parts of the pool that give out no new accounts.
    `consumers`: who can claim; empty means everyone. `protected`: ids of accounts that are never given out,
    and for which no command is run. `clock`: durations that withhold accounts. `new_keys`: types and clouds
    whose accounts are free only after the last tenant's key was replaced.
    """

    partition_keys: tuple[str, ...] = ()
    policy: Policy = Policy.CLEAN
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    scheme: LabelScheme = field(default_factory=LabelScheme)
    holds: Holds = field(default_factory=Holds)
    consumers: tuple[Consumer, ...] = ()
    protected: tuple[str, ...] = ()
    clock: Clock = field(default_factory=Clock)
    new_keys: tuple[str, ...] = ()

    def protects(self, account_id: str | None) -> bool:
        """Return whether an account is never given out."""
        return account_id is not None and account_key(account_id) in map(account_key, self.protected)

    def limit_for(self, account_type: str) -> int | None:
        """Return the maximum number of consumers per claim of this type; `gcp_x` falls back to `gcp`."""
        provider = account_type.partition("_")[0]
        return next(
            (limit for key in (account_type, provider, "default") if (limit := self.limits.get(key, 0))),
            None,
        )

    def render(self) -> dict[str, str]:
        """Render the declared data of the ConfigMap."""
        names, capacity = self.scheme.names, self.scheme.shared_capacity
        consumers = {one.name: one.render() for one in self.consumers}
        return {
            **({_CONSUMERS: json.dumps(consumers, sort_keys=True)} if consumers else {}),
            **({_LABELS: json.dumps(dict(names), sort_keys=True)} if names else {}),
            **({_SHARED_CAPACITY: str(capacity)} if capacity is not None else {}),
            **({_PROTECTED: json.dumps(sorted(self.protected))} if self.protected else {}),
            **({_NEW_KEYS: ",".join(sorted(self.new_keys))} if self.new_keys else {}),
            **self.clock.render(),
            **self.holds.render(),
            "formatVersion": FORMAT_VERSION,
            "partitionKeys": json.dumps(sorted(self.partition_keys)),
            "releasePolicy": str(self.policy),
            "limits": json.dumps(dict(self.limits), sort_keys=True),
        }

    @classmethod
    def parse(cls, body: JsonObject) -> PoolConfigMap:
        """Parse the ConfigMap.

        Raises Misconfigured for another format, and Restored if it names a uid other than its own.
        """
        metadata: JsonObject = body["metadata"]
        data: dict[str, str] = body.get("data") or {}
        place = f"ConfigMap {metadata.get('namespace', '')}/{CONFIG_MAP}"
        if data.get("formatVersion") != FORMAT_VERSION:
            problem = f"its format is {data.get('formatVersion')!r}, this program knows {FORMAT_VERSION!r}"
            fix = "run the version of credfleet that wrote it, or run `up` with this one"
            raise Misconfigured(place=place, problem=problem, fix=fix)
        if data.get(POOL_UID, metadata["uid"]) != metadata["uid"]:
            raise Restored(namespace=metadata["namespace"])
        try:
            # `list + string` is a TypeError; iterating a string would yield its letters.
            keys: list[Any] = list[Any]() + read_json(data.get("partitionKeys", "[]"))
            protected: list[Any] = list[Any]() + read_json(data.get(_PROTECTED, "[]"))
            limits = cast("dict[str, Any]", read_json(data.get("limits", "{}")))
            return cls(
                tuple(str(key) for key in keys),
                Policy(data.get("releasePolicy", Policy.CLEAN)),
                {str(key): int(value) for key, value in limits.items()},
                scheme_of(body),
                holds_of(body),
                consumers_of(body),
                tuple(map(str, protected)),
                clock_of(body),
                _new_keys_of(body),
            )
        except (ValueError, TypeError, AttributeError):
            problem = "its keys cannot be read, so no request can be placed in a partition"
            raise Misconfigured(
                place=place,
                problem=problem,
                fix="run `pulumi up --refresh` in the stack of the pool, which writes it again",
            ) from None


def _data(body: JsonObject | None) -> Mapping[str, str]:
    return {} if body is None else body.get("data") or {}


@contextmanager
def _readable(
    problem: str, fix: str = "run `up` in the stack of the pool, which writes it again"
) -> Generator[None]:
    """Convert parse errors to Misconfigured. `problem`: what cannot be read, and the consequence."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError):
        raise Misconfigured(place=f"ConfigMap {CONFIG_MAP}", problem=problem, fix=fix) from None


def scheme_of(body: JsonObject | None) -> LabelScheme:
    """Return the label names of a pool from its ConfigMap, even if the rest of it is invalid.

    `body`: None if there is no ConfigMap. Raises Misconfigured if the names cannot be parsed.
    """
    data = _data(body)
    with _readable("what its accounts call their labels cannot be read, so nothing is known of any account"):
        names = cast("dict[str, Any]", read_json(data.get(_LABELS, "{}")))
        capacity = data.get(_SHARED_CAPACITY)
        named = {_LABEL_NAMES[name]: str(key) for name, key in names.items()}
        return LabelScheme(named, None if capacity is None else int(capacity))


def clock_of(body: JsonObject | None) -> Clock:
    """Return the durations of a pool; raises Misconfigured if they cannot be parsed."""
    with _readable("how long accounts rest and keys last cannot be read, so no account is given out"):
        return Clock.of(_data(body))


def shown(api: PoolApi, body: JsonObject | None, clock: Clock | None = None) -> PoolApi:
    """Return an API that shows members with credfleet's label names, and what the clock adds to each.

    `clock`: replaces the durations in the ConfigMap, for settings that are not written yet.
    """
    seen = (clock_of(body) if clock is None else clock).over(scheme_of(body).over(api))
    new_keys = _new_keys_of(body)

    def show(member: JsonObject) -> JsonObject:
        metadata: JsonObject = member["metadata"]
        type_ = str((metadata.get("labels") or {}).get(HYPERSCALER_TYPE, ""))
        needs = not {type_, type_.partition("_")[0]}.isdisjoint(new_keys)
        return {**member, "metadata": {**metadata, "needsNewKey": needs}}

    return show_each(seen, show) if new_keys else seen


def _new_keys_of(body: JsonObject | None) -> tuple[str, ...]:
    return tuple(filter(None, _data(body).get(_NEW_KEYS, "").split(",")))


def consumers_of(body: JsonObject | None) -> tuple[Consumer, ...]:
    """Return the consumers that a pool names in its ConfigMap; raises Misconfigured if unreadable."""
    with _readable("which consumers it names cannot be read, so none is served"):
        named = cast("dict[str, dict[str, Any]]", read_json(_data(body).get(_CONSUMERS, "{}")))
        return tuple(Consumer.parse(name, said) for name, said in sorted(named.items()))


def holds_of(body: JsonObject | None) -> Holds:
    """Return the holds of a pool; raises Misconfigured if they cannot be parsed."""
    with _readable(
        "which of its parts are held cannot be read, so no account is given out",
        "take `holds` out of it with kubectl, run `up` in the stack of the pool, and hold again",
    ):
        return Holds.of(_data(body))


def with_pool_uid(body: JsonObject) -> JsonObject:
    """Add the ConfigMap's own uid to its data, for a write at its resourceVersion."""
    return {**body, "data": {**_data(body), POOL_UID: body["metadata"]["uid"]}}


def has_pool_uid(body: JsonObject) -> bool:
    """Return whether a claimer has already added the uid."""
    return POOL_UID in _data(body)
