"""What a pool that names its consumers gives them: never more accounts at once than a quota has.

`test_explorer.py` tries it in every order.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from components.account_pool.admission.state_machine import Verb
from components.account_pool.admission.transitions import build_quota_machine
from components.account_pool.core.calls import Answer, Found, Get, Kind, ListPage, Replace, Steps, Yielded
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.keys import SHARED_CAPACITY
from components.account_pool.core.model import ClaimRequest, JsonObject
from components.account_pool.core.pool import Pool
from components.account_pool.core.quotas import COUNTED_IN, ENTERED, quota_data, quota_labels, quota_name
from components.account_pool.core.records import Claimed
from components.errors import LimitReached, Misconfigured, NotAllowed, QuotaReached
from components.labels import SHARED
from tests.support.admission_twin import Write, allows
from tests.support.memory_pool import (
    POOL,
    Claims,
    MemoryServer,
    Releases,
    run,
)
from tests.support.paused import Paused
from tests.support.pool import server_of

ONE = Consumer("one", ("one",), quotas={"aws": 1})
OTHER = Consumer("other", ("other",), quotas={"aws": 1})
NAMED = (ONE, OTHER, Consumer("free", ("free",)))

A = Claims("a", "one/a", consumers=NAMED)
B = Claims("b", "one/b", consumers=NAMED)
A_OF_OTHER = Claims("a", "other/a", consumers=NAMED)
A_OF_FREE = Claims("a", "free/a", consumers=NAMED)


def declared(server: MemoryServer, consumer: Consumer, most: int) -> None:
    """Write a quota as the stack of the pool does, entries left as they are."""
    name = quota_name(consumer.name, "aws")
    found = server.get(Kind.RECORD, name)
    data = quota_data(consumer.name, "aws", most)
    if isinstance(found, Found):
        server.replace(Kind.RECORD, {**found.body, "data": {**found.body["data"], **data}})
        return
    server.create(Kind.RECORD, {"metadata": {"name": name, "labels": quota_labels("aws")}, "data": data})


def limited(members: int, most: int = 1) -> MemoryServer:
    server = server_of(*(f"m{index}" for index in range(members)))
    for consumer in (ONE, OTHER):
        declared(server, consumer, most)
    return server


def test_a_helper_binds_no_holder_that_did_not_enter() -> None:
    server = limited(2)
    slow = Paused(A.start({}), server).until(Replace)
    assert claimed(server, B).secret_name
    assert claimed(server, A_OF_FREE).holders == 1
    with pytest.raises(QuotaReached):
        slow.end()
    assert sum(map(ONE.has, server.records)) == 1


def claimed(server: MemoryServer, claim: Claims) -> Any:
    return run(claim.start({}), server)


def entries(server: MemoryServer, consumer: Consumer = ONE) -> str:
    found = server.get(Kind.RECORD, quota_name(consumer.name, "aws"))
    assert isinstance(found, Found)
    return found.body["data"][ENTERED]


def test_a_claim_beyond_the_quota_says_who_has_it_and_leaves_nothing() -> None:
    server = limited(3)
    claimed(server, A)
    before = repr(server)
    with pytest.raises(QuotaReached) as refused:
        claimed(server, B)
    assert refused.value.code == "quota-reached"
    assert refused.value.place == "consumer one"
    assert refused.value.problem == "it may have 1 aws account at most, and a/0 have them"
    assert repr(server) == before


def test_what_was_released_counts_no_more() -> None:
    server = limited(3)
    claimed(server, A)
    run(Releases(A).start({}), server)
    assert isinstance(claimed(server, B), Claimed)
    assert entries(server).count("claim-") == 1


def test_claims_of_before_the_quota_count() -> None:
    server = server_of("m0", "m1")
    claimed(server, replace(A, consumers=()))
    declared(server, ONE, 1)
    with pytest.raises(QuotaReached):
        claimed(server, B)
    declared(server, ONE, 2)
    assert isinstance(claimed(server, B), Claimed)


def test_a_quota_that_came_back_from_a_backup_is_counted_anew() -> None:
    server = limited(3)
    name = quota_name("one", "aws")
    empty = server.get(Kind.RECORD, name)
    assert isinstance(empty, Found)
    claimed(server, A)
    server.put(Kind.RECORD, empty.body, "another-uid")
    with pytest.raises(QuotaReached):
        claimed(server, B)


def test_a_quota_lowered_under_what_is_used_takes_nothing_and_gives_no_more() -> None:
    server = limited(3, most=2)
    claimed(server, A)
    claimed(server, B)
    declared(server, ONE, 1)
    again = claimed(server, A)
    assert again.reused
    with pytest.raises(QuotaReached, match="a/0, b/0 have them"):
        claimed(server, Claims("c", "one/c", consumers=NAMED))


def test_an_account_that_two_consumers_share_counts_for_both_until_both_have_left() -> None:
    server = limited(3)
    claimed(server, A)
    joined = claimed(server, A_OF_OTHER)
    assert joined.holders == 2
    with pytest.raises(QuotaReached):
        claimed(server, Claims("b", "other/b", consumers=NAMED))
    run(Releases(A_OF_OTHER).start({}), server)
    with pytest.raises(QuotaReached):
        claimed(server, Claims("b", "other/b", consumers=NAMED))
    run(Releases(A).start({}), server)
    assert isinstance(claimed(server, Claims("b", "other/b", consumers=NAMED)), Claimed)


def test_a_claim_that_may_have_one_holder_and_gets_another_keeps_its_limit() -> None:
    server = limited(2)
    claimed(server, replace(A, limit=1))
    with pytest.raises(LimitReached):
        claimed(server, A_OF_FREE)


def test_places_on_shared_accounts_are_no_accounts_of_a_consumer() -> None:
    server = limited(0)
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "3"})
    for tenant in ("a", "b", "c"):
        assert isinstance(claimed(server, replace(A, tenant=tenant, slot=tenant, shared=True)), Claimed)


@pytest.mark.parametrize("broken", ["absent", "not a number"])
def test_a_quota_that_nobody_can_read_gives_no_more_accounts(broken: str) -> None:
    server = limited(2)
    name = quota_name("one", "aws")
    if broken == "absent":
        server.remove(Kind.RECORD, name)
    else:
        server.put(Kind.RECORD, {"metadata": {"name": name}, "data": {"most": "many"}}, "u")
    with pytest.raises(Misconfigured, match=name):
        claimed(server, A)


def test_a_consumer_without_a_quota_makes_no_other_call_than_before() -> None:
    def calls(claim: Claims) -> list[type]:
        asked: list[type] = []
        server, steps, answer = limited(1), claim.start({}), None
        try:
            while True:
                call = steps.send(answer)
                asked.append(type(call))
                answer = run(_once(call), server)
        except StopIteration:
            return asked

    assert calls(A_OF_FREE) == calls(replace(A_OF_FREE, consumers=()))
    assert Counter(calls(A)) - Counter(calls(A_OF_FREE)) == {Get: 1, ListPage: 1, Replace: 1}


def _once(call: Yielded) -> Steps[Answer]:
    return (yield call)


def test_a_claimer_enters_claims_in_a_quota_and_only_operators_say_how_many_there_may_be() -> None:
    server = limited(1)
    before = server.get(Kind.RECORD, quota_name("one", "aws"))
    claimed(server, A)
    after = server.get(Kind.RECORD, quota_name("one", "aws"))
    assert isinstance(before, Found)
    assert isinstance(after, Found)

    def may(verb: Verb, body: JsonObject | None) -> bool:
        return allows(build_quota_machine(), Write(before.body, body, frozenset({verb}), "user"))

    assert may(Verb.CLAIM, after.body)
    assert not may(Verb.CLEAN, after.body)
    for change in ({"most": "9"}, {"consumer": "other"}, {COUNTED_IN: "another"}):
        body = {**after.body, "data": {**after.body["data"], **change}}
        assert not may(Verb.CLAIM, body)
        assert may(Verb.OPERATE, body)
    assert not may(Verb.CLAIM, None)
    assert may(Verb.OPERATE, None)


SERVED = Consumer("web", ("pulumi/org/web",), ("aws",), ({"eu-access": "true"},), {"aws": 1})
SETTINGS = PoolConfigMap(("eu-access",), consumers=(SERVED, Consumer("ci", ("cli",))))


def pool(server: MemoryServer | None = None) -> Pool:
    server = server or MemoryServer()
    server.add_member("m0", {"eu-access": "true"})
    server.add_member("m1", {"eu-access": "true"})
    declared(server, SERVED, 1)
    return Pool(server, POOL, SETTINGS, clock=lambda: 0.0)


def request(**changes: Any) -> ClaimRequest:
    asked = ClaimRequest("acme", "aws", "0", {"eu-access": "true"}, holder="pulumi/org/web/dev/acme/0")
    return replace(asked, **changes)


REFUSED: Mapping[str, tuple[ClaimRequest, str, str]] = {
    "a holder that nobody has": (
        request(holder="pulumi/org/webs/dev"),
        "holder pulumi/org/webs/dev",
        "ci, web",
    ),
    "a type": (request(type="gcp"), "consumer web", "accounts of aws, and none of gcp"),
    "a part of the pool": (
        request(partition={}),
        "consumer web",
        "with eu-access=true, and none without any partition label",
    ),
}


@pytest.mark.parametrize(("asked", "place", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_pool_that_names_its_consumers_refuses_what_none_of_them_may(
    asked: ClaimRequest, place: str, problem: str
) -> None:
    with pytest.raises(NotAllowed) as refused:
        pool().claim(asked)
    assert refused.value.code == "not-allowed"
    assert refused.value.place == place
    assert problem in refused.value.problem
    assert "in the stack that declares the pool" in refused.value.fix


def test_who_holds_an_account_keeps_it_though_its_consumer_is_named_no_more() -> None:
    server = MemoryServer()
    assert not pool(server).claim(request()).reused
    settings = PoolConfigMap(("eu-access",), consumers=(ONE,))
    elsewhere = Pool(server, POOL, settings, clock=lambda: 0.0)
    assert elsewhere.claim(request()).reused
    with pytest.raises(NotAllowed):
        elsewhere.claim(request(holder="pulumi/org/web/prod/acme/0"))


def test_a_claim_that_is_held_under_another_name_enters_the_quota_of_that() -> None:
    here = pool()
    first = here.claim(request())
    mine = here.claim(request(tenant="globex", holder="cli"))
    assert mine.secret_name != first.secret_name
    with pytest.raises(QuotaReached):
        here.update(mine.record, "cli", new_holder="pulumi/org/web/dev/globex/0")
    with pytest.raises(NotAllowed):
        here.update(first.record, first.holder, new_holder="somebody")


def test_what_a_pool_says_of_its_consumers_is_read_as_it_was_written() -> None:
    body = {"metadata": {"name": CONFIG_MAP, "namespace": POOL, "uid": "u"}, "data": SETTINGS.render()}
    assert sorted(PoolConfigMap.parse(body).consumers, key=lambda one: one.name) == sorted(
        SETTINGS.consumers, key=lambda one: one.name
    )
    assert "consumers" not in PoolConfigMap().render()
