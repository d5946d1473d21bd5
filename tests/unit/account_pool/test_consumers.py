"""What a preview says of the consumers of a pool: who gets no more, and who keeps what it has."""

from components.account_pool.core.consumers import Consumer, keeping
from components.account_pool.core.model import ClaimRequest, Member, Partition, Phase, Policy, record_name
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast.claims import ForecastKind, forecast_claims, vacancies
from components.errors import NotAllowed, QuotaReached
from components.labels import HYPERSCALER_TYPE

AWS = Partition("aws")
WEB = Consumer("web", ("pulumi/org/web",), ("aws",), quotas={"aws": 2})


def free(count: int) -> tuple[Member, ...]:
    return tuple(Member(f"m{index}", "u", "1", {HYPERSCALER_TYPE: "aws"}) for index in range(count))


def held(tenant: str, *holders: str) -> Record:
    name = record_name(AWS, tenant, "0")
    holding = dict.fromkeys(holders, 1)
    return Record(name, "u", "1", tenant, AWS, "0", "gone", "u", 1, Phase.BOUND, Policy.CLEAN, None, holding)


def asks(tenant: str, project: str = "web", account_type: str = "aws") -> ClaimRequest:
    return ClaimRequest(tenant, account_type, holder=f"pulumi/org/{project}/dev/{tenant}/0")


def test_a_preview_gives_a_consumer_what_its_quota_has_room_for_and_leaves_the_rest_to_others() -> None:
    others = Consumer("data", ("pulumi/org/data",))
    snapshot = PoolSnapshot(free(3), (held("old", "pulumi/org/web/dev/old/0"),), consumers=(others, WEB))
    asked = [asks("a"), asks("b"), asks("c", "data"), asks("d", "data"), asks("e", "web", "gcp")]
    asked += [asks("f", "else")]
    told = forecast_claims(snapshot, asked, ())
    assert [one.kind for one in told[:4]] == [
        ForecastKind.FREE,
        ForecastKind.REFUSED,
        ForecastKind.FREE,
        ForecastKind.FREE,
    ]
    assert [one.refusal for one in told] == [None, QuotaReached, None, None, NotAllowed, NotAllowed]
    assert told[1].text == (
        "expected to be refused: consumer web may have 2 aws accounts at most, and has them"
    )
    (left,) = vacancies(snapshot, asked, ())
    assert (left.before, left.after) == (3, 0)


def test_whoever_keeps_what_a_pool_would_not_give_is_named_with_its_stacks_and_tenants() -> None:
    records = [held(tenant, f"pulumi/org/web/dev/{tenant}/0") for tenant in ("b", "a", "c")]
    records += [held("x", "pulumi/org/data/prod/x/0"), held("y", "cli")]
    told = list(keeping(records, (WEB, Consumer("hand", ("cli",)))))
    assert told == [
        "stack org/data/prod keeps x/0, and gets no more like it: the pool names its consumers, and this is"
        " not a holder of any of them: hand, web",
        "consumer web has 3 aws accounts, and may have 2: it keeps a/0 (stack org/web/dev), b/0 (stack"
        " org/web/dev), c/0 (stack org/web/dev), and gets no more",
    ]
    assert not list(keeping(records[:2], (WEB,)))
