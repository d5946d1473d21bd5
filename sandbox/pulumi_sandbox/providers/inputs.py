"""Which inputs a resource takes, and which options a provider: types, which are required, which change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pulumi_sandbox.protocol import values
from pulumi_sandbox.protocol.values import Path, Properties, Unknown, Value, differences
from pulumi_sandbox.providers.contract import Change, Problem


def option_problems(
    config: Properties, reason: Callable[[str, Value], str], required: Mapping[str, str]
) -> list[Problem]:
    """List what is wrong with the options, unknown ones passed over.

    reason: what is wrong with an option that is given, empty for nothing. required: option → what to say when
    it is not given.
    """
    given = {key: value for key, value in config.items() if value not in (None, "")}
    found = [
        Problem(key, said)
        for key, value in sorted(given.items())
        if not isinstance(value, Unknown) and (said := reason(key, value))
    ]
    return found + [Problem(key, said) for key, said in required.items() if key not in given]


def text_fault(key: str, value: Value, texts: frozenset[str], without_effect: frozenset[str]) -> str:
    """Say what is wrong with an option that is given; those that are taken are texts."""
    if key in without_effect:
        return ""
    if key not in texts:
        return "there is no such option, or it is not served here"
    return "" if isinstance(value, str) else "it must be a text"


def option_value(given: Value) -> Value:
    """Return the value a text stands for."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return given


_NOTE: Final = "__defaults"
"""The genuine provider's own: a sorted list of names among the inputs."""


Type: TypeAlias = Literal["text", "flag", "texts", "map", "object", "objects"]

_WORDS: Final[Mapping[Type, str]] = {
    "text": "a text",
    "flag": "true or false",
    "texts": "a list of texts",
    "map": "an object of texts",
    "object": "an object",
    "objects": "a list of objects",
}


@dataclass(frozen=True, slots=True)
class Input:
    """One input; `fields` are those of an object, `replaces` tells that no update can change it."""

    type: Type = "text"
    required: bool = False
    replaces: bool = False
    fields: Mapping[str, Input] = field(default_factory=dict[str, "Input"])


Schema: TypeAlias = Mapping[str, Input]


def declared(properties: Properties) -> Properties:
    """Return the properties without the provider's own notes (`__defaults`) and without nulls."""
    return {key: value for key, value in properties.items() if not key.startswith("__") and value is not None}


def changes(
    old: Properties, new: Properties, schema: Schema, ignored: tuple[Path, ...]
) -> tuple[Change, ...]:
    """List where two sets of properties differ; what lies within a replacing input replaces."""
    return tuple(
        Change(found.path, found.kind, _replaces(found.path, schema))
        for found in differences(old, new)
        if not any(values.covers(pattern, found.path) for pattern in ignored)
    )


def problems(
    inputs: Properties, schema: Schema, unserved: frozenset[str] = frozenset(), place: str = ""
) -> list[Problem]:
    """List what is wrong with the inputs; what is not known yet is taken for right.

    unserved: what the genuine provider takes and this one does not. place: of the object that they are in.
    """
    found: list[Problem] = []
    given = declared(inputs)
    for name, value in given.items():
        at = f"{place}.{name}" if place else name
        if name in unserved:
            found.append(Problem(at, "the sandbox does not serve it; leave it out", unserved=True))
        elif name not in schema:
            found.append(Problem(at, "there is no such property"))
        else:
            found += _value_problems(at, value, schema[name])
    return found + [
        Problem(f"{place}.{name}" if place else name, f"missing required property '{name}'")
        for name, each in schema.items()
        if each.required and name not in given
    ]


def _value_problems(place: str, value: Value, wanted: Input) -> list[Problem]:
    if isinstance(value, Unknown):
        return []
    if not _TESTS[wanted.type](value):
        return [Problem(place, f"it must be {_WORDS[wanted.type]}")]
    if isinstance(value, dict) and wanted.type == "object":
        return problems(value, wanted.fields, place=place)
    if isinstance(value, list) and wanted.type == "objects":
        return [
            problem
            for index, item in enumerate(value)
            if isinstance(item, dict)
            for problem in problems(item, wanted.fields, place=f"{place}[{index}]")
        ]
    return []


def _is_text(value: Value) -> bool:
    return isinstance(value, str | Unknown)


def _is_list_of(value: Value, test: Callable[[Value], bool]) -> bool:
    return isinstance(value, list) and all(map(test, value))


_TESTS: Final[Mapping[Type, Callable[[Value], bool]]] = {
    "text": _is_text,
    "flag": lambda value: isinstance(value, bool),
    "texts": lambda value: _is_list_of(value, _is_text),
    "map": lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
    "object": lambda value: isinstance(value, dict),
    "objects": lambda value: _is_list_of(value, lambda item: isinstance(item, dict | Unknown)),
}


def _replaces(path: Path, schema: Schema) -> bool:
    top = schema.get(str(path[0]))
    return top is not None and top.replaces


def with_defaults(inputs: Properties, defaults: Properties) -> Properties:
    """Return the inputs with what is missing of the defaults, and a note of what that was."""
    missing = {key: value for key, value in defaults.items() if inputs.get(key) is None}
    noted = inputs.get(_NOTE)
    filled = {str(name) for name in noted} if isinstance(noted, list) else set[str]()
    return {**inputs, **missing, _NOTE: [*sorted(missing.keys() | filled)]}
