"""What the state machines of a pool allow, in Python: an oracle beside the CEL that the API server runs.

It reads the tables' rows; what their conditions mean stands here a second time, by the conditions' names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from components.account_pool.admission.conditions import COMPARED
from components.account_pool.admission.record_transitions import FIELDS
from components.account_pool.admission.state_machine import (
    AllowedValues,
    Field,
    ObjectPart,
    Operation,
    StateMachine,
    Transition,
    Verb,
    list_readable,
)
from components.account_pool.core import keys
from components.account_pool.core.audit import COMPONENT
from components.account_pool.core.config_map import CONFIG_MAP
from components.account_pool.core.model import JsonObject
from components.labels import HYPERSCALER_TYPE, TENANT_NAME


@dataclass(frozen=True, slots=True)
class Write:
    """A request to the API server; before or after is None where there is no object.

    verbs: virtual ones of the user, BRING if for the tenant whose label the object bears after it.
    """

    before: JsonObject | None
    after: JsonObject | None
    verbs: frozenset[Verb] = frozenset()
    user: str = ""

    @property
    def on(self) -> Operation:
        """What it does to the object."""
        if self.before is None:
            return "CREATE"
        return "DELETE" if self.after is None else "UPDATE"

    @property
    def name(self) -> str:
        return str(cast("JsonObject", self.after or self.before)["metadata"]["name"])


def part_of(body: JsonObject | None, part: ObjectPart) -> Any:
    """Return a part of an object; None when it is missing or empty."""
    found: Any = body
    for key in part.path:
        found = cast("JsonObject", found or {}).get(key)
    return found or None


def text_of(machine: StateMachine, one: Field, body: JsonObject | None) -> str | None:
    """Return what a field holds; of one without a key the JSON of all it stands for."""
    found = part_of(body, one.part)
    if one.key is not None:
        return cast("Mapping[str, str]", found or {}).get(one.key)
    if isinstance(found, dict):
        own = machine.keys(one.part)
        found = {key: text for key, text in cast("JsonObject", found).items() if key not in own}
    return json.dumps(found, sort_keys=True) if found else None


def permits(values: AllowedValues, text: str | None) -> bool:
    """Whether a field may hold this text, or be absent."""
    if text is None:
        return values.absent != values.negated
    is_of_form = values.form is not None and re.fullmatch(values.form, text) is not None
    return (text in values.texts or is_of_form) != values.negated


def allows(machine: StateMachine, write: Write) -> bool:
    """Whether a write is a transition, changes nothing, or does not concern the pool."""
    changed = {
        one
        for one in machine.fields
        if text_of(machine, one, write.before) != text_of(machine, one, write.after)
    }
    bodies = [body for body in (write.before, write.after) if body is not None]
    if not any(_BELONGS[machine.name](write.name, body) for body in bodies) or (
        write.on == "UPDATE" and machine.fields and not changed
    ):
        return True
    return any(_is_made(machine, each, write, changed) for each in machine.transitions.values())


def _is_made(machine: StateMachine, transition: Transition, write: Write, changed: set[Field]) -> bool:
    touched = changed <= transition.new.keys() | set(transition.drops) or write.on == "DELETE"
    return (
        transition.on == write.on
        and touched
        and (not transition.by or bool(write.verbs & set(transition.by)))
        and all(permits(values, text_of(machine, f, write.before)) for f, values in transition.old.items())
        and all(permits(values, text_of(machine, f, write.after)) for f, values in transition.new.items())
        and all(text_of(machine, f, write.after) is None for f in changed & set(transition.drops))
        and all(holds(machine, condition.name, write) for condition in transition.when)
    )


class _Change:
    """What a write makes of the fields of an object, by their names."""

    def __init__(self, machine: StateMachine, write: Write) -> None:
        self.write = write
        self._machine = machine

    def old(self, name: str) -> str | None:
        return self._text(name, self.write.before)

    def new(self, name: str) -> str | None:
        return self._text(name, self.write.after)

    def numbers(self, name: str) -> tuple[int, int]:
        """Return the numbers that a field holds before and after, 0 for what is none."""
        texts = (self.old(name) or "", self.new(name) or "")
        old, new = (int(text) if re.fullmatch("[0-9]{1,18}", text) else 0 for text in texts)
        return old, new

    def entries(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the JSON objects of a field; empty where it holds what the protocol does not write."""
        form = _ENTRIES[name]
        old, new = (
            json.loads(text) if text and re.fullmatch(rf"{{(?:{form}(?:, {form})*)?}}", text) else {}
            for text in (self.old(name), self.new(name))
        )
        return old, new

    def counts(self, name: str) -> tuple[int, int]:
        """Return how many entries came and went; of very many, how many there are more or fewer."""
        old, new = self.entries(name)
        if max(len(old), len(new)) > COMPARED:
            return max(len(new) - len(old), 0), max(len(old) - len(new), 0)
        return len(new.items() - old.items()), len(old.items() - new.items())

    def _text(self, name: str, body: JsonObject | None) -> str | None:
        (one,) = (each for each in self._machine.fields if each.name == name)
        return text_of(self._machine, one, body)


RENEWED: Final = ("aws",)
"""Types of the tests' accounts that get a new key between tenants, where a pool wants that."""
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_ENTRIES: Final = {"places": rf'"claim-[^"\\]*": {_QUOTED}', "holders": rf"{_QUOTED}: [0-9]{{1,18}}"}


_MARKS: Final = {keys.POOL_STATE, TENANT_NAME, HYPERSCALER_TYPE}
_TRACES: Final = {
    *(keys.CLAIM_TOKEN, keys.CLAIM_ORIGIN, keys.SHARED_CLAIMS, keys.CLEANING_TOKEN, keys.STATE_BEFORE),
    keys.KEY_ID,
}


def _bears(body: JsonObject, labels: set[str], annotations: Collection[str] = ()) -> bool:
    metadata = body["metadata"]
    return bool(
        labels & {*(metadata.get("labels") or ())} or {*annotations} & {*(metadata.get("annotations") or ())}
    )


_BELONGS: Final[Mapping[str, Callable[[str, JsonObject], bool]]] = {
    "members": lambda name, body: name.endswith(".other-key") or _bears(body, _MARKS, _TRACES),
    "records": lambda name, body: name.startswith("claim-") or _bears(body, {keys.POOL_RECORD}),
    "settings": lambda name, _: name == CONFIG_MAP,
    "events": lambda _, body: (
        COMPONENT in (body.get("reportingComponent"), (body.get("source") or {}).get("component"))
    ),
    "quotas": lambda name, body: name.startswith("quota-") or _bears(body, {keys.POOL_QUOTA}),
}
"""Whether an object belongs to the pool; a write does that concerns one before or after it."""


def _is_collected(change: _Change) -> bool:
    metadata = cast("JsonObject", change.write.before)["metadata"]
    keepers = set(cast("list[str]", metadata.get("finalizers") or []))
    return "deletionTimestamp" in metadata and keepers <= {"foregroundDeletion", "orphan"}


def _owner_is_the_tenant(change: _Change) -> bool:
    owner = change.new("owner") or ""
    return owner == (change.new("tenant") or "") or owner.startswith("enc-")


def _is_cleaner_the_same(change: _Change) -> bool:
    old, new = ((text or "").rpartition("/") for text in (change.old("cleaning"), change.new("cleaning")))
    return old[1] == "/" and old[0] == new[0]


def _has_room(change: _Change) -> bool:
    return len(change.entries("places")[1]) <= change.numbers("capacity")[1]


def _is_unreadable(change: _Change) -> bool:
    return not all(permits(values, change.old(one.name)) for one, values in list_readable(FIELDS).items())


def _are_leavers_remembered(change: _Change) -> bool:
    (old, new), (before, after) = change.entries("holders"), change.numbers("retired")
    if max(len(old), len(new)) > COMPARED:
        return after >= before
    return after == max([before, *(number for holder, number in old.items() if holder not in new)])


def _is_numbered_next(change: _Change) -> bool:
    (old, new), (_, retired) = change.entries("holders"), change.numbers("retired")
    added = {holder: number for holder, number in new.items() if old.get(holder) != number}
    is_compared = max(len(old), len(new)) <= COMPARED
    return not is_compared or all(n == 1 + max(retired, old.get(holder, 0)) for holder, n in added.items())


def _is_within_limit(change: _Change) -> bool:
    limit, (added, removed) = change.new("limit"), change.counts("holders")
    is_as_before = limit == change.old("limit") and added <= removed
    return limit is None or is_as_before or len(change.entries("holders")[1]) <= change.numbers("limit")[1]


def _holds_own_uid(change: _Change, name: str) -> bool:
    return (change.new(name) or "") == cast("JsonObject", change.write.before)["metadata"]["uid"]


def _after(change: _Change) -> JsonObject:
    return cast("JsonObject", change.write.after)


CONDITIONS: Final[Mapping[str, Callable[[_Change], bool]]] = {
    "namespaceIsBeingDeleted": lambda _: False,
    "onlyTheGarbageCollectorKeepsIt": _is_collected,
    "ownerIsTheTenant": _owner_is_the_tenant,
    "ownerWasNotTheTenant": lambda change: (change.old("owner") or "") != (change.old("tenant") or ""),
    "ownerStaysOrIsPutBack": lambda change: (
        change.old("owner") == change.new("owner")
        or (change.old("owner") is None and _owner_is_the_tenant(change))
    ),
    "isNamedAsBrought": lambda change: change.write.name.startswith("brought-"),
    "cleanerIsTheSame": _is_cleaner_the_same,
    "credentialStaysDuringRotation": lambda change: (
        change.old("key-phase") is None or change.old("data") == change.new("data")
    ),
    "credentialAndItsKeyDiffer": lambda change: (
        change.old("key-id") != change.new("key-id") and change.old("data") != change.new("data")
    ),
    "credentialStaysOnceChanged": lambda change: (
        change.old("key-changed") is None or change.old("data") == change.new("data")
    ),
    "keyIsChangedInThisCleaning": lambda change: change.new("key-changed") == change.old("cleaning"),
    "isNamedAsOtherKey": lambda change: change.write.name.endswith(".other-key"),
    "isFreedWithAnotherKey": lambda change: (
        (change.old("type") or "").partition("_")[0] not in RENEWED
        or change.new("owner") is not None
        or (
            change.old("key-changed") is not None
            and change.old("key-changed") == change.old("cleaning")
            and change.old("key-phase") is None
        )
    ),
    "hasRoom": _has_room,
    "capacityStaysOrSuffices": lambda change: (
        change.old("capacity") == change.new("capacity") or _has_room(change)
    ),
    "takesOnePlace": lambda change: change.counts("places") == (1, 0),
    "leavesOnePlace": lambda change: change.counts("places") == (0, 1),
    "movesThePlaceItNames": lambda change: (
        change.counts("places") == (1, 1)
        and {*change.entries("places")[0]} - {*change.entries("places")[1]} <= {change.new("former")}
    ),
    "namesTheTokenItHad": lambda change: change.new("former") == change.old("token"),
    "bindsOnePlace": lambda change: change.counts("places") in ((1, 0), (1, 1)),
    "nameIsADigest": lambda change: re.fullmatch("claim-[0-9a-f]{40}", change.write.name) is not None,
    "isUnreadable": _is_unreadable,
    "isTheNextAttempt": lambda change: change.numbers("attempt")[1] == change.numbers("attempt")[0] + 1,
    "changesOneHolder": lambda change: max(change.counts("holders")) <= 1,
    "remembersNumbersOfLeavers": _are_leavers_remembered,
    "newHolderHasTheNextNumber": _is_numbered_next,
    "isWithinLimit": _is_within_limit,
    "signsWithItsUid": lambda change: _holds_own_uid(change, "signature"),
    "countsInTheQuotaItself": lambda change: _holds_own_uid(change, "counted"),
    "isSignedByItsWriter": lambda change: _after(change).get("reportingInstance", "") == change.write.user,
    "reasonBelongsToClaims": lambda change: (
        _after(change).get("reason") in ("Claimed", "ClaimRefused", "Released")
    ),
    "reasonBelongsToCleaning": lambda change: _after(change).get("reason") == "Cleaned",
}


def holds(machine: StateMachine, condition: str, write: Write) -> bool:
    """Whether a condition of the tables holds; one that is not said here is an error."""
    return CONDITIONS[condition](_Change(machine, write))
