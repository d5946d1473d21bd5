"""What the dynamic providers share: properties they keep, what is unknown, how something is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import pulumi
from pulumi.output import Unknown

from components.errors import CredfleetError

Properties: TypeAlias = dict[str, Any]


def kept(props: Properties, keys: Sequence[str]) -> Properties:
    """Take these properties; an absent one is None."""
    return {key: props.get(key) for key in keys}


def is_unknown(value: Any) -> bool:
    """Whether a value, or one inside an object or list, is known only at the update."""
    match value:
        case dict():
            return any(is_unknown(each) for each in value.values())
        case list():
            return any(is_unknown(each) for each in value)
        case _:
            return isinstance(value, Unknown)


def short(error: CredfleetError) -> pulumi.RunError:
    """Say an error in its own words: the host prints a traceback around any exception; raise it from None."""
    return pulumi.RunError(f"{error.code}: {error}")


def tell(text: str) -> None:
    """Say something to whoever runs the update: what a provider prints, the engine shows."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
