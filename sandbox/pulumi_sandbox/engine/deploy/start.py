"""Deploying a stack: preview, up, refresh, destroy and import, from the outside.

The program's process is started before anything else is even imported: it needs the longest to get ready.
"""

import asyncio
import sys
import time
from importlib import import_module
from pathlib import Path

from pulumi_sandbox.engine.deploy.options import Options, Result
from pulumi_sandbox.engine.model.events import (
    Diagnostic,
    Operation,
    Sink,
)
from pulumi_sandbox.engine.plugins.program import start_program
from pulumi_sandbox.engine.state.history import update
from pulumi_sandbox.engine.workspace import Workspace


def make_ready() -> None:
    """Import what the others import when they are first called."""
    import_module("pulumi_sandbox.engine.deploy.deployment")


def preview(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Run the program and show what an update would do; nothing is written.

    Raises SandboxError for what is wrong before anything could start.
    """
    return asyncio.run(_deploy(workspace, options, sink, "preview"))


def up(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Run the program and bring the stack to what it declares. The state is saved before and after each call.

    Ctrl-C or SIGTERM: calls under way finish and are saved, no other begins; a second one ends all at once.
    Raises SandboxError `stack-locked`, and for what is wrong before anything could start.
    """
    return _deploy_alone(workspace, options, sink, "update")


def refresh(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Bring the state to what the providers report, or show how; the program is not run.

    Raises SandboxError as `up` does.
    """
    return _deploy_alone(workspace, options, sink, "refresh")


def destroy(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Delete the resources of the stack, or show which; the program is not run.

    Raises SandboxError as `up` does.
    """
    return _deploy_alone(workspace, options, sink, "destroy")


def import_(workspace: Workspace, options: Options, sink: Sink) -> Result:
    """Record an object that exists as a resource, or show how; the program is not run.

    Raises SandboxError as `up` does.
    """
    return _deploy_alone(workspace, options, sink, "import")


def _deploy_alone(workspace: Workspace, options: Options, sink: Sink, operation: Operation) -> Result:
    """Deploy while holding the stack's lock; what only shows needs none."""
    if options.preview_only:
        return asyncio.run(_deploy(workspace, options, sink, operation))
    with workspace.store.locked() as gone:
        for owner in gone:
            message = f"took over the lock of a run that ended without releasing it (pid {owner.pid})"
            sink.handle(Diagnostic("warning", message))
        workspace.keep_salt()
        workspace.store.fold()
        began = time.time()
        result = asyncio.run(_deploy(workspace, options, sink, operation))
        workspace.store.history.add(update(result.summary, began, workspace.project, workspace.stack_file))
        return result


async def _deploy(workspace: Workspace, options: Options, sink: Sink, operation: Operation) -> Result:
    project = workspace.project
    python = Path(sys.executable) if options.confinement else project.python
    runs_program = operation in ("preview", "update") or (operation == "destroy" and options.run_program)
    program = await start_program(project, python, options.confinement) if runs_program else None
    try:
        from pulumi_sandbox.engine.deploy.deployment import Deployment

        session = Deployment(workspace, options, sink, operation, python)
        await session.deploy(program)
    finally:
        if program:
            await program.stop()
    return session.result()
