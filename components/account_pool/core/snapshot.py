"""What one look at a pool shows, and what of it cannot be read.

A writer of a pool's namespace can make an object that looks like one of the pool's. It is told, and
the rest of the pool is read all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from components.account_pool.core.config_map import CONFIG_MAP
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.holds import Holds
from components.account_pool.core.identity import mark_twins
from components.account_pool.core.model import JsonObject, Member
from components.account_pool.core.records import Record
from components.errors import Misconfigured, Problem


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """Every member and every record of a pool at one moment, members seen first.

    unreadable: names of records that cannot be read; whether the claims they stand for live is not judged.
    namespace: of the records.
    holds: where the pool gives no new accounts. consumers: whom it names. quarantines: the annotations of
    accounts that operators keep away, by name, as far as they were read.
    """

    members: tuple[Member, ...]
    records: tuple[Record, ...]
    unreadable: frozenset[str] = frozenset()
    namespace: str = ""
    holds: Holds = field(default_factory=Holds)
    consumers: tuple[Consumer, ...] = ()
    quarantines: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @classmethod
    def of(
        cls,
        members: Iterable[JsonObject],
        records: Iterable[JsonObject],
        holds: Holds | None = None,
        consumers: tuple[Consumer, ...] = (),
    ) -> PoolSnapshot:
        """Read what was listed."""
        readable: list[Record] = []
        unreadable: set[str] = set()
        namespace = ""
        for body in records:
            try:
                readable.append(Record.parse(body))
            except Misconfigured:
                unreadable.add(str(body["metadata"]["name"]))
            namespace = str(body["metadata"].get("namespace", ""))
        found = mark_twins(Member.parse(body) for body in members)
        return cls(found, tuple(readable), frozenset(unreadable), namespace, holds or Holds(), consumers)

    @property
    def problems(self) -> Iterator[Problem]:
        """What cannot be read, each with what it keeps from working."""
        for name in sorted(self.unreadable):
            yield Problem(
                f"ConfigMap {name}",
                "it has the name of a claim but cannot be read, so its account has no holder and stays taken",
                "restore it from a backup; if the account is not in use, delete it and run"
                f" `credfleet pool sweep -n {self.namespace}`",
            )


def list_displaced(records: Iterable[Record], keys: Iterable[str]) -> Iterator[Problem]:
    """Return what is wrong when claims were made under other partition keys than the settings name.

    The keys are part of a record's name, so the request of such a claim would be taken for a new one and get
    a second account, and perhaps one of another part of the pool.
    """
    named = tuple(sorted(keys))
    others = [each for each in records if tuple(key for key, _ in each.partition.values) != named]
    if not others:
        return
    first = others[0]
    made = _listed(key for key, _ in first.partition.values)
    yield Problem(
        f"ConfigMap {CONFIG_MAP}",
        f"it is missing, or names {_listed(named)} as partition keys, but claims were made under {made},"
        f" such as {first.name} of tenant {first.tenant}: the same requests would get second accounts",
        "run `pulumi up --refresh` in the stack that declares the pool, which writes its settings again",
    )


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(keys) or "none"
