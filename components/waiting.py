"""What depends on something that may be skipped: it is declared once that is there, and waits until then.

What waits is a text: for what, empty for nothing. It is known in a preview, too (`skipping.py` of the pool).
Where refresh and destroy run the program, resources without a state answer with outputs that are None.
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
    """Declare something unless it waits, and return what was declared."""
    return pulumi.Output.from_input(waits).apply(lambda why: None if why else declare())


def once_made(output: pulumi.Output[T | None]) -> pulumi.Output[T]:
    """Return an output of a resource that is unknown, not None, as long as the resource is not made."""
    return output.apply(lambda known: cast(T, UNKNOWN) if known is None else known)


def apply_to_unknowns(
    function: Callable[..., pulumi.Input[T]], *inputs: pulumi.Input[Any]
) -> pulumi.Output[T]:
    """Apply a function also where a preview does not know what it is given: that is UNKNOWN, each by itself.

    `Output.apply` with `run_with_unknowns` gives one UNKNOWN in place of a list whose unknown parts the SDK
    has as None, and None beside parts that it has as UNKNOWN.
    """
    outputs = map(pulumi.Output[Any].from_input, inputs)
    each = (one.apply(lambda value: value, run_with_unknowns=True) for one in outputs)
    return pulumi.Output.all(*each).apply(lambda known: function(*known), run_with_unknowns=True)


def join_reasons(waits: Iterable[pulumi.Input[str]]) -> pulumi.Output[str]:
    """Return all that something waits for."""
    return pulumi.Output.all(*waits).apply(lambda each: "; ".join(dict.fromkeys(filter(None, each))))


def pending(waits: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[Mapping[str, str]]:
    """Return what of these waits, and for what."""
    known = pulumi.Output.all(*waits.values())
    return known.apply(lambda all_: {what: why for what, why in zip(waits, all_, strict=True) if why})
