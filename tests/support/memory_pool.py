"""An API server in memory for the claim protocol, and a world of processes that it can be explored with.

The server keeps what the protocol relies on: resourceVersions, uids, AlreadyExists, preconditions, label
selectors, pages of one snapshot. It never changes a stored object, so a copy of it is a copy of one dict.

A process runs operations of the protocol one call at a time. Its whole local state follows from the answers
it got, so a world can be copied at any call, and every order of calls, crash and lost answer can be tried
from there.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from components.account_pool.core import cleaning, protocol
from components.account_pool.core.calls import (
    Answer,
    ApiRefusal,
    Call,
    Found,
    Get,
    Kind,
    ListPage,
    Page,
    Pair,
    Parallel,
    Pause,
    PoolApi,
    Refused,
    Result,
    Steps,
    Unknown,
    Yielded,
    perform,
)
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import Consumer, consumer_of
from components.account_pool.core.holders import Holder, cleaning_token
from components.account_pool.core.judgement import Verdict, judge
from components.account_pool.core.keys import CLEANING_TOKEN, CREATED_AGAIN, POOL_RECORD
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import (
    Claimed,
    JsonObject,
    Member,
    Partition,
    Phase,
    Policy,
    Record,
    State,
    Wanted,
)
from components.account_pool.core.selection import members_of_type
from components.account_pool.core.steps import get_record
from components.account_pool.core.sweeping import pending_records, sweep
from components.errors import LostMember, PoolError
from components.labels import HYPERSCALER_TYPE, TENANT_NAME

POOL = "pool"
AWS = Partition("aws")
AWS_SHARED = Partition("aws", shared=True)
KEB = LabelScheme(
    {
        "type": "hyperscalerType",
        "tenant": "tenantName",
        "dirty": "dirty",
        "shared": "shared",
        "euAccess": "euAccess",
        "internal": "internal",
    },
    shared_capacity=2,
)
"""The labels of Kyma's pools (docs/compatibility.md)."""


class MemoryServer:
    """`PoolApi` in memory, one namespace."""

    def __init__(self) -> None:
        self._objects: dict[tuple[Kind, str], JsonObject] = {}
        self._texts: dict[tuple[Kind, str], str] = {}
        self._snapshots: dict[str, tuple[JsonObject, ...]] = {}
        self._count = 0

    def copy(self) -> MemoryServer:
        """Return a server that goes its own way from here."""
        other = MemoryServer()
        other._objects = dict(self._objects)
        other._texts = dict(self._texts)
        other._snapshots = dict(self._snapshots)
        other._count = self._count
        return other

    def add_member(
        self, name: str, labels: Mapping[str, str] = {}, annotations: Mapping[str, str] = {}
    ) -> None:
        """Create a member of type aws, unless the labels say otherwise."""
        body: JsonObject = {
            "metadata": {
                "name": name,
                "namespace": "accounts",
                "labels": {HYPERSCALER_TYPE: "aws", **labels},
                "annotations": dict(annotations),
            },
            "data": {"credential": "c2VjcmV0"},
        }
        assert isinstance(self.create(Kind.MEMBER, body), Found)

    def put(self, kind: Kind, body: JsonObject, uid: str) -> None:
        """Have an object there, with this uid, whatever was there before."""
        self._store(kind, str(body["metadata"]["name"]), body, uid)

    def get(self, kind: Kind, name: str) -> Result:
        """Read one object."""
        found = self._objects.get((kind, name))
        return (
            Refused(ApiRefusal.ABSENT, f"{kind} {name!r} not found")
            if found is None
            else Found(_shown(kind, found))
        )

    def list(self, kind: Kind, selector: str, cursor: str, limit: int) -> Result:
        """Read one page of a snapshot."""
        if cursor:
            if cursor not in self._snapshots:
                return Refused(ApiRefusal.EXPIRED, "the provided continue parameter is too old")
            selected = self._snapshots.pop(cursor)
        else:
            selected = tuple(
                _shown(kind, body)
                for (other, _), body in sorted(tuple(self._objects.items()))
                if other is kind and matches(selector, body["metadata"].get("labels") or {})
            )
        if len(selected) <= limit:
            return Page(selected, "")
        onwards = self._next("cursor")
        self._snapshots[onwards] = selected[limit:]
        return Page(selected[:limit], onwards)

    def expire_cursors(self) -> None:
        """Forget every snapshot, as etcd's compaction does."""
        self._snapshots.clear()

    def create(self, kind: Kind, body: JsonObject) -> Result:
        """Create, with a uid and a resourceVersion never used before."""
        name = str(body["metadata"]["name"])
        if (kind, name) in self._objects:
            return Refused(ApiRefusal.CONFLICT, f"{kind} {name!r} already exists")
        return self._store(kind, name, body, self._next("uid"))

    def replace(self, kind: Kind, body: JsonObject) -> Result:
        """PUT."""
        name = str(body["metadata"]["name"])
        found = self._objects.get((kind, name))
        if found is None:
            return Refused(ApiRefusal.ABSENT, f"{kind} {name!r} not found")
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return Refused(ApiRefusal.CONFLICT, "the object has been modified")
        return self._store(kind, name, body, found["metadata"]["uid"])

    def patch(self, kind: Kind, name: str, body: JsonObject) -> Result:
        """Merge; a patch that changes nothing keeps the resourceVersion."""
        found = self._objects.get((kind, name))
        if found is None:
            return Refused(ApiRefusal.ABSENT, f"{kind} {name!r} not found")
        metadata = found["metadata"]
        if (
            body["metadata"].get("resourceVersion", metadata["resourceVersion"])
            != metadata["resourceVersion"]
        ):
            return Refused(ApiRefusal.CONFLICT, "the object has been modified")
        merged = copy.deepcopy(found)
        for part in ("labels", "annotations"):
            for key, value in body["metadata"].get(part, {}).items():
                if value is None:
                    merged["metadata"][part].pop(key, None)
                else:
                    merged["metadata"][part][key] = value
        if merged == found:
            return Found(_shown(kind, found))
        return self._store(kind, name, merged, metadata["uid"])

    def delete(self, kind: Kind, name: str, uid: str, resource_version: str) -> Result:
        """DELETE with preconditions."""
        found = self._objects.get((kind, name))
        if found is None:
            return Refused(ApiRefusal.ABSENT, f"{kind} {name!r} not found")
        if (uid, resource_version) != (found["metadata"]["uid"], found["metadata"]["resourceVersion"]):
            return Refused(ApiRefusal.CONFLICT, "the object has been modified")
        self._texts.pop((kind, name))
        return Found(self._objects.pop((kind, name)))

    def remove(self, kind: Kind, name: str) -> None:
        """Delete by hand, whatever its state."""
        self._objects.pop((kind, name), None)
        self._texts.pop((kind, name), None)

    def by_hand(
        self, name: str, labels: Mapping[str, str | None], annotations: Mapping[str, str | None] = {}
    ) -> None:
        """Change a member by hand, without a precondition."""
        self.patch(Kind.MEMBER, name, {"metadata": {"labels": labels, "annotations": annotations}})

    def remove_member(self, name: str) -> None:
        """Delete a member by hand."""
        self.remove(Kind.MEMBER, name)

    def relabel(self, name: str, before: str, after: str) -> None:
        """Hand a member of one tenant to another; of anybody else's it stays."""
        if self.member(name).tenant == before:
            self.by_hand(name, {TENANT_NAME: after})

    def restore(self) -> None:
        """Bring every Bound record back from a backup: the same text, another uid."""
        for record in list(self.records):
            if record.phase is Phase.BOUND:
                self.remove(Kind.RECORD, record.name)
                self.create(Kind.RECORD, record.render(POOL))

    def member(self, name: str) -> Member:
        """Look at a member, outside the protocol."""
        return Member.parse(self._objects[Kind.MEMBER, name])

    @property
    def members(self) -> Iterator[Member]:
        """All members."""
        return (Member.parse(body) for (kind, _), body in tuple(self._objects.items()) if kind is Kind.MEMBER)

    @property
    def records(self) -> Iterator[Record]:
        """All records."""
        return (
            Record.parse(body)
            for (kind, _), body in tuple(self._objects.items())
            if kind is Kind.RECORD and POOL_RECORD in body["metadata"].get("labels", {})
        )

    @property
    def events(self) -> list[JsonObject]:
        """All Events, oldest first."""
        return [body for (kind, _), body in tuple(self._objects.items()) if kind is Kind.EVENT]

    def record(self, name: str) -> Record | None:
        """Look at a record, outside the protocol."""
        body = self._objects.get((Kind.RECORD, name))
        return None if body is None else Record.parse(body)

    @property
    def versions(self) -> frozenset[str]:
        """The resourceVersions a CAS would succeed with."""
        return frozenset(body["metadata"]["resourceVersion"] for body in tuple(self._objects.values()))

    def __repr__(self) -> str:
        return "\n".join(text for _, text in sorted(tuple(self._texts.items())))

    def _store(self, kind: Kind, name: str, body: JsonObject, uid: str) -> Found:
        metadata = {**body["metadata"], "uid": uid, "resourceVersion": self._next("rv")}
        self._objects[kind, name] = {**body, "metadata": metadata}
        self._texts[kind, name] = repr(self._objects[kind, name])
        return Found(_shown(kind, self._objects[kind, name]))

    def _next(self, word: str) -> str:
        self._count += 1
        return f"{word}-{self._count}"


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector of `key=value`, `key!=value`, `key` and `!key` terms."""
    for term in selector.split(","):
        key, equals, value = term.partition("=")
        if key.endswith("!"):
            fits = labels.get(key[:-1]) != value
        elif key.startswith("!"):
            fits = key[1:] not in labels
        else:
            fits = labels.get(key) == value if equals else key in labels
        if not fits:
            return False
    return True


def is_free(member: Member) -> bool:
    """Whether anybody of its partition may take it."""
    return judge(member, member.place(()), "").verdict is Verdict.FREE


def _shown(kind: Kind, body: JsonObject) -> JsonObject:
    return {"metadata": body["metadata"]} if kind is Kind.MEMBER else body


def run(steps: Steps[Any], server: PoolApi) -> Any:
    """Run an operation alone, to its end."""
    answer: Answer = None
    while True:
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return end.value
        match asked:
            case Pause():
                answer = None
            case Parallel(first, second):
                answer = Pair(perform(server, first), perform(server, second))
            case _:
                answer = perform(server, asked)


@dataclass(frozen=True)
class Claims:
    """An operation: claim, and hold from then on. consumers: whom the pool names."""

    tenant: str
    holder: str
    slot: str = "0"
    policy: Policy = Policy.RELEASE
    limit: int | None = None
    shared: bool = False
    spill: bool = False
    consumers: tuple[Consumer, ...] = ()
    former: str | None = None

    @property
    def wanted(self) -> Wanted:
        """The request, placed."""
        partition = AWS_SHARED if self.shared else AWS
        wanted = Wanted(POOL, partition, self.tenant, self.slot, self.holder, self.policy, self.limit)
        return replace(wanted, spill=self.spill, former=self.former)

    def start(self, _held: Mapping[str, Claimed]) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        claim = protocol.claim_with_spill if self.spill else protocol.claim
        return claim(self.wanted, self._begin)

    def _begin(self, wanted: Wanted) -> Steps[tuple[Record | None, Consumer | None]]:
        return (yield from get_record(wanted.record)), consumer_of(self.consumers, wanted.holder)


@dataclass(frozen=True)
class Releases:
    """An operation: release what was claimed in the same words. fence: as the provider does."""

    claim: Claims
    fenced: bool = False

    def start(self, held: Mapping[str, Claimed]) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        claimed = held.get(self.claim.wanted.record)
        fence = claimed.fence if self.fenced and claimed else None
        return protocol.release(self.claim.wanted.record, self.claim.holder, POOL, fence)


@dataclass(frozen=True)
class Reads:
    """An operation: read what was claimed in the same words."""

    claim: Claims

    def start(self, held: Mapping[str, Claimed]) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        claimed = held.get(self.claim.wanted.record)
        return protocol.read_claim(
            self.claim.wanted.record, self.claim.holder, claimed.secret_name if claimed else None
        )


@dataclass(frozen=True)
class Sweeps:
    """An operation: a sweep, with both passes over records in progress."""

    def start(self, _held: Mapping[str, Claimed]) -> Steps[Any]:
        """Begin, or begin again after a crash."""

        def steps() -> Steps[Any]:
            pending = yield from pending_records()
            return (yield from sweep(POOL, PoolConfigMap(), most=100, write=True, pending=pending))

        return steps()


@dataclass(frozen=True)
class Cleans:
    """An operation: a cleaner's run over whatever is dirty. sees: whether others of its name seem alive."""

    cleaner: str
    run: str = "1"
    take_over: bool = False
    sees: bool = False

    @property
    def token(self) -> str:
        """What it writes on what it cleans."""
        return cleaning_token(self.cleaner, self.run, Holder("host", "boot", "spaces", self.run, "1"))

    def start(self, _held: Mapping[str, Claimed]) -> Steps[Any]:
        """Begin, or begin again after a crash."""

        def steps() -> Steps[Any]:
            others = frozenset({"m0", "m1"}) if self.take_over else frozenset[str]()
            for listed in (yield from cleaning.cleanable(self.cleaner, others, lambda _: self.sees)):
                member = yield from cleaning.begin(listed, self.token)
                if member is not None:
                    yield Get(Kind.EVENT, member.name)  # the wipe: a step of its own, judged by the world
                    yield from cleaning.succeed(member, self.token)

        return steps()


@dataclass(frozen=True)
class ByHand:
    """An operation: somebody changes the pool without the protocol, in one step."""

    what: str
    change: Callable[[MemoryServer], None] = field(compare=False)
    destroys_evidence: bool = False

    def start(self, _held: Mapping[str, Claimed]) -> Steps[Any]:
        """Begin."""

        def steps() -> Steps[Any]:
            yield Get(Kind.EVENT, "by hand")

        return steps()


Op = Claims | Releases | Reads | Sweeps | Cleans | ByHand


class Fault(StrEnum):
    """What may happen to a call besides being carried out and answered."""

    CRASH = "crash before"
    LOST = "answer lost"
    FAILED = "not carried out, error"
    LATE = "error, carried out later"


@dataclass(frozen=True)
class Process:
    """One process at one of its calls. Immutable, so that worlds can share it.

    answers: what it was told since its operation began, which is all it knows. asked: the call it is at,
    None when all its operations are over. half: of two calls side by side, the answers so far. knows: its
    local state as text.
    """

    script: tuple[Op, ...]
    index: int = 0
    answers: tuple[Answer, ...] = ()
    asked: Yielded | None = None
    half: tuple[Result | None, Result | None] = (None, None)
    knows: str = ""
    held: Mapping[str, Claimed] = field(default_factory=dict[str, Claimed])
    outcomes: tuple[Any, ...] = ()

    @cached_property
    def text(self) -> str:
        """All that decides what it can still do."""
        over = self.outcomes[-1:] if self.op is None else ()
        return repr((self.index, self.asked, self.half, self.knows, sorted(self.held.items()), over))

    @property
    def op(self) -> Op | None:
        """The operation it is at, None after the last."""
        return self.script[self.index] if self.index < len(self.script) else None

    def calls(self) -> tuple[Call, ...]:
        """What it may ask next: one call, or either of two."""
        match self.asked:
            case None | Pause():
                return ()
            case Parallel(first, second):
                return tuple(c for c, a in zip((first, second), self.half, strict=True) if a is None)
            case call:
                return (call,)

    def started(self) -> Process:
        """Begin the operation it is at, with nothing known."""
        fresh = replace(self, answers=(), half=(None, None), asked=None, knows="")
        if isinstance(fresh.op, Releases):
            held = {name: c for name, c in fresh.held.items() if name != fresh.op.claim.wanted.record}
            fresh = replace(fresh, held=held)
        return fresh if fresh.op is None else fresh._resumed(())

    def told(self, call: Call, answer: Result) -> Process:
        """Go on with the answer to a call, to the next call or operation."""
        if not isinstance(self.asked, Parallel):
            return self._resumed((*self.answers, answer))
        first, second = self.half
        first, second = (answer, second) if call == self.asked.first else (first, answer)
        if first is None or second is None:
            return replace(self, half=(first, second))
        return replace(self, half=(None, None))._resumed((*self.answers, Pair(first, second)))

    def _resumed(self, answers: tuple[Answer, ...]) -> Process:
        assert self.op is not None
        steps = self.op.start(self._before)
        try:
            asked = steps.send(None)
            for answer in answers:
                asked = steps.send(answer)
            while isinstance(asked, Pause):
                answers = (*answers, None)
                asked = steps.send(None)
        except StopIteration as end:
            return self._over(end.value)
        except PoolError as error:
            return self._over(error)
        return replace(self, answers=answers, asked=asked, knows=_local_state(steps))

    @property
    def _before(self) -> Mapping[str, Claimed]:
        """What it held when the operation began; a release has let go of it with its first call."""
        claims = (o for o in self.outcomes if isinstance(o, Claimed))
        return {claimed.record: claimed for claimed in claims}

    def _over(self, outcome: Any) -> Process:
        held = dict(self.held)
        if isinstance(outcome, Claimed) and isinstance(self.op, Claims):
            held[outcome.record] = outcome
        done = replace(self, index=self.index + 1, held=held, outcomes=(*self.outcomes, outcome))
        return done.started()


def _local_state(steps: Steps[Any]) -> str:
    """Everything a suspended operation knows: where each of its generators stands, and their variables."""
    parts: list[str] = []
    inner: Any = steps
    while inner is not None:
        known = {k: v for k, v in inspect.getgeneratorlocals(inner).items() if k != "attempt"}
        parts.append(f"{inner.gi_code.co_name}@{inner.gi_frame.f_lasti} {known!r}")
        inner = inner.gi_yieldfrom
    return " ".join(parts)


@dataclass(frozen=True)
class Action:
    """One step of the world: a process makes a call, or something happens to it."""

    process: int
    call: Call
    fault: Fault | None = None


class Violation(AssertionError):  # noqa: N818 - reads as what it is
    """An invariant of the protocol does not hold."""


@dataclass
class World:
    """A server and processes on it. late: a write on its way although its caller saw an error."""

    server: MemoryServer
    processes: list[Process]
    faults: int = 0
    may: frozenset[Fault] = frozenset()
    abandons: bool = False
    rotates: bool = False
    late: Call | None = None
    touched: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    evidence_gone: bool = False
    consumers: tuple[Consumer, ...] = ()

    @classmethod
    def of(cls, server: MemoryServer, *scripts: tuple[Op, ...], **options: Any) -> World:
        """Start every process on its first operation."""
        return cls(server, [Process(script).started() for script in scripts], **options)

    def copy(self) -> World:
        """Return a world that goes its own way from here."""
        return replace(self, server=self.server.copy(), processes=list(self.processes))

    def actions(self) -> list[Action]:
        """Everything that may happen next."""
        possible: list[Action] = []
        for index, process in enumerate(self.processes):
            for call in process.calls():
                possible.append(Action(index, call))
                if self.faults:
                    possible.extend(Action(index, call, fault) for fault in self._faults_of(process, call))
        if self.late is not None:
            possible.append(Action(-1, self.late))
        return possible

    def _faults_of(self, process: Process, call: Call) -> Iterator[Fault]:
        if isinstance(process.op, ByHand):
            return
        if Fault.CRASH in self.may and process.answers:
            yield Fault.CRASH
        if not isinstance(call, Get | ListPage):
            yield from (fault for fault in (Fault.LOST, Fault.FAILED) if fault in self.may)
            if Fault.LATE in self.may and self.late is None:
                yield Fault.LATE

    def do(self, action: Action) -> None:
        """Let it happen, and check every invariant after it."""
        if action.fault is not None:
            self.faults -= 1
        if action.process < 0:
            self.late = None
            self._carry_out(action.call)
        else:
            self.processes[action.process] = self._step(self.processes[action.process], action)
        self.check()

    def _step(self, process: Process, action: Action) -> Process:
        call = action.call
        if isinstance(process.op, ByHand):
            before = self.server.copy()
            process.op.change(self.server)
            self._note_touch(before, destroyed=process.op.destroys_evidence)
            return process.told(call, Found({}))
        if isinstance(call, Get) and call.kind is Kind.EVENT:
            self._check_wipe(process, call.name)
            return process.told(call, Found({}))
        if action.fault is not None:
            return self._suffer(process, call, action.fault)
        told = process.told(call, self._carry_out(call))
        self._check_outcome(process, told)
        return told

    def _suffer(self, process: Process, call: Call, fault: Fault) -> Process:
        match fault:
            case Fault.CRASH:
                given_up = self.abandons and isinstance(process.op, Releases)
                return (replace(process, index=process.index + 1) if given_up else process).started()
            case Fault.LOST:
                self._carry_out(call)
            case Fault.LATE:
                self.late = call
            case Fault.FAILED:
                pass
        return process.told(call, Unknown("connection reset"))

    def _carry_out(self, call: Call) -> Result:
        if isinstance(call, Get | ListPage) or call.kind is not Kind.MEMBER:
            return perform(self.server, call)
        before = {member.name: member for member in self.server.members}
        answer = perform(self.server, call)
        for member in self.server.members:
            self._check_change(before[member.name], member)
        return answer

    def _note_touch(self, before: MemoryServer, *, destroyed: bool) -> None:
        after = {member.name: member for member in self.server.members}
        records = {record.name: record for record in self.server.records}
        for member in before.members:
            now = after.get(member.name)
            if now is None or (now.tenant, now.tokens) != (member.tenant, member.tokens):
                self.touched |= {member.name}
        self.touched |= {record.name for record in before.records} - set(records)
        back = {
            record.name for record in before.records if records.get(record.name, record).uid != record.uid
        }
        self.touched |= back
        self.restored |= back
        self.evidence_gone |= destroyed

    def _check_change(self, before: Member, after: Member) -> None:
        """I1 and I8: what one write of the protocol may do to a member."""
        if before.tenant and after.tenant and before.tenant != after.tenant:
            raise Violation(f"I1: {before.name} went from {before.tenant} to {after.tenant} in one write")
        for token in set(before.tokens) - set(after.tokens):
            record = self.server.record(token.record)
            if (
                record is not None
                and (record.phase, record.member) == (Phase.BOUND, before.name)
                and token.record in self.restored
                and not before.bears(record.token)
            ):
                raise Violation(f"I1: a claim that came back from a backup was taken off {before.name}")
            if record is None or record.token != token or record.name in self.touched:
                continue
            if record.phase is Phase.BOUND or (
                record.phase is Phase.PENDING and record.member == before.name
            ):
                raise Violation(f"I1: a living claim was taken off {before.name}")

    def _check_wipe(self, process: Process, name: str) -> None:
        member = self.server.member(name)
        assert isinstance(process.op, Cleans)
        if CREATED_AGAIN in member.annotations:
            raise Violation(f"I8: {name} was wiped, and it is not known who uses it")
        mine = member.annotations.get(CLEANING_TOKEN) == process.op.token
        if self.rotates and not (mine and member.state == State.CLEANING):
            return
        if member.tokens or (member.tenant and member.state is None):
            raise Violation(f"I8: {name} was wiped while it is somebody's")

    def _check_outcome(self, before: Process, after: Process) -> None:
        if not isinstance(before.op, Claims | Reads):
            return
        claim = before.op if isinstance(before.op, Claims) else before.op.claim
        record = None if claim.spill else self.server.record(claim.wanted.record)
        gives_up = isinstance(after.asked, ListPage) and after.asked.selector == members_of_type("aws")
        is_bound = record is not None and record.phase is Phase.BOUND and record.member not in self.touched
        if gives_up and is_bound:
            raise Violation("I6: about to say exhausted, though the claim is bound")
        new = after.outcomes[len(before.outcomes) :]
        if not new:
            return
        outcome = new[0]
        was_held = claim.wanted.record in before.held and claim.wanted.record not in self.touched
        if isinstance(before.op, Reads) and outcome is None and was_held:
            raise Violation("I3: a held claim was read as gone")
        if isinstance(outcome, LostMember) and not self.touched:
            raise Violation("I3: an account was reported lost, though nobody touched anything")

    def check(self) -> None:
        """I2, I3, I5, I7, I10, I12: what holds in every state."""
        held = [claimed for process in self.processes for claimed in process.held.values()]
        for claimed in held:
            self._check_held(claimed)
        for claimed in held:
            for other in held:
                self._check_pair(claimed, other)
        for record in self.server.records:
            if record.limit is not None and len(record.holders) > record.limit:
                raise Violation(f"I10: {record.name} has more holders than its limit")
        bound = [record for record in self.server.records if record.phase is Phase.BOUND]
        for consumer in self.consumers:
            if sum(map(consumer.has, bound)) > consumer.quotas["aws"]:
                raise Violation(f"I12: {consumer.name} has more accounts than its quota")
        for member in self.server.members:
            if member.shared and len(member.shared_claims) > member.shared_capacity:
                raise Violation(f"I10: {member.name} has more claims than its capacity")

    def _check_held(self, claimed: Claimed) -> None:
        if claimed.secret_name in self.touched or claimed.record in self.touched:
            return
        record = self.server.record(claimed.record)
        if record is None or record.phase is not Phase.BOUND or claimed.holder not in record.holders:
            raise Violation(f"I3: the record of a held claim of {claimed.tenant} is gone or lost its holder")
        if record.member != claimed.secret_name or not self.server.member(record.member).carries(record):
            raise Violation(f"I3: {claimed.secret_name} no longer carries the claim {claimed.tenant} holds")

    def _check_pair(self, one: Claimed, other: Claimed) -> None:
        touched = self.touched & {one.secret_name, other.secret_name, one.record, other.record}
        if touched and (one.record == other.record or self.evidence_gone):
            return
        same = one.secret_name == other.secret_name
        if one.record == other.record and not same:
            raise Violation(
                f"I2: holders of one claim of {one.tenant} have {one.secret_name}, {other.secret_name}"
            )
        if one.record != other.record and same and not self.server.member(one.secret_name).shared:
            raise Violation(f"I5: {one.secret_name} is held twice, by {one.tenant} and {other.tenant}")

    @property
    def is_over(self) -> bool:
        """Whether every process is done and nothing is on its way."""
        return self.late is None and all(process.op is None for process in self.processes)

    def orphans(self) -> list[str]:
        """What a sweep has to fix: half-done records, and tokens whose claim is not bound."""
        records = {record.name: record for record in self.server.records}
        half = [r.name for r in records.values() if r.phase is not Phase.BOUND]
        dead = [
            member.name
            for member in self.server.members
            for token in member.tokens
            if (record := records.get(token.record)) is None or record.token != token
        ]
        return half + dead

    def key(self) -> str:
        """Return all that decides what can still happen; uids and versions are renamed canonically."""
        others = repr((self.late, self.faults, sorted(self.touched)))
        text = "\n".join([repr(self.server), *(p.text for p in self.processes), others])
        current = self.server.versions
        names: dict[str, str] = {}

        def renamed(match: re.Match[str]) -> str:
            if match[0].startswith("rv"):
                return "current" if match[0] in current else "stale"
            return names.setdefault(match[0], f"u{len(names)}")

        return re.sub(r"(rv|uid|cursor)-\d+", renamed, text)


@dataclass
class Explored:
    """What an exhaustive exploration found: how many states, and the ways it can end."""

    states: int = 0
    ends: list[World] = field(default_factory=list[World])


Step: TypeAlias = tuple[str, World, list[Action], Action | None]


def explore(world: World, *, most: int = 200_000) -> Explored:
    """Try every order of calls and faults. Raises Violation, with the steps that led to it.

    A state met again on the way to itself without a fault is a violation as well: processes could go round
    for ever.
    """
    found = Explored()
    done: set[str] = set()
    first = world.key()
    open_keys = {first}
    path: list[Step] = [(first, world, world.actions(), None)]
    while path:
        key, here, todo, _ = path[-1]
        if not todo:
            if here.is_over:
                found.ends.append(here)
            done.add(key)
            open_keys.discard(key)
            path.pop()
            continue
        action = todo.pop()
        after = here.copy()
        try:
            after.do(action)
        except Violation as violation:
            raise _with_trace(violation, path, action) from None
        next_key = after.key()
        if next_key in open_keys and action.fault is None:
            endless = Violation("I9: the processes can go round for ever")
            raise _with_trace(endless, path, action)
        if next_key in done or next_key in open_keys:
            continue
        found.states = len(done) + len(open_keys)
        assert found.states < most, f"more than {most} states"
        open_keys.add(next_key)
        path.append((next_key, after, after.actions(), action))
    found.states = len(done)
    assert found.ends, "no order of calls comes to an end"
    return found


def _with_trace(violation: Violation, path: Iterable[Step], last: Action) -> Violation:
    steps = [action for *_, action in path if action is not None] + [last]
    return Violation("\n".join([str(violation), *map(_told, steps)]))


def _told(action: Action) -> str:
    text = re.sub(r"body=.*", "", repr(action.call))
    return f"  P{action.process} {text} {action.fault or ''}"
