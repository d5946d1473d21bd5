"""What a state machine of a pool's objects is made of; `policies.py` renders one as CEL for the API server.

A transition says whose virtual verb it needs, what the object holds before it and what the fields it touches
hold after it. All other fields are frozen in it. A write that is no transition is refused. The rows of
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
"""Objects that do not exist; rights on them do."""


class Verb(StrEnum):
    """A virtual verb of RBAC: what a user may do with accounts of a pool; BRING: of a tenant."""

    CLAIM = "claim"
    CLEAN = "clean"
    OPERATE = "operate"
    BRING = "bring"


Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """A part of an object: the path to it, and what CEL has where it is missing."""

    name: str
    path: tuple[str, ...]
    empty: str

    def cel(self, age: str) -> str:
        """Return the CEL of a variable that holds it; age: `old` or `new`."""
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
    """A key of a part of an object; without a key, all of the part that has no field of its own.

    fix: what a user does who may not write it.
    """

    name: str
    part: ObjectPart
    fix: str
    key: str | None = None

    @property
    def shown(self) -> str:
        """What people know it by."""
        return self.key or self.name

    def cel(self, age: str) -> str:
        """Return the variable of CEL that holds the optional text of its key; age: `old` or `new`."""
        return f"variables.{age}{self.name.title().replace('-', '')}"


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """What a field may hold: one of some texts, a text of a form, or nothing; negated: anything else."""

    texts: tuple[str, ...] = ()
    form: str | None = None
    absent: bool = False
    negated: bool = False

    def cel(self, text: str) -> str:
        """Return in CEL whether an optional text is allowed."""
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
    """Allow one of these texts."""
    return AllowedValues(texts)


@dataclass(frozen=True, slots=True)
class Condition:
    """What no single field shows: a variable of CEL about a write as a whole."""

    name: str
    cel: str


@dataclass(frozen=True, slots=True)
class Transition:
    """Who may do what to which object.

    does: in words, with the letters of the protocol. old: what fields hold before. new: which it touches, and
    what they hold after. drops: those it may leave out, as clients do that write an object whole. when: what
    holds beside. by: any of these verbs; without one, every user may.
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
    """The state machine of one kind of object of a pool.

    fix: what a user does who may not make or delete one. belongs: the CEL of whether a write concerns the
    pool at all. fields: in the order a refusal names them; where there are none, every change is judged.
    transitions: by the name of the variable of CEL. variables: further ones, which conditions read.
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
        """Return the keys of a part of the object that have fields of their own."""
        return [each.key for each in self.fields if each.part == part and each.key is not None]


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
