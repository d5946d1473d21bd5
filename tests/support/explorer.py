"""Tries every order of the protocol's calls, and every crash, lost and late answer, on a pool in memory.

What runs are the generators of the product. A process is an operation at one of its calls. Its whole local
state follows from the answers it got, so a world can go on from any state in every way. A state is met once:
uids and resourceVersions are renamed to what can still be told of them.
"""

from __future__ import annotations

import inspect
import re
from array import array
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias
from unittest import mock

from components.account_pool.core.calls import (
    Answer,
    AskProgram,
    Call,
    Create,
    Delete,
    Found,
    Get,
    KeyVerb,
    Kind,
    ListPage,
    Page,
    Pair,
    Parallel,
    Pause,
    Refused,
    Result,
    Said,
    Told,
    Unknown,
    Yielded,
)
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.keys import CLEANING_TOKEN, CREATED_AGAIN, POOL_RECORD
from components.account_pool.core.model import JsonObject, Member, Origin, Phase, Policy, State
from components.account_pool.core.other_key import OTHER_KEY
from components.account_pool.core.pool import Pool
from components.account_pool.core.records import Claimed, Record
from components.account_pool.core.selection import members_of_type
from components.errors import LostMember, PoolError
from tests.support.memory_pool import (
    FAILED,
    Beside,
    ByHand,
    Claims,
    Cleans,
    Decides,
    Effect,
    MemoryServer,
    Moves,
    Op,
    Reads,
    Releases,
    Rotates,
    Run,
    Script,
    Sweeps,
    Updates,
    is_free,
    matches,
    name_of,
    run,
)

Asked: TypeAlias = Call | Beside | AskProgram
_REF: Final = re.compile(
    r"(?P<rv>rv\d+-\w+)"
    r"|(?P<uid>(?:uid|run)\d+[-x]\w+)"
    r"|sequence=(?P<sequence>\d+)"
    r"|(?:retired=|retired': '|['\"]h\w*['\"]: )(?P<holder>\d+)"
    r"|(?:attempt=|attempt': '|(?<=\w)\.)(?P<attempt>\d+)"
)
_NO_ANSWER: Final = Unknown("connection reset")
_NOTHING: Final = "nothing"
_DONE: Final = Found({})


class Fault(StrEnum):
    """What may happen to a call besides being carried out and answered."""

    CRASH = "crash before"
    LOST = "answer lost"
    FAILED = "not carried out, error"
    LATE = "error, carried out later"
    WIPE = "the command fails"


ANY: Final = frozenset({Fault.CRASH, Fault.LOST, Fault.FAILED})
UNLIMITED: Final = -1


class Violation(AssertionError):  # noqa: N818 - reads as what it is
    """An invariant of the protocol does not hold."""


class Sketch(NamedTuple):
    """A text without its uids, versions, runs and counts, and these apart.

    Of a uid only matters where else it stands, of a version whether it is the present one, of a count which
    of two is greater: of attempts with one uid, of sequence numbers of one record.
    """

    text: str
    uids: tuple[str, ...]
    versions: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, text: str, *, stored: bool = False) -> Sketch:
        """Draw it. stored: of an object; elsewhere a record that is old is not written any more."""
        uids, versions, counts = list[str](), list[str](), list[tuple[str, int]]()

        def without(match: re.Match[str]) -> str:
            kind = match.lastgroup or ""
            said, uid = match[kind], uids[-1] if uids else ""
            if kind == "uid":
                uids.append(said)
            elif kind == "rv":
                versions.append(said)
            elif kind == "attempt":
                counts.append((uid, int(said)))
            elif stored or kind == "sequence":
                counts.append((uid.partition("-")[2], int(said)))
            return f"{match[0][: match.start(kind) - match.start()]}{kind}"

        return cls(_REF.sub(without, text), tuple(uids), tuple(versions), tuple(counts))


@dataclass(frozen=True, eq=False)
class Process:
    """One process at one of its calls. Immutable, so that worlds can share it.

    answers: what it was told since its operation began, each with the cleaners it saw, which is all it knows.
    asked: the call it is at, None when all its operations are over. half: of two calls side by side, the
    answers so far. knows: its local state as text. births: how often an operation began.
    """

    number: int
    script: tuple[Op, ...]
    index: int = 0
    births: int = 0
    answers: tuple[tuple[Answer, frozenset[str]], ...] = ()
    asked: Yielded | Beside | None = None
    half: tuple[Result | None, Result | None] = (None, None)
    knows: str = ""
    held: Mapping[str, Claimed] = field(default_factory=dict[str, Claimed])
    outcomes: tuple[Any, ...] = ()

    @cached_property
    def sketch(self) -> Sketch:
        """All that decides what it can still do."""
        said = [
            f"{one.record} {one.secret_name} {one.record_uid} sequence={one.sequence}"
            if isinstance(one, Claimed)
            else type(one).__name__
            for one in self.outcomes
        ]
        over = self.outcomes[-1:] if self.op is None else ()
        held = sorted(self.held.items())
        return Sketch.of(repr((self.number, self.index, self.asked, self.half, self.knows, held, said, over)))

    @property
    def op(self) -> Op | None:
        """The operation it is at, None after the last."""
        return self.script[self.index] if self.index < len(self.script) else None

    @property
    def run(self) -> str:
        """The name of the running process, which a crash ends."""
        return f"run{self.number}x{self.births}"

    @cached_property
    def calls(self) -> tuple[Asked, ...]:
        """What it may ask next: one call, or either of two."""
        match self.asked:
            case None | Pause():
                return ()
            case Parallel(first, second):
                return tuple(c for c, a in zip((first, second), self.half, strict=True) if a is None)
            case call:
                return (call,)

    @cached_property
    def gives_up(self) -> bool:
        """Whether it looks why it got nothing."""
        return isinstance(self.asked, ListPage) and self.asked.selector == members_of_type("aws")

    def started(self) -> Process:
        """Begin the operation it is at, with nothing known."""
        fresh = replace(self, births=self.births + 1, answers=(), half=(None, None), asked=None, knows="")
        if isinstance(fresh.op, Releases):
            meant = fresh.op.means(self._before, self.outcomes)
            left = meant.record if meant else fresh.op.claim.wanted.record
            since = zip(self.script, self.outcomes, strict=False) if fresh.op.shows else ()
            if not any(isinstance(op, Claims) and one != meant for op, one in [*since][fresh.op.shows :]):
                fresh = replace(fresh, held={name: one for name, one in fresh.held.items() if name != left})
        if isinstance(fresh.op, Moves) or (
            isinstance(fresh.op, Updates) and fresh.op.holder != fresh.op.claim.holder
        ):
            fresh = replace(fresh, held={})
        return fresh if fresh.op is None else fresh._resumed(())

    def told(self, call: Asked, answer: Result, sees: frozenset[str]) -> Process:
        """Go on with the answer to a call, to the next call or operation."""
        if not isinstance(self.asked, Parallel):
            return self._resumed((*self.answers, (answer, sees)))
        first, second = self.half
        first, second = (answer, second) if call is self.asked.first else (first, answer)
        if first is None or second is None:
            return replace(self, half=(first, second))
        return replace(self, half=(None, None))._resumed((*self.answers, (Pair(first, second), sees)))

    def _resumed(self, answers: tuple[tuple[Answer, frozenset[str]], ...]) -> Process:
        assert self.op is not None
        running = Run(self.run, frozenset(), self.outcomes)
        steps = self.op.start(self._before, running)
        try:
            asked = steps.send(None)
            for answer, running.alive in answers:
                asked = steps.send(answer)
            while isinstance(asked, Pause):
                answers = (*answers, (None, frozenset()))
                asked = steps.send(None)
        except StopIteration as end:
            return self._over(end.value)
        except PoolError as error:
            return self._over(error)
        return replace(self, answers=answers, asked=asked, knows=_local_state(steps))

    @property
    def _before(self) -> Mapping[str, Claimed]:
        """What it was given before the operation."""
        return {one.record: one for one in self.outcomes if isinstance(one, Claimed)}

    def _over(self, outcome: Any) -> Process:
        held = dict(self.held)
        if isinstance(outcome, Claimed) and isinstance(self.op, Claims | Updates | Moves):
            held[outcome.record] = outcome
        done = replace(self, index=self.index + 1, held=held, outcomes=(*self.outcomes, outcome))
        return done.started()


def _local_state(steps: Script) -> str:
    """Everything a suspended operation knows: where each of its generators stands, and their variables."""
    parts: list[str] = []
    inner: Any = steps
    while inner is not None:
        known = {
            name: vars(value) if isinstance(value, Pool) else value
            for name, value in inspect.getgeneratorlocals(inner).items()
            if name not in ("attempt", "look")
        }
        parts.append(f"{inner.gi_code.co_name}@{inner.gi_frame.f_lasti} {known!r}")
        inner = inner.gi_yieldfrom
    return re.sub(r" at 0x\w+", "", " ".join(parts))


@dataclass(frozen=True)
class Action:
    """One step of the world: a process makes a call, or something happens to it. target: of a hand."""

    process: int
    call: Asked
    fault: Fault | None = None
    target: str = ""

    def __str__(self) -> str:
        text = re.sub(r"body=.*", "", repr(self.call))
        return f"  P{self.process} {text} {self.target} {self.fault or ''}"


LATER, ENDS = -1, -2
"""Processes of an action that are none: a write that comes late, and a launcher that ends by itself."""


class Cleaning(NamedTuple):
    """A process that holds an account to clean it, which may outlive its run.

    is_wiping: its command runs. is_cut: it has a credential that was changed since.
    """

    run: str
    token: str
    member: str
    account: str
    is_wiping: bool = False
    is_cut: bool = False


@dataclass(frozen=True)
class Rules:
    """What may happen in a world, and what is promised in it.

    abandons: who crashes in a release never comes back to it. rotates: who takes a cleaning over makes a new
    credential. one_holder: processes with one holder are one; the last claim counts. no_orphans: nothing is
    left for a sweep. stays: who names its former account gets that one.
    """

    may: frozenset[Fault] = frozenset()
    abandons: bool = False
    rotates: bool = False
    one_holder: bool = False
    no_orphans: bool = False
    stays: bool = False
    consumers: tuple[Consumer, ...] = ()


class Ghost(NamedTuple):
    """What happened that no object tells, by the names of Secrets and records, or by accounts.

    touched: changed by hand. restored: from a backup. dirty: Secrets, used: accounts that were not wiped
    since. kept: by its tenant, who has not claimed it since. alive: keys that the cloud takes, made: how many
    were made. copies: holder and the key that it uses. seen: keys of an account while it was held.
    """

    touched: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    evidence_gone: bool = False
    dirty: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()
    alive: frozenset[str] = frozenset({"k0"})
    made: int = 0
    copies: frozenset[tuple[str, str]] = frozenset()
    seen: frozenset[str] = frozenset()


_NOTHING_HAPPENED: Final = Ghost()


class Memo:
    """What is known already of objects, processes and calls; objects here live as long as it does."""

    def __init__(self) -> None:
        self._bodies: dict[tuple[Kind, str, str], JsonObject] = {}
        self._sketches: dict[int, Sketch] = {}
        self._texts: dict[str, int] = {}
        self._processes: dict[tuple[Sketch, int], Process] = {}
        self._told: dict[Hashable, Process] = {}
        self._written: dict[Hashable, tuple[Result, JsonObject | None]] = {}
        self._parsed: dict[int, Any] = {}
        self._matching: dict[tuple[str, int], bool] = {}
        self._calls: dict[int, tuple[Asked, Sketch]] = {}

    def body(self, kind: Kind, body: JsonObject) -> JsonObject:
        """Return the one object that is equal."""
        text = repr(body)
        one = self._bodies.setdefault((kind, str(body["metadata"]["name"]), text), body)
        if id(one) not in self._sketches:
            self._sketches[id(one)] = self._numbered(Sketch.of(text, stored=True))
        return one

    def sketch(self, body: JsonObject) -> Sketch:
        """Return that of an object."""
        return self._sketches[id(body)]

    def _numbered(self, sketch: Sketch) -> Sketch:
        """Put a number in the place of a long text."""
        return sketch._replace(text=str(self._texts.setdefault(sketch.text, len(self._texts))))

    def process(self, process: Process) -> Process:
        """Return the one process that is equal; with other births only where nobody can tell."""
        births = process.births if any(isinstance(op, Cleans | Rotates) for op in process.script) else 0
        own = process.sketch
        found = self._processes.setdefault((own, births), process)
        if found is process:
            process.__dict__["sketch"] = self._numbered(own)
        return found

    def of_call(self, call: Asked) -> Sketch:
        """Return the sketch of a call that is under way."""
        if id(call) not in self._calls:
            self._calls[id(call)] = (call, self._numbered(Sketch.of(repr(call))))
        return self._calls[id(call)][1]

    def told(
        self, process: Process, call: Asked, seen: Hashable, answer: Any, sees: frozenset[str]
    ) -> Process:
        """Return the process after an answer. seen: what tells this answer from others; answer: makes it."""
        key = (id(process), id(call), seen, sees)
        found = self._told.get(key)
        if found is None:
            found = self._told[key] = self.process(process.told(call, answer(), sees))
        return found

    def crashed(self, process: Process, *, gives_up: bool) -> Process:
        """Return the process as it begins again."""
        key = (id(process), gives_up)
        if key not in self._told:
            again = replace(process, index=process.index + 1) if gives_up else process
            self._told[key] = self.process(again.started())
        return self._told[key]

    def seen(self, server: MemoryServer, call: Get | ListPage) -> Hashable:
        """Return what an answer to a read depends on."""
        if isinstance(call, Get):
            kind = Kind.MEMBER if call.kind is Kind.CREDENTIAL else call.kind
            return id(server.objects.get((kind, call.name)))
        return tuple(
            id(body)
            for (kind, _), body in server.objects.items()
            if kind is call.kind and self._matches(call.selector, body)
        )

    def _matches(self, selector: str, body: JsonObject) -> bool:
        key = (selector, id(body))
        if key not in self._matching:
            self._matching[key] = matches(selector, body["metadata"].get("labels") or {})
        return self._matching[key]

    def write(self, server: MemoryServer, call: Any) -> tuple[Result, MemoryServer]:
        """Carry out a write."""
        where = call.kind, name_of(call)
        before = server.objects.get(where)
        key = (id(call), id(before), server.writes.get(where, 0))
        if key not in self._written:
            self.of_call(call)  # it stays
            tried = server.copy()
            result = tried(call)
            after = tried.objects.get(where)
            self._written[key] = (result, None if after is None else self.body(call.kind, after))
        result, after = self._written[key]
        if after is before:
            return result, server
        written = server.copy()
        if after is None:
            del written.objects[where]
        else:
            written.objects[where] = after
            written.writes[where] = server.writes.get(where, 0) + (1 if before is not None else 2)
        return result, written

    def member(self, body: JsonObject) -> Member:
        """Parse a member."""
        if id(body) not in self._parsed:
            self._parsed[id(body)] = Member.parse(body)
        return self._parsed[id(body)]

    def record(self, body: JsonObject) -> Record | None:
        """Parse a record; None for what is none."""
        if id(body) not in self._parsed:
            is_record = POOL_RECORD in (body["metadata"].get("labels") or {})
            self._parsed[id(body)] = Record.parse(body) if is_record else None
        return self._parsed[id(body)]


def _account(member: Member) -> str:
    return member.account_id or member.name


@dataclass(frozen=True, eq=False)
class World:
    """A server and processes on it. late: a write on its way although its caller saw an error."""

    rules: Rules
    memo: Memo
    server: MemoryServer
    processes: tuple[Process, ...]
    faults: int = 0
    late: Any = None
    cleanings: tuple[Cleaning, ...] = ()
    ghost: Ghost = _NOTHING_HAPPENED
    first: MemoryServer = field(default_factory=MemoryServer)

    @classmethod
    def of(
        cls,
        server: MemoryServer,
        *scripts: tuple[Op, ...],
        faults: int = 0,
        ghost: Ghost = _NOTHING_HAPPENED,
        **rules: Any,
    ) -> World:
        """Start every process on its first operation."""
        memo = Memo()
        own = server.copy()
        own.objects = {where: memo.body(where[0], body) for where, body in own.objects.items()}
        begun = [memo.process(Process(number, script).started()) for number, script in enumerate(scripts)]
        soiled = {m.name for m in own.members if m.state and m.state != State.QUARANTINED}
        ghost = ghost._replace(dirty=ghost.dirty | soiled)
        return cls(Rules(**rules), memo, own, tuple(begun), faults, ghost=ghost, first=own)

    def _but(self, **changed: Any) -> World:
        """Return the world with these changes; `dataclasses.replace` takes several times as long."""
        other = object.__new__(World)
        other.__dict__.update(self.__dict__)
        other.__dict__.update(changed)
        return other

    @property
    def members(self) -> Sequence[Member]:
        """All members."""
        found = [self.memo.member(b) for (kind, _), b in self.server.objects.items() if kind is Kind.MEMBER]
        return [member for member in found if not member.name.endswith(OTHER_KEY)]

    @property
    def records(self) -> Sequence[Record]:
        """All records."""
        found = [self.memo.record(b) for (kind, _), b in self.server.objects.items() if kind is Kind.RECORD]
        return [record for record in found if record is not None]

    def member(self, name: str) -> Member | None:
        """Look at a member."""
        body = self.server.objects.get((Kind.MEMBER, name))
        return None if body is None else self.memo.member(body)

    def record(self, name: str) -> Record | None:
        """Look at a record."""
        body = self.server.objects.get((Kind.RECORD, name))
        return None if body is None else self.memo.record(body)

    def actions(self) -> Iterator[Action]:
        """Yield everything that may happen next."""
        for index, process in enumerate(self.processes):
            for call in process.calls:
                if isinstance(process.op, ByHand):
                    targets = [*process.op.targets(self.server)]
                    yield from (Action(index, call, target=each) for each in targets or [_NOTHING])
                    continue
                yield Action(index, call)
                if self.faults:
                    yield from (Action(index, call, fault) for fault in self._faults_of(process, call))
        if self.late is not None:
            yield Action(LATER, self.late)
        running = {process.run for process in self.processes if process.op is not None}
        for one in self.cleanings:
            if one.run not in running:
                yield Action(ENDS, Beside(Effect.END, one.member, one.token))

    def _faults_of(self, process: Process, call: Asked) -> Iterator[Fault]:
        may = self.rules.may
        if Fault.CRASH in may and process.answers:
            yield Fault.CRASH
        if isinstance(call, Beside):
            if call.effect is Effect.WIPED and Fault.WIPE in may:
                yield Fault.WIPE
        elif isinstance(call, AskProgram):
            is_read = call.verb in (KeyVerb.IDENTIFY, KeyVerb.TEST)
            yield from self.rules.may & ({Fault.FAILED} if is_read else {Fault.FAILED, Fault.LOST})
        elif not isinstance(call, Get | ListPage):
            yield from (fault for fault in (Fault.LOST, Fault.FAILED) if fault in may)
            if Fault.LATE in may and self.late is None:
                yield Fault.LATE

    def do(self, action: Action) -> World:  # noqa: PLR0911 - one for each kind of action
        """Return the world after it, if no write in it breaks an invariant."""
        counts = action.fault is not None and self.faults != UNLIMITED
        here = self._but(faults=self.faults - 1) if counts else self
        if action.process == LATER:
            return here._but(late=None)._carry_out(action.call, None)[1]
        if action.process == ENDS:
            return here._beside(None, action)
        process = self.processes[action.process]
        if isinstance(process.op, ByHand):
            here = here if action.target == _NOTHING else here._by_hand(process.op, action.target)
            return here._with(process, self.memo.told(process, action.call, 0, lambda: _DONE, frozenset()))
        if action.fault is Fault.CRASH:
            gives_up = self.rules.abandons and isinstance(process.op, Releases)
            return here._with(process, self.memo.crashed(process, gives_up=gives_up))
        if isinstance(action.call, Beside):
            here = here._beside(process, action)
            failed = action.fault is Fault.WIPE
            answer = FAILED if failed else _DONE
            return here._with(
                process, self.memo.told(process, action.call, failed, lambda: answer, frozenset())
            )
        if isinstance(action.call, AskProgram):
            told, here = (
                (Told(Said.UNKNOWN), here) if action.fault is Fault.FAILED else here._asked(action.call)
            )
            told = told if action.fault is None else Told(Said.UNKNOWN)
            seen = told.said, told.key_id
            return here._with(process, self.memo.told(process, action.call, seen, lambda: told, frozenset()))
        return here._called(process, action)

    def _asked(self, asked: AskProgram) -> tuple[Told, World]:
        """Do at the cloud what the program of its owner does."""
        ghost, key = self.ghost, asked.data["key"]
        if key not in ghost.alive:
            return Told(Said.REJECTED), self
        if asked.verb in (KeyVerb.CREATE, KeyVerb.REVOKE):
            ghost = ghost._replace(alive=ghost.alive & {asked.keep})
        if asked.verb is KeyVerb.CREATE:
            key = f"k{ghost.made + 1}"
            ghost = ghost._replace(alive=ghost.alive | {key}, made=ghost.made + 1)
        return Told(Said.DONE, key_id=key, data={"key": key}), self._but(ghost=ghost)

    def _called(self, process: Process, action: Action) -> World:
        call, here = action.call, self
        sees = (
            frozenset(one.run for one in self.cleanings)
            if isinstance(process.op, Cleans | Rotates)
            else frozenset()
        )
        if isinstance(call, Get | ListPage):
            seen = self.memo.seen(self.server, call)
            told = self.memo.told(process, call, seen, lambda: _read(self.server, call), sees)
        else:
            result: Result = _NO_ANSWER
            if action.fault in (None, Fault.LOST):
                result, here = self._carry_out(call, process)
            if action.fault is Fault.LATE:
                here = here._but(late=call)
            if action.fault is not None:
                result = _NO_ANSWER
            told = self.memo.told(process, call, _told_apart(result), lambda: result, sees)
        self._check_outcome(process, told)
        return here._with(process, told)._claimed(process, told)

    def _with(self, before: Process, after: Process) -> World:
        changed = tuple(after if each is before else each for each in self.processes)
        return self._but(processes=changed)

    def _claimed(self, before: Process, after: Process) -> World:
        """Note that an account is used; what another process of the same holder has is this one's then."""
        here = self
        for claimed in after.outcomes[len(before.outcomes) :]:
            if not isinstance(claimed, Claimed) or not isinstance(before.op, Claims):
                continue
            if claimed.policy is not Policy.RELEASE and not before.op.shared:
                account = claimed.account_id or claimed.secret_name
                here = here._but(ghost=here.ghost._replace(used=here.ghost.used | {account}))
            if self.rules.one_holder:
                here = here._held_by_last(after.number, claimed)
        return here

    def _held_by_last(self, number: int, claimed: Claimed) -> World:
        processes = list(self.processes)
        for index, other in enumerate(processes):
            had = other.held.get(claimed.record)
            if had is None or index == number or had.holder != claimed.holder:
                continue
            loser = index if had.sequence < claimed.sequence else number
            held = {k: v for k, v in processes[loser].held.items() if k != claimed.record}
            changed = replace(processes[loser], held=held)
            processes[loser] = self.memo.process(changed)
        return self._but(processes=tuple(processes))

    def _carry_out(self, call: Any, process: Process | None) -> tuple[Result, World]:
        result, server = self.memo.write(self.server, call)
        if server is self.server:
            return result, self
        here = self._but(server=server, late=self._still_late(call))
        if call.kind is not Kind.MEMBER:
            return result, here._bound(call)
        before, after = self.member(name_of(call)), here.member(name_of(call))
        op = process.op if process else None
        if before is not None and after is not None:
            self._check_change(before, after, op)
        is_key = name_of(call).endswith(OTHER_KEY)
        return result, here if is_key else here._noted(before, after, op)

    def _still_late(self, call: Any) -> Any:
        late = self.late
        is_void = late is not None and not isinstance(late, Create) and name_of(late) == name_of(call)
        return None if is_void else late

    def _bound(self, call: Any) -> World:
        record = None if isinstance(call, Delete) else self.record(name_of(call))
        if record is None or record.phase is not Phase.BOUND or not self.ghost.kept:
            return self
        member = self.member(record.member)
        if member is None or not member.bears(record.token):
            return self
        return self._but(ghost=self.ghost._replace(kept=self.ghost.kept - {_account(member)}))

    def _noted(self, before: Member | None, after: Member | None, op: Op | None) -> World:
        """Remember what a write means for the account."""
        if after is None:
            return self
        ghost, account = self.ghost, _account(after)
        if after.tokens and (key := self._key_of(after)):
            ghost = ghost._replace(seen=ghost.seen | {key})
        was, now = before.state if before else None, after.state
        is_quarantined = now == State.QUARANTINED and was is None and not isinstance(op, Decides)
        is_returned = isinstance(op, Decides) and op.verb == "take_back"
        if (now == State.DIRTY and was != State.DIRTY) or is_quarantined or is_returned:
            ghost = ghost._replace(dirty=ghost.dirty | {after.name})
        if before and before.is_created_again and after.tokens:
            ghost = ghost._replace(dirty=ghost.dirty - {after.name})
        if isinstance(op, Decides | ByHand):
            if ghost.kept and now != was:
                ghost = ghost._replace(kept=ghost.kept - {account})
            if op == Decides("decommission", after.name):
                ghost = ghost._replace(given_up=ghost.given_up | {account})
        elif before and before.tokens and not after.tokens and after.origin == Origin.RETAINED and not now:
            ghost = ghost._replace(kept=ghost.kept | {account})
        return self if ghost is self.ghost else self._but(ghost=ghost)

    def _key_of(self, member: Member) -> str | None:
        """Return the key in the Secret of an account."""
        return self.server.objects[Kind.MEMBER, member.name].get("data", {}).get("key")

    def _check_change(self, before: Member, after: Member, op: Op | None) -> None:
        """I1, I8, I11, I13: what one write of the protocol may do to a member."""
        account = _account(before)
        if before.tenant and after.tenant and before.tenant != after.tenant:
            raise Violation(f"I1: {before.name} went from {before.tenant} to {after.tenant} in one write")
        if account in self.ghost.given_up and before.state == State.QUARANTINED != after.state:
            raise Violation(f"I11: {before.name} came back, which an operator gave up")
        for token in set(before.tokens) - set(after.tokens):
            moved = [record for record in self.records if after.bears(record.token)]
            if all(record.moves != token for record in moved):
                self._check_removal(before, self.record(token.record), str(token))
        if before.state == State.CLEANING and before.tenant and not after.tenant:
            mine = [one for one in self.cleanings if one.token == before.annotations.get(CLEANING_TOKEN)]
            if not isinstance(op, Cleans) and not mine:
                raise Violation(f"I8: {before.name} was freed by another than who cleans it")
        if account in self.ghost.kept and not isinstance(op, Decides | ByHand):
            is_left = not after.tokens and after.origin != Origin.RETAINED
            if after.tenant is None or after.state != before.state or is_left:
                raise Violation(
                    f"I13: {before.name}, which its tenant retained, left it by a claim never bound"
                )

    def _check_removal(self, before: Member, record: Record | None, token: str) -> None:
        if record is None:
            return
        is_bound_here = (record.phase, record.member) == (Phase.BOUND, before.name)
        if is_bound_here and record.name in self.ghost.restored and not before.bears(record.token):
            raise Violation(f"I1: a claim that came back from a backup was taken off {before.name}")
        if str(record.token) != token or record.name in self.ghost.touched:
            return
        if is_bound_here or (record.phase is Phase.PENDING and record.member == before.name):
            raise Violation(f"I1: a living claim was taken off {before.name}")

    def _beside(self, process: Process | None, action: Action) -> World:
        step = action.call
        assert isinstance(step, Beside)
        member = self.member(step.name)
        others = [one for one in self.cleanings if one.token != step.token]
        mine = next((one for one in self.cleanings if one.token == step.token), None)
        ghost = self.ghost
        match step.effect:
            case Effect.LAUNCH:
                assert process is not None
                account = _account(member) if member else step.name
                others.append(Cleaning(process.run, step.token, step.name, account))
            case Effect.WIPE if mine is not None:
                if self.rules.rotates:  # who had the old credential can do nothing any more
                    others = [
                        one._replace(is_cut=one.is_cut or one.account == mine.account) for one in others
                    ]
                others.append(mine._replace(is_wiping=True))
                if member and CREATED_AGAIN in member.annotations:
                    raise Violation(f"I8: {step.name} was wiped, and it is not known who uses it")
            case Effect.WIPED if mine is not None:
                others.append(mine._replace(is_wiping=False))
                token = member.annotations.get(CLEANING_TOKEN) if member else None
                if member and (token, member.state) == (step.token, State.CLEANING) and action.fault is None:
                    ghost = ghost._replace(
                        dirty=ghost.dirty - {mine.member}, used=ghost.used - {mine.account}
                    )
            case Effect.COPY:
                others_copies = {each for each in ghost.copies if each[0] != step.name}
                ghost = ghost._replace(copies=frozenset({*others_copies, (step.name, step.token)}))
            case _:
                pass
        return self._but(cleanings=tuple(sorted(others)), ghost=ghost)

    def _by_hand(self, op: ByHand, target: str) -> World:
        server = self.server.copy()
        op.change(server, target)
        server.objects = {where: self.memo.body(where[0], b) for where, b in server.objects.items()}
        here = self._but(server=server)
        ghost = self.ghost
        touched, restored = set(ghost.touched), set(ghost.restored)
        for member in self.members:
            now = here.member(member.name)
            if now is None or (now.tenant, now.tokens) != (member.tenant, member.tokens):
                touched.add(member.name)
            if now is not None and now != member:
                here = here._noted(member, now, op)
        for record in self.records:
            now = here.record(record.name)
            if now is None or now.uid != record.uid:
                touched.add(record.name)
                restored |= set() if now is None else {record.name}
        gone = ghost.evidence_gone or op.destroys_evidence
        ghost = here.ghost._replace(
            touched=frozenset(touched), restored=frozenset(restored), evidence_gone=gone
        )
        return here._but(ghost=ghost)

    def _check_outcome(self, before: Process, after: Process) -> None:
        """I3, I6, I7: what a claim or a read ends with."""
        new = after.outcomes[len(before.outcomes) :]
        if not isinstance(before.op, Claims | Reads) or not (new or after.gives_up):
            return
        claim = before.op if isinstance(before.op, Claims) else before.op.claim
        record = None if claim.spill else self.record(claim.wanted.record)
        is_bound = (
            record is not None and record.phase is Phase.BOUND and record.member not in self.ghost.touched
        )
        if after.gives_up and is_bound:
            raise Violation("I6: about to say exhausted, though the claim is bound")
        if not new:
            return
        was_held = claim.wanted.record in before.held and claim.wanted.record not in self.ghost.touched
        if isinstance(before.op, Reads) and new[0] is None and was_held:
            raise Violation("I3: a held claim was read as gone")
        if isinstance(new[0], LostMember) and not self.ghost.touched:
            raise Violation("I7: an account was reported lost, though nobody touched anything")

    def check(self) -> None:
        """I2, I3, I5, I8, I10, I11, I12, I14, I15: what holds in every state."""
        held = [claimed for process in self.processes for claimed in process.held.values()]
        for number, claimed in enumerate(held):
            self._check_held(claimed)
            for other in held[:number]:
                self._check_pair(claimed, other)
        records, members = self.records, self.members
        for record in records:
            if record.limit is not None and len(record.holders) > record.limit:
                raise Violation(f"I10: {record.name} has more holders than its limit")
        for consumer in self.rules.consumers:
            bound = [record for record in records if record.phase is Phase.BOUND]
            if sum(map(consumer.has, bound)) > consumer.quotas.get("aws", 99):
                raise Violation(f"I12: {consumer.name} has more accounts than its quota")
        for member in members:
            self._check_member(member)
            self._check_key(member)
        for claimed in held:
            for holder, key in self.ghost.copies:
                if holder == claimed.holder and key not in self.ghost.alive:
                    raise Violation(f"I14: {holder} uses {key}, which is revoked")
        for one in self.cleanings:
            if one.is_wiping and not one.is_cut and not self.ghost.evidence_gone:
                self._check_wipe(one, members, held)

    def _check_member(self, member: Member) -> None:
        if member.shared and len(member.shared_claims) > member.shared_capacity:
            raise Violation(f"I10: {member.name} has more claims than its capacity")
        account = _account(member)
        if member.name in self.ghost.dirty and member.state is None:
            raise Violation(f"I11: {member.name} is usable, and nobody wiped it")
        if account in self.ghost.used and not self.ghost.evidence_gone and is_free(member):
            raise Violation(f"I11: {member.name} is free, was used, and nobody wiped it")

    def _check_key(self, member: Member) -> None:
        key, old = self._key_of(member), self.ghost.seen & self.ghost.alive
        if key and key not in self.ghost.alive and member.name not in self.ghost.touched:
            raise Violation(f"I14: {member.name} has {key}, which is revoked")
        if old and member.needs_new_key and is_free(member):
            raise Violation(f"I15: {member.name} is free, and a key of its last tenant works")

    def _check_wipe(self, one: Cleaning, members: Sequence[Member], held: Sequence[Claimed]) -> None:
        """I8: while a command wipes an account, nobody has it or can get it."""
        for claimed in held:
            if one.account in (claimed.account_id, claimed.secret_name):
                raise Violation(f"I8: {one.member} is wiped while {claimed.tenant} has it")
        for member in members:
            if _account(member) == one.account and (member.tokens or member.state is None):
                if member.name in self.ghost.touched:
                    continue
                raise Violation(f"I8: {member.name} is wiped while it is somebody's, or free")

    def _check_held(self, claimed: Claimed) -> None:
        if claimed.secret_name in self.ghost.touched or claimed.record in self.ghost.touched:
            return
        record = self.record(claimed.record)
        if record is None or record.phase is not Phase.BOUND or claimed.holder not in record.holders:
            raise Violation(f"I3: the record of a held claim of {claimed.tenant} is gone or lost its holder")
        member = self.member(record.member)
        if record.member != claimed.secret_name or member is None or not record.is_carried_by(member):
            raise Violation(f"I3: {claimed.secret_name} no longer carries the claim {claimed.tenant} holds")

    def _check_pair(self, one: Claimed, other: Claimed) -> None:
        names = {one.secret_name, other.secret_name, one.record, other.record}
        if self.ghost.touched & names and (one.record == other.record or self.ghost.evidence_gone):
            return
        same = one.secret_name == other.secret_name or (one.account_id or 1) == (other.account_id or 2)
        if one.record == other.record and not same:
            raise Violation(
                f"I2: holders of one claim of {one.tenant} have {one.secret_name}, {other.secret_name}"
            )
        if one.record == other.record:
            return
        if (one.tenant, one.slot) == (other.tenant, other.slot):
            raise Violation(f"I2: slot {one.slot} of {one.tenant} has two claims")
        if one.tenant == other.tenant and one.holder == other.holder and "+" in one.slot + other.slot:
            raise Violation(f"I2: {one.holder} has two places in what a slot spilled into")
        first = self.first.objects.get((Kind.MEMBER, one.secret_name))
        if same and not (first and self.memo.member(first).shared):
            number = 2 if one.tenant == other.tenant else 5
            raise Violation(f"I{number}: {one.secret_name} is held twice, by {one.tenant} and {other.tenant}")

    @property
    def is_over(self) -> bool:
        """Whether every process is done and nothing is on its way."""
        return self.late is None and not self.cleanings and all(p.op is None for p in self.processes)

    def orphans(self) -> list[str]:
        """What a sweep has to fix: half-done records, and tokens whose claim is not bound."""
        records = {record.name: record for record in self.records}
        half = [r.name for r in records.values() if r.phase is not Phase.BOUND]
        dead = [
            member.name
            for member in self.members
            for token in member.tokens
            if (record := records.get(token.record)) is None or record.token != token
        ]
        return half + dead

    def check_end(self) -> None:
        """I4: at rest nothing is half done or owned without a claim, and each has what it brought."""
        if not self.is_over:
            raise Violation("I9: a process has no next step")
        is_certain = Fault.LATE not in self.rules.may and not self.rules.abandons and not self.ghost.restored
        left = self.orphans()
        if is_certain and any(record.phase is not Phase.BOUND for record in self.records):
            raise Violation("I4: a record is left half done")
        if self.rules.no_orphans and left:
            raise Violation(f"I4: {left} are left to a sweep")
        for process in self.processes if is_certain else ():
            last = process.script[-1]
            if isinstance(last, Releases) and not last.fenced:
                record = self.record(last.claim.wanted.record)
                if record is not None and last.claim.holder in record.holders:
                    raise Violation(f"I4: {last.claim.holder} released, and is still listed")
        if not self.ghost.touched:
            run(Sweeps().start(), server := self.server.copy())
            run(Sweeps().start(), server)
            swept = self._but(server=server, memo=Memo())
            if swept.orphans():
                raise Violation(f"I4: a sweep leaves {swept.orphans()}")
        for process in self.processes if self.rules.stays else ():
            _check_former(process)
        for member in self.members:
            self._check_owner(member)

    def _check_owner(self, member: Member) -> None:
        body = self.first.objects.get((Kind.MEMBER, member.name))
        before = self.memo.member(body) if body else None
        if member.name in self.ghost.touched or member.shared:
            return
        if before and before.tenant and before.origin is None and member.tenant != before.tenant:
            raise Violation(f"I4: {member.name} is not its tenant's any more, who brought it")
        is_owned = member.tenant and member.state is None and not member.tokens
        if is_owned and not (before and before.tenant) and member.origin != Origin.RETAINED:
            raise Violation(f"I4: {member.name} is owned, and neither claimed nor retained")

    def raw_key(self) -> Hashable:
        """Return what is the same for equal worlds only, though not for all of them; quickly."""
        objects, processes = map(id, self.server.objects.values()), map(id, self.processes)
        return (*objects, *processes, id(self.late), self.faults, self.cleanings, self.ghost)

    def key(self) -> Hashable:
        """Return all that decides what can still happen; uids and versions are renamed canonically."""
        names: dict[str, int] = {}
        parts: list[Hashable] = []
        of_objects = [self.memo.sketch(self.server.objects[where]) for where in sorted(self.server.objects)]
        of_others = [process.sketch for process in self.processes]
        if self.late is not None:
            of_others.append(self.memo.of_call(self.late))
        if self.cleanings:
            of_others.append(Sketch.of(repr(self.cleanings)))
        current = {version for sketch in of_objects for version in sketch.versions}
        sketches = [*of_objects, *of_others]
        ranks = _ranks(count for sketch in sketches for count in sketch.counts)
        for sketch in sketches:
            parts.append(sketch.text)
            parts += [names.setdefault(uid, len(names)) for uid in sketch.uids]
            parts += [version in current for version in sketch.versions]
            parts += [ranks[count] for count in sketch.counts]
        return (*parts, self.faults, *self.ghost)


def _check_former(process: Process) -> None:
    """I2: who names its former account gets no other."""
    for op, claimed in zip(process.script, process.outcomes, strict=False):
        if not isinstance(op, Claims) or op.former is None or not isinstance(claimed, Claimed):
            continue
        if claimed.secret_name != op.former:
            raise Violation(f"I2: {op.tenant} does not get {op.former} again")


def _ranks(counts: Iterable[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
    """Number the counts of each pool in their order."""
    ordered = sorted({*counts})
    first = {pool: number for number, (pool, _) in reversed([*enumerate(ordered)])}
    return {(pool, count): number - first[pool] for number, (pool, count) in enumerate(ordered)}


def _told_apart(result: Result) -> Hashable:
    match result:
        case Found(body):
            return body["metadata"]["uid"], body["metadata"]["resourceVersion"]
        case Refused(why, _):
            return why
        case _:
            return None


def _read(server: MemoryServer, call: Get | ListPage) -> Result:
    """Answer a read; of a page that was asked for alone, the rest is not kept."""
    answer = server(call)
    server.expire_cursors()
    return Page(answer.items, answer.cursor) if isinstance(answer, Page) else answer


@dataclass
class Explored:
    """What an exploration found: how much there is, and the ways it can end."""

    states: int = 0
    steps: int = 0
    ends: list[World] = field(default_factory=list[World])


def explore(world: World, *, most: int = 1_000_000) -> Explored:
    """Try every order of calls and faults. Raises Violation, with the fewest steps that lead to it.

    To go round for ever without a fault is a violation as well.
    """
    with mock.patch("components.account_pool.core.rotation._TRIES", 2):
        search = _Search(world)
        while search.waiting:
            search.visit(search.waiting.popleft())
            assert len(search.came) < most, f"more than {most} states"
    if (ring := _round(search.onwards)) is not None:
        raise search.traced(Violation("I9: the processes can go round for ever"), ring)
    assert search.found.ends, "no order of calls comes to an end"
    search.found.states = len(search.came)
    return search.found


class _Search:
    """States by number. came: from which other, by what. onwards: to which others without a fault."""

    def __init__(self, world: World) -> None:
        world.check()
        self.found = Explored()
        self.came: list[tuple[int, Action | None]] = [(0, None)]
        self.onwards: list[array[int]] = []
        self.waiting = deque([world])
        self._known: dict[Hashable, int] = {world.key(): 0}
        self._met: dict[Hashable, int] = {}

    def visit(self, here: World) -> None:
        """Do all that may happen in a state."""
        number, steps = len(self.onwards), self.found.steps
        self.onwards.append(array("L"))
        for action in here.actions():
            self.found.steps += 1
            try:
                self._go(here, number, action)
            except Violation as violation:
                raise self.traced(violation, number, action) from None
        if steps == self.found.steps:
            self.found.ends.append(here)
            try:
                here.check_end()
            except Violation as violation:
                raise self.traced(violation, number) from None

    def _go(self, here: World, number: int, action: Action) -> None:
        after = here.do(action)
        raw = after.raw_key()
        at = self._met.get(raw)
        if at is None:
            at = self._met[raw] = self._known.setdefault(after.key(), len(self.came))
        if at == len(self.came):
            after.check()
            self.came.append((number, action))
            self.waiting.append(after)
        if action.fault is None:
            self.onwards[-1].append(at)

    def traced(self, violation: Violation, number: int, last: Action | None = None) -> Violation:
        """Return the violation with the steps to it."""
        steps = [] if last is None else [str(last)]
        while number:
            number, action = self.came[number]
            steps.append(str(action))
        return Violation("\n".join([str(violation), *reversed(steps)]))


def _round(onwards: Sequence[array[int]]) -> int | None:
    """Find a state that leads back to itself."""
    open_, done = bytearray(len(onwards)), bytearray(len(onwards))
    for first in range(len(onwards)):
        path = [] if done[first] else [(first, iter(onwards[first]))]
        while path:
            number, rest = path[-1]
            open_[number] = 1
            then = next((each for each in rest if not done[each]), None)
            if then is None:
                done[number] = 1
                path.pop()
            elif open_[then]:
                return then
            else:
                path.append((then, iter(onwards[then])))
    return None
