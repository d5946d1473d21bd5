"""Positions of configuration problems in a stack's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from components.documents import Step, Unreadable, read_file
from components.errors import Problem
from components.naming import config_path

_CONFIG: Final = "config"
ENDS: Final = (".", "[", " ", "(", ":")
"""Characters that can follow a step if a place continues after it."""


def locate(problems: Iterable[Problem], file: Path) -> tuple[Problem, ...]:
    """Return problems in the order of a stack's file, each with the position of its entry or parent.

    Problems with a position in another file keep it. An unreadable file adds nothing.
    """
    try:
        document = read_file(file)
    except Unreadable:
        return tuple(problems)
    data = document.data if isinstance(document.data, dict) else {}
    found = [
        each if each.at else replace(each, at=tuple(document.at(tuple(_path(each.place, data)))))
        for each in problems
    ]
    return tuple(sorted(found, key=lambda each: each.at or (document.mark.file, 0, 0)))


def _path(place: str, data: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the steps from the root of a stack's file to a place, as far as it exists."""
    config = data.get(_CONFIG)
    if isinstance(config, dict):
        yield _CONFIG
        yield from _steps(config, place, {key: key if ":" in key else config_path(key) for key in config})


def steps_in(value: Any, rest: str) -> Iterator[Step]:
    """Yield the steps from a value to the rest of a place, as far as it exists."""
    yield from _steps(value, rest, _texts_of(value))


def _steps(value: Any, rest: str, steps: Mapping[Step, str]) -> Iterator[Step]:
    while found := [key for key, text in steps.items() if begins(rest, text)]:
        step = max(found, key=lambda key: len(steps[key]))
        yield step
        value, rest = value[step], rest.removeprefix(steps[step])
        steps = _texts_of(value)


def _texts_of(value: Any) -> Mapping[Step, str]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return {key: config_path("", key).removeprefix(config_path("")) for key in keys}


def begins(rest: str, step: str) -> bool:
    """Return whether a place equals a step or continues after it."""
    return rest == step or (rest.startswith(step) and rest.removeprefix(step).startswith(ENDS))
