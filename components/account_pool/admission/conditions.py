"""What the tables of a pool's steps share: fields of all objects, conditions that no single field shows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from components.account_pool.admission.state_machine import (
    ABSENT,
    ANYTHING,
    BYTES,
    DATA,
    FINALIZERS,
    LABELS,
    LOCK,
    NOTES,
    REFERENCES,
    Among,
    Field,
    Relation,
    Step,
    Verb,
    Where,
    Write,
    one_of,
)
from components.account_pool.core.model import JsonObject, Policy
from components.labels import HYPERSCALER_TYPE, TENANT_NAME

BRING, CLAIM, CLEAN, OPERATE = Verb.BRING, Verb.CLAIM, Verb.CLEAN, Verb.OPERATE
RELEASERS: Final = (CLAIM, OPERATE)
POLICIES: Final = one_of(*(str(policy) for policy in Policy))

ASK: Final = "or ask for the verb operate on accounts.credfleet.io"
BY_CLAIMS: Final = "run `credfleet pool claim` or `credfleet pool release`"
BY_STACK: Final = f"change the stack that declares it, {ASK}"
_HANGING: Final = (
    f"it lets others delete the object, or keeps it from going and from rotating; leave it, {ASK}"
)

TYPE: Final = Field("type", LABELS, BY_STACK, HYPERSCALER_TYPE)
OWNER: Final = Field("owner", LABELS, BY_CLAIMS, TENANT_NAME)
OTHER_LABELS: Final = Field("labels", LABELS, BY_STACK)
OTHER_NOTES: Final = Field("annotations", NOTES, BY_STACK)
OTHER_DATA: Final = Field("data", DATA, BY_STACK)
OTHER_BYTES: Final = Field("binaryData", BYTES, BY_STACK)
OWNERS: Final = Field("ownerReferences", REFERENCES, _HANGING)
KEEPERS: Final = Field("finalizers", FINALIZERS, _HANGING)
LOCKED: Final = Field("immutable", LOCK, _HANGING)

HANGING: Final = (OWNERS, KEEPERS, LOCKED)


def touching(*fields: Field) -> dict[Field, Among]:
    """Return what a step that touches these fields makes of them: anything."""
    return dict.fromkeys(fields, ANYTHING)


def without(*fields: Field) -> dict[Field, Among]:
    """Return what a step that takes these fields off makes of them."""
    return dict.fromkeys(fields, ABSENT)


def text_in(where: Where, key: str, body: JsonObject | None) -> str:
    """Return the text of a key, empty where there is none."""
    return str(cast("Mapping[str, Any]", where.of(body) or {}).get(key) or "")


def number_in(text: str) -> int:
    """Return the number that a text is, else 0."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def cel_number(text: str) -> str:
    """Return `number_in` of a text in CEL."""
    return f"({text}.matches('^[0-9]{{1,18}}$') ? int({text}) : 0)"


def either(where: Where, keys: Sequence[str]) -> Relation:
    """Return whether the object has one of these keys, before or after."""
    path = ".?".join(where.path[1:])

    def holds(write: Write) -> bool:
        return any(key in (where.of(body) or {}) for body in (write.before, write.after) for key in keys)

    cel = " || ".join(
        f"({moment} != null && {list(keys)}.exists(key, key in {moment}.metadata.?{path}.orValue({{}})))"
        for moment in ("object", "oldObject")
    )
    return Relation(cel, holds)


def any_of(*relations: Relation) -> Relation:
    """Return whether one of them holds."""
    return Relation(
        " || ".join(f"({relation.cel})" for relation in relations),
        lambda write: any(relation.holds(write) for relation in relations),
    )


CEL_NAME: Final = "(object == null ? oldObject : object).metadata.name"
"""Unlike `request.name`, it is there when many are deleted at once."""


def name_of(write: Write) -> str:
    """Return the name of the object that is written."""
    return str(cast("JsonObject", write.after or write.before)["metadata"]["name"])


NAMESPACE_GOES: Final = Relation(
    "namespaceObject.metadata.?deletionTimestamp.hasValue()", lambda write: write.namespace_goes
)


def _is_collected(write: Write) -> bool:
    if write.before is None or "deletionTimestamp" not in write.before["metadata"]:
        return False
    return set(FINALIZERS.of(write.before) or ()) <= {"foregroundDeletion", "orphan"}


_COLLECTED: Final = Relation(
    "oldObject.metadata.?deletionTimestamp.hasValue()"
    " && variables.oldFinalizers.all(f, f in ['foregroundDeletion', 'orphan'])",
    _is_collected,
)
COLLECTING: Final = Step(
    "the garbage collector lets an object go that was deleted in the foreground",
    new=without(KEEPERS),
    when=(_COLLECTED,),
)


def owner_is(where: Where, key: str) -> Relation:
    """Return whether the owner's label is, after the write, that of the tenant this key names."""

    def holds(write: Write) -> bool:
        owner = text_in(LABELS, TENANT_NAME, write.after)
        return owner == text_in(where, key, write.after) or owner.startswith("enc-")

    owner = f"variables.newLabels[?'{TENANT_NAME}'].orValue('')"
    tenant = f"variables.new{where.name}[?'{key}'].orValue('')"
    return Relation(f"{owner} == {tenant} || {owner}.startsWith('enc-')", holds)


TEXT: Final = r'"(?:[^"\\]|\\.)*"'
COMPARED: Final = 500
"""How many entries are compared with each other; more are counted only, or the API server would give up."""


def json_form(entry: str) -> str:
    """Return the form of a JSON object of such entries, as the protocol writes one."""
    return f"[{{]({entry}(, {entry})*)?[}}]"


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a JSON object in a text, before and after: which came, which went, and how many."""

    where: Where
    key: str
    entry: str

    def lists(self, noun: str) -> dict[str, str]:
        """Return variables of CEL: the lists, whether they are too long to compare, what came, what went."""
        old, new = f"variables.old{noun}", f"variables.new{noun}"
        return {
            **{
                f"{age}{noun}": f"{text}.matches(r'^{json_form(self.entry)}$')"
                f" ? {text}.findAll(r'{self.entry}') : []"
                for age in ("old", "new")
                for text in [f"variables.{age}{self.where.name}[?'{self.key}'].orValue('')"]
            },
            f"many{noun}": f"{old}.size() > {COMPARED} || {new}.size() > {COMPARED}",
            f"come{noun}": f"variables.many{noun} ? [] : {new}.filter(entry, !(entry in {old}))",
            f"gone{noun}": f"variables.many{noun} ? [] : {old}.filter(entry, !(entry in {new}))",
            f"more{noun}": f"variables.many{noun} ? [{new}.size() - {old}.size(), 0].max()"
            f" : variables.come{noun}.size()",
            f"less{noun}": f"variables.many{noun} ? [{old}.size() - {new}.size(), 0].max()"
            f" : variables.gone{noun}.size()",
        }

    def of(self, body: JsonObject | None) -> dict[str, Any]:
        """Return them as JSON has them; none of a text that the protocol does not write."""
        text = text_in(self.where, self.key, body)
        return json.loads(text) if re.fullmatch(json_form(self.entry), text) else {}

    def steps(self, write: Write) -> tuple[int, int, int]:
        """Return how many there are, how many came, and how many went."""
        old, new = self.of(write.before), self.of(write.after)
        if max(len(old), len(new)) > COMPARED:
            return len(new), max(len(new) - len(old), 0), max(len(old) - len(new), 0)
        return len(new), len(new.items() - old.items()), len(old.items() - new.items())
