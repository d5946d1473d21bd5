"""The settings of a pool lost or changed: what would get a tenant a second account for one slot is refused.

In memory. Who may delete or change the settings at all is decided by the admission policy.
"""

from collections.abc import Sequence

import pytest

from components.account_pool.core.calls import Kind, Result
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.keys import POOL_RECORD
from components.account_pool.core.model import ClaimRequest, JsonObject
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.errors import LostMember, Misconfigured
from tests.support.memory_pool import KEB, POOL, MemoryServer
from tests.support.pool import fill

KEYS = ("eu-access",)
DECLARED = PoolConfigMap(KEYS)
ACME = ClaimRequest("acme", "aws", holder="h1")
GLOBEX = ClaimRequest("globex", "aws", holder="h2")
FIX = "run `pulumi up --refresh` in the stack that declares the pool, which writes its settings again"


class CountingServer(MemoryServer):
    """Counts how often records are listed."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def list(self, kind: Kind, selector: str, cursor: str, limit: int) -> Result:
        self.looks += kind is Kind.RECORD
        return super().list(kind, selector, cursor, limit)


@pytest.fixture
def server() -> CountingServer:
    """A pool with one claim, made under its keys, and room for others."""
    server = CountingServer()
    fill(server, "m0", "m1", "m2", eu={"eu-access": "true"})
    PoolOperator(server, POOL, DECLARED).claim(ACME)
    server.looks = 0
    return server


@pytest.mark.parametrize("keys", [(), ("region",), ("eu-access", "region")], ids=["lost", "other", "more"])
@pytest.mark.parametrize("request_", [ACME, GLOBEX], ids=["the same request", "a newcomer"])
def test_no_claim_begins_where_claims_were_made_under_other_keys(
    server: CountingServer, keys: Sequence[str], request_: ClaimRequest
) -> None:
    pool = PoolOperator(server, POOL, PoolConfigMap(tuple(keys)))
    before = [*server.members], [*server.records]
    (expected,) = forecast_claims(pool.look(), [request_], keys)
    with pytest.raises(Misconfigured, match="claims were made under eu-access, such as claim-") as refused:
        pool.claim(request_)
    assert (refused.value.place, refused.value.fix) == (f"ConfigMap {CONFIG_MAP}", FIX)
    assert expected.kind is ForecastKind.REFUSED
    assert ([*server.members], [*server.records]) == before


def test_no_account_is_adopted_where_claims_were_made_under_other_keys(server: CountingServer) -> None:
    server.add_member("own", {"tenant-name": "globex"})
    pool = PoolOperator(server, POOL, PoolConfigMap())
    with pytest.raises(Misconfigured, match="claims were made under eu-access"):
        pool.adopt("own", ClaimRequest("globex", "aws"))


def test_status_and_sweep_tell_that_claims_were_made_under_other_keys(server: CountingServer) -> None:
    pool = PoolOperator(server, POOL, PoolConfigMap())
    for problems in (pool.status().problems, pool.sweep(settle_seconds=0).findings):
        assert [(each.place, each.fix) for each in problems] == [(f"ConfigMap {CONFIG_MAP}", FIX)]
    assert PoolOperator(server, POOL, DECLARED).status().problems == ()


def test_whoever_does_not_know_the_words_of_a_pool_puts_no_owner_back_in_others() -> None:
    server = MemoryServer()
    labels = {"hyperscalerType": "aws"}
    server.create(Kind.MEMBER, {"metadata": {"name": "m0", "labels": labels, "annotations": {}}})
    kyma = PoolConfigMap(scheme=KEB)
    claimed = PoolOperator(server, POOL, kyma).claim(ACME)
    lost = PoolOperator(server, POOL, PoolConfigMap())
    with pytest.raises(LostMember):
        lost.claim(ACME)
    with pytest.raises(LostMember):
        lost.read(claimed.record, claimed.holder)
    assert server.member("m0").labels == {**labels, "tenantName": "acme"}
    assert PoolOperator(server, POOL, kyma).claim(ACME).secret_name == "m0"


def test_a_pool_is_looked_at_once_and_only_for_claims_that_are_new(server: CountingServer) -> None:
    pool = PoolOperator(server, POOL, DECLARED)
    assert pool.claim(ACME).reused
    assert server.looks == 0
    pool.claim(GLOBEX)
    pool.claim(ClaimRequest("globex", "aws", "1", holder="h2"))
    assert server.looks == 1


def test_a_record_that_cannot_be_read_hides_no_claim_made_under_other_keys(server: CountingServer) -> None:
    metadata: JsonObject = {"name": "claim-0", "labels": {POOL_RECORD: "true"}}
    server.create(Kind.RECORD, {"metadata": metadata})
    with pytest.raises(Misconfigured, match="claims were made under eu-access"):
        PoolOperator(server, POOL, PoolConfigMap()).claim(GLOBEX)


def test_partition_keys_that_are_a_text_are_not_taken_letter_by_letter() -> None:
    body: JsonObject = {
        "metadata": {"name": CONFIG_MAP, "namespace": POOL, "uid": "u"},
        "data": {"formatVersion": "1", "partitionKeys": '"eu-access"'},
    }
    with pytest.raises(Misconfigured, match="its keys cannot be read"):
        PoolConfigMap.parse(body)
