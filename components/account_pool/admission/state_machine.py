"""Model of the state machines of a pool's objects; `policies.py` renders them as CEL for the API server.

A transition states the virtual verb that it requires, the object's values before it, and the values of the
fields it touches after it. It freezes all other fields. A write that is no transition is denied. The rows of
`transitions.yaml` are the transitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from components.documents import read_file

VIRTUAL_GROUP: Final = "credfleet.io"
VIRTUAL_RESOURCE: Final = "accounts"
"""Resource of the virtual verbs: it has no objects, only rights on it exist."""


class Verb(StrEnum):
    """Virtual RBAC verb: what a user can do with accounts of a pool; BRING: of a tenant."""

    CLAIM = "claim"
    CLEAN = "clean"
    OPERATE = "operate"
    BRING = "bring"


Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """Part of an object: its path, and its CEL value if missing."""

    name: str
    path: tuple[str, ...]
    empty: str

    def cel(self, age: str) -> str:
        """Return the CEL of its variable; `age`: `old` or `new`."""
        moment = {"old": "oldObject", "new": "object"}[age]
        path = "".join(f".{'' if key == 'metadata' else '?'}{key}" for key in self.path)
        return f"{moment} == null ? {self.empty} : {moment}{path}.orValue({self.empty})"


LABELS: Final = ObjectPart("Labels", ("metadata", "labels"), "{}")
ANNOTATIONS: Final = ObjectPart("Annotations", ("metadata", "annotations"), "{}")
DATA: Final = ObjectPart("Data", ("data",), "{}")
BINARY_DATA: Final = ObjectPart("BinaryData", ("binaryData",), "{}")
OWNER_REFERENCES: Final = ObjectPart("OwnerReferences", ("metadata", "ownerReferences"), "[]")
FINALIZERS: Final = ObjectPart("Finalizers", ("metadata", "finalizers"), "[]")
IMMUTABLE: Final = ObjectPart("Immutable", ("immutable",), "false")


@dataclass(frozen=True, slots=True)
class Field:
    """Key of a part of an object; without a key, the rest of the part that has no field of its own.

    `fix`: advice for a user who must not write it.
    """

    name: str
    part: ObjectPart
    fix: str
    key: str | None = None

    @property
    def shown(self) -> str:
        """Name in messages."""
        return self.key or self.name

    def cel(self, age: str) -> str:
        """Return the CEL variable with the optional string of its key; `age`: `old` or `new`."""
        return f"variables.{age}{self.name.title().replace('-', '')}"


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """Allowed values of a field: listed strings, a regular expression, or absence; `negated`: all others."""

    texts: tuple[str, ...] = ()
    form: str | None = None
    absent: bool = False
    negated: bool = False

    def cel(self, text: str) -> str:
        """Return CEL for whether an optional string is allowed."""
        if self == PRESENT:
            return f"{text}.orValue('') != ''"
        if self.form is not None:
            matches = f"{text}.orValue('').matches(r'^(?:{self.form})$')"
            allowed = f"(!{text}.hasValue() || {matches})" if self.absent else matches
            return f"!{allowed}" if self.negated else allowed
        if not self.texts:
            return f"{text}.hasValue()" if self.negated else f"!{text}.hasValue()"
        value = f"{text}.orValue('{self.texts[0] if self.absent else ''}')"
        if len(self.texts) == 1:
            return f"{value} {'!=' if self.negated else '=='} '{self.texts[0]}'"
        allowed = f"{value} in {[str(each) for each in self.texts]}"
        return f"!({allowed})" if self.negated else allowed


ANYTHING: Final = AllowedValues(negated=True)
ABSENT: Final = AllowedValues(absent=True)
PRESENT: Final = AllowedValues(form=r"(?s).+")


def one_of(*texts: str) -> AllowedValues:
    """Allow one of these strings."""
    return AllowedValues(texts)


@dataclass(frozen=True, slots=True)
class Condition:
    """CEL variable about a write as a whole, for what no single field shows."""

    name: str
    cel: str


@dataclass(frozen=True, slots=True)
class Transition:
    """Allowed write of an object, and the users that can make it.

    `does`: description, with the letters of the protocol. `old`: required values before. `new`: touched
    fields, and their values after. `drops`: fields that can be omitted, as by clients that replace a whole
    object. `when`: further conditions. `by`: sufficient verbs; empty means every user.
    """

    does: str
    old: Mapping[Field, AllowedValues] = field(default_factory=dict[Field, AllowedValues])
    new: Mapping[Field, AllowedValues] = field(default_factory=dict[Field, AllowedValues])
    drops: tuple[Field, ...] = ()
    when: tuple[Condition, ...] = ()
    on: Operation = "UPDATE"
    by: tuple[Verb, ...] = ()


@dataclass(frozen=True, slots=True)
class StateMachine:
    """State machine of one kind of object of a pool.

    `fix`: advice for a user who must not create or delete one. `belongs`: CEL for whether a write concerns
    the pool. `fields`: in the order of denials; if empty, every change is judged. `transitions`: by the name
    of their CEL variable. `variables`: further ones that conditions use.
    """

    name: str
    noun: str
    resource: str
    fix: str
    belongs: str
    fields: tuple[Field, ...]
    transitions: Mapping[str, Transition]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def keys(self, part: ObjectPart) -> list[str]:
        """Return the keys of a part of the object that have their own fields."""
        return [each.key for each in self.fields if each.part == part and each.key is not None]


_FILE: Final = Path(__file__).with_name("transitions.yaml")
PART: Final = "part-"
"""Prefix of the names of the fields that partition a pool; transitions.yaml calls them `parts`."""


@cache
def _table() -> Mapping[str, Any]:
    return read_file(_FILE).data


def find_condition(name: str) -> Condition:
    """Return a condition of the table."""
    return Condition(name, _table()["conditions"][name])


def list_transitions(
    section: str, fields: Sequence[Field], *own: Condition, forms: Mapping[str, str] | None = None
) -> dict[str, Transition]:
    """Return the transitions of a section. `own`, `forms`: conditions and forms not in the table."""
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
    """Return the values of a readable record's fields."""
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
    """Parse `anything`, or strings, forms and `absent` separated by bars, optionally after `not`."""
    if text == "anything":
        return ANYTHING
    names = text.removeprefix("not ").split("|")
    return AllowedValues(
        tuple(name for name in names if name not in forms and name != "absent"),
        next((forms[name] for name in names if name in forms), None),
        "absent" in names,
        text.startswith("not "),
    )
