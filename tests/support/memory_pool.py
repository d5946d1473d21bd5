"""An API server in memory for the claim protocol, and the operations that run on it.

The server keeps what the protocol relies on: resourceVersions, uids, AlreadyExists, preconditions, label
selectors, pages of one snapshot. It never changes a stored object, so a copy of it is a copy of one dict.
`explorer.py` tries operations in every order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from components.account_pool.core import (
    changes,
    cleaning,
    held_claims,
    moving,
    pool,
    protocol,
    rebirth,
    receipts,
    rotation,
)
from components.account_pool.core.calls import (
    Answer,
    ApiRefusal,
    AskProgram,
    Call,
    Create,
    Delete,
    Found,
    Get,
    Kind,
    ListPage,
    Page,
    Pair,
    Parallel,
    Patch,
    Pause,
    PoolApi,
    Refused,
    Replace,
    Result,
    Steps,
    Unknown,
    Yielded,
)
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import Consumer, consumer_of
from components.account_pool.core.declared import Declaration, DeclaredMember
from components.account_pool.core.holders import Holder, cleaning_token
from components.account_pool.core.judgement import Verdict, judge
from components.account_pool.core.keys import KEY_OPERATION, POOL_RECORD
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import ClaimRequest, JsonObject, Member, Partition, Phase, Policy
from components.account_pool.core.pool_settings import sign_settings
from components.account_pool.core.records import Claimed, Record
from components.account_pool.core.selection import MEMBERS, RECORDS
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.steps import get_member, get_record, list_all, read, write
from components.account_pool.core.sweeping import pending_records, sweep
from components.errors import PoolError
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
    """`PoolApi` in memory, one namespace: each call by a method, which tests call as well."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Kind, str], JsonObject] = {}
        self.writes: dict[tuple[Kind, str], int] = {}
        self._snapshots: dict[str, tuple[JsonObject, ...]] = {}
        self._cursors = 0

    def copy(self) -> MemoryServer:
        """Return a server that goes its own way from here."""
        other = MemoryServer()
        other.objects = dict(self.objects)
        other.writes = dict(self.writes)
        other._snapshots = dict(self._snapshots)
        other._cursors = self._cursors
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

    def __call__(self, call: Call) -> Result:
        match call:
            case Get(kind, name):
                return self.get(kind, name)
            case ListPage(kind, selector, cursor, limit):
                return self.list(kind, selector, cursor, limit)
            case Create(kind, body):
                return self.create(kind, body)
            case Replace(kind, body):
                return self.replace(kind, body)
            case Patch(kind, name, body):
                return self.patch(kind, name, body)
            case Delete(kind, name, uid, resource_version):
                return self.delete(kind, name, uid, resource_version)

    def get(self, kind: Kind, name: str) -> Result:
        """Read one object."""
        found = self.objects.get((Kind.MEMBER if kind is Kind.CREDENTIAL else kind, name))
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
                for (other, _), body in sorted(tuple(self.objects.items()))
                if other is kind and matches(selector, body["metadata"].get("labels") or {})
            )
        if len(selected) <= limit:
            return Page(selected, "")
        self._cursors += 1
        onwards = f"cursor-{self._cursors}"
        self._snapshots[onwards] = selected[limit:]
        return Page(selected[:limit], onwards)

    def expire_cursors(self) -> None:
        """Forget every snapshot, as etcd's compaction does."""
        self._snapshots.clear()

    def create(self, kind: Kind, body: JsonObject) -> Result:
        """Create, with a uid and a resourceVersion never used before."""
        name = str(body["metadata"]["name"])
        if (kind, name) in self.objects:
            return Refused(ApiRefusal.CONFLICT, f"{kind} {name!r} already exists")
        return self._store(kind, name, body, self._next("uid", kind, name))

    def replace(self, kind: Kind, body: JsonObject) -> Result:
        """PUT."""
        name = str(body["metadata"]["name"])
        found = self.objects.get((kind, name))
        if found is None:
            return Refused(ApiRefusal.ABSENT, f"{kind} {name!r} not found")
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return Refused(ApiRefusal.CONFLICT, "the object has been modified")
        return self._store(kind, name, body, found["metadata"]["uid"])

    def patch(self, kind: Kind, name: str, body: JsonObject) -> Result:
        """Merge; a patch that changes nothing keeps the resourceVersion."""
        found = self.objects.get((kind, name))
        if found is None:
            return Refused(ApiRefusal.ABSENT, f"{kind} {name!r} not found")
        metadata = found["metadata"]
        if (
            body["metadata"].get("resourceVersion", metadata["resourceVersion"])
            != metadata["resourceVersion"]
        ):
            return Refused(ApiRefusal.CONFLICT, "the object has been modified")
        merged = copy.deepcopy(found)
        if "data" in body:
            data = {**found.get("data", {}), **body["data"]}
            merged["data"] = {key: value for key, value in data.items() if value is not None}
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
        found = self.objects.get((kind, name))
        if found is None:
            return Refused(ApiRefusal.ABSENT, f"{kind} {name!r} not found")
        if (uid, resource_version) != (found["metadata"]["uid"], found["metadata"]["resourceVersion"]):
            return Refused(ApiRefusal.CONFLICT, "the object has been modified")
        return Found(self.objects.pop((kind, name)))

    def remove(self, kind: Kind, name: str) -> None:
        """Delete by hand, whatever its state."""
        self.objects.pop((kind, name), None)

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
        return Member.parse(self.objects[Kind.MEMBER, name])

    @property
    def members(self) -> Iterator[Member]:
        """All members."""
        return (Member.parse(body) for (kind, _), body in tuple(self.objects.items()) if kind is Kind.MEMBER)

    @property
    def records(self) -> Iterator[Record]:
        """All records."""
        return (
            Record.parse(body)
            for (kind, _), body in tuple(self.objects.items())
            if kind is Kind.RECORD and POOL_RECORD in body["metadata"].get("labels", {})
        )

    @property
    def events(self) -> list[JsonObject]:
        """All Events, oldest first."""
        return [body for (kind, _), body in tuple(self.objects.items()) if kind is Kind.EVENT]

    def record(self, name: str) -> Record | None:
        """Look at a record, outside the protocol."""
        body = self.objects.get((Kind.RECORD, name))
        return None if body is None else Record.parse(body)

    def __repr__(self) -> str:
        return "\n".join(repr(body) for _, body in sorted(tuple(self.objects.items())))

    def _store(self, kind: Kind, name: str, body: JsonObject, uid: str) -> Found:
        metadata = {**body["metadata"], "uid": uid, "resourceVersion": self._next("rv", kind, name)}
        self.objects[kind, name] = {**body, "metadata": metadata}
        return Found(_shown(kind, self.objects[kind, name]))

    def _next(self, word: str, kind: Kind, name: str) -> str:
        """Count the writes of an object, so that what others write meanwhile changes no number."""
        self.writes[kind, name] = self.writes.get((kind, name), 0) + 1
        return f"{word}{self.writes[kind, name]}-{name[-8:]}"


def name_of(call: Create | Get | Replace | Patch | Delete) -> str:
    """Return the name of the object that a call is about."""
    return str(call.body["metadata"]["name"]) if isinstance(call, Create | Replace) else call.name


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


def run(steps: Script, server: PoolApi) -> Any:
    """Run an operation alone, to its end."""
    answer: Answer = None
    while True:
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return end.value
        answer = None if isinstance(asked, Beside) else answer_to(asked, server)


def answer_to(asked: Yielded, server: PoolApi) -> Answer:
    """Answer one step of an operation; a pause is over at once."""
    match asked:
        case Pause():
            return None
        case AskProgram():
            raise TypeError(asked.verb)
        case Parallel(first, second):
            return Pair(server(first), server(second))
        case _:
            return server(asked)


class Effect(StrEnum):
    """What a step does beside the API server.

    LAUNCH: a process that holds an account begins. WIPE, WIPED: it begins to wipe, and has. END: it ends.
    COPY: a holder copies a key.
    """

    LAUNCH = "launch"
    WIPE = "wipe"
    WIPED = "wiped"
    END = "end"
    COPY = "copy"
    HAND = "by hand"


@dataclass(frozen=True, slots=True)
class Beside:
    """One step of an operation that is no call. token: of the run that cleans."""

    effect: Effect
    name: str
    token: str = ""


@dataclass
class Run:
    """What a running operation knows beside its answers.

    name: of its process, never used twice. alive: of the processes that clean, those it sees. outcomes: of
    the operations before it.
    """

    name: str = field(default="1", repr=False)
    alive: frozenset[str] = field(default=frozenset(), repr=False)
    outcomes: tuple[Any, ...] = field(default=(), repr=False)


Script: TypeAlias = Generator[Yielded | Beside, Any, Any]
FAILED: Final = Unknown("the command failed")
NOT_HELD: Mapping[str, Claimed] = {}


@dataclass(frozen=True)
class Claims:
    """An operation: claim, and hold from then on. consumers: whom the pool names.

    opened: by way of `Pool`, which reads the settings and looks for doubles.
    """

    tenant: str
    holder: str
    slot: str = "0"
    policy: Policy = Policy.RELEASE
    limit: int | None = None
    shared: bool = False
    spill: bool = False
    consumers: tuple[Consumer, ...] = ()
    former: str | None = None
    state: str | None = None
    opened: bool = False

    @property
    def wanted(self) -> ClaimRequest:
        """The request, placed."""
        partition = AWS_SHARED if self.shared else AWS
        wanted = ClaimRequest.at(POOL, partition, self.tenant, self.slot, self.holder)
        wanted = replace(wanted, policy=self.policy, limit=self.limit, spill=self.spill)
        return replace(wanted, former=self.former, state=self.state)

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        claim = protocol.claim_with_spill if self.spill else protocol.claim
        return self._by_pool() if self.opened else claim(self.wanted, self._begin)

    def _begin(self, wanted: ClaimRequest) -> Steps[tuple[Record | None, Consumer | None]]:
        return (yield from get_record(wanted.record)), consumer_of(self.consumers, wanted.holder)

    def _by_pool(self) -> Steps[Any]:
        settings = yield from sign_settings()
        opened = pool.Pool(MemoryServer(), POOL, settings, clock=lambda: 0.0)
        begin = opened._begin  # pyright: ignore[reportPrivateUsage]
        avoid = opened._placed(ClaimRequest(self.tenant, "aws")).avoid  # pyright: ignore[reportPrivateUsage]
        partition = Partition.of("aws", {}, settings.partition_keys, shared=self.shared)
        return (yield from protocol.claim(replace(self.wanted, place=partition, avoid=avoid), begin))

    def last_of(self, held: Mapping[str, Claimed]) -> Claimed | None:
        """Find what was claimed last in these words, wherever it spilled to."""
        mine = (one for one in held.values() if (one.tenant, one.holder) == (self.tenant, self.holder))
        return next((one for one in reversed([*mine]) if one.slot.partition("+")[0] == self.slot), None)


@dataclass(frozen=True)
class Releases:
    """An operation: release what was claimed in the same words.

    fenced: as the provider does, which shows what its claim was given. shows: the number of that claim.
    """

    claim: Claims
    fenced: bool = False
    shows: int = 0

    def start(self, held: Mapping[str, Claimed] = NOT_HELD, run: Run | None = None) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        claimed = self.means(held, run.outcomes if run else ())
        record = claimed.record if claimed else self.claim.wanted.record
        fence = replace(claimed.fence, state=self.claim.state) if self.fenced and claimed else None
        if self.fenced and claimed is None:
            return None  # who was given nothing has nothing to release
        return (yield from held_claims.release(record, self.claim.holder, POOL, fence))

    def means(self, held: Mapping[str, Claimed], outcomes: Sequence[Any]) -> Claimed | None:
        """Return the claim that it releases, where it was made before."""
        claimed = outcomes[self.shows - 1] if self.shows and outcomes else self.claim.last_of(held)
        return claimed if isinstance(claimed, Claimed) else None


@dataclass(frozen=True)
class Reads:
    """An operation: read what was claimed in the same words."""

    claim: Claims

    def start(self, held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        claimed = self.claim.last_of(held)
        record = claimed.record if claimed else self.claim.wanted.record
        return held_claims.read_claim(record, self.claim.holder, claimed.secret_name if claimed else None)


@dataclass(frozen=True)
class Updates:
    """An operation: change the policy of what was claimed, or who holds it, as a stack's update does."""

    claim: Claims
    policy: Policy
    holder: str

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        amended = held_claims.Amendment(self.holder, self.policy, self.claim.limit, self.claim.state)
        return held_claims.update(self.claim.wanted.record, self.claim.holder, amended, POOL)


@dataclass(frozen=True)
class Moves:
    """An operation: let what was claimed under another slot go on under this one."""

    claim: Claims
    former: str

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        former = replace(self.claim, slot=self.former).wanted.record
        return moving.move(self.claim.wanted, former, self.claim.holder)


@dataclass(frozen=True)
class Sweeps:
    """An operation: a sweep, with both passes over records in progress."""

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        pending = yield from pending_records()
        return (yield from sweep(POOL, PoolConfigMap(), most=100, write=True, pending=pending))


@dataclass(frozen=True)
class Cleans:
    """An operation: a cleaner's run over whatever is dirty, from a host, on which alone it sees others."""

    cleaner: str
    host: str = "host"
    take_over: bool = False

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, run: Run | None = None) -> Script:
        """Begin, or begin again after a crash."""
        run = run or Run()
        token = cleaning_token(self.cleaner, run.name, Holder(self.host, "boot", "spaces", run.name, "1"))

        def look(holder: Holder) -> bool | None:
            return holder.pid in run.alive if holder.host == self.host else None

        others = frozenset({"m0", "d0"}) if self.take_over else frozenset[str]()
        for listed in (yield from cleaning.survey(self.cleaner, others, look))[0]:
            yield Beside(Effect.LAUNCH, listed.name, token)
            member = yield from cleaning.begin(listed, token)
            if member is not None:
                yield Beside(Effect.WIPE, member.name, token)
                is_done = (yield Beside(Effect.WIPED, member.name, token)) is not FAILED
                if is_done and changes.owes_new_key(member):
                    renewing = rotation.Run(POOL, token, f"swapped-{run.name}", look, others)
                    try:
                        yield from rotation.renew(renewing, member.name)
                    except PoolError:
                        is_done = False
                yield from cleaning.succeed(member, token) if is_done else cleaning.fail(member, token, "why")
            yield Beside(Effect.END, listed.name, token)


@dataclass(frozen=True)
class Rotates:
    """An operation: a run of `pool rotate` over an account; verb: which of its steps."""

    verb: str
    member: str

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, run: Run | None = None) -> Script:
        """Begin, or begin again after a crash."""
        run = run or Run()
        token = cleaning_token("rotation", run.name, Holder("host", "boot", "spaces", run.name, "1"))

        def look(holder: Holder) -> bool | None:
            return holder.pid in run.alive

        yield Beside(Effect.LAUNCH, self.member, token)
        rotates = rotation.Run(POOL, token, f"swapped-{run.name}", look)
        yield from getattr(rotation, self.verb)(rotates, self.member)
        yield Beside(Effect.END, self.member, token)


@dataclass(frozen=True)
class Copies:
    """An operation: the update of a stack, which copies the key of its account, and says so at its end."""

    claim: Claims

    def start(self, held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Script:
        """Begin, or begin again after a crash."""
        claimed = self.claim.last_of(held)
        seen = claimed and (yield from get_member(claimed.secret_name))
        body = claimed and (yield from read(Kind.CREDENTIAL, claimed.secret_name))
        if claimed and seen and body:
            yield Beside(Effect.COPY, claimed.holder, body["data"]["key"])
            operation = seen.annotations.get(KEY_OPERATION, "")
            yield from receipts.give_receipt(claimed.record, claimed.holder, operation, POOL)


def decides(verb: str, name: str, *said: str, **options: bool) -> Steps[Member]:
    """Begin what an operator decides by a command. verb: of `changes.py`."""
    decision = getattr(changes, verb)
    return cleaning.decide(POOL, name, lambda pool, member: decision(pool, member, *said, **options))


@dataclass(frozen=True)
class Decides:
    """An operation: what an operator does to an account by a command."""

    verb: str
    member: str

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        why = ("why",) if self.verb in ("quarantine", "evacuate", "mark_dirty") else ()
        return decides(self.verb, self.member, *why)


@dataclass(frozen=True)
class Ups:
    """An operation: the update of the stack that declares the pool, which creates lost Secrets again.

    owners: the tenants that its state knows of. keys: the credentials that it has, by member.
    """

    members: Mapping[str, DeclaredMember]
    owners: Mapping[str, str]
    keys: Mapping[str, str] = field(default_factory=dict[str, str])

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Steps[Any]:
        """Begin, or begin again after a crash."""
        declared = Declaration(POOL, self.members)
        listed = yield from list_all(Kind.MEMBER, MEMBERS)
        snapshot = PoolSnapshot.of(listed, (yield from list_all(Kind.RECORD, RECORDS)))
        lost = rebirth.find_lost(declared, declared, snapshot)
        for name, one in sorted(self.members.items()):
            if all(member.name != name for member in snapshot.members):
                marks = rebirth.marks_of_records(name, one, snapshot.records)
                if marks is None and name in lost:
                    marks = rebirth.marks_of_lost(self.owners.get(name), one)
                shown = (marks or rebirth.Marks()).on(one.as_member(name))
                metadata = {"name": name, "labels": shown.labels, "annotations": shown.annotations}
                data = {"data": {"key": self.keys[name]}} if name in self.keys else {}
                yield from write(Create(Kind.MEMBER, {"metadata": {"namespace": POOL, **metadata}, **data}))


@dataclass(frozen=True)
class ByHand:
    """An operation: somebody changes the pool without the protocol, in one step.

    targets: the objects of which he changes any one. destroys_evidence: of who has what.
    """

    what: str
    change: Callable[[MemoryServer, str], None] = field(compare=False)
    targets: Callable[[MemoryServer], Iterable[str]] = field(default=lambda _: ("",), compare=False)
    destroys_evidence: bool = False

    def start(self, _held: Mapping[str, Claimed] = NOT_HELD, _run: Run | None = None) -> Script:
        """Begin."""
        yield Beside(Effect.HAND, self.what)


Op: TypeAlias = (
    Claims | Releases | Reads | Updates | Moves | Sweeps | Cleans | Rotates | Copies | Decides | Ups | ByHand
)
