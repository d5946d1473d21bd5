"""One life of a stack, played in process on the engine's own deployment and judged after every moment of it.

Only the processes are left out: the program speaks to the monitor without a wire, the provider is a `World`.
A kill is a write after which, or instead of which, nothing more happens; what the file says then is left.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast
from unittest.mock import patch

import grpc
from google.protobuf import struct_pb2
from pulumi_sandbox.engine import Event, Options, Result, Selection, Snapshot, Workspace
from pulumi_sandbox.engine.deploy import deployment
from pulumi_sandbox.engine.deploy.deployment import Deployment
from pulumi_sandbox.engine.model.events import Diagnostic, Operation, StepFinished
from pulumi_sandbox.engine.plugins.process import Child
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.project_file import Project
from pulumi_sandbox.engine.project.stack_file import StackFile
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.protocol import signatures, urns, wire
from pulumi_sandbox.protocol.stubs import alias_pb2, resource_pb2
from pulumi_sandbox.protocol.values import Properties, Secret

from sandbox.tests.support.scripted_program import Script
from tests.fire.engine.state_reader import State, read
from tests.fire.engine.world import READ, Fault, World

_T = TypeVar("_T")

PASSPHRASE: Final = "correct horse"
CANARY: Final = "canary-in-a-coal-mine"
_THING: Final = "fake:index:Thing"
_COMPONENT: Final = "test:index:Component"


class _Brief:
    """Says of itself what is not as usual: what is printed of a life plays it again."""

    def __repr__(self) -> str:
        told = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(cast("Any", self))
            if each.default is MISSING or getattr(self, each.name) != each.default
        ]
        return f"{type(self).__name__}({', '.join(told)})"


@dataclass(frozen=True, repr=False)
class Spec(_Brief):
    """One resource of a program. What it names that the program does not have before it is left out.

    served: by a provider of the program's own; another number replaces it, and a program's first one counts.
    is_read: it is looked up, and somebody else's.
    """

    name: str
    color: int = 0
    fixed: int = 0
    has_password: bool = False
    uses: tuple[str, ...] = ()
    fixed_uses: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    parent: str = ""
    is_component: bool = False
    is_read: bool = False
    is_protected: bool = False
    is_retained: bool = False
    is_exclusive: bool = False
    delete_first: bool | None = None
    ignores_color: bool = False
    replaces_on_color: bool = False
    trigger: int = 0
    served: int = 0
    deleted_with: str = ""
    replace_with: str = ""
    former: str = ""


Program: TypeAlias = tuple[Spec, ...]


@dataclass(frozen=True, repr=False)
class Kill(_Brief):
    """The run is killed at its `write`th write, before it or after it is on disk."""

    write: int
    is_written: bool


@dataclass(frozen=True, repr=False)
class Chosen(_Brief):
    """What an operation is about: resources to take up, or to leave alone, with their dependents or not."""

    names: tuple[str, ...]
    are_excluded: bool = False
    dependents: bool = False

    def spares(self, name: str) -> bool:
        """Whether a resource is neither updated nor destroyed, whatever refers to it."""
        return (name in self.names) if self.are_excluded else not (self.dependents or name in self.names)

    def selection(self) -> Selection:
        """Return the same for the engine; a name that nothing has is no mistake of a pattern."""
        patterns = tuple(f"**::{name}" for name in self.names)
        kinds = ((), patterns) if self.are_excluded else (patterns, ())
        return Selection(*kinds, self.dependents)


@dataclass(frozen=True, repr=False)
class Moment(_Brief):
    """One operation on the stack, and all that happens to it.

    chosen: what it is about, where that is not all. reads: an update that refreshes first.
    replaces: what an update is to make anew. keeps_protected: a destroy leaves alone what is protected.
    vanishes, drifts: a resource that somebody deletes or changes behind the engine's back, before.
    forgets: somebody looked for what creates that were begun have made, and deleted it; they are forgotten.
    """

    operation: Operation
    program: Program = ()
    faults: Mapping[tuple[str, str], Fault] = field(default_factory=dict[tuple[str, str], Fault])
    kill: Kill | None = None
    goes_on: bool = False
    vanishes: str = ""
    drifts: str = ""
    forgets: bool = False
    chosen: Chosen | None = None
    reads: bool = False
    replaces: str = ""
    keeps_protected: bool = False

    def options(self) -> Options:
        """Return what the engine is asked for."""
        selection = self.chosen.selection() if self.chosen else Selection()
        if self.replaces and self.operation in ("preview", "update"):
            selection = replace(selection, replaces=(f"**::{self.replaces}",))
        if self.keeps_protected and self.operation == "destroy" and not selection.targets:
            selection = replace(selection, excludes_protected=True)
        return Options(
            continue_on_error=self.goes_on,
            clear_pending_creates=self.forgets,
            selection=selection,
            refresh=self.reads and self.operation == "update",
        )


@dataclass(frozen=True, repr=False)
class Life(_Brief):
    """Moments one after the other; at the end the last program has to come out, refreshed before or not."""

    moments: tuple[Moment, ...]
    last: Program
    is_refreshed: bool = False


@dataclass(frozen=True)
class Ended:
    """How an operation ended: its exit code, steps by kind, all it said, and of which resources it spoke."""

    code: int
    changes: Mapping[str, int]
    told: tuple[str, ...]
    warned: frozenset[str]


@dataclass
class Watched:
    """A sink that keeps what it is told."""

    events: list[Event] = field(default_factory=list[Event])

    def handle(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)

    def told(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """Return all that was said, and the resources that were warned of."""
        spoken = [each for each in self.events if isinstance(each, Diagnostic)]
        failed = [each.error for each in self.events if isinstance(each, StepFinished) and each.error]
        return (*(each.message for each in spoken), *failed), frozenset(each.urn for each in spoken)


class _Inline(ThreadPoolExecutor):
    """Does what is handed to it at once: the order of all that happens hangs on the life alone."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _Loop(asyncio.SelectorEventLoop):
    """A loop without signals: each handler would cost more than many a deployment."""

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:
        """Refuse, as loops do that have none."""
        del sig, callback, args
        raise RuntimeError


def _run(deployment: Coroutine[Any, Any, _T]) -> _T:
    """Run a deployment to its end, and then whatever a kill left of it."""
    loop = _Loop()
    loop.set_default_executor(_Inline(1))
    try:
        result = loop.run_until_complete(deployment)
        while rest := asyncio.all_tasks(loop):
            for each in rest:
                each.cancel()
            loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
        return result
    finally:
        loop.close()


class _MortalStore(Store):
    """A store that may be killed at one of its writes: from then on nothing is written.

    Every state is large to it: some saves write it whole, others what is new.
    """

    large = 0
    _known: State | None = None

    def begin(self, kill: Kill | None, seen: dict[str, dict[str, Any]]) -> None:
        Store.__init__(self, self._backend, self._project, self._stack, self._crypter)
        self._known = None
        self.kill, self.seen, self.writes = kill, seen, 0
        self.killed = asyncio.Event()

    def save(self, snapshot: Snapshot) -> None:
        if self.killed.is_set():
            return
        self.writes += 1
        now = self.kill if self.kill and self.kill.write == self.writes else None
        if now is None or now.is_written:
            self._known = None
            super().save(snapshot)
            self.seen |= self.disk().by_id
        if now:
            self.killed.set()

    def fold(self) -> None:
        if not self.killed.is_set():
            self._known = None
            super().fold()

    def written(self) -> tuple[str, str]:
        text, beside = (
            each.read_text() if each.exists() else "" for each in (self.path, self._path_of_steps)
        )
        return text, beside

    def disk(self) -> State:
        """Return what the files say; they are read again after each write, and by whoever judges."""
        self._known = self._known or _told(*self.written())
        return self._known


@lru_cache(maxsize=2)
def _told(text: str, beside: str) -> State:
    return read(text, PASSPHRASE, beside) if text else State()


class _AbortedError(Exception):
    """How a call of the program ends that the engine aborts."""


class _Context:
    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise _AbortedError(code, details)


@dataclass
class _Player:
    """Plays a program on the monitor, as a process of its own would, everything at once that can be."""

    program: Program
    monitor: Any = None
    _script: Script = field(default_factory=lambda: Script({}, cast("Any", None), cast("Any", None)))
    _done: dict[str, asyncio.Future[Any]] = field(default_factory=dict[str, "asyncio.Future[Any]"])
    _own: str = ""
    _playing: asyncio.Task[int] | None = None

    def follow(self, *_sinks: object) -> None: ...

    def kill(self) -> None: ...

    async def tell(self, text: str) -> None:
        self._playing = asyncio.create_task(self._play(json.loads(text)))

    async def wait(self) -> int:
        return await asyncio.shield(cast("asyncio.Task[int]", self._playing))

    async def _play(self, task: Mapping[str, Any]) -> int:
        root = f"{task['project']}-{task['stack']}"
        try:
            request = self._script.request(root, type_=urns.ROOT_STACK_TYPE, custom=False, parent="")
            self._script.stack = (await self._register(request)).urn
            if served := next(filter(None, (each.served for each in self.program)), 0):
                request = self._script.request("own", {"fixed": served}, type_="pulumi:providers:fake")
                own = await self._register(request)
                self._own = f"{own.urn}::{own.id or signatures.UNKNOWN}"
            loop = asyncio.get_running_loop()
            self._done = {each.name: loop.create_future() for each in self.program}
            ends = await asyncio.gather(*map(self._bring, self.program), return_exceptions=True)
            for end in ends:
                if isinstance(end, BaseException):
                    raise end
            await self.monitor.SignalAndWaitForShutdown(None, _Context())
        except _AbortedError:
            return 1
        return 0

    async def _register(self, request: resource_pb2.RegisterResourceRequest) -> Any:
        return await self.monitor.RegisterResource(request, _Context())

    async def _bring(self, spec: Spec) -> None:
        try:
            request = await self._request(spec)
            if spec.is_read:
                answer = await self.monitor.ReadResource(_reading(request), _Context())
            else:
                answer = await self._register(request)
            if spec.is_component:
                outputs = resource_pb2.RegisterResourceOutputsRequest(urn=answer.urn, outputs=wire.encode({}))
                await self.monitor.RegisterResourceOutputs(outputs, _Context())
        except BaseException as error:
            self._done[spec.name].set_exception(error)
            self._done[spec.name].exception()
            raise
        self._done[spec.name].set_result(answer)

    async def _request(self, spec: Spec) -> resource_pb2.RegisterResourceRequest:
        found = {name: await self._done[name] for name in _named(spec)}
        urn_of = {name: answer.urn for name, answer in found.items()}
        inputs: Properties = {}
        depends_on: dict[str, list[str]] = {"": [urn_of[name] for name in spec.depends_on]}
        if not spec.is_component:
            inputs = {"color": spec.color, "fixed": spec.fixed}
            if spec.has_password:
                inputs["password"] = Secret(f"{CANARY}-{spec.color}")
            if spec.is_exclusive:
                inputs["exclusive"] = True
            for key, name in _uses(spec):
                inputs[key] = _outputs(found[name]).get("made", "nothing")
                depends_on[key] = [urn_of[name]]
        options: dict[str, Any] = {"protect": spec.is_protected, "retainOnDelete": spec.is_retained}
        if spec.delete_first is not None:
            options |= {"deleteBeforeReplace": spec.delete_first, "deleteBeforeReplaceDefined": True}
        if spec.ignores_color:
            options["ignoreChanges"] = ["color"]
        if spec.replaces_on_color:
            options["replaceOnChanges"] = ["color"]
        if spec.served and not spec.is_component:
            options["provider"] = self._own
        if spec.trigger:
            options["replacement_trigger"] = struct_pb2.Value(number_value=spec.trigger)
        if spec.deleted_with:
            options["deletedWith"] = urn_of[spec.deleted_with]
        if spec.replace_with:
            options["replace_with"] = [urn_of[spec.replace_with]]
        if spec.former:
            former = alias_pb2.Alias.Spec(name=spec.former)
            options["aliases"] = [alias_pb2.Alias(spec=former)]
        return self._script.request(
            spec.name,
            inputs,
            type_=_COMPONENT if spec.is_component else _THING,
            custom=not spec.is_component,
            parent=urn_of[spec.parent] if spec.parent else None,
            depends_on=depends_on,
            **options,
        )


def _reading(request: resource_pb2.RegisterResourceRequest) -> resource_pb2.ReadResourceRequest:
    return resource_pb2.ReadResourceRequest(
        id=f"{READ}{request.name}",
        type=request.type,
        name=request.name,
        parent=request.parent,
        provider=request.provider,
        dependencies=request.dependencies,
        acceptSecrets=True,
        acceptResources=True,
    )


def _outputs(answer: Any) -> Properties:
    is_read = isinstance(answer, resource_pb2.ReadResourceResponse)
    return wire.decode(answer.properties if is_read else answer.object)


def _uses(spec: Spec) -> Iterator[tuple[str, str]]:
    yield from ((f"of_{name}", name) for name in spec.uses)
    yield from ((f"fixed_of_{name}", name) for name in spec.fixed_uses)


def _named(spec: Spec) -> tuple[str, ...]:
    single = (spec.parent, spec.deleted_with, spec.replace_with)
    return (*spec.uses, *spec.fixed_uses, *spec.depends_on, *filter(None, single))


def sound(program: Program, *, is_free: bool = False) -> Program:
    """Return a program without what it cannot mean: names it lacks, aliases that somebody else has.

    is_free: nothing is protected.
    """
    names = {each.name for each in program}
    before: dict[str, Spec] = {}
    formers: set[str] = set()
    for each in program:
        things = tuple(name for name, spec in before.items() if not spec.is_component)

        has_parent = each.parent in before and before[each.parent].is_component
        is_read = each.is_read and not each.is_component
        is_thing = not (each.is_component or is_read)
        hosts = [name for name in things if not before[name].is_read]
        host = each.deleted_with if is_thing and each.deleted_with in hosts else ""
        around = tuple(before)
        if host:  # what refers to more than its host needs is given up with its host at once, as by the CLI
            around = tuple(_below(host, before))
            things = tuple(name for name in things if name in around)

        def there(wanted: tuple[str, ...], of: tuple[str, ...] = things) -> tuple[str, ...]:
            return tuple(dict.fromkeys(name for name in wanted if name in of))

        former = each.former if each.former not in names | formers and not is_read else ""
        formers.add(former)
        before[each.name] = replace(
            each,
            uses=there(each.uses) if is_thing else (),
            fixed_uses=there(each.fixed_uses) if is_thing else (),
            depends_on=there(each.depends_on, around),
            is_read=is_read,
            parent=each.parent if has_parent and each.parent in around else "",
            is_protected=each.is_protected and not is_free,
            deleted_with=host,
            served=before[host].served if host else each.served,
            replace_with=each.replace_with if is_thing and each.replace_with in things else "",
            former=former,
        )
    return tuple(before.values())


def _below(host: str, before: Mapping[str, Spec]) -> set[str]:
    """Return a resource and all that it refers to, directly or not."""
    return {host}.union(*(_below(name, before) for name in _named(before[host]))) if host else set()


def workspace_in(folder: Path, crypter: PassphraseCrypter, store: Store) -> Workspace:
    """Return the stack dev of the program in a folder."""
    project = Project.load(folder)
    stack_file = StackFile.load(folder / "Pulumi.dev.yaml", project.name)
    return Workspace(project, "dev", stack_file, crypter, store)


@dataclass
class Stack:
    """A stack in a folder, its world, and what is known of what was left there on purpose."""

    folder: Path
    crypter: PassphraseCrypter
    left: set[str] = field(default_factory=set[str])
    warned: frozenset[str] = frozenset()
    counts: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
        (self.folder / "Pulumi.dev.yaml").write_text(f"encryptionsalt: {self.crypter.salt}\n")
        self.store = _MortalStore(self.folder / "backend", "test", "dev", self.crypter)
        self.workspace = workspace_in(self.folder, self.crypter, self.store)
        self.world = World(self.store.disk)

    def passes(self, moment: Moment) -> Ended | None:
        """Let a moment pass, and judge it; return how its operation ended, None when it was killed."""
        self.befalls(moment)
        seen = dict(self.store.disk().by_id)
        self.world.faults, self.world.seen = dict(moment.faults), seen
        self.world.calls.clear()
        self.world.keeps_order = moment.operation == "destroy"
        declared = sound(moment.program) if moment.operation == "update" else ()
        free = (each for each in declared if not each.is_protected)
        self.world.freed = frozenset(name for each in free for name in (each.name, each.former))
        watched = Watched()
        result = _run(self._deploy(moment, watched, seen))
        if result is None:
            self.world.answered.clear()
        assert not self.world.wrongs, self.world.wrongs
        ended = Ended(
            result.exit_code if result else 0, result.summary.changes if result else {}, *watched.told()
        )
        self.judge(moment, seen, ended)
        return ended if result else None

    def befalls(self, moment: Moment) -> None:
        """Let happen what a moment has happen behind the engine's back."""
        for thing in [*self.world.things.values()]:
            name = urns.parse(thing.urn).name
            if name == moment.vanishes:
                del self.world.things[thing.id]
            if name == moment.drifts:
                thing.inputs = {**thing.inputs, "color": 9}
        if moment.forgets:
            state = self.store.disk()
            kept = state.by_id.keys() | self.left
            for thing in [*self.world.things.values()]:
                if thing.inputs["name"] in state.creating and thing.id not in kept:
                    del self.world.things[thing.id]

    async def _deploy(
        self, moment: Moment, watched: Watched, seen: dict[str, dict[str, Any]]
    ) -> Result | None:
        self.store.begin(moment.kill, seen)
        if moment.operation != "preview":
            self.store.fold()
        player = _Player(sound(moment.program))
        with _without_processes(self.world, player):
            self.world.is_dead = self.store.killed.is_set
            run = Deployment(
                self.workspace, moment.options(), watched, moment.operation, Path(sys.executable)
            )
            self.world.cancel = run._control.cancel  # pyright: ignore[reportPrivateUsage] - what Ctrl-C calls
            runs_program = moment.operation in ("preview", "update")
            deploying = asyncio.create_task(run.deploy(cast("Child", player) if runs_program else None))
            killed = asyncio.create_task(self.store.killed.wait())
            await asyncio.wait({deploying, killed}, return_when=asyncio.FIRST_COMPLETED)
            killed.cancel()
            if self.store.killed.is_set():
                deploying.cancel()
                await asyncio.wait({deploying})
                return None
            deploying.result()
            return run.result()

    def judge(self, moment: Moment, seen: Mapping[str, Mapping[str, Any]], ended: Ended) -> None:
        """Assert that each thing is in the state, or was left on purpose, or stands there as begun."""
        self.warned = ended.warned
        assert moment.operation != "preview" or not self.world.calls, self.world.calls
        spared = {
            name
            for method, name in self.world.calls
            if (method == "update" or moment.operation == "destroy")  # a replacement may drag others along
            and moment.chosen
            and moment.chosen.spares(name)
        }
        assert not spared, f"{spared} are not meant by {moment.chosen}: {self.world.calls}"
        if moment.options().selection.excludes_protected:
            kept = {each["urn"].rsplit("::", 1)[1] for each in seen.values() if each.get("protect")}
            gone = kept.intersection(name for method, name in self.world.calls if method == "delete")
            assert not gone, f"{gone} are protected: {self.world.calls}"
        assert not [each for each in ended.told if "Traceback" in each or CANARY in each], ended.told
        texts = self.store.written()
        assert CANARY not in "".join(texts)
        state = _told(*texts)
        known = state.by_id
        for thing in self.world.things.values():
            if thing.id in known or thing.id in self.left:
                continue
            if thing.inputs["name"] in state.creating and thing.id not in self.world.answered:
                continue
            assert seen.get(thing.id, {}).get("retainOnDelete"), f"{thing.urn} is lost: {thing.id}"
            self.left.add(thing.id)

    def unprotect(self) -> None:
        """Take all protection away, as `pulumi state unprotect --all` does."""
        snapshot = self.store.load()
        free = tuple(replace(each, protect=False) for each in snapshot.resources)
        if free != snapshot.resources:
            self.store.begin(None, {})
            self.store.save(replace(snapshot, resources=free))


@contextmanager
def _without_processes(world: World, player: _Player) -> Generator[None]:
    class Server:
        async def stop(self, _grace: None) -> None: ...

    async def serve(_server: object, monitor: object, _log: object) -> None:
        player.monitor = monitor

    with (
        patch.object(deployment, "listen", _returning((Server(), "127.0.0.1:0"))),
        patch.object(deployment, "serve", serve),
        patch.object(deployment, "Plugins", _returning(world)),
    ):
        yield


def _returning(part: _T) -> Callable[..., _T]:
    return lambda *_: part


def live(life: Life, stack: Stack) -> None:
    """Play a life in an empty stack and judge it."""
    is_refreshed = life.is_refreshed
    for moment in life.moments:
        is_refreshed |= bool(moment.vanishes or moment.drifts)
        result = stack.passes(moment)
        assert result is not None or moment.kill
    stack.unprotect()
    program = sound(life.last, is_free=True)
    if is_refreshed:
        _succeeds(stack, Moment("refresh"))
    _succeeds(stack, Moment("update", program))
    notes = stack.store.disk().pending
    if notes:
        assert {record["urn"] for _, record in notes} <= stack.warned, "a create that was begun is not told"
        _succeeds(stack, Moment("refresh", forgets=True))
    _judge_program(stack, program)
    for again in ("update", "refresh"):
        before = _recorded(stack)
        result = _succeeds(stack, Moment(again, program))
        assert not stack.world.calls, f"{again} again: {stack.world.calls}"
        assert result.changes.keys() <= {"same", "read"}, f"{again} again: {result.changes}"
        assert _recorded(stack) == before, f"{again} again changes the state"
    _succeeds(stack, Moment("destroy"))
    assert not stack.store.disk().resources


def _recorded(stack: Stack) -> dict[str, dict[str, Any]]:
    return {each["urn"]: each for each in stack.store.disk().resources}


def _succeeds(stack: Stack, moment: Moment) -> Ended:
    ended = stack.passes(moment)
    assert ended is not None
    assert ended.code == 0, f"{moment.operation}: {ended.told}"
    return ended


def _judge_program(stack: Stack, program: Program) -> None:
    """Assert that there is what the program declares, once each, and nothing else."""
    state, things = stack.store.disk(), stack.world.things
    made = [each for each in state.resources if each["custom"] and not each["type"].startswith("pulumi:")]
    records = {each["urn"].rsplit("::", 1)[1]: each for each in made}
    wanted = {each.name: each for each in program if not each.is_component}
    rest = [each["urn"] for each in state.resources if each.get("delete") or each.get("pendingReplacement")]
    assert not rest, f"unfinished: {rest}"
    assert records.keys() == wanted.keys(), f"recorded: {sorted(records)}, declared: {sorted(wanted)}"
    assert not state.pending
    assert not [each["urn"] for each in state.resources if each.get("initErrors")]
    there = [each for each in things.values() if each.id not in stack.left]
    recorded = {each["id"] for each in records.values() if not each.get("external")}
    assert {each.id for each in there} == recorded, f"made: {there}, recorded: {recorded}"
    read = {name: records[name]["id"] for name in records if records[name].get("external")}
    assert read == {name: f"{READ}{name}" for name, spec in wanted.items() if spec.is_read}
    for name, spec in wanted.items():
        if spec.is_read:
            continue
        thing = things[records[name]["id"]]
        assert thing.is_ready, f"{name} was made by half"
        expected: dict[str, Any] = {"color": spec.color, "fixed": spec.fixed}
        expected |= {key: f"by {records[of]['id']}" for key, of in _uses(spec)}
        for key, value in expected.items():
            if key != "color" or not spec.ignores_color:
                assert thing.inputs[key] == value, f"{name} has {key}={thing.inputs[key]}, not {value}"


def scratch() -> Path:
    """Return where states may be written fast: in memory, where the system has such a place."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
