"""What depends on something that may be skipped: it is declared once that is there, and waits until then.

What waits is a text: for what, empty for nothing. It is known in a preview, too (`skipping.py` of the pool).
Where refresh and destroy run the program, resources without a state answer with outputs that are None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

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


def join_reasons(waits: Iterable[pulumi.Input[str]]) -> pulumi.Output[str]:
    """Return all that something waits for."""
    return pulumi.Output.all(*waits).apply(lambda each: "; ".join(dict.fromkeys(filter(None, each))))


def pending(waits: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[Mapping[str, str]]:
    """Return what of these waits, and for what."""
    known = pulumi.Output.all(*waits.values())
    return known.apply(lambda all_: {what: why for what, why in zip(waits, all_, strict=True) if why})
