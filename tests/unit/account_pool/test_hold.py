"""What goes on while a pool is held: nobody gets a new account, and who has one uses and releases it.

Where it is kept, only operators write: `tests/cluster/test_admission_of_settings.py`. That everything which
explains a claim says the same as the claim does is in `test_agreement.py`.
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest

from components.account_pool.core import pool as live
from components.account_pool.core.calls import Found, Kind, Result
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap, holds_of
from components.account_pool.core.driver import Driver
from components.account_pool.core.held_claims import Outcome
from components.account_pool.core.model import ClaimRequest, Phase, Policy
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.pool_settings import COPY_OF_HOLDS, sign_settings
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.account_pool.forecast.explanation import explain
from components.connection import ClusterTarget
from components.errors import Misconfigured, NotAllowed
from components.labels import TENANT_NAME
from operations.pool.status import as_document
from tests.support.memory_pool import POOL, MemoryServer
from tests.support.pool import server_of

ACME, MORE, GLOBEX = (
    ClaimRequest("acme", "aws", holder="h1", policy=Policy.RELEASE),
    ClaimRequest("acme", "aws", holder="h2"),
    ClaimRequest("globex", "aws", holder="h3"),
)
WHY = "accounts are moved"


@pytest.fixture
def server() -> MemoryServer:
    server = server_of("m0", "m1")
    server.add_member("own", {TENANT_NAME: "globex"})
    body = {"metadata": {"name": CONFIG_MAP}, "data": {**PoolConfigMap().render(), "poolUid": "u"}}
    server.create(Kind.RECORD, body)
    return server


def opened(server: MemoryServer) -> PoolOperator:
    return PoolOperator(server, POOL, PoolConfigMap())


def test_while_a_pool_is_held_accounts_are_used_and_released_but_no_new_one_is_given(
    server: MemoryServer,
) -> None:
    pool = opened(server)
    first = pool.claim(ACME)
    pool.hold(WHY)
    for new in (GLOBEX, ClaimRequest("acme", "aws", slot="another")):
        with pytest.raises(NotAllowed, match=WHY):
            pool.claim(new)
    assert pool.claim(MORE).secret_name == pool.claim(ACME).secret_name == first.secret_name
    for holder in ("h1", "h2"):
        assert pool.release(first.record, holder).outcome is Outcome.RELEASED
    with pytest.raises(NotAllowed, match=WHY):
        pool.claim(ACME)
    pool.hold("")
    assert pool.claim(GLOBEX).secret_name == "own"


def test_a_hold_changes_nothing_else_of_the_settings_and_leaves_nothing_behind(server: MemoryServer) -> None:
    def said() -> dict[str, str]:
        found = server.get(Kind.RECORD, CONFIG_MAP)
        assert isinstance(found, Found)
        return found.body["data"]

    pool, before = opened(server), said()
    pool.hold(WHY)
    assert said() == {**before, "hold": WHY}
    pool.hold("")
    assert said() == before


def test_a_process_that_runs_already_notices_within_a_second(server: MemoryServer) -> None:
    now = 100.0
    running = PoolOperator(server, POOL, PoolConfigMap(), clock=lambda: now)
    opened(server).hold(WHY)
    now += 1.01
    with pytest.raises(NotAllowed, match=WHY):
        running.claim(GLOBEX)
    opened(server).hold("")
    now += 1.01
    assert running.claim(GLOBEX).secret_name == "own"


def test_a_claim_that_was_begun_before_goes_on(server: MemoryServer) -> None:
    pool = opened(server)
    claimed = pool.claim(ACME)
    record = server.record(claimed.record)
    assert record is not None
    body = record.render(POOL)
    server.replace(Kind.RECORD, {**body, "data": {**body["data"], "phase": str(Phase.PENDING)}})
    pool.hold(WHY)
    assert forecast_claims(pool.look(), [ACME], ())[0].kind is ForecastKind.REUSE
    assert pool.claim(ACME).secret_name == claimed.secret_name


def test_everything_that_explains_says_that_the_pool_is_held_and_why(server: MemoryServer) -> None:
    pool = opened(server)
    pool.claim(ACME)
    pool.hold(WHY)
    snapshot = pool.look()
    told = explain(snapshot, GLOBEX, ())
    assert told.expected.kind is ForecastKind.REFUSED
    assert WHY in told.expected.text
    reasons = {each.member: each.reason for each in told.candidates if not each.taken}
    assert reasons["own"].endswith(f"but the pool is held, and gives no new accounts: {WHY}")
    assert WHY not in str(explain(snapshot, MORE, ()))
    assert as_document(POOL, pool.status())["hold"] == WHY


@pytest.mark.parametrize("scope", ["", "aws", "aws,eu-access=true"])
def test_hold_by_command_outlives_settings_that_are_deleted_and_made_again(
    server: MemoryServer, scope: str
) -> None:
    def open_pool() -> PoolOperator:
        return PoolOperator(server, POOL, Driver(server, POOL).run(sign_settings(), 1))

    def refuses(pool: PoolOperator) -> bool:
        with pytest.raises(NotAllowed, match=WHY):
            pool.claim(eu)
        return pool.look().holds.said == {scope: WHY}

    now, keys = 100.0, ("eu-access",)
    eu = ClaimRequest("acme", "aws", partition={"eu-access": "true"})
    server.add_member("eu", {"eu-access": "true"})
    running = PoolOperator(server, POOL, PoolConfigMap(keys), clock=lambda: now)
    running.hold(WHY, scope)
    server.remove(Kind.RECORD, CONFIG_MAP)
    now += 1.01
    assert refuses(running)
    server.create(Kind.RECORD, {"metadata": {"name": CONFIG_MAP}, "data": PoolConfigMap(keys).render()})
    now += 1.01
    assert refuses(running)
    assert refuses(open_pool())
    open_pool().hold("", scope)
    server.remove(Kind.RECORD, CONFIG_MAP)
    server.create(Kind.RECORD, {"metadata": {"name": CONFIG_MAP}, "data": PoolConfigMap(keys).render()})
    assert open_pool().claim(eu).secret_name == "eu"


def test_a_pool_without_settings_has_nowhere_to_say_it() -> None:
    with pytest.raises(Misconfigured, match=CONFIG_MAP):
        opened(MemoryServer()).hold(WHY)


def test_words_in_the_settings_that_hold_nothing_are_no_hold() -> None:
    for body in (None, {"data": None}, {"data": {"hold": ""}}):
        assert not holds_of(body)


def test_hold_of_one_part_leaves_the_others_and_goes_by_itself(server: MemoryServer) -> None:
    keys = ("eu-access",)
    server.add_member("eu", {"eu-access": "true"})
    pool = PoolOperator(server, POOL, PoolConfigMap(keys))
    pool.hold("a quota", "aws,eu-access=true")
    eu = replace(ACME, partition={"eu-access": "true"})
    with pytest.raises(NotAllowed, match=r"aws with eu-access=true is held, .*: a quota"):
        pool.claim(eu)
    assert forecast_claims(pool.look(), [eu], keys)[0].kind is ForecastKind.REFUSED
    assert pool.claim(ACME).secret_name in {"m0", "m1"}
    told = as_document(POOL, pool.status())
    assert (told["hold"], told["holds"]) == (None, {"aws,eu-access=true": "a quota"})
    pool.hold("a move", "gcp")
    pool.hold("", "aws,eu-access=true")
    assert pool.claim(eu).secret_name == "eu"
    assert as_document(POOL, pool.status())["holds"] == {"gcp": "a move"}
    pool.hold("")
    assert not pool.look().holds


def test_a_look_at_an_unsigned_pool_reads_what_operators_said_once(
    monkeypatch: pytest.MonkeyPatch, server: MemoryServer
) -> None:
    read: list[str] = []

    class Counted(MemoryServer):
        def get(self, kind: Kind, name: str) -> Result:
            read.append(name)
            return super().get(kind, name)

    counted = Counted()
    counted.objects = server.copy().objects
    counted.put(Kind.RECORD, {"metadata": {"name": CONFIG_MAP}, "data": PoolConfigMap().render()}, "u")
    monkeypatch.setattr(live, "_api", Mock(return_value=counted))
    PoolOperator.snapshot(ClusterTarget(), POOL)
    assert sorted(read) == [COPY_OF_HOLDS, CONFIG_MAP]
