"""Previews and updates of one stack by the Pulumi CLI, through the Automation API, and their results."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import psutil
from pulumi.automation import (
    CommandError,
    ConcurrentUpdateError,
    LocalWorkspace,
    Stack,
)
from pulumi.automation.events import EngineEvent, PolicyEvent, SummaryEvent
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.stack_cluster import StackCluster

from components.errors import CredfleetError, ExplainedError
from operations.cli.failures import CANCELLED, GENERIC
from operations.folders import Folders
from operations.stack.at_rest import StackAtRest
from operations.stack.project_file import Project
from operations.stack.state import Snapshot, decode
from operations.stack.yaml_file import load_map

if TYPE_CHECKING:
    from components.stack_config.stack import Settings

Outcome: TypeAlias = Literal["succeeded", "failed", "cancelled"]
Show: TypeAlias = Callable[[EngineEvent], None]

DONE: Final[Mapping[str, str]] = {
    "create": "created",
    "create-replacement": "replaced",
    "replace": "replaced",
    "update": "updated",
    "delete": "deleted",
    "import": "imported",
    "read": "read",
}
TO_DO: Final[Mapping[str, str]] = {
    **{op: f"to {op}" for op in ("create", "replace", "update", "delete", "import")},
    "create-replacement": "to replace",
}
"""Operation → how a resource is described before the step; above, after it."""

_LATE: Final = 0.2
"""Interval in seconds of checks for a CLI that started after it was asked to stop."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operation on a resource. inputs: with secrets masked. done: executed, not only planned."""

    op: str
    urn: str
    type: str
    id: str
    inputs: Mapping[str, Any]
    done: bool
    failed: bool = False

    @property
    def name(self) -> str:
        """The name of the resource in the program."""
        return urns.parse(self.urn).name


@dataclass(frozen=True, slots=True)
class Deployed:
    """The result of a preview or an update.

    changes: operation → number of resources. outputs_differ: whether the stack's outputs changed. errors:
    error messages.
    """

    outcome: Outcome
    changes: Mapping[str, int]
    seconds: float
    steps: Sequence[Step]
    policy: Sequence[PolicyEvent]
    messages: Sequence[str]
    errors: Sequence[str]
    outputs_differ: bool

    @property
    def exit_code(self) -> int:
        """The exit code of a command that did nothing else."""
        return {"succeeded": 0, "failed": GENERIC, "cancelled": CANCELLED}[self.outcome]

    @property
    def changes_anything(self) -> bool:
        """Whether there were changes, including changed outputs only."""
        steps = (step for step in self.steps if not urns.is_default_provider(step.urn))
        return self.outputs_differ or any(step.op != "same" for step in steps)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A stack on its cluster, ready for the CLI."""

    folders: Folders
    cluster: StackCluster
    at_rest: StackAtRest
    settings: Settings
    stack: Stack
    packs: Mapping[str, Any]

    def state(self) -> Snapshot:
        """Return the stack's current state, without decrypting secrets."""
        return decode(self.at_rest.deployment())


def _came_to(events: Sequence[EngineEvent], outcome: Outcome) -> Deployed:
    """Return the result from the events."""
    said = [each.diagnostic_event for each in events if each.diagnostic_event]
    lasting = [(each.severity == "error", each.message.strip()) for each in said if not each.ephemeral]
    summary = next((each.summary_event for each in reversed(events) if each.summary_event), None)
    outputs = [differ for each in events if (differ := _outputs_differ(each)) is not None]
    return Deployed(
        outcome,
        changes_of(summary) if summary else {},
        float(summary.duration_seconds) if summary else 0.0,
        (*{(step.urn, step.op): step for step in map(_step, events) if step}.values(),),
        [each.policy_event for each in events if each.policy_event],
        [message for is_error, message in lasting if not is_error],
        [message for is_error, message in lasting if is_error],
        bool(outputs) and outputs[-1],  # known when the program ends
    )


def _step(event: EngineEvent) -> Step | None:
    done, failed = bool(event.res_op_failed_event), bool(event.res_op_failed_event)
    told = event.resource_pre_event or event.res_op_failed_event
    if event.res_outputs_event:
        told, done = event.res_outputs_event, not event.res_outputs_event.planning
    state = (told.metadata.new or told.metadata.old) if told else None
    if told is None or state is None:
        return None
    op, urn = told.metadata.op.value, told.metadata.urn
    return Step(op, urn, state.type, state.id or "", state.inputs or {}, done, failed)


def _outputs_differ(event: EngineEvent) -> bool | None:
    """Return whether an event changes the stack's outputs; None if it is not about them."""
    told = event.res_outputs_event.metadata if event.res_outputs_event else None
    if told is None or told.type != urns.ROOT_STACK_TYPE or not told.old or not told.new:
        return None
    return told.old.outputs != told.new.outputs


def changes_of(summary: SummaryEvent) -> dict[str, int]:
    """Return the number of resources by operation, named as on the wire."""
    return {str(getattr(op, "value", op)): count for op, count in summary.resource_changes.items()}


def select_stack(project: Path, stack: str, workspace: LocalWorkspace | None = None) -> Stack:
    """Return a stack of the project, for the CLI on PATH.

    A missing stack is created with the secrets provider and the key in its file. workspace: of the project,
    if not that of the environment. Raises CredfleetError `stack-unavailable`; and as `Project.load`, and as
    `load_map` of its file.
    """
    workspace = workspace or LocalWorkspace(work_dir=str(project))
    file = Project.load(project).stack_file(stack)
    workspace.secrets_provider = load_map(file).data.get("secretsprovider") if file.exists() else None
    try:
        return Stack.create_or_select(stack, workspace)
    except CommandError as error:
        raise CredfleetError(
            code="stack-unavailable",
            place=f"stack {stack}",
            problem=f"the Pulumi CLI cannot open it: {last_words(error)}",
            fix="correct that, then run the same command again",
        ) from None


def deploy(
    run: Callable[..., Any], show: Show, stopped: threading.Event | None = None, **options: Any
) -> Deployed:
    """Run a preview or an update and return its result; Ctrl-C ends it gracefully.

    run: `preview`, `up`, `refresh` of a stack, which gets `options`. stopped: that of `interruptible`, if the
    main thread is in it and this is another one. Raises CredfleetError `stack-locked`.
    """
    events = list[EngineEvent]()
    outcome: Outcome = "succeeded"
    last = ""

    def take(event: EngineEvent) -> None:
        events.append(event)
        show(event)

    with nullcontext(stopped) if stopped else interruptible() as interrupted:
        try:
            run(on_event=take, **options)
        except ConcurrentUpdateError as error:
            raise CredfleetError(
                code="stack-locked",
                place="the stack",
                problem=f"another update holds it: {last_words(error)}",
                fix="wait for it; if its process is gone: `pulumi cancel --yes`",
            ) from None
        except CommandError as error:
            outcome = "cancelled" if interrupted.is_set() else "failed"
            last = last_words(error)
    done = _came_to(events, outcome)
    return replace(done, errors=[last]) if last and not done.errors else done


def last_words(error: CommandError) -> str:
    """Return the last line of a failed CLI's output."""
    said = str(error).partition("stderr:")[2].strip() or str(error).strip()
    return said.splitlines()[-1] if said else "it gave no reason"


@contextmanager
def interruptible() -> Generator[threading.Event]:
    """On Ctrl-C, SIGTERM and SIGHUP, interrupt every CLI once, also later ones; yield whether that happened.

    Failures after that are raised as KeyboardInterrupt. A terminal also signals the CLI, for which a second
    signal is an order to stop at once. Only for the main thread.
    """
    asked, ended, told = threading.Event(), threading.Event(), set[int]()

    def interrupt(_number: int, _frame: object) -> None:
        told.clear()
        if _shares_terminal():
            told.update(child.pid for child in _clis())
        asked.set()
        tell()

    def tell() -> None:
        for child in _clis():
            if child.pid not in told:
                told.add(child.pid)
                try:
                    child.send_signal(signal.SIGINT)
                except psutil.Error:  # also raised for a running process after the clock was set
                    told.discard(child.pid)

    def tell_late_ones() -> None:
        while not ended.wait(_LATE):
            if asked.is_set():
                tell()

    hang_up = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else []  # as by nohup
    heard = (signal.SIGINT, signal.SIGTERM, *hang_up)
    former = {number: signal.signal(number, interrupt) for number in heard}
    watch = threading.Thread(target=tell_late_ones, daemon=True)
    watch.start()
    try:
        yield asked
    except (ExplainedError, CommandError):
        if asked.is_set():
            raise KeyboardInterrupt("a signal") from None
        raise
    finally:
        ended.set()
        watch.join()
        for number, handler in former.items():
            signal.signal(number, handler)


def _clis() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if _runs_pulumi(child.pid)]


def _shares_terminal() -> bool:
    with suppress(OSError):
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


def free_dead_lock(backend: Path, project: str, stack: str) -> list[int]:
    """Remove the stack's locks whose process on this machine has ended; return these processes."""
    freed: list[int] = []
    for file in (backend / ".pulumi" / "locks" / "organization" / project / stack).glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            lock: dict[str, Any] = json.loads(file.read_bytes())
            if lock["hostname"] == socket.gethostname() and not _runs_pulumi(int(lock["pid"])):
                file.unlink()
                freed.append(int(lock["pid"]))
    return freed


def _runs_pulumi(pid: int) -> bool:
    """Return whether a process is a CLI, also a wrapped one, or might be, as /proc can hide other users'."""
    try:
        return "pulumi" in psutil.Process(pid).name()
    except psutil.Error:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
