"""What is wrong with a document of stores, told without its values: path, cause and mend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from components.settings.document import explain, misspelt


def faults(error: ValidationError, root: type[BaseModel] | None) -> Iterator[tuple[str, str, str]]:
    """Yield every fault as path, cause and mend; root: the model that was to be read, with its fields."""
    for fault in error.errors(include_url=False, include_input=False):
        yield path_of(fault["loc"]), *_told(fault, root)


def path_of(steps: Iterable[int | str]) -> str:
    """Return a path as documents spell it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _told(fault: ErrorDetails, root: type[BaseModel] | None) -> tuple[str, str]:
    """Return the cause and the mend of a fault; neither holds a value."""
    match fault["type"]:
        case "extra_forbidden":
            return misspelt(str(fault["loc"][-1]), _fields(root, fault["loc"][:-1]))
        case "model_type" | "dict_type":
            known = [*_fields(root, fault["loc"])]
            return "it is no map of fields", f"write it as a map of {', '.join(known) or 'fields'}"
        case _:
            return explain(fault, "write it the way External Secrets Operator does")


def _fields(root: type[BaseModel] | None, path: Iterable[int | str]) -> Iterator[str]:
    """Yield the fields known at a path below a model."""
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
