"""What claims, the outlook, explanations and the status say of a member agree, whatever is on it.

Drawn are pools with every label, annotation, value and state that the room knows, Kyma's own, hand-made ones
and records in every phase, and a request; each in credfleet's words and in Kyma's. It does not prove anything
of claims that run at the same time: `test_interleavings.py` does. `pytest --hypothesis-profile=prove` tries
10,000 pools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.account_pool import protocol
from components.account_pool.calls import Both, Kind, Pause, PoolApi, Steps, Together, perform
from components.account_pool.census import Census
from components.account_pool.config_map import PoolConfigMap
from components.account_pool.dialect import Dialect
from components.account_pool.judgement import judge
from components.account_pool.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    INTERNAL,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.model import (
    Claimed,
    ClaimRequest,
    Partition,
    Phase,
    Policy,
    Record,
    Token,
    Wanted,
    record_name,
)
from components.account_pool.outlook import Prospect, explain, outlook
from components.account_pool.pool import Pool
from components.account_pool.selection import members_free, members_owned, members_shared
from components.account_pool.status import Standing, status_of
from components.errors import Exhausted, Misconfigured, PoolError
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME
from tests.support.memory_pool import KEB, POOL, MemoryServer, matches

KEYS = ("eu-access",)
SETTINGS = PoolConfigMap(KEYS)
NAMES = ("m0", "m1", "m2", "m3")
MOST_CALLS = 300

LABELS = st.fixed_dictionaries(
    {},
    optional={
        TENANT_NAME: st.sampled_from(["", "acme", "acme", "globex"]),
        POOL_STATE: st.sampled_from(["dirty", "cleaning", "quarantined", "strange"]),
        "eu-access": st.sampled_from(["true", "true", "false", ""]),
        INTERNAL: st.just("true"),
        SHARED: st.sampled_from(["true", "true", "yes"]),
        **{key: st.sampled_from(["true", "false"]) for key in ("dirty", "shared")},
        **{key: st.just("true") for key in ("cleaning", "quarantined", "tenantName", "internal")},
    },
)
NOTES = st.fixed_dictionaries(
    {},
    optional={
        CLAIM_ORIGIN: st.sampled_from(["pool", "owner", "retained", "strange"]),
        CLAIM_POLICY: st.sampled_from([*map(str, Policy), "strange"]),
        TENANT_ID: st.sampled_from(["acme", "globex"]),
        SHARED_CAPACITY: st.sampled_from(["0", "1", "2", "3", "many"]),
        STATE_REASON: st.just("why"),
    },
)
FEW_LABELS = LABELS.map(lambda labels: dict(list(labels.items())[:2]))


@dataclass(frozen=True)
class Made:
    """A claim's record. carried: whether the member it names shall carry it, as far as its labels let it."""

    tenant: str
    slot: str
    eu: bool
    shared: bool
    member: str
    phase: Phase
    policy: Policy
    holders: tuple[str, ...]
    limit: int | None
    carried: bool

    @property
    def partition(self) -> Partition:
        return Partition("aws", (("eu-access", "true" if self.eu else None),), self.shared)

    @property
    def name(self) -> str:
        return record_name(self.partition, self.tenant, self.slot)


RECORDS = st.builds(
    Made,
    tenant=st.sampled_from(["acme", "globex"]),
    slot=st.sampled_from(["0", "1"]),
    eu=st.booleans(),
    shared=st.booleans(),
    member=st.sampled_from(NAMES),
    phase=st.sampled_from(Phase),
    policy=st.sampled_from(Policy),
    holders=st.sampled_from([(), ("h1",), ("h2",), ("h1", "h2")]),
    limit=st.sampled_from([None, None, 1, 2]),
    carried=st.booleans(),
)


@dataclass(frozen=True)
class Spoken:
    """A pool in its own words, and the API that shows it in credfleet's."""

    server: MemoryServer
    dialect: Dialect

    @property
    def api(self) -> PoolApi:
        return self.dialect.over(self.server)

    @property
    def census(self) -> Census:
        return Pool(self.server, POOL, PoolConfigMap(KEYS, dialect=self.dialect)).look()

    def copy(self) -> Spoken:
        return replace(self, server=self.server.copy())

    def reworded(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the labels as this pool has them; a dirty account only says that it is."""
        said = self.dialect.labels(labels)
        if self.dialect.dirty is not None and said.get(POOL_STATE) == "dirty":
            del said[POOL_STATE]
            said[self.dialect.dirty] = "true"
        return said


TOKENS = st.sampled_from(["", "", "", "dead attempt", "gone record", "restored record", "no token"])


@st.composite
def pools(draw: st.DrawFn) -> Spoken:
    server = MemoryServer()
    spoken = Spoken(server, draw(st.sampled_from([Dialect(), KEB])))
    tokens: dict[str, list[Token]] = {name: [] for name in NAMES}
    former: dict[str, list[Token]] = {name: [] for name in NAMES}
    records = draw(st.lists(RECORDS, max_size=3, unique_by=lambda made: made.name))
    for made in records:
        body = Record(
            name=made.name,
            uid="",
            resource_version="",
            tenant=made.tenant,
            partition=made.partition,
            slot=made.slot,
            member=made.member,
            member_uid="",
            attempt=2,
            phase=made.phase,
            policy=made.policy,
            limit=made.limit,
            holders=dict.fromkeys(made.holders, 1),
        ).render(POOL)
        server.create(Kind.RECORD, body)
        record = server.record(made.name)
        assert record is not None
        if made.carried:
            tokens[made.member].append(record.token)
        else:
            former[made.member].append(replace(record.token, uid="before"))
    for name in NAMES[: draw(st.integers(0, len(NAMES)))]:
        labels, notes = draw(st.one_of(FEW_LABELS, LABELS)), draw(NOTES)
        left = {
            "dead attempt": [replace(token, attempt=1) for token in tokens[name]],
            "restored record": former[name],
            "gone record": [Token("claim-0", "u", 1)],
            "no token": ["no token"],
        }.get(draw(TOKENS), [])
        texts = [str(token) for token in (*tokens[name], *left)]
        if texts and draw(st.booleans()):
            holder = next((made for made in records if made.member == name), None)
            labels |= {} if holder is None or holder.shared else {TENANT_NAME: holder.tenant}
        if texts:
            notes[CLAIM_TOKEN] = texts[0]
            notes[SHARED_CLAIMS] = json.dumps(dict.fromkeys(texts, "x")) if texts != ["no token"] else "[]"
        said = spoken.reworded({HYPERSCALER_TYPE: "aws", **labels})
        metadata = {"name": name, "labels": said, "annotations": notes}
        server.create(Kind.MEMBER, {"metadata": metadata})
    return spoken


REQUESTS = st.builds(
    ClaimRequest,
    tenant=st.sampled_from(["acme", "globex", "initech"]),
    type=st.just("aws"),
    slot=st.sampled_from(["0", "1"]),
    partition=st.sampled_from([{}, {"eu-access": "true"}]),
    shared=st.booleans(),
    holder=st.sampled_from(["h1", "h3"]),
)


def outcome(wanted: Wanted, api: PoolApi) -> Claimed | PoolError:
    """Claim alone, and say how it ended; an operation that asks without end fails."""
    steps: Steps[Claimed] = protocol.claim(wanted)
    answer: Any = None
    for _ in range(MOST_CALLS):
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return end.value
        except PoolError as refused:
            return refused
        match asked:
            case Pause():
                answer = None
            case Together(first, second):
                answer = Both(perform(api, first), perform(api, second))
            case _:
                answer = perform(api, asked)
    raise AssertionError(f"no end after {MOST_CALLS} calls")


MANY = settings(max_examples=max(300, settings().max_examples), deadline=None)


@MANY
@given(pools(), REQUESTS)
def test_a_claim_gets_what_its_outlook_and_its_explanation_said(
    spoken: Spoken, request: ClaimRequest
) -> None:
    census = spoken.census
    expected = outlook(census, [request], KEYS)[0]
    told = explain(census, request, KEYS)
    standings = {each.secret_name: each.standing for each in status_of(census, SETTINGS).accounts}
    assert told.expected == expected
    assert {each.member for each in told.candidates} == {member.name for member in census.members}

    ended = outcome(request.placed(POOL, KEYS), spoken.api)

    taken = [each.member for each in told.candidates if each.taken]
    if isinstance(ended, Claimed):
        assert taken == [ended.secret_name]
        assert expected.member in (None, ended.secret_name)
        assert expected.prospect in (Prospect.HELD, Prospect.REUSE, Prospect.OWN, Prospect.FREE)
        if expected.prospect is not Prospect.HELD:
            assert standings[ended.secret_name] is not Standing.MISCONFIGURED
    else:
        assert taken == []
        is_shortage = isinstance(ended, Exhausted) or (
            isinstance(ended, Misconfigured) and _says_none_left(ended)
        )
        assert expected.prospect is (Prospect.EXHAUSTED if is_shortage else Prospect.REFUSED), ended


def _says_none_left(refused: PoolError) -> bool:
    words = ("no other is free", "no aws accounts at all")
    return isinstance(refused, Exhausted) or any(each in refused.cause for each in words)


@MANY
@given(pools())
def test_a_stranger_gets_a_member_exactly_when_the_status_says_that_it_is_free_or_has_room(
    spoken: Spoken,
) -> None:
    census = spoken.census
    places = {member.name: member.place(KEYS) for member in census.members}
    for account in status_of(census, SETTINGS).accounts:
        place = places[account.secret_name]
        wanted = Wanted(POOL, place, "stranger", "0", "h", only=account.secret_name)
        is_taken = isinstance(outcome(wanted, spoken.copy().api), Claimed)
        has_room = account.standing is Standing.SHARED and account.used < account.capacity
        assert is_taken == (account.standing is Standing.FREE or has_room), account


@MANY
@given(pools(), REQUESTS)
def test_the_api_server_is_asked_for_every_member_that_would_be_taken(
    spoken: Spoken, request: ClaimRequest
) -> None:
    wanted = request.placed(POOL, KEYS)
    partition = wanted.partition
    selectors = (
        [members_shared(partition)]
        if partition.shared
        else [members_owned(partition, wanted.owner), members_free(partition)]
    )
    asked = [spoken.dialect.selector(selector) for selector in selectors]
    labels = {member.name: member.labels for member in spoken.server.members}
    for member in spoken.census.members:
        if judge(member, partition, wanted.owner).takes:
            assert any(matches(selector, labels[member.name]) for selector in asked)


@pytest.mark.parametrize(
    "labels",
    [
        {"dirty": "true"},
        {"shared": "true"},
        {TENANT_NAME: "acme", "quarantined": "true"},
        {TENANT_NAME: "acme", "eu-access": "false"},
    ],
    ids=["free but dirty in Kyma's words", "shared in Kyma's words", "own but quarantined", "own but false"],
)
def test_an_account_that_the_status_calls_misconfigured_is_never_claimed(labels: dict[str, str]) -> None:
    server = MemoryServer()
    server.add_member("m0", labels)
    pool = Pool(server, POOL, SETTINGS)
    assert [each.standing for each in pool.status().accounts] == [Standing.MISCONFIGURED]
    with pytest.raises(Misconfigured, match="m0"):
        pool.claim(ClaimRequest("acme", "aws"))
    server.add_member("m1")
    assert pool.claim(ClaimRequest("acme", "aws")).secret_name == "m1"


def test_an_own_account_with_a_claim_that_is_gone_is_taken_and_everything_says_so_before() -> None:
    server = MemoryServer()
    server.add_member("m0", {TENANT_NAME: "acme"}, {CLAIM_TOKEN: "claim-0.u.1"})
    pool, request = Pool(server, POOL, SETTINGS), ClaimRequest("acme", "aws")
    census = Census(pool.members(), pool.records())
    assert [(each.standing, each.reason) for each in pool.status().accounts] == [
        (Standing.OWNED, "carries a claim that is gone; `credfleet pool sweep` takes it off")
    ]
    assert outlook(census, [request], KEYS)[0].prospect is Prospect.OWN
    assert [each.taken for each in explain(census, request, KEYS).candidates] == [True]
    assert pool.claim(request).secret_name == "m0"


def test_a_new_consumer_does_not_join_a_claim_whose_account_is_misconfigured_by_now() -> None:
    server = MemoryServer()
    server.add_member("m0")
    pool = Pool(server, POOL, SETTINGS)
    first, second = ClaimRequest("acme", "aws", holder="h1"), ClaimRequest("acme", "aws", holder="h2")
    pool.claim(first)
    server.by_hand("m0", {"dirty": "true"})
    assert pool.claim(first).reused
    census = Census(pool.members(), pool.records())
    assert outlook(census, [second], KEYS)[0].prospect is Prospect.REFUSED
    with pytest.raises(PoolError, match="label dirty means nothing here"):
        pool.claim(second)
