"""Deploying a stack: preview, up, refresh and destroy, from the outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sandbox.engine.builtin import Builtin
from sandbox.engine.callbacks import Callbacks, Hooks
from sandbox.engine.deletion import delete_the_rest
from sandbox.engine.events import (
    Diagnostic,
    Operation,
    Outputs,
    PolicyPackLoaded,
    PolicyViolation,
    StackStarted,
    StdoutLine,
    StepFinished,
    StepPlanned,
    Summary,
)
from sandbox.engine.executor import Executor
from sandbox.engine.goal import package_of
from sandbox.engine.ledger import Ledger
from sandbox.engine.monitor import EngineLog, Monitor, listen, serve
from sandbox.engine.operations import Operations
from sandbox.engine.planning import Planning
from sandbox.engine.plugins import Plugins, Sources, attached_providers
from sandbox.engine.policies import PolicyPack, StackFacts, start_packs
from sandbox.engine.processes import Child
from sandbox.engine.program import ORGANIZATION, ProgramTask, start_program
from sandbox.engine.progress import Identity, Progress
from sandbox.engine.refresh import refresh as refresh_resources
from sandbox.engine.registry import Registry
from sandbox.engine.root_stack import RootStack
from sandbox.engine.run import Run, Sink, Stopped
from sandbox.engine.state import Resource
from sandbox.engine.urns import PROVIDER_TYPE_PREFIX
from sandbox.engine.values import Properties
from sandbox.engine.workspace import Workspace
from sandbox.errors import SandboxError

_UNCHANGED: Final = frozenset({"same", "read"})
_FAILED, _EXPECTED_NO_CHANGES, _CANCELLED = 1, 7, 8
_PROGRAM_GRACE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Options:
    """How to deploy: steps at a time, folders of policy packs, whether any change is an error (exit 7)."""

    parallel: int = 16
    policy_packs: tuple[Path, ...] = ()
    expect_no_changes: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How a deployment ended.

    `outputs` are the stack's, secrets unmasked inside `Secret`; `exit_code` is 0, 1 failed, 7 changes
    where none were expected, 8 cancelled.
    """

    summary: Summary
    outputs: Properties
    steps: tuple[StepPlanned | StepFinished, ...]
    policy: tuple[PolicyViolation, ...]
    exit_code: int


def preview(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Run the program and show what an update would do; nothing is written.

    Raises:
        SandboxError: For what is wrong before anything could start.
    """
    return asyncio.run(_deploy(workspace, options, sink, "preview"))


def up(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Run the program and bring the stack to what it declares. The state is saved before and after each call.

    Ctrl-C or SIGTERM: calls under way finish and are saved, no other begins; a second one ends all at once.

    Raises:
        SandboxError: `stack-locked`, and for what is wrong before anything could start.
    """
    return _deploy_alone(workspace, options, sink, "update")


def refresh(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Bring the state to what the providers report; the program is not run.

    Raises:
        SandboxError: As `up`.
    """
    return _deploy_alone(workspace, options, sink, "refresh")


def destroy(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Delete all resources of the stack; the program is not run.

    Raises:
        SandboxError: As `up`.
    """
    return _deploy_alone(workspace, options, sink, "destroy")


def _deploy_alone(workspace: Workspace, options: Options, sink: Sink, operation: Operation) -> Result:
    """Deploy while holding the stack's lock."""
    with workspace.store.locked() as gone:
        for owner in gone:
            message = f"took over the lock of a run that ended without releasing it (pid {owner.pid})"
            sink.handle(Diagnostic("warning", message))
        return asyncio.run(_deploy(workspace, options, sink, operation))


async def _deploy(workspace: Workspace, options: Options, sink: Sink, operation: Operation) -> Result:
    deployment = _Deployment(workspace, options, sink, operation)
    with deployment.interruptible():
        try:
            if operation in ("preview", "update"):
                await deployment.with_program()
            else:
                await deployment.without_program()
        except Stopped:
            pass
        except asyncio.CancelledError:
            if not deployment.run.cancelled:
                raise
        finally:
            await deployment.end()
    return deployment.result()


class _Deployment:
    """One deployment, from reading the state to stopping the last process."""

    def __init__(self, workspace: Workspace, options: Options, sink: Sink, operation: Operation) -> None:
        self._workspace = workspace
        self._options = options
        self._sink = sink
        self._config = workspace.config()
        self.run: Final = Run(
            operation,
            preview=operation == "preview",
            sink=sink,
            secrets=self._config.secrets,
            parallel=options.parallel,
        )
        self._outputs: Properties = {}
        self._cleanups = contextlib.AsyncExitStack()
        self._program: Child | None = None
        self._plugins: Plugins | None = None
        self._packs: asyncio.Task[tuple[PolicyPack, ...]] | None = None

    # Setting up

    async def _prepare(self) -> None:
        """Read the state and make the parts that every deployment has."""
        run, workspace = self.run, self._workspace
        run.emit(StackStarted(workspace.stack, workspace.project.name, run.operation, self._config.shown))
        snapshot = workspace.store.load()
        for resource in snapshot.resources:
            run.learn(resource.inputs)
            run.learn(resource.outputs)
        server, self._address = listen()
        self._cleanups.push_async_callback(server.stop, None)
        self._plugins = Plugins(self._sources(), self._address, self._informed)
        self._cleanups.push_async_callback(self._plugins.stop)
        for package in sorted({package_of(each.type) for each in snapshot.resources if _is_plugin(each)}):
            self._plugins.warm_up(package)
        self._packs = asyncio.create_task(self._start_packs())
        callbacks = Callbacks()
        self._cleanups.push_async_callback(callbacks.close)
        hooks = Hooks(callbacks, preview=run.preview, warn=self._warned)
        identity = Identity(
            project=workspace.project.name,
            stack=workspace.stack,
            config=self._config,
            program=_folder(workspace.project.program),
        )
        self._ledger = Ledger(snapshot, None if run.preview else workspace.store)
        progress = Progress(run, self._ledger, identity)
        registry = Registry(self._plugins, Builtin(progress.done.get))
        self._root = RootStack(identity.root, run, self._ledger, progress)
        self._operations = Operations(run, self._ledger, hooks)
        self._executor = Executor(
            run=run,
            ledger=self._ledger,
            registry=registry,
            operations=self._operations,
            progress=progress,
            planning=Planning(run, self._ledger, registry, progress, self._packs),
            identity=identity,
        )
        self._log = EngineLog(run)
        self._monitor = Monitor(
            run=run,
            executor=self._executor,
            progress=progress,
            root=self._root,
            callbacks=callbacks,
            hooks=hooks,
            identity=identity,
            parallel=self._options.parallel,
        )
        await serve(server, self._monitor, self._log)

    def _sources(self) -> Sources:
        project = self._workspace.project
        logs = self._workspace.store.path.parents[3] / "logs" / f"{project.name}-{self._workspace.stack}"
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in logs.glob("*.log"):
            old.unlink()
        self._logs = logs
        return Sources(
            project=project.name,
            program=_folder(project.program),
            python=self._python(),
            logs=logs,
            attached=attached_providers(os.environ.get("PULUMI_DEBUG_PROVIDERS", "")),
            folders=project.providers,
        )

    def _python(self) -> Path:
        virtualenv = self._workspace.project.virtualenv
        return virtualenv / "bin" / "python" if virtualenv else Path(sys.executable)

    async def _start_packs(self) -> tuple[PolicyPack, ...]:
        if self.run.operation not in ("preview", "update"):
            return ()
        facts = StackFacts(
            project=self._workspace.project.name,
            stack=self._workspace.stack,
            organization=ORGANIZATION,
            preview=self.run.preview,
            config=self._config.values,
            secret_keys=self._config.secret_keys,
        )
        try:
            packs = await start_packs(self._options.policy_packs, facts, self._address, self._logs)
        except SandboxError as error:
            raise self.run.fail(str(error)) from error
        for pack in packs:
            self._cleanups.push_async_callback(pack.stop)
            self.run.emit(PolicyPackLoaded(pack.name, pack.version))
        return packs

    # Deploying

    async def with_program(self) -> None:
        """Run the program, then delete what it no longer registers."""
        project = self._workspace.project
        program = await start_program(self._python(), project.program, self._printed, self._complained)
        self._program = program
        self._cleanups.push_async_callback(program.stop)
        await self._prepare()
        task = ProgramTask(
            project=project.name,
            stack=self._workspace.stack,
            program=project.program,
            root=project.directory,
            address=self._address,
            parallel=self._options.parallel,
            preview=self.run.preview,
            config=self._config,
        )
        await program.tell(task.to_json())
        exited = asyncio.create_task(program.wait())
        try:
            await self._until_done(exited)
            await self._finish()
        finally:
            await self._settle()
            self._monitor.release()
            await asyncio.wait({exited}, timeout=_PROGRAM_GRACE_SECONDS)
        if exited.done() and exited.result():
            self.run.flaw(f"the program ended badly after it was through (exit code {exited.result()})")

    async def _until_done(self, exited: asyncio.Task[int]) -> None:
        """Wait until the program has registered everything.

        Raises:
            Stopped: When it ended before that, or the deployment stopped.
        """
        signalled = asyncio.create_task(self._monitor.signalled.wait())
        stopped = asyncio.create_task(self.run.stopped())
        await asyncio.wait({signalled, stopped, exited}, return_when=asyncio.FIRST_COMPLETED)
        signalled.cancel()
        stopped.cancel()
        if not self._monitor.signalled.is_set() and not self.run.stopping:
            code = exited.result()
            if self._log.errors and code:
                self.run.failed = True
                raise self.run.stop()
            raise self.run.fail(f"the program ended before it was through (exit code {code})")

    async def _finish(self) -> None:
        await self.run.drained()
        self.run.check()
        if self.run.failed and not self.run.preview:
            return
        await delete_the_rest(self.run, self._ledger, self._executor, self._operations)
        self._root.finish()
        if self._packs:
            await self._root.judge(self._packs)
        for urn in self._ledger.interruptions:
            self.run.say(
                "warning",
                "an earlier run began to create this and was killed, and the program no longer asks for it: "
                "it may exist unnoticed. Look for it; `pulumi refresh --clear-pending-creates` forgets it",
                urn,
            )

    async def without_program(self) -> None:
        """Refresh or destroy."""
        await self._prepare()
        try:
            if self.run.operation == "refresh":
                await refresh_resources(self.run, self._ledger, self._executor)
            else:
                await delete_the_rest(self.run, self._ledger, self._executor, self._operations)
        finally:
            await self._settle()

    async def _settle(self) -> None:
        """Wait for calls under way, record the stack's outputs, and put everything on disk."""
        await self.run.drained()
        self._outputs = self._root.finish()
        try:
            await self._ledger.settled()
        except SandboxError as error:
            self.run.flaw(str(error))

    # Ending

    @contextlib.contextmanager
    def interruptible(self) -> Generator[None]:
        """Take Ctrl-C and SIGTERM: the first stops gracefully, the second at once."""
        loop, main = asyncio.get_running_loop(), asyncio.current_task()

        def interrupt() -> None:
            if self.run.cancelled:
                self._kill()
                if main:
                    main.cancel()
                return
            self.run.say("warning", "stopping: calls under way finish first; once more to stop at once")
            self.run.cancel()
            if self._plugins:
                cancelling.append(asyncio.ensure_future(self._plugins.cancel()))

        cancelling: list[asyncio.Future[None]] = []
        with contextlib.suppress(ValueError, RuntimeError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, interrupt)
        yield

    def _kill(self) -> None:
        if self._program:
            self._program.kill()
        if self._plugins:
            self._plugins.kill()

    async def end(self) -> None:
        """Stop all processes."""
        if self._packs:
            await asyncio.gather(self._packs, return_exceptions=True)
        await self._cleanups.aclose()

    def result(self) -> Result:
        """Tell the outcome, and return it."""
        run = self.run
        summary = run.summary()
        run.emit(Outputs.of(self._outputs))
        run.emit(summary)
        changed = any(count for op, count in summary.changes.items() if op not in _UNCHANGED)
        code = 0
        if run.cancelled:
            code = _CANCELLED
        elif run.failed:
            code = _FAILED
        elif changed and self._options.expect_no_changes:
            code = _EXPECTED_NO_CHANGES
        return Result(summary, self._outputs, tuple(run.steps), tuple(run.violations), code)

    def _informed(self, line: str) -> None:
        self.run.say("info", line)

    def _warned(self, urn: str, message: str) -> None:
        self.run.say("warning", message, urn)

    def _printed(self, line: str) -> None:
        self.run.emit(StdoutLine(self.run.redacted(line)))

    def _complained(self, line: str) -> None:
        self.run.say("info#err", line)


def _folder(program: Path) -> Path:
    return program if program.is_dir() else program.parent


def _is_plugin(resource: Resource) -> bool:
    """Tell whether a process stands behind a resource of the state."""
    return resource.type.startswith(PROVIDER_TYPE_PREFIX) and package_of(resource.type) != "pulumi"
