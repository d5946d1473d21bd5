"""Holds: parts of a pool that give out no new accounts, declared by its stack or set by operators."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from components.account_pool.core.model import Partition
from components.documents import read_json

WHOLE: Final = ""
"""Scope of a hold on the whole pool."""
_DECLARED: Final = "declaredHolds"
_OF_POOL: Final = "hold"
_OF_PARTS: Final = "holds"


def scope_of(account_type: str | None, partition: Mapping[str, str]) -> str:
    """Return the scope of a hold: a type, and values of partition keys."""
    return ",".join([account_type or WHOLE, *(f"{key}={value}" for key, value in sorted(partition.items()))])


@dataclass(frozen=True, slots=True)
class Holds:
    """Scope → reason. `said`: set by operators until they resume. `declared`: by the pool's stack."""

    said: Mapping[str, str] = field(default_factory=dict[str, str])
    declared: Mapping[str, str] = field(default_factory=dict[str, str])

    def __bool__(self) -> bool:
        """Return whether there is any hold."""
        return bool(self.said or self.declared)

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Holds:
        """Parse the data of a pool's ConfigMap; raises ValueError, TypeError."""
        declared, parts = (
            cast("dict[str, Any]", dict(read_json(data.get(key, "{}")))) for key in (_DECLARED, _OF_PARTS)
        )
        whole = {WHOLE: data[_OF_POOL]} if data.get(_OF_POOL) else {}
        return cls(whole | {scope: str(why) for scope, why in parts.items()}, declared)

    def render(self) -> dict[str, str]:
        """Return the declared holds as ConfigMap data."""
        return {_DECLARED: json.dumps(dict(self.declared), sort_keys=True)} if self.declared else {}

    def write(self, data: Mapping[str, str]) -> dict[str, str]:
        """Return the data of a pool's ConfigMap with the operators' holds."""
        kept = {key: text for key, text in data.items() if key not in (_OF_POOL, _OF_PARTS)}
        parts = {scope: why for scope, why in self.said.items() if scope != WHOLE}
        whole = {_OF_POOL: self.said[WHOLE]} if WHOLE in self.said else {}
        return {**kept, **whole, **({_OF_PARTS: json.dumps(parts, sort_keys=True)} if parts else {})}

    def said_of(self, scope: str, reason: str) -> Holds:
        """Add an operator's hold, or remove it if `reason` is empty; an empty WHOLE removes all of them."""
        rest = {} if scope == WHOLE and not reason else {k: v for k, v in self.said.items() if k != scope}
        return replace(self, said={**rest, **({scope: reason} if reason else {})})

    def on(self, partition: Partition) -> tuple[str, str] | None:
        """Return the scope and reason of a hold on this partition; None if accounts are given out."""
        return next(((scope, why) for scope, why in self.all() if _covers(scope, partition)), None)

    def all(self) -> Iterator[tuple[str, str]]:
        """Yield the scope and reason of every hold."""
        yield from {**self.declared, **self.said}.items()

    def fix(self, scope: str, namespace: str) -> str:
        """Return how to end a hold."""
        if scope in self.declared:
            return "to end it, take it out of accountPool.hold in the pool's stack and run `up`"
        account_type, *values = scope.split(",")
        options = [f" --type {account_type}" if account_type else "", *(f" --partition {v}" for v in values)]
        return f"`credfleet pool resume{''.join(options)} -n {namespace}` ends it"


def _covers(scope: str, partition: Partition) -> bool:
    account_type, *values = scope.split(",")
    given = {f"{key}={value}" for key, value in partition.given.items()}
    return scope == WHOLE or (account_type == partition.type and given.issuperset(values))


def describe_hold(scope: str, why: str) -> str:
    """Return a message that a part of the pool is held, with the reason."""
    if scope == WHOLE:
        return f"the pool is held, and gives no new accounts: {why}"
    return f"{scope.replace(',', ' with ', 1)} is held, and the pool gives no new accounts of it: {why}"
