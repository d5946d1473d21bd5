"""The metrics of a pool, read back as Prometheus reads them (docs/compatibility.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import (
    CLAIM_TOKEN,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
)
from components.account_pool.core.model import Member, Partition
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.labels import HYPERSCALER_TYPE, SHARED
from operations.pool.metrics import exposition, gauges_of
from tests.support.cases import tabled
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer
from tests.support.pool import settle
from tests.support.records import BOUND

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]
NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)


def parsed(text: str) -> Samples:
    """Read an exposition by the parser of Prometheus' library: samples by name, then by sorted labels."""
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        samples.setdefault(family.name, {})
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in samples.setdefault(sample.name, {}), "the same series twice"
            samples[sample.name][labels] = sample.value
    return samples


def member(name: str, notes: Mapping[str, str] | None = None, **labels: str) -> Member:
    named = {HYPERSCALER_TYPE: "aws"} | {key.replace("_", "-"): value for key, value in labels.items()}
    return Member(name, f"uid-{name}", "1", named, notes or {})


def labelled(name: str, key: str, value: str) -> Member:
    made = member(name)
    return replace(made, labels={**made.labels, key: value})


def record(tenant: str, account: str, account_type: str = "aws", **partition: str) -> Record:
    named = {key.replace("_", "-"): value for key, value in partition.items()}
    return replace(
        BOUND,
        name=f"claim-{account}",
        tenant=tenant,
        partition=Partition.of(account_type, named, ("eu-access",)),
        member=account,
        member_uid=f"uid-{account}",
    )


def claimed(account: str, tenant: str, *, eu: bool = False) -> tuple[Member, Record]:
    labels = {"eu_access": "true"} if eu else {}
    made = record(tenant, account, **labels)
    return member(account, {CLAIM_TOKEN: str(made.token)}, tenant_name=tenant, **labels), made


def measured(
    members: tuple[Member, ...], records: tuple[Record, ...] = (), keys: tuple[str, ...] = ("eu-access",)
) -> Samples:
    snapshot, settings = PoolSnapshot(tuple(members), tuple(records)), PoolConfigMap(partition_keys=keys)
    return parsed(exposition(gauges_of("account-pool", snapshot, settings, NOW)))


def value(samples: Samples, name: str, **labels: str) -> float | None:
    """Find the one series with these labels among others."""
    found = [each for key, each in samples[name].items() if labels.items() <= dict(key).items()]
    assert len(found) <= 1
    return found[0] if found else None


AVAILABLE = "credfleet_pool_available_accounts"
ACCOUNTS = "credfleet_pool_accounts"


def test_available_counts_free_accounts_and_claimed_is_told_by_tenant() -> None:
    mine, mine_record = claimed("aws-3", "acme")
    azure = labelled("azure-1", HYPERSCALER_TYPE, "azure")
    samples = measured((member("aws-1"), member("aws-2"), mine, azure), (mine_record,))
    assert value(samples, AVAILABLE, type="aws") == 2
    assert value(samples, AVAILABLE, type="azure") == 1
    assert value(samples, "credfleet_pool_claimed_accounts", type="aws", tenant="acme") == 1


@tabled("labels, notes")
def test_what_nobody_can_claim_is_not_available(labels: dict[str, str], notes: dict[str, str]) -> None:
    other = member("m", notes)
    other = replace(other, labels={**other.labels, **labels})
    assert value(measured((other,)), AVAILABLE, type="aws") == 0


def test_accounts_under_eu_access_are_counted_apart() -> None:
    mine, mine_record = claimed("aws-eu-1", "acme", eu=True)
    samples = measured((member("aws-1"), mine), (mine_record,))
    assert value(samples, AVAILABLE, type="aws", partition_eu_access="true") == 0
    assert value(samples, AVAILABLE, type="aws", partition_eu_access="") == 1


def test_a_partition_that_only_a_claim_remembers_is_there_with_zeros() -> None:
    samples = measured((), (record("acme", "gone"),))
    assert value(samples, AVAILABLE, type="aws") == 0
    assert value(samples, ACCOUNTS, type="aws", state="claimed") == 0


def test_a_shared_account_is_counted_by_its_claims_and_is_never_available() -> None:
    notes = {SHARED_CAPACITY: "3", SHARED_CLAIMS: json.dumps({"claim-0.u.1": "a"})}
    shared = replace(labelled("aws-shared", SHARED, "true"), annotations=notes)
    samples = measured((shared, member("aws-1")))
    assert value(samples, AVAILABLE, type="aws", shared="true") == 0
    assert value(samples, AVAILABLE, type="aws", shared="false") == 1
    assert value(samples, "credfleet_pool_shared_claims", account="aws-shared") == 1
    assert value(samples, "credfleet_pool_shared_capacity", account="aws-shared") == 3


def test_claims_on_shared_accounts_are_counted_by_their_tenants() -> None:
    claims = [
        replace(record(tenant, "aws-shared"), name=f"claim-{n}")
        for n, tenant in enumerate(["acme", "acme", "b"])
    ]
    tokens = {str(each.token): each.slot for each in claims} | {"claim-9.gone.1": "old"}
    notes = {SHARED_CAPACITY: "5", SHARED_CLAIMS: json.dumps(tokens)}
    shared = replace(labelled("aws-shared", SHARED, "true"), annotations=notes)
    samples = measured((shared,), tuple(claims))["credfleet_pool_tenant_shared_claims"]
    assert {dict(labels)["tenant"]: count for labels, count in samples.items()} == {"": 1, "acme": 2, "b": 1}


def test_what_nobody_can_read_is_counted_as_a_problem() -> None:
    snapshot = PoolSnapshot((member("aws-1"),), (), frozenset({"claim-1", "claim-2"}))
    samples = parsed(exposition(gauges_of("account-pool", snapshot, PoolConfigMap(), NOW)))
    assert list(samples["credfleet_pool_problems"].values()) == [2]
    assert list(measured((member("aws-1"),))["credfleet_pool_problems"].values()) == [0]


def test_partition_keys_that_prometheus_cannot_tell_apart_stay_apart() -> None:
    keys = ("a.b", "a-b")
    samples = measured((labelled("m1", "a.b", "x"), labelled("m2", "a-b", "x")), keys=keys)
    assert sum(samples[AVAILABLE].values()) == 2
    assert len(samples[AVAILABLE]) == 2


@pytest.mark.parametrize("text", ['quo"te', "back\\slash", "new\nline", "\\n", "ümlaut", 'a="b",c="d"'])
def test_any_tenant_is_read_back_as_it_is(text: str) -> None:
    mine, mine_record = claimed("aws-1", text)
    samples = measured((mine,), (mine_record,))
    assert value(samples, "credfleet_pool_claimed_accounts", tenant=text) == 1


@pytest.mark.parametrize("state", ["dirty", "cleaning", "quarantined"])
def test_the_age_of_what_waits_longest_is_told_by_state_and_0_where_none_waits(state: str) -> None:
    since = ("2026-11-22T02:00:00Z", "2026-11-21T03:00:00Z", "2026-11-22T03:00:09Z")
    waiting = [
        replace(labelled(f"aws-{n}", POOL_STATE, state), state_since=each) for n, each in enumerate(since)
    ]
    ages = measured(tuple(waiting))["credfleet_pool_oldest_account_age_seconds"]
    assert {dict(key)["state"]: age for key, age in ages.items()} == {
        "dirty": 0,
        "cleaning": 0,
        "quarantined": 0,
        state: 86400,
    }


def test_claims_are_counted_in_every_phase_zeros_included() -> None:
    samples = measured((), (record("acme", "aws-1"),))["credfleet_pool_claims"]
    assert {dict(key)["phase"]: count for key, count in samples.items()} == {
        "Pending": 0,
        "Bound": 1,
        "Releasing": 0,
    }


def test_command_prints_nothing_but_the_exposition_or_each_gauge_with_its_samples(
    server: MemoryServer,
) -> None:
    settle(server, PoolConfigMap(partition_keys=("eu-access",)))
    server.add_member("aws-1")
    shown = credfleet("pool", "metrics", "-n", NAMESPACE).stdout
    assert value(parsed(shown), AVAILABLE, namespace=NAMESPACE, type="aws") == 1
    labels = {"namespace": NAMESPACE, "type": "aws", "partition_eu_access": "", "shared": "false"}
    assert answer("metrics")[1] == {
        "name": AVAILABLE,
        "help": "Accounts that any tenant may claim now.",
        "type": "gauge",
        "samples": [{"labels": labels, "value": 1}],
    }
