"""What is wrong with a document of stores, told without its values: path, cause and mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_PLAIN: Final = {
    "string_type": (
        "it is no text: YAML takes digits, true and false for something else",
        "write it in quotes",
    ),
    "too_short": ("it is empty", "add one"),
}


def faults(error: ValidationError, root: type[BaseModel] | None) -> Iterator[tuple[str, str, str]]:
    """Tell every fault as path, cause and mend; root: the model that was to be read, for its known fields."""
    for fault in error.errors(include_url=False, include_input=False):
        yield path_of(fault["loc"]), *_told(fault, root)


def path_of(steps: Iterable[int | str]) -> str:
    """Write a path as documents spell it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _told(fault: ErrorDetails, root: type[BaseModel] | None) -> tuple[str, str]:
    """Tell the cause and the mend of a fault; neither holds a value."""
    match fault["type"]:
        case "extra_forbidden":
            known = sorted(_fields(root, fault["loc"][:-1]))
            key = str(fault["loc"][-1])
            near = difflib.get_close_matches(key, known, n=1)
            return (
                f"{key} is not a known field, so it would be ignored without a word",
                f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}",
            )
        case "missing":
            return "it is missing, and nothing can stand in for it", f"add {fault['loc'][-1]}"
        case "literal_error":
            return "it is none of the words known here", f"use {fault.get('ctx', {})['expected']}"
        case "model_type" | "dict_type":
            known = [*_fields(root, fault["loc"])]
            return "it is no map of fields", f"write it as a map of {', '.join(known) or 'fields'}"
        case "unfit":
            context = fault.get("ctx", {})
            return context["cause"], context["mend"]
        case other:
            return _PLAIN.get(other, (fault["msg"], "write it the way External Secrets Operator does"))


def _fields(root: type[BaseModel] | None, path: Iterable[int | str]) -> Iterator[str]:
    """List the fields known at a path below a model."""
    model = root
    for step in path:
        if isinstance(step, str) and model is not None:
            fields = model.model_fields.items()
            annotation = next((f.annotation for name, f in fields if step in (f.alias, name)), None)
            model = _model_in(annotation)
    if model is not None:
        yield from (each.alias or name for name, each in model.model_fields.items())


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
