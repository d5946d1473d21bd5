"""What claims and accounts say of each other that cannot both be so: told, fixed as advised, never given.

All that a user can bring about of it is visited in `test_worlds.py`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from components.account_pool.admission.record_transitions import build_record_machine
from components.account_pool.admission.state_machine import Verb
from components.account_pool.core import held_claims, protocol
from components.account_pool.core.calls import Found, Kind
from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import CLAIM_POLICY, CLAIM_TOKEN, POOL_STATE
from components.account_pool.core.model import Policy
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.records import Claimed
from components.account_pool.core.sweeping import SweepReport, recover, sweep
from components.labels import HYPERSCALER_TYPE, TENANT_NAME
from tests.support.admission_twin import Write, allows
from tests.support.memory_pool import KEB, POOL, Claims, MemoryServer, run
from tests.support.pool import server_of

FORGED = "claim-" + "f" * 40


def claim(server: MemoryServer) -> Claimed:
    return run(protocol.claim(Claims("a", "h", policy=Policy.CLEAN).wanted), server)


def swept(server: MemoryServer) -> SweepReport:
    return run(sweep(POOL, PoolConfigMap(), most=5, write=True, pending={}), server)


@pytest.fixture
def server() -> MemoryServer:
    return server_of("m0", "m1")


def test_a_second_record_of_a_slot_is_told_and_ends_as_is_advised(server: MemoryServer) -> None:
    record = server.record(claim(server).record)
    assert record is not None
    server.create(Kind.RECORD, replace(record, name=FORGED, holders={"i": 2}).render(POOL))
    (finding,) = swept(server).findings
    assert finding.place == f"claim {FORGED}"
    patch = re.search(r"kubectl patch configmap \S+ -n \S+ --type merge -p '([^']+)'", finding.fix)
    found = server.get(Kind.RECORD, FORGED)
    assert patch is not None
    assert isinstance(found, Found)
    after = {**found.body, "data": {**found.body["data"], **json.loads(patch[1])["data"]}}
    assert allows(build_record_machine(()), Write(found.body, after, frozenset({Verb.OPERATE})))
    server.replace(Kind.RECORD, after)
    assert swept(server).finished == (FORGED,)
    assert swept(server) == SweepReport()


def test_an_account_with_the_token_of_a_claim_on_another_is_told_and_swept(server: MemoryServer) -> None:
    name = claim(server).secret_name
    (other,) = {"m0", "m1"} - {name}
    held = server.member(name)
    server.by_hand(other, {TENANT_NAME: "a"}, held.annotations)
    report = swept(server)
    assert [finding.place for finding in report.findings] == [f"Secret {other}"]
    assert [*report.freed] == [other]
    assert server.member(other).state == "dirty"
    assert server.member(name) == held


def test_an_account_whose_claim_nobody_released_is_not_cleaned_until_it_is(server: MemoryServer) -> None:
    claimed = claim(server)
    pool = PoolOperator(server, POOL, PoolConfigMap())
    server.by_hand(claimed.secret_name, {POOL_STATE: "dirty"}, {CLAIM_TOKEN: None, CLAIM_POLICY: None})
    (left,) = pool.clean("k", lambda _: None)
    assert (left.member, left.outcome) == (claimed.secret_name, Wiped.IN_USE)
    assert f"`credfleet pool release -n {POOL} --type=aws --tenant=a" in str(left.reason)
    assert [each.place for each in pool.status().problems] == [f"claim {claimed.record}"]
    run(held_claims.release(claimed.record, "h", POOL), server)
    (done,) = pool.clean("k", lambda _: None)
    assert (done.outcome, pool.status().problems) == (Wiped.CLEANED, ())


@pytest.mark.parametrize(
    "labels", [{POOL_STATE: "cleaning"}, {HYPERSCALER_TYPE: None}], ids=["being cleaned", "out of the pool"]
)
def test_a_recovery_leaves_an_account_that_is_not_to_be_bound(
    server: MemoryServer, labels: dict[str, str | None]
) -> None:
    claimed = claim(server)
    server.by_hand(claimed.secret_name, labels, {CLAIM_TOKEN: None})
    assert run(recover(POOL, dry_run=False), server).lost == (claimed.record,)


@pytest.mark.parametrize(
    ("settings", "key"), [(PoolConfigMap(), TENANT_NAME), (PoolConfigMap(scheme=KEB), "tenantName")]
)
def test_the_label_that_is_to_be_put_back_is_called_as_the_pool_calls_it(
    settings: PoolConfigMap, key: str
) -> None:
    server = MemoryServer()
    labels = settings.scheme.labels({HYPERSCALER_TYPE: "aws"})
    server.create(Kind.MEMBER, {"metadata": {"name": "m0", "labels": labels, "annotations": {}}})
    pool = PoolOperator(server, POOL, settings)
    claimed = run(protocol.claim(Claims("a", "h").wanted), settings.scheme.over(server))
    server.by_hand("m0", {key: "b"})
    (problem,) = pool.status().problems
    assert problem.place == f"claim {claimed.record}"
    assert problem.fix.startswith(f"put {key}: a back on it, or release it")
