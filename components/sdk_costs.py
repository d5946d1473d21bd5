"""Workarounds for costs of the SDK (3.272) per resource. Each has no effect once the SDK fixes the cost.

The engine gets the same requests, except that a stack trace ends at the line that declares the resource.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
from pathlib import Path
from types import FrameType
from typing import Any, Final

from pulumi import log
from pulumi.runtime import resource
from pulumi.runtime.proto import source_pb2
from pulumi.runtime.settings import SETTINGS

_STACK_TRACE: Final = "_get_stack_trace"
_IS_DEBUGGED: Final = "PULUMI_OPTION_DEBUG"
"""Variable that sets the CLI's option `--debug`, which the CLI does not pass to the program."""


def save_costs() -> None:
    """Shorten stack traces, drop debug messages that the CLI would drop, exclude modules from collections.

    The frames of Python and the SDK are almost half of a state, and the CLI writes all of it at each step.
    The program waits for the answer to each of eight debug messages per resource. The imports create 200,000
    objects, which each full garbage collection would visit.
    """
    gc.freeze()
    gc.enable()
    if hasattr(resource, _STACK_TRACE):
        setattr(resource, _STACK_TRACE, _declared_at)
    if not os.environ.get(_IS_DEBUGGED):
        log.debug = _drop


def _drop(*_: object, **__: object) -> None: ...


def _declared_at() -> source_pb2.StackTrace:
    """Return the frame that calls the third constructor of the stack, the first one that the SDK reports."""
    constructors, frame = 0, inspect.currentframe()
    while frame is not None and constructors < 3:
        constructors, frame = constructors + (frame.f_code.co_name == "__init__"), frame.f_back
    return source_pb2.StackTrace(frames=[] if frame is None else [_position(frame)])


def _position(frame: FrameType) -> source_pb2.StackFrame:
    path = Path(frame.f_code.co_filename)
    at = source_pb2.SourcePosition(uri=path.as_uri(), line=frame.f_lineno) if path.is_absolute() else None
    return source_pb2.StackFrame(pc=at)


async def settle() -> None:
    """Wait until all outputs are finished, or one failed, which the SDK reports.

    `pulumi.runtime.stack.wait_for_rpcs` waits for all of them again each time one is finished.
    """
    settings: Any = SETTINGS
    while unfinished := {*settings.outputs}:
        ended, _ = await asyncio.wait(unfinished, return_when=asyncio.FIRST_EXCEPTION)
        if any(each.cancelled() or each.exception() for each in ended):
            return
