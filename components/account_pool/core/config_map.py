"""What ConfigMap `credfleet-pool` says about a pool: its one parser and its one renderer.

The pool component writes the declared keys; the first claimer adds `poolUid`, the uid of the ConfigMap
itself, so that a pool restored from a backup (same text, new uid) is noticed before a single token is
judged.
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
"""The one key of the ConfigMap that claimers write."""


@dataclass(frozen=True, slots=True)
class PoolConfigMap:
    """Settings of a pool: partition keys, and the default policy and limits of claims.

    limits: type, or `default` → consumers per claim; 0 means the default, and no default means no limit.
    scheme: what its accounts call their labels. holds: where it gives no new accounts.
    consumers: who alone may claim; everybody where none is named. protected: ids of accounts that no one
    may have, and for which no command is run. clock: which accounts are not given out because of time.
    new_keys: types and clouds whose accounts are free only with another key than their last tenant had.
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
        """Whether an account is one that is never given out."""
        return account_id is not None and account_key(account_id) in map(account_key, self.protected)

    def limit_for(self, account_type: str) -> int | None:
        """Return how many consumers a claim of this type has at most; `gcp_x` falls back to `gcp`."""
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
        """From the ConfigMap.

        Raises Misconfigured when it is of another format, Restored when it names another uid than its own.
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
            # A text would be taken letter by letter; added to a list it is a TypeError.
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
    """Raise Misconfigured for what cannot be read. problem: what follows."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError):
        raise Misconfigured(place=f"ConfigMap {CONFIG_MAP}", problem=problem, fix=fix) from None


def scheme_of(body: JsonObject | None) -> LabelScheme:
    """Return the words of a pool from its ConfigMap, whatever else is wrong with that.

    body: None where there is none. Raises Misconfigured when the words cannot be read.
    """
    data = _data(body)
    with _readable("what its accounts call their labels cannot be read, so nothing is known of any account"):
        names = cast("dict[str, Any]", read_json(data.get(_LABELS, "{}")))
        capacity = data.get(_SHARED_CAPACITY)
        named = {_LABEL_NAMES[name]: str(key) for name, key in names.items()}
        return LabelScheme(named, None if capacity is None else int(capacity))


def clock_of(body: JsonObject | None) -> Clock:
    """Return the durations of a pool; raises Misconfigured when they cannot be read."""
    with _readable("how long accounts rest and keys last cannot be read, so no account is given out"):
        return Clock.of(_data(body))


def shown(api: PoolApi, body: JsonObject | None, clock: Clock | None = None) -> PoolApi:
    """Return an API that shows a pool in credfleet's words, and what its clock says of each account.

    clock: what the pool is to say of it only now.
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
    """Return the consumers that a pool names, from its ConfigMap; raises Misconfigured if unreadable."""
    with _readable("which consumers it names cannot be read, so none is served"):
        named = cast("dict[str, dict[str, Any]]", read_json(_data(body).get(_CONSUMERS, "{}")))
        return tuple(Consumer.parse(name, said) for name, said in sorted(named.items()))


def holds_of(body: JsonObject | None) -> Holds:
    """Return where a pool gives no new accounts; raises Misconfigured when it cannot be read."""
    with _readable(
        "which of its parts are held cannot be read, so no account is given out",
        "take `holds` out of it with kubectl, run `up` in the stack of the pool, and hold again",
    ):
        return Holds.of(_data(body))


def with_pool_uid(body: JsonObject) -> JsonObject:
    """Add the ConfigMap's own uid to it, for a write that holds its resourceVersion."""
    return {**body, "data": {**_data(body), POOL_UID: body["metadata"]["uid"]}}


def has_pool_uid(body: JsonObject) -> bool:
    """Whether a claimer has signed the pool already."""
    return POOL_UID in _data(body)
