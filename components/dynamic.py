"""What the dynamic providers share: properties they keep, what is unknown, how something is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pulumi
from pulumi.dynamic import DiffResult
from pulumi.output import Unknown

from components.errors import CredfleetError

Properties: TypeAlias = dict[str, Any]


def kept(props: Properties, keys: Sequence[str]) -> Properties:
    """Take these properties; an absent one is None."""
    return {key: props.get(key) for key in keys}


def compared(
    olds: Properties,
    news: Properties,
    inputs: Sequence[str],
    *,
    identity: Sequence[str] = (),
    otherwise: Callable[[], bool] = lambda: False,
    delete_first: bool = False,
) -> DiffResult:
    """Compare inputs; one of the identity is another resource.

    otherwise: whether there is a change although no input differs; asked only then. delete_first: whether a
    replaced resource goes before the one that takes its place is made.
    """
    changed = [key for key in inputs if olds.get(key) != news.get(key)]
    return DiffResult(
        changes=bool(changed) or otherwise(),
        replaces=[key for key in changed if key in identity],
        stables=[],
        delete_before_replace=delete_first,
    )


def is_unknown(value: Any) -> bool:
    """Whether a value, or one inside an object or list, is known only at the update."""
    match value:
        case dict():
            return any(is_unknown(each) for each in value.values())
        case list():
            return any(is_unknown(each) for each in value)
        case _:
            return isinstance(value, Unknown)


@contextmanager
def shortened() -> Generator[None]:
    """Let an error out in its own words, as pulumi.RunError; the host prints a traceback around it."""
    try:
        yield
    except CredfleetError as error:
        raise pulumi.RunError(f"{error.code}: {error}") from None


def tell(text: str) -> None:
    """Say something to whoever runs the update: what a provider prints, the engine shows."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
