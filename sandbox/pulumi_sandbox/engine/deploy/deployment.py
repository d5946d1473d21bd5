"""One deployment, from reading the state to stopping the last process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Generator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pulumi_sandbox.engine.deploy.apply import Applier
from pulumi_sandbox.engine.deploy.builtin import Builtin
from pulumi_sandbox.engine.deploy.callbacks import DELETION, Callbacks, Hooks
from pulumi_sandbox.engine.deploy.control import Control, Stopped
from pulumi_sandbox.engine.deploy.delete import delete_the_rest
from pulumi_sandbox.engine.deploy.importing import take_up
from pulumi_sandbox.engine.deploy.monitor import EngineLog, Monitor, listen, serve
from pulumi_sandbox.engine.deploy.options import Import, Options, Result
from pulumi_sandbox.engine.deploy.plan import Planner
from pulumi_sandbox.engine.deploy.provider_resources import ProviderResources
from pulumi_sandbox.engine.deploy.refresh import refresh as refresh_resources
from pulumi_sandbox.engine.deploy.register import Registrar
from pulumi_sandbox.engine.deploy.resources import Resources
from pulumi_sandbox.engine.deploy.root_stack import RootStack
from pulumi_sandbox.engine.deploy.targets import Targets
from pulumi_sandbox.engine.model.events import (
    Operation,
    Outputs,
    PolicyPackLoaded,
    Sink,
    StackStarted,
)
from pulumi_sandbox.engine.model.goal import package_of
from pulumi_sandbox.engine.model.resource import Resource, Snapshot
from pulumi_sandbox.engine.plugins.process import Child
from pulumi_sandbox.engine.plugins.program import ProgramTask
from pulumi_sandbox.engine.plugins.provider_processes import Plugins, Sources, attached_providers
from pulumi_sandbox.engine.policies.pack import PolicyPack, start_packs
from pulumi_sandbox.engine.project.identity import Identity
from pulumi_sandbox.engine.state.journal import Journal
from pulumi_sandbox.engine.workspace import Workspace
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.files import make_folder
from pulumi_sandbox.protocol.values import Properties

_UNCHANGED: Final = frozenset({"same", "read", "discard"})
_FAILED, _EXPECTED_NO_CHANGES, _CANCELLED = 1, 7, 8
_PROGRAM_GRACE_SECONDS: Final = 5.0


class Deployment:
    """Makes all the parts, lets them work, and takes them down in whatever way the work ended."""

    def __init__(
        self, workspace: Workspace, options: Options, sink: Sink, operation: Operation, python: Path
    ) -> None:
        """Take all that decides what is to be done; `python` is the interpreter of the project's environment.

        Raises what `Workspace.config` raises.
        """
        self._workspace = workspace
        self._options = replace(options, parallel=max(options.parallel, 1))
        self._operation: Final = operation
        is_preview = operation == "preview" or options.preview_only
        self._python = python
        self._config = workspace.config()
        self._control: Final = Control(
            "preview" if is_preview else operation,
            preview=is_preview,
            goes_on=options.continue_on_error,
            sink=sink,
            secrets=self._config.secrets,
            parallel=self._options.parallel,
        )
        self._identity = Identity(
            project=workspace.project.name,
            stack=workspace.stack,
            config=self._config,
            directory=workspace.project.directory.absolute(),
            program=_folder(workspace.project.program),
            preview=self._control.preview,
        )
        self._outputs: Properties = {}
        self._foreseen = Snapshot()
        self._cleanups = contextlib.AsyncExitStack()
        self._program: Child | None = None
        self._plugins: Plugins | None = None
        self._packs: asyncio.Task[tuple[PolicyPack, ...]] | None = None

    async def deploy(self, program: Child | None) -> None:
        """Deploy with a program that was started already, or without one.

        Raises SandboxError for what is wrong before anything could begin.
        """
        with self._interruptible():
            try:
                await self._prepare()
                if program:
                    await self._with_program(program)
                else:
                    await self._without_program()
            except Stopped:
                pass
            finally:
                await self._end()

    # Setting up

    async def _prepare(self) -> None:
        """Read the state and make the parts that every deployment has."""
        control, workspace = self._control, self._workspace
        control.emit(
            StackStarted(workspace.stack, workspace.project.name, control.operation, self._config.shown)
        )
        snapshot = workspace.store.load()
        for resource in snapshot.resources:
            control.learn(resource.inputs)
            control.learn(resource.outputs)
        confinement = self._options.confinement
        server, self._address = listen(confinement and confinement.address)
        self._cleanups.push_async_callback(server.stop, None)
        self._plugins = Plugins(self._sources(), self._address, partial(control.say, "info"))
        self._cleanups.push_async_callback(self._plugins.stop)
        for package in sorted({package_of(each.type) for each in snapshot.resources if _is_plugin(each)}):
            self._plugins.warm_up(package)
        self._packs = asyncio.create_task(self._start_packs())
        callbacks = Callbacks(refused=confinement is not None)
        self._cleanups.push_async_callback(callbacks.close)
        hooks = Hooks(callbacks, preview=control.preview, warn=control.warn)
        self._journal = Journal(snapshot, None if control.preview else workspace.store.save)
        resources = Resources(control, self._journal, self._identity)
        targets = Targets(self._options.selection, snapshot.resources)
        builtin = Builtin(self._done, workspace.store.state_of)
        provider_resources = ProviderResources(self._plugins, builtin, control.warn)
        self._root = RootStack(self._identity.root, control, self._journal, resources)
        self._applier = Applier(control, self._journal, hooks)
        self._registrar = Registrar(
            control=control,
            journal=self._journal,
            provider_resources=provider_resources,
            applier=self._applier,
            resources=resources,
            planner=Planner(control, self._journal, provider_resources, resources, targets, self._packs),
            identity=self._identity,
            targets=targets,
            destroys=self._operation == "destroy",
        )
        self._log = EngineLog(control)
        self._monitor = Monitor(
            control=control,
            registrar=self._registrar,
            resources=resources,
            root=self._root,
            callbacks=callbacks,
            hooks=hooks,
            identity=self._identity,
            parallel=self._options.parallel,
            address=self._address,
        )
        await serve(server, self._monitor, self._log)
        refreshes = self._options.refresh or (workspace.project.refreshes and not self._options.trusted)
        if refreshes and self._operation not in ("refresh", "import"):
            await self._refresh()
            control.count_anew()
            self._begin_anew()

    def _done(self, urn: str) -> Resource | None:
        return self._registrar.resources.done.get(urn)

    def _begin_anew(self) -> None:
        """Let what takes registrations begin with the state as the journal has it now."""
        control, journal = self._control, self._journal
        resources = Resources(control, journal, self._identity)
        targets = Targets(self._options.selection, journal.old)
        self._root = RootStack(self._identity.root, control, journal, resources)
        self._registrar = replace(
            self._registrar,
            resources=resources,
            planner=replace(self._registrar.planner, resources=resources, targets=targets),
            targets=targets,
        )
        self._monitor.resources, self._monitor.root = resources, self._root
        self._monitor.registrar = self._registrar

    def _sources(self) -> Sources:
        project = self._workspace.project
        logs = self._workspace.store.path.parents[3] / "logs" / f"{project.name}-{self._workspace.stack}"
        for old in make_folder(logs).glob("*.log"):
            old.unlink()
        self._logs = logs
        return Sources(
            project=project.name,
            program=_folder(project.program),
            python=self._python,
            logs=logs,
            attached={}
            if self._options.trusted
            else attached_providers(os.environ.get("PULUMI_DEBUG_PROVIDERS", "")),
            folders={} if self._options.confinement else project.providers,
            packages={} if self._options.confinement else project.packages,
            within=self._options.providers,
            trusted=self._options.trusted,
        )

    async def _start_packs(self) -> tuple[PolicyPack, ...]:
        if self._operation not in ("preview", "update"):
            return ()
        folders, configs = self._options.policy_packs, self._options.policy_configs
        try:
            packs = await start_packs(folders, configs, self._identity, self._address, self._logs)
        except SandboxError as error:
            raise self._control.fail(str(error)) from error
        for pack in packs:
            self._cleanups.push_async_callback(pack.stop)
            self._control.emit(PolicyPackLoaded(pack.name, pack.version))
        return packs

    # Deploying

    async def _with_program(self, program: Child) -> None:
        """Run the program, then delete what it no longer registers."""
        project = self._workspace.project
        self._program = program
        program.follow(self._control.printed, partial(self._control.say, "info#err"))
        task = ProgramTask(
            identity=self._identity,
            program=project.program,
            root=project.directory,
            address=self._address,
            parallel=self._options.parallel,
            scratch=self._logs,
        )
        await program.tell(task.to_json())
        exited = asyncio.create_task(program.wait())
        try:
            await self._until_done(exited)
            await self._control.drained()
            await self._control.serve(self._finish)
        finally:
            await self._settle()
            self._monitor.release()
            await asyncio.wait({exited}, timeout=_PROGRAM_GRACE_SECONDS)
        if exited.done() and exited.result():
            self._control.flaw(f"the program ended badly after it was through (exit code {exited.result()})")

    async def _until_done(self, exited: asyncio.Task[int]) -> None:
        """Wait until the program has registered everything: it says so, or ends well without a word.

        Raises Stopped when it ended badly before that, or the deployment stopped.
        """
        signalled = asyncio.create_task(self._monitor.signalled.wait())
        stopped = asyncio.create_task(self._control.stopped())
        await asyncio.wait({signalled, stopped, exited}, return_when=asyncio.FIRST_COMPLETED)
        signalled.cancel()
        stopped.cancel()
        if not self._monitor.signalled.is_set() and not self._control.stopping:
            code = exited.result()
            if not code:
                return
            if self._log.errors:
                self._control.failed = True
                raise self._control.stop()
            raise self._control.fail(f"the program ended before it was through (exit code {code})")

    async def _finish(self) -> None:
        """Do what the program must still be alive for: deletions, then the judgement on the whole."""
        if self._control.failed and not (self._control.preview or self._control.goes_on):
            return
        missing = self._missing_targets()
        if self._operation == "destroy":
            self._registrar.resources.left_alone.clear()
            self._registrar.resources.done.pop(self._root.urn, None)
            self._journal.reopen()
        await delete_the_rest(self._control, self._journal, self._registrar, self._applier)
        if missing:
            raise self._control.stop()
        self._root.finish()
        if self._packs and (self._control.preview or not self._control.failed):
            try:
                await self._root.judge(self._packs)
            except SandboxError as error:
                raise self._control.fail(str(error)) from error
        for urn in sorted({*self._journal.interruptions} - self._registrar.resources.not_made):
            self._control.say(
                "warning",
                "an earlier run began to create this and was killed, and the program no longer asks for it: "
                "it may exist unnoticed. Look for it; `refresh --clear-pending-creates` forgets it",
                urn,
            )

    def _missing_targets(self) -> bool:
        """Whether a target is neither in the state nor registered, which is told."""
        registrar = self._registrar
        missing = registrar.targets.unknown(
            registrar.resources.goals, excludes_too=self._operation == "refresh"
        )
        for urn in missing:
            hint = "" if "$" in urn else " Did you forget to escape $ in your shell?"
            self._control.flaw(f"Target '{urn}' could not be found in the stack.{hint}")
        return bool(missing)

    def _hooks_without_program(self) -> bool:
        """Whether a resource has hooks of its deletion, which is told: only the program answers them."""
        hooked = False
        for each in self._journal.old:
            if names := [name for moment in DELETION for name in each.resource_hooks.get(moment, ())]:
                hooked = True
                self._control.flaw(
                    f"it has hooks of its deletion ({', '.join(names)}), and the program is not running\n"
                    "→ destroy with --run-program",
                    each.urn,
                )
        return hooked

    async def _refresh(self) -> None:
        if self._missing_targets():
            raise self._control.stop()
        forgets = self._options.clear_pending_creates
        await self._control.serve(
            lambda: refresh_resources(self._control, self._journal, self._registrar, forgets=forgets)
        )

    async def _without_program(self) -> None:
        """Refresh, import or destroy."""
        control, journal, registrar = self._control, self._journal, self._registrar
        try:
            if self._operation == "refresh":
                await self._refresh()
            elif self._operation == "import":
                wanted = self._imported()
                await control.serve(lambda: take_up(wanted, control, journal, registrar))
            elif self._missing_targets() or self._hooks_without_program():
                raise control.stop()
            else:
                await control.serve(lambda: delete_the_rest(control, journal, registrar, self._applier))
        finally:
            await self._settle()

    def _imported(self) -> Import:
        """Return what is to be imported; raises ValueError where nobody said."""
        if self._options.imported is None:
            raise ValueError("the options of an import name nothing to import")
        return self._options.imported

    async def _settle(self) -> None:
        """Wait for calls under way, record the stack's outputs, and put everything on disk."""
        await self._control.drained()
        self._outputs = self._root.finish()
        try:
            await self._journal.settled()
            if not self._control.preview:
                self._workspace.store.fold()
        except SandboxError as error:
            self._control.flaw(str(error))
        self._foreseen = self._journal.snapshot()

    # Ending

    @contextlib.contextmanager
    def _interruptible(self) -> Generator[None]:
        """Take Ctrl-C and SIGTERM: the first stops gracefully, the second at once."""
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if self._control.cancelled:
                self._control.abandon()
                self._kill()
                return
            self._control.say("warning", "stopping: calls under way finish first; once more to stop at once")
            self._control.cancel()
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

    async def _end(self) -> None:
        """Stop all processes."""
        if self._packs:
            await asyncio.gather(self._packs, return_exceptions=True)
        await self._cleanups.aclose()

    def result(self) -> Result:
        """Emit the outcome, and return it."""
        control = self._control
        summary = control.summary()
        control.emit(Outputs.of(self._outputs))
        control.emit(summary)
        changed = any(count for op, count in summary.changes.items() if op not in _UNCHANGED)
        code = 0
        if control.cancelled:
            code = _CANCELLED
        elif control.failed:
            code = _FAILED
        elif changed and self._options.expect_no_changes:
            code = _EXPECTED_NO_CHANGES
        steps, violations = tuple(control.steps), tuple(control.violations)
        return Result(summary, self._outputs, steps, violations, code, self._foreseen)


def _folder(program: Path) -> Path:
    return program if program.is_dir() else program.parent


def _is_plugin(resource: Resource) -> bool:
    """Whether a process stands behind a resource of the state."""
    return resource.is_provider and package_of(resource.type) != "pulumi"
