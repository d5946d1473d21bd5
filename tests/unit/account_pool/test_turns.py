"""What the claims of one process do for each other: which accounts they choose."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from components.account_pool.core.calls import Kind, Page, Refused, Result
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import FREED, SHARED_CAPACITY
from components.account_pool.core.model import ClaimRequest, JsonObject, Member
from components.account_pool.core.pool import Pool
from components.account_pool.core.selection import (
    Choose,
    RunningClaims,
    in_order,
    in_turn,
    members_free,
    members_shared,
)
from components.labels import SHARED
from tests.support.memory_pool import AWS, AWS_SHARED, POOL, Claims, MemoryServer


def free_accounts(count: int) -> list[JsonObject]:
    server = MemoryServer()
    for number in range(count):
        server.add_member(f"m{number:02}")
    page = server.list(Kind.MEMBER, members_free(AWS), "", 500)
    assert isinstance(page, Page)
    return list(page.items)


def chosen(choose: Choose, wanted: ClaimRequest, bodies: list[JsonObject]) -> str | None:
    member = choose(wanted, in_turn(wanted, bodies))
    return member and member.name


def test_claims_at_once_choose_different_accounts_while_there_are_some() -> None:
    turns, bodies = RunningClaims(), free_accounts(20)
    with ExitStack() as running:
        names = [
            chosen(running.enter_context(turns.choosing()), Claims(f"t{number}", "h").wanted, bodies)
            for number in range(20)
        ]
    assert sorted(filter(None, names)) == [body["metadata"]["name"] for body in bodies]


def test_an_account_that_another_claim_is_about_to_take_is_tried_when_there_is_no_other() -> None:
    turns, bodies = RunningClaims(), free_accounts(1)
    with turns.choosing() as first, turns.choosing() as second:
        assert chosen(first, Claims("a", "h").wanted, bodies) == "m00"
        assert chosen(second, Claims("b", "h").wanted, bodies) == "m00"


def test_half_that_has_rested_longest_comes_first_in_claims_and_in_explanations() -> None:
    bodies, wanted = free_accounts(8), Claims("a", "h").wanted
    fields = {"f:metadata": {"f:annotations": {f"f:{FREED}": {}}}}
    for number, body in enumerate(bodies[2:]):
        body["metadata"]["annotations"] = {FREED: "cleaned"}
        body["metadata"]["managedFields"] = [{"time": f"2026-01-0{9 - number}T00:00:00Z", "fieldsV1": fields}]
    names = [body["metadata"]["name"] for body in in_turn(wanted, bodies)]
    assert {*names[:4]} == {"m00", "m01", "m06", "m07"}
    assert [member.name for member in in_order(wanted, map(Member.parse, bodies))] == names


def test_holders_of_one_claim_choose_the_same_account() -> None:
    turns, bodies = RunningClaims(), free_accounts(20)
    with turns.choosing() as first, turns.choosing() as second:
        names = {
            chosen(first, Claims("a", "h1").wanted, bodies),
            chosen(second, Claims("a", "h2").wanted, bodies),
        }
    assert len(names) == 1


def test_what_a_claim_chose_is_nobodys_once_it_has_ended_or_chosen_again() -> None:
    turns, bodies = RunningClaims(), free_accounts(20)
    a, b = Claims("a", "h").wanted, Claims("b", "h").wanted
    [for_b] = in_turn(b, bodies)[:1]
    with turns.choosing() as first, turns.choosing() as second:
        chosen(first, a, [for_b])
        assert chosen(second, b, bodies) != for_b["metadata"]["name"]
        chosen(first, a, [body for body in bodies if body is not for_b])
        assert chosen(second, b, bodies) == for_b["metadata"]["name"]
    with turns.choosing() as first:
        chosen(first, a, [for_b])
    with turns.choosing() as second:
        assert chosen(second, b, bodies) == for_b["metadata"]["name"]


def test_the_least_used_shared_account_comes_first_whoever_is_about_to_use_it() -> None:
    server = MemoryServer()
    for name in ("m0", "m1"):
        server.add_member(name, {SHARED: "true"}, {SHARED_CAPACITY: "9"})
    page = server.list(Kind.MEMBER, members_shared(AWS_SHARED), "", 500)
    assert isinstance(page, Page)
    turns = RunningClaims()
    with turns.choosing() as first, turns.choosing() as second:
        for choose, tenant in ((first, "a"), (second, "b")):
            member = choose(replace(Claims(tenant, "h").wanted, place=AWS_SHARED), list(page.items))
            assert member is not None
            assert member.name == "m0"


class Between(MemoryServer):
    """Where another claim of the process is made just before the first account is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.then: list[Callable[[], object]] = []
        self.lost: list[str] = []

    def patch(self, kind: Kind, name: str, body: JsonObject) -> Result:
        if self.then:
            self.then.pop()()
        result = super().patch(kind, name, body)
        self.lost += [name] if isinstance(result, Refused) else []
        return result


def test_claims_of_a_process_lose_no_race_to_each_other() -> None:
    server, bodies = Between(), free_accounts(2)
    for body in bodies:
        server.add_member(body["metadata"]["name"])
    pool = Pool(server, POOL, PoolConfigMap())
    rivals = [ClaimRequest(f"t{number}", "aws") for number in range(9)]
    firsts = [in_turn(request.placed(POOL, []), bodies)[0]["metadata"]["name"] for request in rivals]
    one, other, *_ = (request for request, first in zip(rivals, firsts, strict=True) if first == firsts[0])
    server.then.append(lambda: pool.claim(other))
    assert pool.claim(one).secret_name == firsts[0]
    assert server.lost == []
