"""Consumers of a pool, and what each of them can claim.

A consumer is a group of holders with a common prefix, such as all stacks of a project. A pool without
consumers serves everyone; a pool with consumers serves only them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from components.account_pool.core.model import ClaimRequest, Partition
from components.account_pool.core.records import Record
from components.errors import NotAllowed, how_many
from components.naming import STACK_HOLDER, config_path

_ITS_STACK: Final = "in the stack that declares the pool"


@dataclass(frozen=True, slots=True)
class Consumer:
    """Consumer and its permissions.

    `holders`: exact holders, or prefixes that end at a slash. `types`, `partitions`: what it can claim; empty
    means all. `quotas`: type → maximum number of exclusive accounts.
    """

    name: str
    holders: tuple[str, ...]
    types: tuple[str, ...] = ()
    partitions: tuple[Mapping[str, str], ...] = ()
    quotas: Mapping[str, int] = field(default_factory=dict[str, int])

    def claims_as(self, holder: str) -> bool:
        """Return whether a holder belongs to this consumer."""
        return any(is_within(holder, prefix) for prefix in self.holders)

    def has(self, record: Record) -> bool:
        """Return whether one of its holders holds this claim on an exclusive account."""
        return not record.partition.shared and any(map(self.claims_as, record.holders))

    def quota_on(self, partition: Partition) -> int | None:
        """Return the quota for accounts of this partition; None if unlimited."""
        return None if partition.shared else self.quotas.get(partition.type)

    def render(self) -> dict[str, Any]:
        """Return it as data of the pool's ConfigMap."""
        said = {"types": [*self.types], "partitions": [dict(one) for one in self.partitions]}
        return {
            "holders": [*self.holders],
            **{key: texts for key, texts in said.items() if texts},
            **({"quotas": dict(self.quotas)} if self.quotas else {}),
        }

    @classmethod
    def parse(cls, name: str, said: Mapping[str, Any]) -> Consumer:
        """Parse a consumer; raises ValueError, TypeError, KeyError or AttributeError for invalid data."""
        return cls(
            name,
            tuple(map(str, said["holders"])),
            tuple(map(str, said.get("types", ()))),
            tuple(
                {str(key): str(value) for key, value in cast("dict[str, Any]", one).items()}
                for one in said.get("partitions", ())
            ),
            {str(key): int(most) for key, most in said.get("quotas", {}).items()},
        )


def is_within(holder: str, prefix: str) -> bool:
    """Return whether a holder equals the prefix, or starts with it and a slash."""
    return holder == prefix or holder.startswith(f"{prefix.rstrip('/')}/")


def consumer_of(consumers: Sequence[Consumer], holder: str) -> Consumer | None:
    """Return the consumer that a holder belongs to, or None."""
    return next((one for one in consumers if one.claims_as(holder)), None)


def refusal(consumers: Sequence[Consumer], wanted: ClaimRequest) -> NotAllowed | None:
    """Return why a pool with these consumers rejects this new claim; None if it accepts it."""
    if not consumers:
        return None
    consumer = consumer_of(consumers, wanted.holder)
    if consumer is None:
        return NotAllowed(
            place=f"holder {wanted.holder}",
            problem="the pool names its consumers, and this is not a holder of any of them:"
            f" {', '.join(sorted(one.name for one in consumers))}",
            fix=f"name it under {config_path('accountPool', 'consumers')} {_ITS_STACK}",
        )
    place = f"consumer {consumer.name}"
    said = config_path("accountPool", "consumers", consumer.name)
    partition = wanted.place
    if consumer.types and partition.type not in consumer.types:
        return NotAllowed(
            place=place,
            problem=f"the pool gives it accounts of {', '.join(consumer.types)}, and none of"
            f" {partition.type}",
            fix=f"ask for one of these, or add the type under {said}.types {_ITS_STACK}",
        )
    if consumer.partitions and partition.given not in [dict(one) for one in consumer.partitions]:
        return NotAllowed(
            place=place,
            problem=f"the pool gives it accounts {' or '.join(map(_in_words, consumer.partitions))},"
            f" and none {_in_words(partition.given)}",
            fix=f"ask for one of these, or add the partition under {said}.partitions {_ITS_STACK}",
        )
    return None


def _in_words(partition: Mapping[str, str]) -> str:
    said = ", ".join(f"{key}={value}" for key, value in sorted(partition.items()))
    return f"with {said}" if said else "without any partition label"


def keeping(records: Iterable[Record], consumers: Sequence[Consumer]) -> Iterator[str]:
    """Report which stacks keep claims that a pool with these consumers would not grant again."""
    records = sorted(records, key=lambda record: (record.tenant, record.slot))
    unserved: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        for holder in sorted(record.holders):
            wanted = ClaimRequest.at("", record.partition, record.tenant, record.slot, holder)
            if (refused := refusal(consumers, wanted)) is not None:
                unserved[holder_in_words(holder), refused.problem].append(f"{record.tenant}/{record.slot}")
    for (who, problem), claims in unserved.items():
        yield f"{who} keeps {', '.join(claims)}, and gets no more like it: {problem}"
    for consumer in consumers:
        for account_type, most in sorted(consumer.quotas.items()):
            has = [one for one in records if one.partition.type == account_type and consumer.has(one)]
            if len(has) > most:
                named = ", ".join(f"{one.tenant}/{one.slot} ({held_by(one)})" for one in has)
                yield (
                    f"consumer {consumer.name} has {how_many(len(has), f'{account_type} account')}, and may"
                    f" have {most}: it keeps {named}, and gets no more"
                )


def held_by(record: Record, consumers: Sequence[Consumer] = ()) -> str:
    """Return the holders of a claim as text, with their consumers."""
    whose = ((holder_in_words(holder), consumer_of(consumers, holder)) for holder in record.holders)
    return ", ".join(sorted({f"{who} of consumer {of.name}" if of else who for who, of in whose}))


def holder_in_words(holder: str) -> str:
    """Return a holder as text; a stack is shown as `stack NAME`."""
    return f"stack {stack}" if (stack := stack_of(holder)) else holder


def stack_of(holder: str) -> str | None:
    """Return the stack of a holder as organization/project/stack; None if the holder is not a stack."""
    kind, *parts = holder.split("/")
    return "/".join(parts[:3]) if kind == STACK_HOLDER and len(parts) > 2 else None
