"""Resources that depend on something that might be skipped: declared only once it exists.

The reason for waiting is a string, empty for none, known even in a preview (`skipping.py` of the pool). If
refresh and destroy run the program, outputs of resources without state are None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

import pulumi
from pulumi.output import UNKNOWN

T = TypeVar("T")


def declare_unless(
    waits: pulumi.Input[str], declare: Callable[[], pulumi.Input[T]]
) -> pulumi.Output[T | None]:
    """Declare something unless there is a reason to wait, and return it."""
    return pulumi.Output.from_input(waits).apply(lambda why: None if why else declare())


def once_made(output: pulumi.Output[T | None]) -> pulumi.Output[T]:
    """Return an output that is unknown, not None, while its resource is not created."""
    return output.apply(lambda known: cast(T, UNKNOWN) if known is None else known)


def apply_to_unknowns(
    function: Callable[..., pulumi.Input[T]], *inputs: pulumi.Input[Any]
) -> pulumi.Output[T]:
    """Apply a function even if inputs are unknown in a preview: each is then UNKNOWN by itself.

    `Output.apply` with `run_with_unknowns` replaces a list with unknown parts that the SDK has as None by one
    UNKNOWN, and passes None beside parts that it has as UNKNOWN.
    """
    outputs = map(pulumi.Output[Any].from_input, inputs)
    each = (one.apply(lambda value: value, run_with_unknowns=True) for one in outputs)
    return pulumi.Output.all(*each).apply(lambda known: function(*known), run_with_unknowns=True)


def join_reasons(waits: Iterable[pulumi.Input[str]]) -> pulumi.Output[str]:
    """Return all distinct reasons to wait, joined."""
    return pulumi.Output.all(*waits).apply(lambda each: "; ".join(dict.fromkeys(filter(None, each))))


def pending(waits: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[Mapping[str, str]]:
    """Return what waits, and why."""
    known = pulumi.Output.all(*waits.values())
    return known.apply(lambda all_: {what: why for what, why in zip(waits, all_, strict=True) if why})
