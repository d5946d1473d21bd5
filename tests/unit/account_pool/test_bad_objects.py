"""One object of a pool that nobody can read: everything else is read and done, and it is told with its fix.

In memory; the roster's check without the host that runs it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from pulumi.dynamic import CheckFailure

from components.account_pool import roster
from components.account_pool.core import pool as live
from components.account_pool.core.calls import Kind
from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import (
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    POOL_RECORD,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
)
from components.account_pool.core.model import ClaimRequest, JsonObject, Member, Phase
from components.account_pool.core.pool_operator import Cleaned, PoolOperator
from components.account_pool.core.status import AccountUse
from components.account_pool.core.tokens import Token
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.account_pool.forecast.explanation import explain
from components.account_pool.roster import PoolRosterProvider
from components.connection import ClusterTarget
from components.dynamic import Properties
from components.errors import Misconfigured, StoreError
from components.labels import SHARED, TENANT_NAME
from tests.support.memory_pool import POOL, MemoryServer
from tests.support.pool import server_of

ACME = ClaimRequest("acme", "aws", holder="h1")
NEWCOMER = ClaimRequest("globex", "aws", holder="h2")
JUNK: Mapping[str, JsonObject] = {
    "no data": {},
    "other data": {"data": {"hello": "world"}},
    "nested deep": {"data": {"holders": "[" * 100_000}},
    "no tenant": {},
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> MemoryServer:
    """A pool with a claimed account and a free one, which every static way of `Pool` sees, too."""
    server = server_of("m0", "m1")
    PoolOperator(server, POOL, PoolConfigMap()).claim(ACME)

    def api(*_given: object) -> MemoryServer:
        return server

    monkeypatch.setattr(live, "_api", api)
    return server


@pytest.fixture
def pool(server: MemoryServer) -> PoolOperator:
    return PoolOperator(server, POOL, PoolConfigMap())


@pytest.fixture(params=JUNK.values(), ids=tuple(JUNK))
def junk(request: pytest.FixtureRequest, server: MemoryServer, pool: PoolOperator) -> str:
    """A ConfigMap that bears the label of records and is none; returns its place."""
    body: JsonObject = dict(request.param)
    if request.node.callspec.id == "no tenant":
        (record,) = pool.records()
        body = {"data": {**record.render(POOL)["data"], "tenant": " "}}
    metadata = {"name": "claim-junk", "labels": {POOL_RECORD: "true"}}
    server.create(Kind.RECORD, {**body, "metadata": metadata})
    return "ConfigMap claim-junk"


TARGET = ClusterTarget()


def test_every_reader_tells_a_record_that_cannot_be_read_and_reads_the_rest(
    pool: PoolOperator, junk: str
) -> None:
    status = pool.status()
    assert sorted(each.standing for each in status.accounts) == [AccountUse.CLAIMED, AccountUse.FREE]
    assert [each.place for each in status.problems] == [junk]
    assert [each.tenant for each in pool.records()] == ["acme"]
    snapshot = PoolOperator.snapshot(TARGET, POOL)
    assert snapshot.unreadable == {"claim-junk"}
    assert [each.place for each in snapshot.problems] == [junk]
    assert [each.place for each in PoolOperator.survey(TARGET, POOL, PoolConfigMap()).findings] == [junk]
    recovered = PoolOperator.recover(TARGET, POOL)
    assert len(recovered.intact) == 1
    assert [each.place for each in recovered.problems] == [junk]


def test_an_account_whose_record_cannot_be_read_is_not_called_free_to_sweep(
    server: MemoryServer, pool: PoolOperator, junk: str
) -> None:
    server.by_hand("m0", {TENANT_NAME: "globex"}, {CLAIM_TOKEN: str(Token("claim-junk", "uid", 1))})
    (account,) = (each for each in pool.status().accounts if each.secret_name == "m0")
    assert (account.standing, account.reason) == (AccountUse.CLAIMED, f"claimed, but {junk} cannot be read")
    told = explain(pool.look(), ACME, ())
    assert (account.secret_name, account.reason) in [(each.member, each.reason) for each in told.candidates]
    assert pool.sweep(settle_seconds=0).freed == ()


def test_a_claim_whose_own_record_cannot_be_read_is_foreseen_to_be_refused(
    server: MemoryServer, pool: PoolOperator
) -> None:
    name = pool.record_of(NEWCOMER)
    server.create(Kind.RECORD, {"metadata": {"name": name, "labels": {POOL_RECORD: "true"}}})
    (expected,) = forecast_claims(pool.look(), [NEWCOMER], ())
    assert expected.kind is ForecastKind.REFUSED
    with pytest.raises(Misconfigured, match=name):
        pool.claim(NEWCOMER)


BEFORE = {
    "namespace": POOL,
    "partitionKeys": [],
    "members": {"m0": {"type": "aws", "accountId": "1"}, "m1": {"type": "aws", "accountId": "2"}},
}


def preview(news: Properties, olds: Properties) -> Sequence[CheckFailure]:
    return PoolRosterProvider().failures(news, olds)


def test_a_preview_tells_a_record_that_cannot_be_read_and_still_refuses(
    monkeypatch: pytest.MonkeyPatch, pool: PoolOperator, junk: str
) -> None:
    told: list[str] = []
    monkeypatch.setattr(roster, "log", told.append)
    (failure,) = preview({**BEFORE, "members": {}}, BEFORE)
    assert "it is claimed by tenant acme" in failure.reason
    assert [line for line in told if line.startswith(f"warning: {junk}: ")]
    (keys,) = preview({**BEFORE, "partitionKeys": ["eu-access"]}, BEFORE)
    assert "2 claims recorded under the former keys" in keys.reason


def test_labels_keep_their_names_while_anything_is_written_under_them(
    monkeypatch: pytest.MonkeyPatch, pool: PoolOperator
) -> None:
    monkeypatch.setattr(roster, "log", list[str]().append)
    (failure,) = preview({**BEFORE, "labels": {"tenant": "tenantName"}}, BEFORE)
    assert failure.reason.startswith("credfleet:accountPool.labels: 1 claim recorded and ")


def test_a_preview_does_not_pass_over_a_pool_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: PoolRosterProvider, _namespace: str) -> None:
        raise Misconfigured(place="configmaps", problem="refused", fix="fix it")

    monkeypatch.setattr(PoolRosterProvider, "_census", broken)
    (failure,) = preview({**BEFORE, "members": {}}, BEFORE)
    assert failure.reason == "configmaps: refused\n→ fix it"


@pytest.mark.parametrize("annotations", [{CLAIM_TOKEN: "garbage"}, {CLAIM_TOKEN: "a.b." + "1" * 5000}])
def test_a_dirty_account_with_an_unreadable_token_is_told_and_stops_no_other(
    server: MemoryServer, pool: PoolOperator, annotations: dict[str, str]
) -> None:
    server.by_hand("m0", {POOL_STATE: "dirty"}, annotations)
    server.add_member("m2", {POOL_STATE: "dirty"})
    before = server.member("m0")
    assert [member.name for member in pool.cleanable("k")] == ["m2"]
    cleaned, told = pool.clean("k", lambda _: None)
    assert cleaned == Cleaned("m2", Wiped.CLEANED)
    assert (told.member, told.outcome) == ("m0", Wiped.UNREADABLE)
    assert told.reason is not None
    assert "is not a token of this protocol → restore it, or remove it if the account" in told.reason
    assert server.member("m0") == before


def test_an_unforeseen_exception_of_a_cleaner_quarantines_its_account_and_stops_no_other(
    server: MemoryServer, pool: PoolOperator
) -> None:
    server.by_hand("m0", {POOL_STATE: "dirty"})
    server.add_member("m2", {POOL_STATE: "dirty"})
    server.add_member("m3", {POOL_STATE: "dirty"})

    def wipe(member: Member) -> str | None:
        match member.name:
            case "m0":
                raise ValueError("AKIA-secret")
            case "m2":
                raise StoreError(code="absent", place="store", problem="its store is gone", fix="make it")
            case _:
                return None

    done = {each.member: each for each in pool.clean("k", wipe)}
    assert {name: each.outcome for name, each in done.items()} == {
        "m0": Wiped.QUARANTINED,
        "m2": Wiped.QUARANTINED,
        "m3": Wiped.CLEANED,
    }
    assert done["m0"].reason == "the cleaner failed with an unforeseen ValueError"
    assert done["m2"].reason == "the cleaner failed: its store is gone"
    assert "AKIA" not in repr(server)
    assert not any(CLEANING_TOKEN in member.annotations for member in server.members)


def test_a_shared_account_whose_claims_cannot_be_read_stops_neither_sweep_nor_recovery(
    server: MemoryServer, pool: PoolOperator
) -> None:
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "1"})
    pool.claim(ClaimRequest("acme", "aws", "x", shared=True))
    server.by_hand("s0", {}, {SHARED_CLAIMS: "garbage"})
    before = server.member("s0")
    assert [each.place for each in pool.sweep(settle_seconds=0).findings] == ["Secret s0"]
    recovered = PoolOperator.recover(TARGET, POOL)
    assert len(recovered.intact) == 1
    assert [each.place for each in recovered.problems] == ["Secret s0"]
    assert server.member("s0") == before


def test_a_release_that_nobody_can_finish_stops_no_other(server: MemoryServer, pool: PoolOperator) -> None:
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "1"})
    pool.claim(ClaimRequest("acme", "aws", "x", shared=True))
    for record in list(server.records):
        begun = replace(record.without_holder(next(iter(record.holders))), phase=Phase.RELEASING)
        server.replace(Kind.RECORD, begun.render(POOL))
    server.by_hand("s0", {}, {SHARED_CLAIMS: "garbage"})
    assert len(pool.sweep(settle_seconds=0).finished) == 1
    assert [record.partition.shared for record in server.records] == [True]
