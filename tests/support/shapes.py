"""Specs of ESO's providers by their shapes: the smallest with a selector, and drawn ones, also broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

from cel_expr_python import cel

SHAPES: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "components/secret_stores/eso_shapes.json").read_text()
)
SELECTORS: Final = ("secret", "account", "certificates", "object")

Given: TypeAlias = Callable[[str], Any]
"""Returns a value for a word of shapes."""

_ENV: Final = cel.NewEnv(variables={"self": cel.Type.DYN})
_PLAIN: Final[dict[str, Any]] = {
    **{"text": "x", "flag": True, "whole": 1000, "number": 1.5, "any": {}, "bytes": "eA=="},
    "secret": {"name": "login", "key": "k"},
    "account": {"name": "login"},
    "object": {"name": "login"},
    "certificates": {"name": "ca", "type": "Secret", "key": "k"},
}
_BROKEN: Final = ("", 7, -1, 1.5, True, [], {}, "%", "A b", [1], {"x": "y"})


def plain(word: str) -> Any:
    """A value for a word; a selector of none of its namespaces."""
    return _PLAIN[word]


def selectors_of(shape: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all selectors of a shape; lists and maps are no step."""
    match shape:
        case str() if shape in SELECTORS:
            yield path
        case dict():
            for name, each in shape.items():
                yield from selectors_of(each, (*path, name.removesuffix("!")))
        case ["list" | "map" | "where" | "default", each, *_]:
            yield from selectors_of(each, path)
        case _:
            pass


def least(shape: Any, path: Sequence[str] = (), given: Given = plain, rules: Sequence[Any] = ()) -> Any:
    """The smallest value of a shape, with what is at a path."""
    match shape:
        case str():
            found = given(shape)
        case ["default", each, value]:
            found = least(each, path, given) if path else value
        case ["where", each, *of_each]:
            found = least(each, path, given, of_each)
        case ["list", each]:
            found = [least(each, path, given)]
        case ["map", each]:
            found = {"x": least(each, path, given)}
        case ["one of", first, *_]:
            found = first
        case _:
            found = _least(shape, path, given, rules)
    return found


def _least(shape: dict[str, Any], path: Sequence[str], given: Given, rules: Sequence[Any]) -> dict[str, Any]:
    named = {name.removesuffix("!"): each for name, each in shape.items()}
    kept = {name.removesuffix("!") for name in shape if name.endswith("!")} | {*path[:1]}
    value = {name: least(named[name], path[1:] if name in path[:1] else (), given) for name in sorted(kept)}
    spare = [name for name in named if name not in value]
    for count in range(3):
        for more in combinations(spare, count):
            candidate = value | {name: least(named[name], (), given) for name in more}
            if all(_holds(rule, candidate) for rule, _ in rules):
                return candidate
    raise ValueError(f"nothing small keeps to {rules}")


def _holds(rule: str, value: Any) -> bool:
    return _ENV.compile(rule).eval(data={"self": value}).value() is True


def drawn(random: Random, shape: Any) -> Any:
    """A value of a shape, mostly: some of its parts are missing, some are what they may not be.

    A selector is never without its name: the server takes one, and we refuse it, for it names nothing.
    """
    if random.random() < 0.03:
        return random.choice([each for each in _BROKEN if each != {} or shape not in SELECTORS])
    match shape:
        case str():
            found = plain(shape)
        case ["default" | "where", each, *_]:
            found = drawn(random, each)
        case ["list", each]:
            found = [drawn(random, each) for _ in range(random.choice((0, 1, 1, 2)))]
        case ["map", each]:
            found = {random.choice(("x", "esoNamespace")): drawn(random, each)}
        case ["one of", *words]:
            found = random.choice(words)
        case _:
            chance = random.choice((0.1, 0.5, 0.9))
            found = {
                name.removesuffix("!"): drawn(random, each)
                for name, each in shape.items()
                if random.random() < (0.97 if name.endswith("!") else chance)
            }
    return found
