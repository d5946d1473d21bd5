"""A history of claims on a server in memory, drawn from a seed: calls of whoever is next, some lost or late.

Who is killed forgets all at one of its calls, and begins anew. Somebody may edit accounts by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, TypeAlias

from components.account_pool import cleaning, protocol
from components.account_pool.calls import (
    Answer,
    Both,
    Call,
    Get,
    ListPage,
    Pause,
    Steps,
    Together,
    Unknown,
    Yielded,
    perform,
)
from components.account_pool.keys import CLEANING_TOKEN, POOL_STATE, TENANT_ID
from components.account_pool.model import Claimed, Member, Policy
from components.account_pool.protocol import Outcome
from components.errors import Exhausted, NotAllowed, PoolError, Withheld
from components.labels import BRING_YOUR_OWN, TENANT_NAME
from tests.fire.claims.clients import FORMER, policy_of
from tests.fire.claims.history import Operation, operations_of
from tests.support.memory_pool import POOL, Claims, MemoryServer, Sweeps

LATEST_CALLS: Final = 30
LONGEST_WIPE: Final = 8
Act: TypeAlias = "tuple[dict[str, Any], Steps[Any]]"


@dataclass(frozen=True)
class Trouble:
    """What befalls the calls of a history.

    share: of calls that meet a fault. edit: what is made of accounts by hand, now and then. brought: the
    first slot's tenant brings an account along. takes_over: cleaners take what others left; rotates: with new
    credentials. longest_pause: of a cleaner that has wiped an account.
    """

    share: float = 0.03
    edit: str = ""
    accounts: int = 2
    slots: int = 2
    brought: bool = False
    takes_over: bool = False
    rotates: bool = True
    keepers: int = 2
    longest_pause: int = 1
    policies: tuple[Policy, ...] = tuple(map(policy_of, ("-0", "-1", "-2")))
    sweep: Callable[[], Steps[Any]] = lambda: Sweeps().start({})


@dataclass
class Life:
    """What all share: the server, the time, and what comes late."""

    trouble: Trouble
    random: Random
    server: MemoryServer = field(default_factory=MemoryServer)
    now: int = 0
    late: list[tuple[int, Call]] = field(default_factory=list[tuple[int, Call]])
    accounts: list[str] = field(default_factory=list[str])

    def time(self) -> int:
        self.now += 1
        return self.now


@dataclass
class Client:
    """One who acts: an operation at a time, a call at a time."""

    life: Life
    name: str
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    steps: Steps[Any] | None = None
    number: int = 0
    answer: Answer = None

    def begin(self, **told: Any) -> int:
        self.lines.append({**told, "id": str(len(self.lines)), "call": self.life.time()})
        return len(self.lines) - 1

    def end(self, number: int, end: str, member: str = "") -> None:
        told = f"{POOL}/{member}" if member else ""
        self.lines.append({"id": str(number), "return": self.life.time(), "end": end, "member": told})

    def step(self) -> None:
        """Make one call, or begin what comes next; nothing is known of the end of what is killed."""
        if self.steps is None:
            told, self.steps = self.next()
            self.number, self.answer = self.begin(**told), None
        try:
            asked = self.steps.send(self.answer)
        except StopIteration as over:
            self.steps = None
            self.done(over.value)
        except PoolError as error:
            self.steps = None
            is_refused = isinstance(error, Withheld | NotAllowed)
            self.end(
                self.number, "none" if isinstance(error, Exhausted) else "refused" if is_refused else "lost"
            )
        else:
            if not self._asks(asked):
                self.steps.close()
                self.steps = None
                self.killed()

    def _asks(self, asked: Yielded) -> bool:
        """Answer a call; False when whoever makes it is killed then."""
        life = self.life
        life.late = [(left - 1, call) for left, call in life.late]
        while life.late and life.late[0][0] <= 0:
            perform(life.server, life.late.pop(0)[1])
        match asked:
            case Pause():
                self.answer = None
                return True
            case Together(first, second):
                self.answer = Both(perform(life.server, first), perform(life.server, second))
                return True
            case _ if life.random.random() >= life.trouble.share:
                self.answer = perform(life.server, asked)
                return True
            case _:
                pass
        fault = life.random.choice(("before", "after", "late", "killed", "killed after", "killed late"))
        if "after" in fault:
            perform(life.server, asked)
        elif "late" in fault and not isinstance(asked, Get | ListPage):
            life.late.append((life.random.randrange(LATEST_CALLS), asked))
            life.late.sort(key=lambda each: each[0])
        self.answer = Unknown("no answer")
        return "killed" not in fault

    def next(self) -> Act:
        raise NotImplementedError

    def done(self, value: Any) -> None:
        raise NotImplementedError

    def killed(self) -> None: ...


@dataclass
class Holder(Client):
    """A holder of one slot: claims, claims again, adopts, reads and releases, also what it had before."""

    slot: int = 0
    has: Claimed | None = None
    nr: int = 0
    had: list[tuple[int, Claimed]] = field(default_factory=list[tuple[int, Claimed]])

    def next(self) -> Act:
        drawn, life = self.life.random.random(), self.life
        policy = life.trouble.policies[self.slot % len(life.trouble.policies)]
        tenant = f"slot-{self.slot}"
        about: dict[str, Any] = {"slot": f"{POOL}/{tenant}", "holder": self.name, "policy": str(policy)}
        if self.has is None or drawn < 0.15:
            self.has, self.nr = None, self.nr + 1
            wanted = Claims(tenant, self.name, policy=policy).wanted
            if policy is Policy.RETAIN and drawn > 0.8:
                only = life.random.choice(life.accounts)
                about["member"], wanted = f"{POOL}/{only}", replace(wanted, only=only)
            return {"kind": "claim", "nr": self.nr, **about}, protocol.claim(wanted)
        nr, has = life.random.choice(self.had) if drawn < 0.3 else (self.nr, self.has)
        about |= {"nr": nr, "member": f"{POOL}/{has.secret_name}"}
        if drawn < 0.5:
            self.has = None if nr == self.nr else self.has
            return {"kind": "release", **about}, protocol.release(has.record, self.name, POOL, has.fence)
        return {"kind": "read", **about}, protocol.read_claim(has.record, self.name, has.secret_name)

    def done(self, value: Any) -> None:
        told = self.lines[self.number]
        if isinstance(value, Claimed):
            self.end(self.number, "ok", value.secret_name)
            if told["kind"] == "claim":
                self.has = value
                self.had = [*self.had[-FORMER:], (self.nr, value)]
        elif value is None:
            self.end(self.number, "none")
        else:
            end = "overtaken" if value.outcome is Outcome.OVERTAKEN else "ok"
            self.end(self.number, end, value.member or told["member"].removeprefix(f"{POOL}/"))

    def killed(self) -> None:
        self.has = None


@dataclass
class Keeper(Client):
    """Whoever looks after the pool."""

    runs: int = 0

    def next(self) -> Act:
        drawn, random = self.life.random.random(), self.life.random
        account = random.choice(self.life.accounts)
        about = {"member": f"{POOL}/{account}"}
        if drawn < 0.6:
            self.runs += 1
            return {"kind": "clean"}, self._clean(f"{self.name}/{self.runs}")
        if drawn < 0.75:
            return {"kind": "sweep"}, self.life.trouble.sweep()
        if drawn < 0.78:
            return {"kind": "quarantine", **about}, cleaning.quarantine(POOL, account, "tried")
        if drawn < 0.94:
            return {"kind": "unquarantine", **about}, cleaning.unquarantine(POOL, account)
        return {"kind": "return", **about}, cleaning.take_back(POOL, account)

    def _clean(self, token: str) -> Steps[None]:
        others = frozenset(self.life.accounts if self.life.trouble.takes_over else ())
        for listed in (yield from cleaning.cleanable(self.name, others)):
            member = yield from cleaning.begin(listed, token)
            if member is None:
                continue
            wipe = self.begin(kind="wipe", member=f"{POOL}/{member.name}")
            for _ in range(self.life.random.randrange(LONGEST_WIPE)):
                yield Pause(0)
            touch = self.begin(kind="touch", member=f"{POOL}/{member.name}")
            reaches = not self.life.trouble.rotates or self._is_of(token, member)
            self.end(touch, "ok" if reaches else "failed", member.name)
            for _ in range(self.life.random.randrange(self.life.trouble.longest_pause)):
                yield Pause(0)
            if reaches and self.life.random.random() < 0.9:
                ends, outcome = {"cleaned": "ok"}, (yield from cleaning.succeed(member, token))
            else:
                ends, outcome = {"quarantined": "failed"}, (yield from cleaning.fail(member, token, "tried"))
            if str(outcome) in ends:
                self.end(wipe, ends[str(outcome)], member.name)

    def _is_of(self, token: str, member: Member) -> bool:
        """Whether a credential still reaches the account: who takes a cleaning over makes a new one."""
        return self.life.server.member(member.name).annotations.get(CLEANING_TOKEN) == token

    def done(self, value: Any) -> None:
        del value
        self.end(self.number, "ok", self.lines[self.number].get("member", "").removeprefix(f"{POOL}/"))


def history(trouble: Trouble, seed: int, calls: int) -> list[Operation]:
    """Let holders and keepers make so many calls on a server of their own; return what they were told."""
    life = Life(trouble, Random(seed), accounts=[f"m{n}" for n in range(trouble.accounts)])
    for name in life.accounts:
        life.server.add_member(name)
    brought: list[Operation] = []
    if trouble.brought:
        life.accounts.append("own")
        owner = {TENANT_NAME: "slot-0", POOL_STATE: "dirty"}
        life.server.add_member("own", owner, {TENANT_ID: "slot-0", BRING_YOUR_OWN: "true"})
        brought.append(Operation(0, "brought", 0, 0, "ok", f"{POOL}/slot-0", member=f"{POOL}/own"))
    clients: list[Client] = [Holder(life, f"h{n}", slot=n // 2) for n in range(2 * trouble.slots)]
    clients += [Keeper(life, f"k{n}") for n in range(trouble.keepers)]
    for call in range(calls):
        life.random.choice(clients).step()
        if trouble.edit and call % 50 == 0:
            _edit(life.server, life.random.choice(life.accounts[: trouble.accounts]), trouble.edit)
    told = [each for n, client in enumerate(clients) for each in operations_of(n, client.lines)]
    return [*brought, *told]


def _edit(server: MemoryServer, name: str, what: str) -> None:
    member = server.member(name)
    if what == "strip":
        server.by_hand(name, {TENANT_NAME: None})
    elif member.token and member.state is None:
        server.by_hand(name, {POOL_STATE: what})
