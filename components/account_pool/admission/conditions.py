"""Shared parts of the pool's state machines: fields of all objects, and common conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from components.account_pool.admission.state_machine import (
    ANNOTATIONS,
    BINARY_DATA,
    DATA,
    FINALIZERS,
    IMMUTABLE,
    LABELS,
    OWNER_REFERENCES,
    Field,
    ObjectPart,
)
from components.labels import HYPERSCALER_TYPE, TENANT_NAME

_ASK: Final = "or ask for the verb operate on accounts.credfleet.io"
BY_CLAIMS: Final = "run `credfleet pool claim` or `credfleet pool release`"
BY_STACK: Final = f"change the stack that declares it, {_ASK}"
_BLOCKING: Final = (
    f"it lets others delete the object, or keeps it from going and from rotating; leave it, {_ASK}"
)

TYPE: Final = Field("type", LABELS, BY_STACK, HYPERSCALER_TYPE)
OWNER: Final = Field("owner", LABELS, BY_CLAIMS, TENANT_NAME)
OTHER_LABELS: Final = Field("labels", LABELS, BY_STACK)
OTHER_ANNOTATIONS: Final = Field("annotations", ANNOTATIONS, BY_STACK)
OTHER_DATA: Final = Field("data", DATA, BY_STACK)
OTHER_BINARY_DATA: Final = Field("binaryData", BINARY_DATA, BY_STACK)
OWNERS: Final = Field("ownerReferences", OWNER_REFERENCES, _BLOCKING)
KEEPERS: Final = Field("finalizers", FINALIZERS, _BLOCKING)
LOCKED: Final = Field("immutable", IMMUTABLE, _BLOCKING)

BLOCKING: Final = (OWNERS, KEEPERS, LOCKED)


def join_and(conditions: Iterable[str]) -> str:
    """Return a CEL conjunction, one condition per line."""
    return " &&\n".join(conditions)


def join_or(conditions: Iterable[str]) -> str:
    """Return a CEL disjunction, one condition per line."""
    return " ||\n".join(conditions)


def cel_number(text: str) -> str:
    """Return CEL that parses a string as a number, or 0."""
    return f"{text}.matches('^[0-9]{{1,18}}$') ? int({text}) : 0"


def has_any_key(part: ObjectPart, keys: Sequence[str]) -> str:
    """Return CEL for whether the object has one of these keys, before or after the write."""
    path = ".?".join(part.path[1:])
    return join_or(
        f"({moment} != null && {list(keys)}.exists(key, key in {moment}.metadata.?{path}.orValue({{}})))"
        for moment in ("object", "oldObject")
    )


CEL_NAME: Final = "(object == null ? oldObject : object).metadata.name"
"""Name of the object; unlike `request.name`, it is also set when a collection is deleted."""

TEXT: Final = r'"(?:[^"\\]|\\.)*"'
COMPARED: Final = 500
"""Most entries that are compared. Of more, only the number is checked, or the API server would give up."""


def json_form(entry: str) -> str:
    """Return the regular expression of a JSON object with such entries, as the protocol writes it."""
    return f"[{{]({entry}(, {entry})*)?[}}]"


def compare_entries(one: Field, entry: str, noun: str) -> dict[str, str]:
    """Return CEL variables with the added and removed entries of a JSON object."""
    old, new, too_many = f"variables.old{noun}", f"variables.new{noun}", f"variables.tooMany{noun}"
    return {
        **{
            f"{age}{noun}": f"{text}.matches(r'^{json_form(entry)}$')\n? {text}.findAll(r'{entry}')\n: []"
            for age in ("old", "new")
            for text in [f"{one.cel(age)}.orValue('')"]
        },
        f"tooMany{noun}": f"{old}.size() > {COMPARED} || {new}.size() > {COMPARED}",
        f"added{noun}": f"{too_many} ? [] : {new}.filter(entry, !(entry in {old}))",
        f"removed{noun}": f"{too_many} ? [] : {old}.filter(entry, !(entry in {new}))",
        f"count{noun}Added": f"{too_many}\n? [{new}.size() - {old}.size(), 0].max()\n"
        f": variables.added{noun}.size()",
        f"count{noun}Removed": f"{too_many}\n? [{old}.size() - {new}.size(), 0].max()\n"
        f": variables.removed{noun}.size()",
    }
