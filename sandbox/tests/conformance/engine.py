"""Plays rows on the embedded engine, without a process for the program: the SDK runs in a thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from pulumi.runtime.proto import language_pb2
from pulumi_sandbox import engine
from pulumi_sandbox.engine import Event, Options, Workspace
from pulumi_sandbox.engine.deploy import start
from pulumi_sandbox.engine.deploy.targets import Selection
from pulumi_sandbox.engine.model.events import Diagnostic, StepFinished, StepPlanned
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.project_file import Project
from pulumi_sandbox.engine.project.stack_file import StackFile
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.errors import SandboxError

from sandbox.tests.conformance.laboratory import Ended, step_names
from sandbox.tests.conformance.program import Program

_FLAGS: Final = {
    each: each.removeprefix("--").replace("-", "_")
    for each in ("--expect-no-changes", "--continue-on-error", "--preview-only", "--refresh", "--run-program")
}
"""Flags of the CLI that are options of the engine."""


@dataclass
class _Threaded:
    """Stands in for the program's process."""

    program: Program
    ran: asyncio.Future[Any] | None = None

    def follow(self, *_sinks: object) -> None: ...

    def kill(self) -> None: ...

    async def tell(self, text: str) -> None:
        task = json.loads(text)
        request = language_pb2.RunRequest(
            project=task["project"],
            stack=task["stack"],
            config=task["config"],
            configSecretKeys=task["secretKeys"],
            dryRun=task["preview"],
            parallel=task["parallel"],
            monitor_address=task["monitor"],
            args=[task["monitor"]],
            organization=task["organization"],
        )
        served: Any = self.program.served()
        self.ran = asyncio.ensure_future(asyncio.to_thread(served.Run, request, None))

    async def wait(self) -> int:
        return 32 if self.ran and (await asyncio.shield(self.ran)).error else 0

    async def stop(self) -> None:
        if self.ran:
            await self.ran


@dataclass(frozen=True)
class Embedded:
    """The engine of this project."""

    crypter: PassphraseCrypter

    def run(self, folder: Path, operation: str, flags: list[str], program: Program | None) -> Ended:
        """Run one operation; flags that it does not have end it, like all that it refuses."""
        events: list[Event] = []
        store = Store(folder / "backend", "test", "dev", self.crypter)
        code, changes, said = 1, {}, []
        try:
            options = Options(parallel=1, **_options(operation, flags))
            project = Project.load(folder)
            stack_file = StackFile.load(folder / "Pulumi.dev.yaml", project.name)
            workspace = Workspace(project, "dev", stack_file, self.crypter, store)
            result = self._deploy(getattr(engine, operation), workspace, options, program, events)
            code, changes = result.exit_code, result.summary.changes
        except SandboxError as error:
            said.append(str(error))
        steps = [each for each in events if isinstance(each, StepPlanned | StepFinished)]
        errors = [each for each in events if isinstance(each, Diagnostic) and each.severity == "error"]
        failed = [each.step for each in steps if isinstance(each, StepFinished) and each.error is not None]
        return Ended(
            code=code,
            operations=step_names(
                [{"op": each.step.op, "urn": each.step.urn} for each in steps],
                [f"{each.op} {each.urn}" for each in failed],
            ),
            changes=changes,
            errors=sorted(
                {each.urn for each in errors} | {each.urn for each in failed} | ({""} if said else set())
            ),
            deployment=json.loads(store.path.read_text())["checkpoint"].get("latest", {})
            if store.path.exists()
            else {},
            said=(*said, *(each.message for each in errors)),
        )

    def _deploy(
        self,
        operation: Callable[..., engine.Result],
        workspace: Workspace,
        options: Options,
        program: Program | None,
        events: list[Event],
    ) -> engine.Result:
        class Watched:
            def handle(self, event: Event) -> None:
                events.append(event)

        async def start_program(*_: object) -> _Threaded:
            return _Threaded(program or Program())

        with patch.object(start, "start_program", start_program):
            return operation(workspace, options, Watched())


def _options(operation: str, flags: list[str]) -> dict[str, Any]:
    """Return the engine's options for flags of the CLI; raises SandboxError for what it has none for."""
    named: dict[str, list[str]] = {"--target": [], "--exclude": [], "--replace": []}
    options: dict[str, Any] = {}
    rest = iter(flags)
    for flag in rest:
        if flag in named:
            named[flag].append(next(rest))
        elif flag in _FLAGS and (operation, flag) != ("refresh", "--run-program"):
            options[_FLAGS[flag]] = True
        elif flag not in ("--target-dependents", "--exclude-protected"):
            raise SandboxError(
                code="unsupported", place=flag, cause="no such flag", mend="use the Pulumi CLI"
            )
    selection = Selection(
        tuple(named["--target"]),
        tuple(named["--exclude"]),
        dependents="--target-dependents" in flags,
        excludes_protected="--exclude-protected" in flags,
        replaces=tuple(named["--replace"]),
    )
    return {**options, "selection": selection}
