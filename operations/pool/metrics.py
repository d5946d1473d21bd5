"""`credfleet pool metrics` and `serve`: gauges of a pool for Prometheus.

Every type and partition has a sample for every state, including zeros: an alert on an empty pool needs an
existing series. An account is available only if any tenant can claim it.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final, cast

import typer
from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.metrics_core import Metric
from pulumi_sandbox.steering import visible

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.model import KeyPhase, Phase
from components.account_pool.core.pool import Pool
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import Account, AccountUse, status_of
from components.connection import ClusterTarget
from components.errors import ExplainedError, Misused
from components.labels import SHARED
from operations.cli.answer import CommandResult
from operations.pool.access import PoolTarget
from operations.pool.status import WAIT, seconds_since, values

_NO_LABEL_CHARACTER: Final = re.compile(r"[^a-zA-Z0-9_]")

Labels = Mapping[str, str]
Samples = Iterable[tuple[Labels, float]]


def metrics(where: PoolTarget) -> CommandResult:
    """Return the metrics of a pool; raises as `PoolTarget.open_existing`."""
    where.open_existing()
    settings, snapshot = look(where.target(), where.namespace)
    families = [*gauges_of(where.namespace, snapshot, settings, datetime.now(UTC))]
    return CommandResult(as_document(families), exposition(families).splitlines())


@dataclass(frozen=True, slots=True, eq=False)
class PoolCollector:
    """Reads a pool at each scrape; after an error it only reports that, and logs the reason."""

    target: ClusterTarget
    namespace: str

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        measured: list[Metric] = []
        try:
            settings, snapshot = look(self.target, self.namespace)
            measured += gauges_of(self.namespace, snapshot, settings, datetime.now(UTC))
        except ExplainedError as error:
            typer.echo(visible(f"✗ {error}"), err=True)
        yield from (*measured, is_up(self.namespace, up=bool(measured)))


def serve(where: PoolTarget, listen: str) -> CommandResult:
    """Serve the metrics of a pool until SIGTERM or Ctrl-C; raises as `PoolTarget.open_existing`.

    Raises Misused for an invalid address, or one in use.
    """
    where.open_existing()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(PoolCollector(where.target(), where.namespace))
    host, _, port = listen.rpartition(":")
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry)
    except (OSError, ValueError, OverflowError) as error:
        raise Misused(
            place="--listen",
            problem=f"nothing can listen at {listen} ({error})",
            fix="name HOST:PORT that is free",
        ) from None
    where_it_is = "http://{}:{}/metrics".format(*server.server_address[:2])
    typer.echo(f"· pool {where.namespace}: {where_it_is}, until Ctrl-C", err=True)
    with contextlib.suppress(KeyboardInterrupt):
        thread.join()
    server.shutdown()
    return CommandResult({"namespace": where.namespace, "served": where_it_is}, [])


def look(target: ClusterTarget, namespace: str) -> tuple[PoolConfigMap, PoolSnapshot]:
    """Read a pool's settings and snapshot without writing; raises as `Pool.snapshot`."""
    return Pool.settings_of(target, namespace) or PoolConfigMap(), Pool.snapshot(target, namespace)


def is_up(namespace: str, *, up: bool) -> Metric:
    """Return the metric that tells whether a pool could be read."""
    help_ = "Whether the pool could be read. If not, no other metric is exported."
    return _gauge("credfleet_pool_up", help_, [({"namespace": namespace}, up)])


def gauges_of(
    namespace: str, snapshot: PoolSnapshot, settings: PoolConfigMap, now: datetime
) -> Iterator[Metric]:
    """Yield a pool's metrics; types and partitions that only occur in claims have zeros."""
    status, labels = status_of(snapshot, settings), _Labels(namespace, settings.partition_keys)
    nothing = dict.fromkeys(AccountUse, 0)
    remembered = {(r.partition.type, str(r.partition)): nothing for r in snapshot.records}
    counts = sorted({**remembered, **status.counts}.items())
    shared = [account for account in status.accounts if account.capacity]
    phases = Counter(record.phase for record in snapshot.records)
    here = {"namespace": namespace}
    yield _gauge(
        "credfleet_pool_accounts",
        "Accounts by state.",
        (
            ({**labels.of(*key), "state": str(standing)}, count[standing])
            for key, count in counts
            for standing in AccountUse
        ),
    )
    yield _gauge(
        "credfleet_pool_available_accounts",
        "Accounts that any tenant may claim now.",
        ((labels.of(*key), count[AccountUse.FREE]) for key, count in counts),
    )
    yield _gauge(
        "credfleet_pool_consumer_available_accounts",
        "Accounts that a consumer can claim now, within its quota.",
        (({**labels.of(s.type, s.partition), "consumer": s.consumer}, s.available) for s in status.shares),
    )
    quotas = {(s.consumer, s.type): (s.has, s.most) for s in status.shares if s.most is not None}
    for name, help_, which in (
        ("quota_used", "Accounts of a consumer that count toward its quota.", 0),
        ("quota", "Quota of a consumer for a type.", 1),
    ):
        yield _gauge(
            f"credfleet_pool_{name}_accounts",
            help_,
            (
                ({"namespace": namespace, "consumer": consumer, "type": type_}, float(both[which] or 0))
                for (consumer, type_), both in quotas.items()
            ),
        )
    yield _gauge(
        "credfleet_pool_oldest_account_age_seconds",
        "Age of the account that is longest in a state; 0 without one.",
        (
            ({**labels.of(*key), "state": str(standing)}, _oldest(status.accounts, key, standing, now))
            for key, _ in counts
            for standing in WAIT
        ),
    )
    yield _gauge(
        "credfleet_pool_claimed_accounts",
        "Accounts that a tenant has claimed.",
        _by_tenant(
            namespace,
            ((each.type, each.tenant) for each in status.accounts if each.standing is AccountUse.CLAIMED),
        ),
    )
    for name, help_, counted in (
        ("claims", "Claims on a shared account.", "used"),
        ("capacity", "Maximum claims on a shared account.", "capacity"),
    ):
        yield _gauge(
            f"credfleet_pool_shared_{name}",
            help_,
            ((labels.of_one(each), getattr(each, counted)) for each in shared),
        )
    yield _gauge(
        "credfleet_pool_tenant_shared_claims",
        "Claims of a tenant on shared accounts. An empty tenant counts those without a record.",
        _by_tenant(namespace, ((each.type, claim.tenant) for each in shared for claim in each.claims)),
    )
    yield _gauge(
        "credfleet_pool_key_end_timestamp_seconds",
        "End of an account's key in seconds since 1970, if it is known.",
        (
            (labels.of_one(one), datetime.fromisoformat(one.key_ends).timestamp())
            for one in status.accounts
            if one.key_ends
        ),
    )
    yield _gauge(
        "credfleet_pool_problems",
        "Unreadable objects, and settings that contradict claims.",
        [(here, len(status.problems))],
    )
    yield _gauge(
        "credfleet_pool_claims",
        "Claims by phase.",
        (({**here, "phase": str(phase)}, phases[phase]) for phase in Phase),
    )
    rotated = Counter(account.key_phase for account in status.accounts)
    yield _gauge(
        "credfleet_pool_rotated_keys",
        "Accounts whose key is being rotated, by phase.",
        (({**here, "phase": str(phase)}, rotated[phase]) for phase in KeyPhase),
    )
    yield _gauge(
        "credfleet_pool_held",
        "Whether the pool, or a part of it, is held.",
        [(here, bool(snapshot.holds))],
    )


def _gauge(name: str, help_: str, samples: Samples) -> Metric:
    family = Metric(name, help_, "gauge")
    for labels, value in samples:
        family.add_sample(name, dict(labels), value)
    return family


def exposition(families: Iterable[Metric]) -> str:
    """Return metrics in the text exposition format, version 0.0.4."""
    return generate_latest(cast(Any, SimpleNamespace(collect=lambda: families))).decode()


def as_document(families: Iterable[Metric]) -> list[dict[str, Any]]:
    """Return metrics as JSON documents."""
    return [
        {
            "name": family.name,
            "help": family.documentation,
            "type": family.type,
            "samples": [
                {**({} if s.name == family.name else {"name": s.name}), "labels": s.labels, "value": s.value}
                for s in family.samples
            ],
        }
        for family in families
    ]


def _oldest(accounts: Iterable[Account], key: tuple[str, str], standing: AccountUse, now: datetime) -> float:
    those = (each for each in accounts if (each.type, each.partition) == key and each.standing is standing)
    return max((seconds_since(each.since, now) for each in those), default=0)


class _Labels:
    """The metric labels of a pool: one for each partition key, with a name valid in Prometheus."""

    def __init__(self, namespace: str, partition_keys: Iterable[str]) -> None:
        self._namespace = namespace
        self._names: dict[str, str] = {}
        for key in sorted(partition_keys):
            name = f"partition_{_NO_LABEL_CHARACTER.sub('_', key)}"
            while name in self._names.values():
                name += "_"
            self._names[key] = name

    def of(self, account_type: str, partition: str) -> Labels:
        """Return the labels of a type and partition; missing keys are empty."""
        present = values(partition)
        keys = {name: present.get(key, "") for key, name in self._names.items()}
        shared = "true" if SHARED in present else "false"
        return {"namespace": self._namespace, "type": account_type, **keys, "shared": shared}

    def of_one(self, account: Account) -> Labels:
        """Return the labels of one account."""
        return {**self.of(account.type, account.partition), "account": account.secret_name}


def _by_tenant(namespace: str, claims: Iterable[tuple[str, str | None]]) -> Iterator[tuple[Labels, int]]:
    """Count claims, given by type and tenant."""
    counted = Counter((account_type, tenant or "") for account_type, tenant in claims)
    for (account_type, tenant), count in sorted(counted.items()):
        yield {"namespace": namespace, "type": account_type, "tenant": tenant}, count
