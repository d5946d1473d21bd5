"""Runs a Pulumi program; started as a script in the program's own environment.

It imports the SDK first and then reads from standard input where the engine is and what the configuration
is: so the import overlaps with the engine's own preparations, and no secret stands in the process'
arguments or initial environment. Nothing of this package may be imported here.
See sandbox/docs/engine-facts.md, the program's process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gc
import importlib
import inspect
import json
import logging
import os
import runpy
import sys
import traceback
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pulumi
import pulumi.runtime

_ERROR_WAS_SHOWN: Final = 32
_THREADS_PER_OPERATION: Final = 4
_CONSTRUCTORS: Final = 3
_LOOK_SECONDS: Final = 2.0
"""How long until it looks whether an output failed that was not there before."""


def main() -> int:
    """Run the program that standard input describes; return the exit code."""
    task: dict[str, Any] = json.load(sys.stdin)
    os.environ.update(task["environment"])
    pulumi.runtime.set_all_config(task["config"], task["secretKeys"])
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            project=task["project"],
            stack=task["stack"],
            monitor=task["monitor"],
            engine=task["monitor"],
            parallel=task["parallel"],
            dry_run=task["preview"],
            organization=task["organization"],
            root_directory=task["root"],
        )
    )
    sys.argv = [task["program"]]
    pulumi.log.debug = _be_silent
    _spare()
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(max(task["parallel"], 1) * _THREADS_PER_OPERATION)
    loop.set_default_executor(executor)
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: _run(task["program"])))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return _ERROR_WAS_SHOWN
    except Exception as error:
        pulumi.log.error(f"Program failed with an unhandled exception:\n{_user_traceback(error)}")
        return _ERROR_WAS_SHOWN
    finally:
        executor.shutdown(wait=True)
        loop.close()
    return 0


def _be_silent(*_args: object, **_kwargs: object) -> None:
    """Stand in for what nobody asks for.

    Of debug messages, which the engine drops, the SDK sends four for every resource, each a round trip.
    """


def _spare() -> None:
    """Let the SDK do once, or not at all, what it does for each resource and nobody here asks for.

    The types of a class are the same for all its resources; of where in the program one was made the state
    keeps the place alone, not all that led there; URNs of aliases are put together for engines that cannot do
    so themselves; and a text needs no search for what is unknown in it.
    """
    types: Any = importlib.import_module("pulumi._types")
    resources: Any = importlib.import_module("pulumi.resource")
    runtime: Any = importlib.import_module("pulumi.runtime.resource")
    types.resource_types = functools.cache(types.resource_types)
    runtime._get_stack_trace = functools.partial(_place, runtime.source_pb2)
    resources.collapse_alias_to_urn = _be_silent
    pulumi.runtime.rpc.contains_unknowns = _contains_unknowns
    gc.freeze()


def _place(messages: Any) -> Any:
    """Return the stack trace of which the SDK takes the source position: its first frame.

    As the SDK finds it, that is what called the constructor below those of Resource and CustomResource, or of
    ComponentResource.
    """
    frame = inspect.currentframe()
    constructors = 0
    while frame and constructors < _CONSTRUCTORS:
        constructors += frame.f_code.co_name == "__init__"
        frame = frame.f_back
    uri = _uri(frame.f_code.co_filename) if frame else ""
    if frame is None or not uri:
        return messages.StackTrace()
    place = messages.SourcePosition(uri=uri, line=frame.f_lineno)
    return messages.StackTrace(frames=[messages.StackFrame(pc=place)])


@functools.cache
def _uri(file: str) -> str:
    return Path(file).as_uri() if Path(file).is_absolute() else ""


_search_for_unknowns: Final = pulumi.runtime.rpc.contains_unknowns
_UNKNOWN: Final = type(pulumi.UNKNOWN)


def _contains_unknowns(value: Any) -> bool:
    return _search_for_unknowns(value) if isinstance(value, dict | list) else isinstance(value, _UNKNOWN)


def _run(program: str) -> Awaitable[None]:
    """Run the program's folder as Python does; it then stands first on the import path."""
    if not Path(program).exists():
        raise pulumi.RunError(f"there is no {program}, which Pulumi.yaml names as main")
    if Path(program).is_dir() and not Path(program, "__main__.py").exists():
        raise pulumi.RunError(f"there is no __main__.py in {program}")
    runpy.run_path(program, run_name="__main__")
    return _all_known()


async def _all_known() -> None:
    """Wait until every output is known, or one failed.

    The SDK waits for whichever of all outputs is the next, and begins anew: that takes the square of them.
    """
    settings: Any = pulumi.runtime.settings.SETTINGS
    unknown = set[asyncio.Task[Any]]()
    over = asyncio.Event()

    def ended(output: asyncio.Task[Any]) -> None:
        unknown.discard(output)
        if not unknown or has_failed(output):
            over.set()

    def has_failed(output: asyncio.Task[Any]) -> bool:
        return output.done() and (output.cancelled() or output.exception() is not None)

    while True:
        with settings.lock:
            outputs: list[asyncio.Task[Any]] = [*settings.outputs]
        new = [each for each in outputs if not each.done() and each not in unknown]
        for each in new:
            each.add_done_callback(ended)
        unknown.update(new)
        if not unknown or any(map(has_failed, outputs)):
            return
        over.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), _LOOK_SECONDS)


def _user_traceback(error: BaseException) -> str:
    """Format an exception with the user's own frames only; without any, with all."""
    shown = traceback.TracebackException.from_exception(error)
    foreign = (str(Path(sys.prefix)), str(Path(os.__file__).parent), "<frozen", __file__)
    pending: list[traceback.TracebackException | None] = [shown]
    while pending:
        part = pending.pop()
        if part is not None:
            own = [frame for frame in part.stack if not frame.filename.startswith(foreign)]
            part.stack = traceback.StackSummary.from_list(own or part.stack)
            pending += [part.__cause__, part.__context__]
    return "".join(shown.format())


def _leave(code: int) -> None:
    """Skip the rest of the interpreter's own end: taking the SDKs apart takes longer than some programs."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    exit_code = 1
    atexit.register(lambda: _leave(exit_code))  # the first to be registered is the last to run
    try:
        exit_code = main()
    except SystemExit as ended:  # the program's own, which ends it as it ends any script
        exit_code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise
