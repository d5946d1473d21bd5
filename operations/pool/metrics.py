"""`credfleet pool metrics`: a pool as gauges in the text format of Prometheus.

Every type and partition has a sample for every state, zeros included: an alert on an empty pool needs a
series that is there. An account is available only when any tenant may claim it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from components.account_pool.model import Phase, Record
from components.account_pool.status import Account, PoolStatus, Standing
from components.labels import SHARED
from operations.cli.answer import Answer
from operations.pool.access import Where
from operations.pool.status import values

_NO_LABEL_CHARACTER: Final = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Gauge:
    """One metric: its name, what it says, and its samples, each a value under labels."""

    name: str
    help: str
    samples: tuple[tuple[Labels, int], ...]


def metrics(where: Where) -> Answer:
    """Return the metrics of a pool; raises as `Where.open_existing`."""
    pool = where.open_existing()
    gauges = gauges_of(where.namespace, pool.status(), pool.records(), pool.settings.partition_keys)
    return Answer(as_document(gauges), exposition(gauges).splitlines())


def gauges_of(
    namespace: str, status: PoolStatus, records: Iterable[Record], partition_keys: Sequence[str]
) -> tuple[Gauge, ...]:
    """Count a pool; a type and partition that only a claim remembers counts, too, with zeros."""
    records = tuple(records)
    labels = _Labels(namespace, partition_keys)
    nothing = dict.fromkeys(Standing, 0)
    remembered = {(record.partition.type, str(record.partition)): nothing for record in records}
    counts = sorted({**remembered, **status.counts}.items())
    shared = [account for account in status.accounts if account.capacity]
    phases = Counter(record.phase for record in records)
    return (
        Gauge(
            "credfleet_pool_accounts",
            "Accounts of the pool, by what they are to it at this moment.",
            tuple(
                ({**labels.of(*key), "state": str(standing)}, count[standing])
                for key, count in counts
                for standing in Standing
            ),
        ),
        Gauge(
            "credfleet_pool_available_accounts",
            "Accounts that any tenant may claim now.",
            tuple((labels.of(*key), count[Standing.FREE]) for key, count in counts),
        ),
        Gauge(
            "credfleet_pool_claimed_accounts",
            "Accounts a tenant has claimed.",
            tuple(_by_tenant(namespace, status.accounts)),
        ),
        Gauge(
            "credfleet_pool_shared_claims",
            "Claims on a shared account.",
            tuple(
                ({**labels.of(each.type, each.partition), "account": each.secret_name}, each.used)
                for each in shared
            ),
        ),
        Gauge(
            "credfleet_pool_shared_capacity",
            "Claims a shared account takes at once.",
            tuple(
                ({**labels.of(each.type, each.partition), "account": each.secret_name}, each.capacity)
                for each in shared
            ),
        ),
        Gauge(
            "credfleet_pool_tenant_shared_claims",
            "Claims of a tenant on shared accounts; without a tenant those whose record is gone.",
            tuple(_shared_by_tenant(namespace, shared)),
        ),
        Gauge(
            "credfleet_pool_problems",
            "Objects of the pool that cannot be read, and settings that its claims contradict.",
            (({"namespace": namespace}, len(status.problems)),),
        ),
        Gauge(
            "credfleet_pool_claims",
            "Claims on the pool, by how far they have come.",
            tuple(({"namespace": namespace, "phase": str(phase)}, phases[phase]) for phase in Phase),
        ),
    )


def exposition(gauges: Iterable[Gauge]) -> str:
    """Write gauges in the text exposition format, version 0.0.4."""
    return "".join(f"{line}\n" for gauge in gauges for line in _lines(gauge))


def as_document(gauges: Iterable[Gauge]) -> list[dict[str, Any]]:
    """Return gauges for machines that do not read the text format."""
    return [
        {
            "name": gauge.name,
            "help": gauge.help,
            "type": "gauge",
            "samples": [{"labels": dict(labels), "value": value} for labels, value in gauge.samples],
        }
        for gauge in gauges
    ]


def _lines(gauge: Gauge) -> Iterator[str]:
    yield f"# HELP {gauge.name} {gauge.help}"
    yield f"# TYPE {gauge.name} gauge"
    for labels, value in gauge.samples:
        pairs = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items())
        yield f"{gauge.name}{{{pairs}}} {value}"


class _Labels:
    """Names the labels of a pool: one for each partition key, under a name Prometheus takes."""

    def __init__(self, namespace: str, partition_keys: Iterable[str]) -> None:
        self._namespace = namespace
        self._names: dict[str, str] = {}
        for key in sorted(partition_keys):
            name = f"partition_{_NO_LABEL_CHARACTER.sub('_', key)}"
            while name in self._names.values():
                name += "_"
            self._names[key] = name

    def of(self, account_type: str, partition: str) -> Labels:
        """Return the labels of a type and partition; a key it does not have is empty."""
        present = values(partition)
        keys = {name: present.get(key, "") for key, name in self._names.items()}
        shared = "true" if SHARED in present else "false"
        return {"namespace": self._namespace, "type": account_type, **keys, "shared": shared}


def _shared_by_tenant(namespace: str, shared: Iterable[Account]) -> Iterator[tuple[Labels, int]]:
    claims = Counter((each.type, claim.tenant or "") for each in shared for claim in each.claims)
    for (account_type, tenant), count in sorted(claims.items()):
        yield {"namespace": namespace, "type": account_type, "tenant": tenant}, count


def _by_tenant(namespace: str, accounts: Iterable[Account]) -> Iterator[tuple[Labels, int]]:
    claimed = Counter(
        (each.type, each.tenant or "") for each in accounts if each.standing is Standing.CLAIMED
    )
    for (account_type, tenant), count in sorted(claimed.items()):
        yield {"namespace": namespace, "type": account_type, "tenant": tenant}, count
