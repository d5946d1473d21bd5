"""A claim that an admission policy denies: for a while the API server goes by one that this update changed.

That it does so, and what policies deny, is tried by `tests/dynamic/test_seal.py` and `tests/cluster`.
"""

from __future__ import annotations

import sys
from typing import Any

import pulumi
import pytest

from components.account_pool import provider as provider_module
from components.account_pool.core.calls import ApiRefusal, Kind, Refused, Result
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.model import JsonObject
from components.account_pool.core.pool import Pool
from components.account_pool.provider import AccountClaimProvider
from tests.support.memory_pool import POOL, MemoryServer

DENIED = "configmaps is forbidden: ValidatingAdmissionPolicy 'credfleet-records.pool' denied request: made"
UNASKED = 'configmaps is forbidden: User "ada" cannot create resource'
WANTED = {"namespace": POOL, "tenant": "acme", "type": "aws", "holder": "h", "slot": "0", "partition": {}}


class Denying(MemoryServer):
    """A server that forbids to record claims, so often."""

    def __init__(self, text: str, times: int) -> None:
        super().__init__()
        self._text, self.left = text, times

    def create(self, kind: Kind, body: JsonObject) -> Result:
        if kind is Kind.RECORD and self.left:
            self.left -= 1
            return Refused(ApiRefusal.FORBIDDEN, self._text)
        return super().create(kind, body)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let waiting take no time, and a refusal shorten tracebacks of this test only; what was waited for."""
    waited: list[float] = []

    class Time:
        monotonic = staticmethod(lambda: sum(waited))
        sleep = staticmethod(waited.append)

    monkeypatch.setattr(provider_module, "time", Time)
    monkeypatch.setattr(sys, "tracebacklimit", 1_000, raising=False)
    return waited


def claimed(server: Denying, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    server.add_member("aws-1")
    pool = Pool(server, POOL, PoolConfigMap())

    def opened(*_target: object) -> Pool:
        return pool

    monkeypatch.setattr(Pool, "open", opened)
    asked = AccountClaimProvider()
    return asked.create(asked.check({}, WANTED).inputs).outs or {}


def test_a_claim_that_a_former_policy_denies_is_made_once_the_present_one_is_in_force(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert claimed(Denying(DENIED, 4), monkeypatch)["secretName"] == "aws-1"
    assert len(clock) == 4


def test_a_claim_that_stays_denied_is_refused_after_a_while(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(pulumi.RunError, match="denied request: made"):
        claimed(Denying(DENIED, 1_000), monkeypatch)
    assert 2 < sum(clock) < 5


def test_a_claim_without_the_right_to_it_is_refused_at_once(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(pulumi.RunError, match="cannot create"):
        claimed(Denying(UNASKED, 1), monkeypatch)
    assert clock == []
