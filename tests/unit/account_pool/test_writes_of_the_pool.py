"""Every write of a pool's operations is a transition of its user: run in memory, beside the twin."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from components.account_pool.admission.state_machine import Verb
from components.account_pool.admission.transitions import list_state_machines
from components.account_pool.core.calls import ApiRefusal, Call, Found, Get, Kind, ListPage, Refused, Result
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.driver import Driver
from components.account_pool.core.keys import SHARED_CAPACITY
from components.account_pool.core.model import ClaimRequest, JsonObject, Policy
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.sweeping import recover
from components.errors import PoolError
from components.labels import SHARED, TENANT_NAME
from tests.support.admission_twin import Write, allows
from tests.support.memory_pool import POOL, MemoryServer, name_of
from tests.support.proving import counted, tried

MEMBERS, RECORDS, *_ = list_state_machines(())
MACHINES = {Kind.MEMBER: MEMBERS, Kind.RECORD: RECORDS}


class Watched:
    """A server in memory that notes each write which its user may not make."""

    def __init__(self, server: MemoryServer, verb: Verb, refused: list[str]) -> None:
        self._server = server
        self._verb = verb
        self._refused = refused

    def __call__(self, call: Call) -> Result:
        if isinstance(call, Get | ListPage):
            return self._server(call)
        if call.kind is Kind.EVENT:
            return Refused(ApiRefusal.FORBIDDEN, "Events are written by a thread of their own")
        kind, name = call.kind, name_of(call)
        before = self._body(kind, name)
        result = self._server(call)
        after = self._body(kind, name)
        if kind in MACHINES and before != after:
            tried("writes of the pool's own operations")
            if not allows(MACHINES[kind], Write(before, after, frozenset({self._verb}))):
                self._refused.append(f"{self._verb}: {before} → {after}")
        return result

    def _body(self, kind: Kind, name: str) -> JsonObject | None:
        found = self._server.get(kind, name)
        return found.body if isinstance(found, Found) else None


@pytest.mark.parametrize("seed", range(counted(12, 400)))
def test_every_write_of_an_operation_is_a_transition_of_its_user(seed: int) -> None:
    server, refused, chance = MemoryServer(), list[str](), random.Random(seed)
    for number in range(3):
        server.add_member(f"m{number}")
    server.add_member("own", {TENANT_NAME: "a"})
    server.add_member("shared", {SHARED: "true"}, {SHARED_CAPACITY: "2"})
    names = [member.name for member in server.members]
    claimer, cleaner, operator = (
        PoolOperator(Watched(server, verb, refused), POOL, PoolConfigMap())
        for verb in (Verb.CLAIM, Verb.CLEAN, Verb.OPERATE)
    )
    driver = Driver(Watched(server, Verb.OPERATE, refused), POOL)

    def request() -> ClaimRequest:
        tenant, slot, holder = chance.choice("ab"), chance.choice("01"), chance.choice("hi")
        policy, shared = chance.choice(list(Policy)), chance.random() < 0.2
        return ClaimRequest(tenant, "aws", slot, shared=shared, holder=holder, policy=policy, limit=2)

    def held() -> tuple[str, str]:
        record = chance.choice(list(server.records))
        return record.name, chance.choice([*record.holders, "h"])

    operations: list[Callable[[], Any]] = [
        *[lambda: claimer.claim(request())] * 4,
        *[lambda: claimer.release(*held())] * 3,
        lambda: claimer.update(*held(), policy=chance.choice(list(Policy)), new_holder="j"),
        *[lambda: cleaner.clean("janitor", lambda _: chance.choice([None, None, "it would not go"]))] * 2,
        lambda: operator.quarantine(chance.choice(names), "odd bills"),
        lambda: operator.unquarantine(chance.choice(names), decommissioned=True),
        lambda: operator.decommission(chance.choice(names)),
        lambda: operator.mark_dirty(chance.choice(names), "used by hand"),
        lambda: operator.take_back(chance.choice(names)),
        lambda: claimer.sweep(settle_seconds=0),
        lambda: server.remove(Kind.RECORD, held()[0]),
        lambda: (server.restore(), driver.run(recover(POOL, dry_run=False), 10.0)),
    ]
    for _ in range(60):
        with suppress(PoolError, IndexError):
            chance.choice(operations)()
    assert not refused, refused[0]
