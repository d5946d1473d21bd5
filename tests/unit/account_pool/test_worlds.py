"""Two accounts, their claims and the pool's settings, after whatever the API server lets one user write.

The API server judges one object at a time, so what a user can make of a world is whatever it can make of each
object: every combination of up to four writes is a world here, of an operator's up to two. In each, no
account is free that nobody cleaned; what claims and accounts then say of each other that cannot both be so is
told by the status and by a sweep; and sweep, cleaner and new claims, under the same rules, wipe nothing that
is in use and give nobody what another has. What is left to whom:
docs/adr/0004-a-claimer-may-release.md.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, product
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from components.account_pool.admission.conditions import OWNER, TYPE
from components.account_pool.admission.member_transitions import (
    BEFORE,
    BROUGHT,
    CLEANING,
    ORIGIN,
    POLICY,
    STATE,
    TENANT,
    TOKEN,
    build_member_machine,
)
from components.account_pool.admission.record_transitions import (
    AGREED,
    ATTEMPT,
    HOLDERS,
    MEMBER,
    MEMBER_UID,
    PART,
    PHASE,
    RETIRED,
    SLOT,
    WHOSE,
    build_record_machine,
)
from components.account_pool.admission.state_machine import Field, StateMachine, Transition, Verb
from components.account_pool.admission.transitions import build_settings_machine
from components.account_pool.core import cleaning, protocol
from components.account_pool.core.calls import ApiRefusal, Call, Get, Kind, ListPage, Refused, Result, Steps
from components.account_pool.core.config_map import CONFIG_MAP, POOL_UID, PoolConfigMap
from components.account_pool.core.judgement import judge
from components.account_pool.core.keys import POOL_RECORD
from components.account_pool.core.model import ClaimRequest, JsonObject, Member, Phase, Policy, record_name
from components.account_pool.core.records import Claimed, Record
from components.account_pool.core.selection import RECORDS
from components.account_pool.core.snapshot import PoolSnapshot, list_displaced
from components.account_pool.core.status import status_of
from components.account_pool.core.steps import any_record, get_record
from components.account_pool.core.sweeping import pending_records, sweep
from components.errors import Misconfigured, PoolError
from tests.support.admission_twin import Write, allows, holds, permits
from tests.support.memory_pool import AWS, POOL, MemoryServer, name_of, run
from tests.support.proving import PROVES, counted, tried
from tests.support.transitions import put

MOST_WRITES: Final = counted(2, 4)
DRAWN: Final = counted(40, 4_000)
MOST_OF_OPERATORS: Final = 2
"""Writes of an operator, who may restore what there never was, up to which every world is tried."""

KEPT: Final = 10_000
"""How many answers are kept for worlds that come to the same, which are met soon after each other."""

DECLARED: Final = PoolConfigMap()
MEMBERS, CLAIMS = build_member_machine(()), build_record_machine(())

Texts: TypeAlias = Mapping[Field, str | None]
Domains: TypeAlias = Mapping[Field, Sequence[str | None]]

USERS: Final[Mapping[str, frozenset[Verb]]] = {
    "editor": frozenset(),
    **{str(verb): frozenset({verb}) for verb in Verb},
}


@dataclass(frozen=True)
class Turn:
    """One allowed write: by whom, by which transition, from what, to what."""

    user: str
    transition: Transition
    old: Texts
    new: Texts

    def __str__(self) -> str:
        changed = {field.name: self.new[field] for field in self.new if self.new[field] != self.old[field]}
        return f"{self.user}: {self.transition.does} {changed}"


def turns(machine: StateMachine, domains: Domains, old: Texts, user: str) -> Iterator[Turn]:
    """Yield every change of an object that the machine allows a user."""
    before = body_of(machine, old)
    for transition in machine.transitions.values():
        may = not transition.by or USERS[user] & set(transition.by)
        fits = all(permits(values, old.get(field)) for field, values in transition.old.items())
        if transition.on != "UPDATE" or not may or not fits:
            continue
        fitting = [
            [text for text in domains[field] if permits(transition.new[field], text)]
            if field in transition.new
            else [old[field]]
            for field in domains
        ]
        if not all(permits(values, None) for field, values in transition.new.items() if field not in domains):
            continue
        for texts in product(*fitting):
            new = dict(zip(domains, texts, strict=True))
            write = Write(before, body_of(machine, new))
            if new != old and all(holds(machine, each.name, write) for each in transition.when):
                yield Turn(user, transition, old, new)


def body_of(machine: StateMachine, texts: Texts) -> JsonObject:
    """Return an object with these fields."""
    body: JsonObject = {"metadata": {"name": "claim-0"}}
    for field, text in texts.items():
        put(body, machine, field, text)
    return body


def account_after(turn: Turn, *, was_soiled: bool) -> tuple[bool, str | None]:
    """Return whether an account is now used and not cleaned since, and which promise the write broke.

    What a claim by policy `release` leaves free counts as clean: so it was agreed.
    """
    old, new = turn.old, turn.new
    is_freed_by_claim = (
        old[TOKEN] is not None and new[TOKEN] is None and old[POLICY] == "release" and new[OWNER] is None
    )
    is_cleaned = turn.user == "clean" and old[STATE] == "cleaning" and new[STATE] is None
    soiled = (was_soiled and not is_freed_by_claim and not is_cleaned) or new[OWNER] is not None
    broken = None
    if new[TYPE] and soiled and new[OWNER] is new[STATE] is new[TOKEN] is None:
        broken = "an uncleaned account is free"
    if old[OWNER] != new[OWNER] is not None:
        if old[OWNER] is not None:
            broken = "an account of one tenant is another's"
        elif turn.user != "operate" and (new[TOKEN] is None or new[TENANT] != new[OWNER]):
            broken = "an owner is forged"
    if new[STATE] == "cleaning" != old[STATE] and new[TOKEN] is not None:
        broken = "an account in use is cleaned"
    if old[TOKEN] is not None and new[TOKEN] not in (None, old[TOKEN]) and turn.user != "operate":
        broken = "a claim is taken over"
    return soiled, broken


ACME, GLOBEX = (record_name(AWS, tenant, "0") for tenant in ("acme", "globex"))
FORGED: Final = "claim-" + "f" * 40
"""A second record of acme's slot, by a name that no request asks for; nothing in CEL can tell."""

WHOSE_RECORD: Final = {ACME: "acme", GLOBEX: "globex", FORGED: "acme"}
TOKENS: Final = {name: f"{name}.u1.1" for name in WHOSE_RECORD}

ACCOUNT: Final[Domains] = {
    TYPE: ("aws", None),
    OWNER: (None, "acme", "globex"),
    STATE: (None, "dirty", "cleaning", "quarantined"),
    TOKEN: (None, *TOKENS.values()),
    ORIGIN: (None, "pool", "owner", "retained"),
    POLICY: (None, "release", "clean"),
    TENANT: (None, "acme", "globex"),
    CLEANING: (None, "janitor/1"),
    BEFORE: (None, "dirty"),
    BROUGHT: (None, "true"),
}


def claim_domains(name: str) -> Domains:
    """Return what the fields of a record are tried with."""
    return {
        PHASE: ("Pending", "Bound", "Releasing"),
        WHOSE: (WHOSE_RECORD[name],),
        PART: (str(AWS),),
        SLOT: ("0",),
        MEMBER: ("m1", "m2"),
        MEMBER_UID: ("u",),
        ATTEMPT: ("1", "2"),
        AGREED: ("clean", "release"),
        HOLDERS: ('{"h": 1}', '{"h": 2}', "{}"),
        RETIRED: (None, "1"),
    }


@dataclass(frozen=True)
class Account:
    """An account, and what nobody can see of it: whether it is used and not cleaned since.

    let_go: a claim by policy `release` left it free at once, so others may have it since.
    """

    texts: tuple[str | None, ...]
    soiled: bool = False
    let_go: bool = False

    @property
    def fields(self) -> Texts:
        return dict(zip(ACCOUNT, self.texts, strict=True))

    @cached_property
    def body(self) -> JsonObject:
        return body_of(MEMBERS, self.fields)


@dataclass(frozen=True)
class Claim:
    """A record, or None where there is none, and how many of its name there were."""

    name: str
    texts: tuple[str | None, ...] | None = None
    made: int = 0

    @cached_property
    def body(self) -> JsonObject:
        fields = dict(zip(claim_domains(self.name), self.texts or (), strict=True))
        body = body_of(CLAIMS, fields)
        labels = {POOL_RECORD: "true", "hyperscaler-type": "aws", "tenant-name": WHOSE_RECORD[self.name]}
        body["metadata"] |= {"name": self.name, "namespace": POOL, "labels": labels}
        return body


@dataclass(frozen=True)
class Said:
    """The settings of the pool, or None where there are none."""

    data: tuple[tuple[str, str], ...] | None


Seen = Account | Claim | Said


@cache
def after_one(thing: Seen, user: str) -> tuple[Seen, ...]:
    """Return what one allowed write of a user makes of an object."""
    match thing:
        case Account():
            return tuple(_accounts_after(thing, user))
        case Claim():
            return tuple(_claims_after(thing, user))
        case Said():
            return tuple(_settings_after(thing, user))


def _accounts_after(account: Account, user: str) -> Iterator[Account]:
    for turn in turns(MEMBERS, ACCOUNT, account.fields, user):
        soiled, broken = account_after(turn, was_soiled=account.soiled)
        assert broken is None, f"{turn}: {broken}"
        is_left = turn.old[TOKEN] is not None is turn.new[TOKEN] and turn.new[OWNER] is None
        let_go = account.let_go or (is_left and turn.old[POLICY] == "release")
        yield Account(tuple(turn.new.values()), soiled, let_go)


def _claims_after(claim: Claim, user: str) -> Iterator[Claim]:
    domains = claim_domains(claim.name)
    if claim.texts is None:
        for texts in product(*domains.values()):
            made = Claim(claim.name, texts, claim.made + 1)
            if allows(CLAIMS, Write(None, made.body, USERS[user], user)):
                yield made
        return
    if allows(CLAIMS, Write(claim.body, None, USERS[user], user)):
        yield Claim(claim.name, None, claim.made)
    fields = dict(zip(domains, claim.texts, strict=True))
    for turn in turns(CLAIMS, domains, fields, user):
        yield replace(claim, texts=tuple(turn.new.values()))


_SAID: Final = tuple(PoolConfigMap().render().items())
_OTHERS: Final[Sequence[tuple[tuple[str, str], ...] | None]] = (
    None,
    _SAID,
    (*_SAID, (POOL_UID, "u1")),
    (*_SAID, (POOL_UID, "other")),
    tuple(PoolConfigMap(("eu-access",)).render().items()),
    tuple(PoolConfigMap(policy=Policy.RELEASE).render().items()),
    (),
)


def _settings_after(said: Said, user: str) -> Iterator[Said]:
    def body(data: tuple[tuple[str, str], ...] | None) -> JsonObject | None:
        return None if data is None else {"metadata": {"name": CONFIG_MAP, "uid": "u1"}, "data": dict(data)}

    for data in _OTHERS:
        if data != said.data and allows(
            build_settings_machine(), Write(body(said.data), body(data), USERS[user], user)
        ):
            yield Said(data)


def reached(start: Seen, user: str, most: int) -> Mapping[Seen, int]:
    """Return what a user can make of an object, each with the fewest writes it takes."""
    found: dict[Seen, int] = {start: 0}
    waiting = deque([start])
    while waiting:
        thing = waiting.popleft()
        if found[thing] == most:
            continue
        for then in after_one(thing, user):
            if then not in found:
                found[then] = found[thing] + 1
                waiting.append(then)
    return found


class World(NamedTuple):
    """Two accounts, the records of two tenants, one that no request finds, and the settings."""

    one: Account
    other: Account
    acme: Claim
    globex: Claim
    forged: Claim
    said: Said

    @property
    def accounts(self) -> Mapping[str, Account]:
        return {"m1": self.one, "m2": self.other}


def alike(thing: Seen) -> Seen:
    """Return the one object that stands for all that differ in the numbers of holders alone.

    They decide whether a release means this claim, and nothing is released here.
    """
    if not isinstance(thing, Claim) or thing.texts is None:
        return thing
    fields = dict(zip(claim_domains(thing.name), thing.texts, strict=True))
    holders = (fields[HOLDERS] or "").replace("2", "1")
    return replace(thing, texts=tuple({**fields, HOLDERS: holders, RETIRED: None}.values()))


def worlds(start: World, user: str, most: int) -> Iterator[World]:
    """Yield every world that up to so many writes of a user lead to; of an operator's, one of those alike."""
    parts = [reached(thing, user, most) for thing in start]
    if user == "operate":
        # What takes the fewest writes comes last.
        parts = [
            {alike(thing): part[thing] for thing in sorted(part, key=lambda t: -part[t])} for part in parts
        ]

    def combined(number: int, left: int) -> Iterator[tuple[Any, ...]]:
        if number == len(parts):
            yield ()
            return
        for thing, writes in parts[number].items():
            if writes <= left:
                for rest in combined(number + 1, left - writes):
                    yield (thing, *rest)

    yield from (World(*things) for things in combined(0, most))


def drawn(start: World, user: str, most: int, count: int) -> Iterator[World]:
    """Draw some of them, those of many writes as often as those of few; the same ones each time."""
    chance = random.Random(f"{user} {most}")
    parts: list[dict[int, list[Seen]]] = []
    for thing in start:
        by_writes = defaultdict[int, list[Seen]](list)
        for then, writes in reached(thing, user, most).items():
            by_writes[writes].append(then)
        parts.append(dict(by_writes))
    for _ in range(count):
        writes = [0] * len(parts)
        for _ in range(most):
            part = chance.randrange(len(parts))
            writes[part] += writes[part] + 1 in parts[part]
        things: list[Any] = [chance.choice(part[n]) for part, n in zip(parts, writes, strict=True)]
        yield World(*things)


def account(soiled: bool = False, **texts: str) -> Account:
    named: Mapping[str, Field] = {field.name: field for field in ACCOUNT}
    given = {named[name]: text for name, text in texts.items()}
    return Account(tuple({TYPE: "aws", **given}.get(field) for field in ACCOUNT), soiled)


def held(by: str, policy: str = "clean", origin: str = "pool") -> Account:
    tenant = WHOSE_RECORD[by]
    texts = {"owner": tenant, "token": TOKENS[by], "origin": origin, "policy": policy, "tenant": tenant}
    return account(soiled=True, **texts)


def claim(name: str, member: str, phase: str = "Bound", policy: str = "clean", made: int = 1) -> Claim:
    texts: dict[Field, str] = {
        **{PHASE: phase, WHOSE: WHOSE_RECORD[name], PART: str(AWS), SLOT: "0", MEMBER: member},
        **{MEMBER_UID: "u", ATTEMPT: "1", AGREED: policy, HOLDERS: '{"h": 1}'},
    }
    if phase == "Releasing":
        texts |= {HOLDERS: "{}", RETIRED: "1"}
    return Claim(name, tuple(texts.get(field) for field in claim_domains(name)), made)


FREE: Final = account()
SIGNED: Final = Said((*_SAID, (POOL_UID, "u1")))
NOBODYS: Final = (Claim(ACME), Claim(GLOBEX), Claim(FORGED))
USED: Final = {"owner": "acme", "tenant": "acme", "origin": "pool"}


def world(one: Account, other: Account, *claims: Claim, said: Said = SIGNED) -> World:
    by_name = {each.name: each for each in (*NOBODYS, *claims)}
    return World(one, other, by_name[ACME], by_name[GLOBEX], by_name[FORGED], said)


STARTS: Final[Mapping[str, World]] = {
    "nothing is claimed": world(FREE, FREE, said=Said(_SAID)),
    "one tenant has an account": world(held(ACME), FREE, claim(ACME, "m1")),
    "two tenants have one each": world(held(ACME), held(GLOBEX), claim(ACME, "m1"), claim(GLOBEX, "m2")),
    "a claim that frees at once": world(
        held(ACME, "release"), FREE, claim(ACME, "m1", policy="release"), claim(GLOBEX, "m2", "Pending")
    ),
    "one brought along and claimed": world(
        replace(held(ACME, origin="owner"), texts=(*held(ACME, origin="owner").texts[:-1], "true")),
        FREE,
        claim(ACME, "m1"),
    ),
    "one retained, one dirty": world(
        account(soiled=True, owner="acme", tenant="acme", origin="retained"),
        account(soiled=True, **USED, state="dirty"),
    ),
    "one being cleaned, one quarantined": world(
        account(soiled=True, **USED, state="cleaning", cleaning="janitor/1"),
        account(soiled=True, **USED, state="quarantined", before="dirty"),
    ),
    "a claim half made": world(held(ACME), FREE, claim(ACME, "m1", "Pending")),
    "a claim half released": world(held(ACME), FREE, claim(ACME, "m1", "Releasing")),
    "a claim that came back from a backup": world(held(ACME), FREE, claim(ACME, "m1", made=2)),
}


def server_of(world: World) -> MemoryServer:
    """Have the world in memory."""
    server = MemoryServer()
    for name, one in world.accounts.items():
        body = {**one.body, "metadata": {**one.body["metadata"], "name": name}}
        server.put(Kind.MEMBER, body, name)
    for each in (world.acme, world.globex, world.forged):
        if each.texts is not None:
            server.put(Kind.RECORD, each.body, f"u{each.made}")
    return server


class Guarded:
    """A server in memory that refuses what the tables do not allow this user."""

    def __init__(self, server: MemoryServer, verb: Verb) -> None:
        self.server = server
        self._verb = verb

    def __call__(self, call: Call) -> Result:
        if isinstance(call, Get | ListPage):
            return self.server(call)
        written = self.server.copy()
        answer, kind, name = written(call), call.kind, name_of(call)
        before, after = (_body(each, kind, name) for each in (self.server, written))
        if not _is_step(kind, self._verb, before, after):
            return Refused(ApiRefusal.FORBIDDEN, f"{self._verb}: {before} → {after}")
        self.server = written
        return answer


def _body(server: MemoryServer, kind: Kind, name: str) -> str:
    """Return an object as a text, without what every write changes."""
    body: JsonObject | None = getattr(server.get(kind, name), "body", None)
    if body is not None:
        metadata = {key: each for key, each in body["metadata"].items() if key != "resourceVersion"}
        body = {**body, "metadata": metadata}
    return json.dumps(body, sort_keys=True)


class Still:
    """A server that nobody writes to any more: the same as another with the same objects."""

    def __init__(self, server: MemoryServer) -> None:
        self.server = server
        self._text = re.sub(r"rv\d+-", "rv-", repr(server))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Still) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


@cache
def _is_step(kind: Kind, verb: Verb, before: str, after: str) -> bool:
    machine: StateMachine = MEMBERS if kind is Kind.MEMBER else CLAIMS
    write = Write(json.loads(before), json.loads(after), frozenset({verb}))
    return before == after or allows(machine, write)


def contradictions(members: Sequence[Member], records: Sequence[Record]) -> Iterator[str]:
    """Yield of whom claims and accounts say what cannot both be so: told apart from how the product does."""
    for record in records:
        named = [m for m in members if m.name == record.member]
        if record.name == FORGED:
            yield f"claim {FORGED}"
        elif record.phase is Phase.BOUND and not any(record.is_carried_by(member) for member in named):
            yield f"claim {record.name}"
    for member in members:
        token = member.annotations.get("credfleet.io/claim-token")
        if token and not any(str(r.token) == token and r.member == member.name for r in records):
            yield f"Secret {member.name}"


@cache
def told_in(start: World) -> Mapping[str, str]:
    """Return which account which claim was given: it is used until that very claim is released."""
    server = server_of(start)
    bound = [record for record in server.records if record.phase is Phase.BOUND]
    return {str(r.token): r.member for r in bound if server.member(r.member).type}


def judged(world: World, told_of: Mapping[str, str]) -> str | None:
    """Return which promise is broken in a world, if one is; None when all hold.

    told_of: token → account that holders of this claim have been given. Whoever made a claim since is given
    the account that carries it.
    """
    server = server_of(world)
    members, records = tuple(server.members), tuple(server.records)
    soiled = {name: one.soiled for name, one in world.accounts.items()}
    for member in members:
        if member.type and soiled[member.name] and judge(member, AWS, "").takes:
            return f"{member.name} is free and uncleaned"
    survey = run(sweep(POOL, DECLARED, most=0, write=False, pending={}), server)
    told = {each.place for each in survey.findings} | {f"Secret {each}" for each in survey.withheld}
    told |= {f"Secret {record.member}" for record in records if f"claim {record.name}" in told}
    shown = {
        each.place for each in status_of(PoolSnapshot(members, records, namespace=POOL), DECLARED).problems
    }
    for place in contradictions(members, records):
        if place not in told or (place.startswith("claim ") and place not in shown):
            return f"nobody is told of {place}"
    carried = {member.annotations.get("credfleet.io/claim-token"): member.name for member in members}
    used = {
        record.member: record.tenant
        for record in records
        if record.phase is Phase.BOUND
        and record.member in (told_of.get(str(record.token)), carried.get(str(record.token)))
    }
    return _used_on(server, world, used, soiled)


def _used_on(
    server: MemoryServer, world: World, bound: Mapping[str, str], soiled: dict[str, bool]
) -> str | None:
    """Return what sweep, cleaner and new claims do wrong, one after the other; bound: account → its user."""
    let_go = {name for name, one in world.accounts.items() if one.let_go}
    policies = {member.name: member.annotations.get("credfleet.io/claim-policy") for member in server.members}
    operator = Guarded(server, Verb.OPERATE)
    try:
        pending = run(pending_records(), operator)
        run(sweep(POOL, DECLARED, most=9, write=True, pending=pending), operator)
    except PoolError as error:
        return f"a sweep ends with {error}"
    for member in operator.server.members:
        if member.tenant is member.token is member.state is None and policies[member.name] == "release":
            let_go.add(member.name)
            soiled[member.name] = False
    wiped, clean = cleaned(Still(operator.server))
    for name in wiped:
        if name in bound:
            return f"{name} is wiped, and {bound[name]} has it"
        soiled[name] = False
    for tenant, slot in (("initech", "0"), ("acme", "1"), ("globex", "1")):
        claimed = outcome(clean, ClaimRequest.at(POOL, AWS, tenant, slot, "new"), world.said)
        if not isinstance(claimed, Claimed):
            continue
        name = claimed.secret_name
        was_its_own = clean.server.member(name).tenant == tenant
        if soiled[name] and not was_its_own:
            return f"{tenant} gets {name} uncleaned"
        if bound.get(name, tenant) != tenant and name not in let_go:
            return f"{tenant} gets {name}, and {bound[name]} has it"
    return None


@lru_cache(KEPT)
def cleaned(still: Still) -> tuple[Sequence[str], Still]:
    """Return what a cleaner wipes, and what it leaves."""
    cleaner = Guarded(still.server, Verb.CLEAN)
    listed = run(cleaning.survey("another"), cleaner)[0]
    for member in listed:
        taken = run(cleaning.begin(member, "another/1"), cleaner)
        run(cleaning.succeed(taken, "another/1"), cleaner)
    return [member.name for member in listed], Still(cleaner.server)


@lru_cache(KEPT)
def outcome(still: Still, wanted: ClaimRequest, said: Said) -> Claimed | PoolError:
    """Claim under the pool's settings as they are."""

    def begin(wanted: ClaimRequest) -> Steps[tuple[Record | None, None]]:
        asked = yield from get_record(wanted.record)
        record = yield from any_record(RECORDS)
        metadata = {"name": CONFIG_MAP, "namespace": POOL, "uid": "u1"}
        settings = (
            PoolConfigMap()
            if said.data is None
            else PoolConfigMap.parse({"metadata": metadata, "data": dict(said.data)})
        )
        if asked is None and record is not None and any(list_displaced([record], settings.partition_keys)):
            raise Misconfigured(place=POOL, problem="other keys", fix="")
        return asked, None

    try:
        return run(protocol.claim(wanted, begin), still.server.copy())
    except PoolError as refused:
        return refused


@pytest.mark.parametrize("user", USERS)
def test_whatever_a_user_writes_no_account_is_given_away_and_what_is_wrong_is_told(user: str) -> None:
    seen: set[tuple[World, str]] = set()
    for start in STARTS.values():
        told_of = told_in(start)
        found = iter(drawn(start, user, MOST_WRITES, DRAWN))
        if PROVES:
            every = MOST_OF_OPERATORS if user == "operate" else MOST_WRITES
            found = chain(worlds(start, user, every), found)
        for world in found:
            if (world, str(told_of)) not in seen:
                seen.add((world, str(told_of)))
                assert judged(world, told_of) is None, f"{judged(world, told_of)}\n{server_of(world)}"
    tried(f"worlds of two accounts and their claims, after up to four writes of {user}", len(seen))
