"""The table of what may be written in a pool, `transitions.yaml`, as its state machines have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from components.account_pool.admission.state_machine import (
    ANYTHING,
    AllowedValues,
    Condition,
    Field,
    Transition,
    Verb,
)
from components.documents import read_file

_FILE: Final = Path(__file__).with_name("transitions.yaml")
PART: Final = "part-"
"""How the names of fields begin that divide a pool; the table calls them `parts`."""


@cache
def _table() -> Mapping[str, Any]:
    return read_file(_FILE).data


def find_condition(name: str) -> Condition:
    """Return a condition of the table."""
    return Condition(name, _table()["conditions"][name])


def list_transitions(
    section: str, fields: Sequence[Field], *own: Condition, forms: Mapping[str, str] | None = None
) -> dict[str, Transition]:
    """Return the transitions of a section. own, forms: conditions and forms that are not in the table."""
    known = {**_table()["forms"], **(forms or {})}
    named = {each.name: each for each in own}

    def read(row: Mapping[str, Any]) -> Transition:
        return Transition(
            row["does"],
            _values(row.get("old", {}), fields, known),
            _values(row.get("new", {}), fields, known),
            tuple(_fields(row["drops"], fields)) if "drops" in row else (),
            tuple(named.get(name) or find_condition(name) for name in row.get("when", ())),
            row.get("operation", "UPDATE"),
            tuple(map(Verb, row.get("by", ()))),
        )

    return {name: read(row) for name, row in _table()[section].items()}


def list_readable(fields: Sequence[Field]) -> Mapping[Field, AllowedValues]:
    """Return what the fields of a record hold that can be read."""
    return _values(_table()["readable"], fields, _table()["forms"])


def _values(
    row: Mapping[str, str], fields: Sequence[Field], forms: Mapping[str, str]
) -> dict[Field, AllowedValues]:
    return {one: _allowed(text, forms) for name, text in row.items() for one in _fields(name, fields)}


def _fields(name: str, fields: Iterable[Field]) -> Iterator[Field]:
    """Yield the field of this name, or those of this group."""
    for each in _table()["groups"].get(name, (name,)):
        if each == "all":
            yield from fields
        elif each == "parts":
            yield from (one for one in fields if one.name.startswith(PART))
        else:
            yield next(one for one in fields if one.name == each)


def _allowed(text: str, forms: Mapping[str, str]) -> AllowedValues:
    """Read `anything`, or texts, forms and `absent` between bars, behind `not` where all else is allowed."""
    if text == "anything":
        return ANYTHING
    names = text.removeprefix("not ").split("|")
    return AllowedValues(
        tuple(name for name in names if name not in forms and name != "absent"),
        next((forms[name] for name in names if name in forms), None),
        "absent" in names,
        text.startswith("not "),
    )
