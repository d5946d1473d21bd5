"""Snapshot of a pool, with the objects that cannot be parsed.

A writer in a pool's namespace can create an object that looks like one of the pool's. It is reported, and the
rest of the pool is still read.
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
    """All members and records of a pool at one moment, members read first.

    `unreadable`: names of unreadable records; whether their claims are alive is not judged. `namespace`: of
    the records. `holds`: parts of the pool that give out no new accounts. `consumers`: that the pool names.
    `quarantines`: annotations of quarantined accounts by name, as far as they were read.
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
        """Parse listed objects."""
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
        """Unreadable records, each with the consequence."""
        for name in sorted(self.unreadable):
            yield Problem(
                f"ConfigMap {name}",
                "it has the name of a claim but cannot be read, so its account has no holder and stays taken",
                "restore it from a backup; if the account is not in use, delete it and run"
                f" `credfleet pool sweep -n {self.namespace}`",
            )


def list_displaced(records: Iterable[Record], keys: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem if claims were made under other partition keys than those in the settings.

    The keys are part of a record's name. A request would therefore be taken as new and get a second account,
    possibly in another partition.
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
