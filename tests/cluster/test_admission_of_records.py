"""What the API server refuses of claims' records, and what it lets through: raw writes of several users."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.account_pool.core.keys import POOL_RECORD
from components.account_pool.core.model import JsonObject, Phase
from components.account_pool.core.records import Record
from tests.support.guarded_pool import MERGE, GuardedPool, record_of, refusal


@pytest.mark.parametrize("count", [400, 3000])
def test_a_claim_with_many_holders_goes_on(pool: GuardedPool, count: int) -> None:
    holders = {f"pulumi/organization/project/stack-{number}/tenant/slot": 1 for number in range(count)}
    crowded = replace(record_of(Phase.BOUND), holders=holders).render(pool.namespace)
    live = pool.api("operator", "ConfigMap").create(body=crowded, namespace=pool.namespace)
    record = Record.parse(live.to_dict())
    for written in (record.with_holder("one more"), record.without_holder(next(iter(holders)))):
        assert pool.replace("claimer", written) is None
    assert " claim-holders: " in str(pool.replace("claimer", replace(record, holders={"h": 1})))


def test_nothing_else_becomes_a_record(pool: GuardedPool) -> None:
    body = {**record_of(Phase.BOUND).render(pool.namespace), "metadata": {"name": "junk"}}
    made = pool.api("owner", "ConfigMap").create(body=body, namespace=pool.namespace)
    junk = replace(record_of(Phase.BOUND), name=made.metadata.name)
    labelled = {"metadata": {"labels": {POOL_RECORD: "true"}}}
    assert " claim-mark: " in str(patch(pool, "claimer", junk, labelled))
    assert patch(pool, "operator", junk, labelled) is None


def test_what_an_operator_hung_on_a_record_does_not_stop_its_claim(pool: GuardedPool) -> None:
    bound = pool.record(Phase.BOUND)
    kept = {"metadata": {"finalizers": ["example.com/kept"]}}
    api, where = pool.api("operator", "ConfigMap"), {"name": bound.name, "namespace": pool.namespace}
    live = Record.parse(api.patch(**where, body=kept, content_type=MERGE).to_dict())
    assert pool.replace("claimer", live.with_holder("h2")) is None
    assert " claim-finalizers: " in str(
        patch(pool, "claimer", live, {"metadata": {"finalizers": ["example.com/kept", "example.com/too"]}})
    )


def patch(pool: GuardedPool, user: str, record: Record, body: JsonObject) -> str | None:
    api, where = pool.api(user, "ConfigMap"), {"name": record.name, "namespace": pool.namespace}
    return refusal(lambda: api.patch(**where, body=body, content_type=MERGE, dry_run="All"))


def test_other_config_maps_of_the_namespace_are_nobodys_business(pool: GuardedPool) -> None:
    body = {"metadata": {"name": "anything"}, "data": {"phase": "Bound"}}
    assert pool.create("owner", "ConfigMap", body) is None
