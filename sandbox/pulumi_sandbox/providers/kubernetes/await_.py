"""Waiting: for an object to be gone, and for what its annotations ask for.

No controllers of workloads run in the sandbox, so nothing is waited for unless annotation
`pulumi.com/waitFor` asks; `pulumi.com/skipAwait` overrides it, as in the genuine provider.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import paths
from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.kubernetes import objects
from pulumi_sandbox.providers.kubernetes.api import Pause
from pulumi_sandbox.providers.kubernetes.errors import NotReadyError, described

_DEFAULT_SECONDS: Final = 600.0
_FIRST_INTERVAL: Final = 0.05
_LONGEST_INTERVAL: Final = 1.0
_JSONPATH: Final = re.compile(r"jsonpath=\{\s*\$?\.?(?P<path>[\w.\-\[\]\"]+)\s*\}(=(?P<value>.+))?")


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing to wait for: the text that asked for it, and the test of the live object."""

    text: str
    holds: Callable[[Properties], bool]


def conditions(inputs: Properties) -> tuple[Condition, ...]:
    """Read what the object's annotations wait for.

    `condition=TYPE[=STATUS]` looks into `.status.conditions`, `jsonpath={.path}[=VALUE]` at any field;
    several come as a JSON list.

    Raises ValueError when an expression is of neither form.
    """
    asked = objects.annotation(inputs, objects.WAIT_FOR)
    if not asked or objects.is_true(inputs, objects.SKIP_AWAIT):
        return ()
    try:
        listed = json.loads(asked)
    except ValueError:
        listed = asked
    return tuple(_condition(str(text)) for text in (listed if isinstance(listed, list) else [asked]))


def timeout(inputs: Properties, option_seconds: float) -> float:
    """Return the seconds to wait: the resource option's, else the annotation's, else ten minutes."""
    annotated = objects.annotation(inputs, objects.TIMEOUT_SECONDS)
    return option_seconds or (float(annotated) if annotated.isdecimal() else _DEFAULT_SECONDS)


def until_ready(
    live: Properties,
    asked: tuple[Condition, ...],
    read: Callable[[], Properties | None],
    *,
    seconds: float,
    pause: Pause,
) -> Properties:
    """Read the object until all conditions hold, and return it as it is then.

    Raises NotReadyError when the time is over, or the object went away.
    """
    for interval in _intervals(seconds):
        missing = [condition.text for condition in asked if not condition.holds(live)]
        if not missing:
            return live
        if not interval:
            raise NotReadyError(
                live, f"{described(live)} did not reach {', '.join(missing)} within {seconds:g} s"
            )
        pause(interval)
        found = read()
        if found is None:
            raise NotReadyError(live, f"{described(live)} was deleted while it was waited for")
        live = found
    raise AssertionError("the intervals end with zero")


def until_gone(
    live: Properties, read: Callable[[], Properties | None], *, seconds: float, pause: Pause
) -> None:
    """Read the object until it is no longer there, or another of the same name is.

    Raises SandboxError `still-there`, when the time is over; it names the finalizers that hold the object.
    """
    gone = objects.metadata(live).get("uid")
    found: Properties | None = live
    for interval in _intervals(seconds):
        pause(interval)
        found = read()
        if found is None or objects.metadata(found).get("uid") != gone:
            return
    finalizers = objects.metadata(found or live).get("finalizers")
    raise SandboxError(
        code="still-there",
        place=described(live),
        problem=f"it is marked as deleted, but still there after {seconds:g} s"
        + (f"; its finalizers are {finalizers}" if finalizers else ""),
        fix="start the controller that finishes the deletion, or take its finalizer away; then run again",
    )


def _intervals(seconds: float) -> Iterator[float]:
    """Yield growing pauses that add up to the time given, then zero."""
    deadline = time.monotonic() + seconds
    interval = _FIRST_INTERVAL
    while (left := deadline - time.monotonic()) > 0:
        yield min(interval, left)
        interval = min(interval * 1.5, _LONGEST_INTERVAL)
    yield 0


def _condition(text: str) -> Condition:
    if text.startswith("condition="):
        wanted, _, status = text.removeprefix("condition=").partition("=")
        return Condition(text, lambda live: _has_condition(live, wanted, status or "True"))
    found = _JSONPATH.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is neither condition=TYPE[=STATUS] nor jsonpath={{.plain.path}}[=VALUE]")
    path, value = paths.parse(found["path"]), found["value"]
    return Condition(text, lambda live: _has_value(paths.get(live, path), value))


def _has_condition(live: Properties, wanted: str, status: str) -> bool:
    _, listed = paths.get(live, ("status", "conditions"))
    return isinstance(listed, list) and any(
        isinstance(entry, dict) and entry.get("type") == wanted and entry.get("status") == status
        for entry in listed
    )


def _has_value(found: tuple[bool, Value], wanted: str | None) -> bool:
    is_there, value = found
    if wanted is None or not is_there:
        return is_there
    return (str(value).lower() if isinstance(value, bool) else str(value)) == wanted
