"""Validation of a document: a valid model, and the problems of the parts that were removed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from components.config.field_types import CONFIG_ERROR
from components.errors import Problem
from components.naming import config_path

Model = TypeVar("Model", bound=BaseModel)
Document = dict[str, Any]

_KEY: Final = "[key]"
"""Step that pydantic appends to a location if the name of an entry is invalid."""

_SEE: Final = "see its form in: credfleet config schema"
_NO_MAP: Final = "it must be a map of names", "write it as a map: {name: …}"
_PLAIN: Final = {
    "string_type": (
        "it must be a string, but YAML parsed a number, boolean, list or map",
        "quote the value",
    ),
    **dict.fromkeys(
        ("bool_type", "bool_parsing"),
        ("it must be true or false", "write true or false, without quotes"),
    ),
    **dict.fromkeys(
        ("tuple_type", "list_type", "sequence_type", "set_type"),
        ("it must be a list", "write it as a list, also of one: [ … ]"),
    ),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float", "int_parsing_size"),
        ("it must be an integer", "write digits, without quotes"),
    ),
    **dict.fromkeys(("less_than", "less_than_equal"), ("the number is too large", "write a smaller one")),
    **dict.fromkeys(("string_too_short", "string_too_long"), ("the string is too short or too long", _SEE)),
    "too_short": ("it is empty", "add an entry, or leave out what holds it"),
    **dict.fromkeys(("mapping_type", "dict_type", "model_type"), _NO_MAP),
}


def well_formed(model: type[Model], document: Document) -> tuple[Model, tuple[Problem, ...]]:
    """Return the model of the valid parts of a document, and the problems of the others.

    Invalid parts are removed from the document, so that the rest can still be checked: the invalid value, or
    the entry around a missing one. The model must be valid when empty.
    """
    problems: tuple[Problem, ...] = ()
    while True:
        try:
            return model.model_validate(document), problems
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
        if not problems:
            problems = tuple(
                _problem(fault, model, lambda path: config_path(str(path[0]), *path[1:]))
                for fault in _own(faults)
            )
        _take_out(document, (fault["loc"] for fault in faults))


def unfit_values(model: type[BaseModel], document: Document) -> Iterator[Problem]:
    """Yield problems of single values, without missing or conflicting keys of maps."""
    try:
        model.model_validate(document)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            if not isinstance(fault["input"], dict):
                yield _problem(fault, model, lambda path: config_path(str(path[0]), *path[1:]))


def problems_of(
    error: ValidationError, model: type[BaseModel], place: str = "", otherwise: str = _SEE
) -> Iterator[Problem]:
    """Yield why a document is not a valid model; no problem contains a value.

    `place`: of the document. `otherwise`: fix of problems without a specific one.
    """
    for fault in _own(error.errors(include_url=False, include_input=False)):
        yield _problem(fault, model, lambda path: below(place, path), otherwise)


def _own(faults: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Drop missing keys that an unknown key explains, and too short lists that invalid items explain."""
    unknown = [fault["loc"][:-1] for fault in faults if fault["type"] == "extra_forbidden"]
    inside = [fault["loc"][:-1] for fault in faults]
    for fault in faults:
        instead = unknown if fault["type"] == "missing" else inside if fault["type"] == "too_short" else ()
        if (fault["loc"][:-1] if fault["type"] == "missing" else fault["loc"]) not in instead:
            yield fault


def below(place: str, path: Iterable[int | str]) -> str:
    """Return a path below a place as in Kubernetes documents; names with dots are in brackets."""
    return (place + config_path("", *path).removeprefix(config_path(""))).lstrip(".")


def read_as_meant(model: type[Model], document: Document) -> tuple[Problem, ...]:
    """Move the value of a misspelt key to the empty key that it resembles, and report the spelling.

    References to it are then found, so one typo is one problem.
    """
    known = {field.alias or name for name, field in model.model_fields.items()}
    problems: list[Problem] = []
    for key in [key for key in document if key not in known]:
        near = difflib.get_close_matches(key, sorted(known), n=1)
        if near and not document.get(near[0]):
            problems.append(Problem(config_path(key), *misspelt(key, near)))
            document[near[0]] = document.pop(key)
    return tuple(problems)


def without_values(document: Document) -> tuple[Problem, ...]:
    """Remove null values below the sections, and report them as missing values."""
    problems: list[Problem] = []

    def look(value: Any, path: tuple[str | int, ...]) -> None:
        entries = list(value.items() if isinstance(value, dict) else enumerate(value))
        for step, item in entries:
            here = (*path, step)
            if isinstance(item, dict | list):
                look(item, here)
            elif item is None and isinstance(value, dict) and path:
                place = config_path(str(here[0]), *here[1:])
                problems.append(Problem(place, "it has no value", "give it one, or remove the key"))
                del value[step]

    look(document, ())
    return tuple(problems)


def misspelt(key: str, known: Iterable[str]) -> tuple[str, str]:
    """Return problem and fix for an unknown key, with the key that might be meant."""
    names = sorted(known)
    near = difflib.get_close_matches(key, names, n=1)
    fix = f"did you mean {near[0]}?" if near else f"known here: {', '.join(names)}"
    return f"unknown key {in_print(key)}, which would be ignored", fix


def in_print(name: str) -> str:
    """Return a name for messages, on one line whatever it contains."""
    return name if name.strip() and name.isprintable() else repr(name)


def nearest(name: str, names: Collection[str]) -> str:
    """Return a fix that suggests the name that might be meant."""
    near = difflib.get_close_matches(name, sorted(names), n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(names)) or 'none'}."


def _take_out(document: Document, locations: Iterable[tuple[int | str, ...]]) -> None:
    """Remove the value at each location, or the innermost entry around it; lists are removed whole."""
    gone: set[tuple[int | str, ...]] = set()
    for location in locations:
        path = tuple(takewhile(lambda step: isinstance(step, str) and step != _KEY, location))
        holders: list[Any] = [document]
        for step in path:
            if not isinstance(holders[-1], dict) or step not in holders[-1]:
                break
            holders.append(holders[-1][step])
        found = path[: len(holders) - 1]
        if not any(path[: len(removed)] == removed for removed in gone):
            del holders[-2][found[-1]]
            gone.add(found)


def explain(fault: ErrorDetails, otherwise: str = _SEE) -> tuple[str, str]:
    """Return problem and fix of a validation error, in our own words, without values."""
    context = fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return "required key is missing", f"add {fault['loc'][-1]}"
        case "greater_than" | "greater_than_equal":
            least = context["ge"] if "ge" in context else context["gt"] + 1
            return "the number is too small", f"write {least} or more"
        case "literal_error" | "enum":
            return "unknown value", f"use {context['expected']}"
        case kind if kind == CONFIG_ERROR:
            return context["problem"], context["fix"]
        case kind:
            return _PLAIN.get(kind, (f"it has an invalid form ({kind})", otherwise))


def _problem(
    fault: ErrorDetails,
    model: type[BaseModel],
    place_of: Callable[[Sequence[int | str]], str],
    otherwise: str = _SEE,
) -> Problem:
    path = [step for step in fault["loc"] if step != _KEY]
    if fault["type"] == "extra_forbidden":
        known = _known_keys(_schema(model), path[:-1])
        return Problem(place_of(path), *misspelt(str(path[-1]), known))
    return Problem(place_of(path), *explain(fault, otherwise))


@cache
def _schema(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema()


def _known_keys(schema: Mapping[str, Any], path: Iterable[int | str]) -> Iterable[str]:
    """Return the keys that a JSON Schema has at a path."""
    node: Mapping[str, Any] = schema
    for step in path:
        node = node.get("properties", {}).get(step) or node.get("additionalProperties") or node["items"]
        node = next((choice for choice in node.get("anyOf", ()) if "$ref" in choice), node)
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node["properties"].keys()
