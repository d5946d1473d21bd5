"""What a row of a pool's state machine is, and its tables in Python; `admission.py` folds them into CEL.

A row is a step: whose virtual verb it needs, what the object has to be before it, what the fields it touches
become. Every field that a row does not name is frozen in it, and a write that no row allows is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias, cast

from components.account_pool.core.model import JsonObject

VIRTUAL_GROUP: Final = "credfleet.io"
VIRTUAL_RESOURCE: Final = "accounts"
"""Objects that do not exist; rights on them do."""


class Verb(StrEnum):
    """A virtual verb of RBAC: what somebody may do with accounts of a pool; BRING: of a tenant."""

    CLAIM = "claim"
    CLEAN = "clean"
    OPERATE = "operate"
    BRING = "bring"


Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class Where:
    """A part of an object: the path to it, and what CEL has where nothing is."""

    name: str
    path: tuple[str, ...]
    empty: str

    def of(self, body: JsonObject | None) -> Any:
        """Return what is there; None when nothing is."""
        found: Any = body
        for key in self.path:
            found = cast("JsonObject", found or {}).get(key)
        return found or None

    def cel(self, age: str) -> str:
        """Return the CEL of a variable that holds it; age: `old` or `new`."""
        moment = {"old": "oldObject", "new": "object"}[age]
        path = "".join(f".{'' if key == 'metadata' else '?'}{key}" for key in self.path)
        return f"{moment} == null ? {self.empty} : {moment}{path}.orValue({self.empty})"


LABELS: Final = Where("Labels", ("metadata", "labels"), "{}")
NOTES: Final = Where("Notes", ("metadata", "annotations"), "{}")
DATA: Final = Where("Data", ("data",), "{}")
BYTES: Final = Where("Bytes", ("binaryData",), "{}")
REFERENCES: Final = Where("References", ("metadata", "ownerReferences"), "[]")
FINALIZERS: Final = Where("Finalizers", ("metadata", "finalizers"), "[]")
LOCK: Final = Where("Lock", ("immutable",), "false")


@dataclass(frozen=True, slots=True)
class Field:
    """One thing a step can touch: a key of a part of an object, or whatever has no field of its own there.

    mend: what somebody does who may not write it.
    """

    name: str
    where: Where
    mend: str
    key: str | None = None

    @property
    def shown(self) -> str:
        """What people know it by."""
        return self.key or self.name


@dataclass(frozen=True, slots=True)
class Among:
    """What a field may hold: one of some texts, a text of a form, or nothing; or, negated, anything else."""

    texts: tuple[str, ...] = ()
    form: str | None = None
    absent: bool = False
    negated: bool = False

    def holds(self, text: str | None) -> bool:
        """Whether a field with this text, or without one, is meant."""
        if text is None:
            return self.absent != self.negated
        is_of_form = self.form is not None and re.fullmatch(self.form, text) is not None
        return (text in self.texts or is_of_form) != self.negated

    def cel(self, text: str) -> str:
        """Return the same about an optional text in CEL."""
        ways = [
            *([f"!{text}.hasValue()"] if self.absent else []),
            *([f"{text}.orValue('') in {[str(one) for one in self.texts]}"] if self.texts else []),
            *([f"{text}.orValue('').matches(r'^(?:{self.form})$')"] if self.form else []),
        ]
        return f"{'!' if self.negated else ''}({' || '.join(ways)})"


ANYTHING: Final = Among(negated=True)
ABSENT: Final = Among(absent=True)
PRESENT: Final = Among(form=r"(?s).+")


def one_of(*texts: str) -> Among:
    """Return what holds one of these texts."""
    return Among(texts)


@dataclass(frozen=True, slots=True)
class Write:
    """A request to the API server; before or after is None where there is no object.

    verbs: virtual ones of who asks, BRING if for the tenant whose label the object bears after it.
    namespace_goes: its namespace is being deleted.
    """

    before: JsonObject | None
    after: JsonObject | None
    verbs: frozenset[Verb] = frozenset()
    user: str = ""
    namespace_goes: bool = False

    @property
    def on(self) -> Operation:
        """What it does to the object."""
        if self.before is None:
            return "CREATE"
        return "DELETE" if self.after is None else "UPDATE"


@dataclass(frozen=True, slots=True)
class Relation:
    """What no single field shows: a condition on a write as a whole, in CEL and in Python."""

    cel: str
    holds: Callable[[Write], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """A row: who may do what to which object.

    does: in words, with the letters of the protocol. by: any of these verbs; without one it is anybody's.
    old: what fields hold before. new: which it touches, and what they then hold. drops: those it may leave
    out, as whoever writes an object whole does. when: what holds beside.
    """

    does: str
    by: tuple[Verb, ...] = ()
    old: Mapping[Field, Among] = field(default_factory=dict[Field, Among])
    new: Mapping[Field, Among] = field(default_factory=dict[Field, Among])
    drops: tuple[Field, ...] = ()
    when: tuple[Relation, ...] = ()
    on: Operation = "UPDATE"


@dataclass(frozen=True, slots=True)
class Table:
    """The state machine of one kind of object of a pool.

    mend: what somebody does who may not make or delete one. belongs: whether a write concerns the pool at
    all. fields: in the order a refusal names them; where there are none, no change goes without a row. lists:
    variables of CEL that relations read.
    """

    name: str
    noun: str
    resource: str
    mend: str
    belongs: Relation
    fields: tuple[Field, ...]
    steps: tuple[Step, ...]
    lists: Mapping[str, str] = field(default_factory=dict[str, str])

    def keys(self, where: Where) -> list[str]:
        """Return the keys of a part of the object that have fields of their own."""
        return [one.key for one in self.fields if one.where == where and one.key is not None]

    def text(self, one: Field, body: JsonObject | None) -> str | None:
        """Return what a field holds; of one without a key the JSON of all it stands for."""
        found = one.where.of(body)
        if one.key is not None:
            return cast("Mapping[str, str]", found or {}).get(one.key)
        if isinstance(found, dict):
            keys = self.keys(one.where)
            found = {key: text for key, text in cast("JsonObject", found).items() if key not in keys}
        return json.dumps(found, sort_keys=True) if found else None

    def changed(self, write: Write) -> frozenset[Field]:
        """Return the fields that are not as they were."""
        return frozenset(f for f in self.fields if self.text(f, write.before) != self.text(f, write.after))

    def steps_of(self, write: Write) -> Iterator[Step]:
        """Yield the rows that allow a write."""
        changed = self.changed(write)
        for step in self.steps:
            touched = changed <= step.new.keys() | set(step.drops) or write.on == "DELETE"
            if (
                step.on == write.on
                and touched
                and (not step.by or write.verbs & set(step.by))
                and all(among.holds(self.text(f, write.before)) for f, among in step.old.items())
                and all(among.holds(self.text(f, write.after)) for f, among in step.new.items())
                and all(self.text(f, write.after) is None for f in changed & set(step.drops))
                and all(relation.holds(write) for relation in step.when)
            ):
                yield step


def allows(table: Table, write: Write) -> bool:
    """Whether a write breaks nothing: it is none of the pool's business, changes nothing, or is a step."""
    if not table.belongs.holds(write) or (write.on == "UPDATE" and table.fields and not table.changed(write)):
        return True
    return any(table.steps_of(write))
