"""Writes to the objects of a pool, allowed and not: pairs of (before, after), drawn from a state machine.

Half of the pairs are a transition as it is; in the others, one or two fields more hold anything.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Final

from components.account_pool.admission import conditions, state_machine, transitions
from components.account_pool.admission.state_machine import (
    ANYTHING,
    AllowedValues,
    Field,
    ObjectPart,
    StateMachine,
    Transition,
)
from components.account_pool.core.config_map import POOL_UID, PoolConfigMap
from components.account_pool.core.keys import POOL_RECORD, POOL_STATE, STATE_BEFORE
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import JsonObject
from tests.support.admission_twin import RENEWED, Write, part_of, permits, text_of

UID: Final = "00000000-0000-4000-8000-000000000000"
TOKENS: Final = tuple(f"claim-{number}.{UID}.{number}" for number in (1, 2))

_HOLDERS: Final = ({}, {"h": 1}, {"h": 2}, {"h": 1, "i": 1}, {"i": 2}, {"i": 3}, {'"': 1, "h": 1, "i": 4})
_PLACES: Final = ({}, *({token: "0" for token in TOKENS[:count]} for count in (1, 2)), {TOKENS[1]: '"x": '})
_COUNTS: Final = (None, "1", "2", "3")

OWN_UID: Final = "{uid}"
"""Stands for the uid of the object itself, which nobody knows before it is there."""

DOMAINS: Final[Mapping[str, tuple[Any, ...]]] = {
    "type": ("aws", None, "gcp", ""),
    "owner": (None, "acme", "globex", "enc-abc", ""),
    "state": (None, "dirty", "cleaning", "quarantined", "Dirty", ""),
    "sharing": (None, "true", "false"),
    "kept-back": (None, "true"),
    "part-0": (None, "true", "false"),
    "token": (None, *TOKENS, "garbage", ""),
    "origin": (None, "pool", "owner", "retained", ""),
    "places": (None, *(json.dumps(each, sort_keys=True) for each in _PLACES), "garbage", "[]"),
    "cleaning": (None, "janitor/1", "janitor/2", "other/1", "x"),
    "reason": (None, "odd bills"),
    "before": (None, "dirty", "decommissioned", "leaving"),
    "again": (None, "true"),
    "cut": (None, "true"),
    "freed": (None, "cleaned", "released"),
    "key-phase": (None, "preparing", "prepared", "delivered", "completing"),
    "key-operation": (None, "rotation/1", "rotation/2"),
    "key-id": (None, "k1", "k2"),
    "key-reason": (None, "rejected"),
    "key-replaced": (None, "0123"),
    "key-changed": (None, "janitor/1", "janitor/2"),
    "receipts": (None, '{"h": "1"}'),
    "capacity": (None, "1", "2", "x"),
    "account": (None, "1", "2"),
    "expires": (None, "2027-01-31"),
    "brought": (None, "true"),
    "mark": ("true", None, "false"),
    "partition": (
        "!eu-access,hyperscaler-type=aws",
        "eu-access=true,hyperscaler-type=aws",
        "credfleet.io/shared=true,!eu-access,hyperscaler-type=aws",
        "hyperscaler-type=aws",
        None,
    ),
    "slot": ("0", "1", None),
    "member": ("aws-1", "aws-2", None),
    "member-uid": (UID, "u-2", None),
    "attempt": ("1", "2", "3", "x", None),
    "phase": ("Pending", "Bound", "Releasing", "Done", None),
    "limit": (*_COUNTS, "x"),
    "holders": (*(json.dumps(each, sort_keys=True) for each in _HOLDERS), "garbage", '{"h": "1"}', None),
    "retired": (*_COUNTS, "-1"),
    "states": (None, '{"h": "state-1"}', "garbage"),
    "former-uid": (None, "u-0"),
    "former": (None, *TOKENS),
    "moves": (None, TOKENS[0], "garbage"),
    "signature": (None, OWN_UID, "another"),
}
_POLICIES: Final = ("release", "retain", "clean", "quarantine", "forget", None)
_TENANTS: Final = ("acme", "globex", "A tenant", None)
_REST: Final[Mapping[ObjectPart, tuple[Any, ...]]] = {
    state_machine.LABELS: ({}, {"note": "x"}, {"dirty": "true"}, {"dirty": "false"}),
    state_machine.ANNOTATIONS: ({}, {"note": "x"}, {"note": "y", "other": ""}),
    state_machine.DATA: ({}, {"key": "c2VjcmV0"}, {"key": "bmV3"}),
    state_machine.BINARY_DATA: (None, {"bytes": "eA=="}),
    state_machine.FINALIZERS: (None, ["example.com/kept"], ["foregroundDeletion"]),
    state_machine.IMMUTABLE: (None, True),
}
_DECLARED: Final = PoolConfigMap(("eu-access",)).render()
_SAID: Final[tuple[Mapping[str, str], ...]] = (
    _DECLARED,
    *(
        {key: text for key, text in {**_DECLARED, **changed}.items() if text}
        for changed in (
            {"partitionKeys": "[]"},
            {"partitionKeys": ""},
            {"releasePolicy": "release"},
            {"limits": '{"aws": 1}'},
            {"labels": '{"type": "hyperscalerType"}'},
            {"sharedCapacity": "2"},
            {"hold": "why"},
            {"formatVersion": "2"},
            {"note": "x"},
        )
    ),
    {},
)
"""What a pool's settings may say, beside the signature."""


def choices(machine: StateMachine, one: Field, owner: JsonObject) -> tuple[Any, ...]:
    """Return what a field is tried with; owner: an owner reference to what is there."""
    if one.part == state_machine.OWNER_REFERENCES:
        return None, [owner]
    if machine.name == "settings" and one == conditions.OTHER_DATA:
        return _SAID
    if one.key is None:
        return _REST[one.part]
    if one.name == "policy":
        return _POLICIES
    return _TENANTS if one.name == "tenant" else DOMAINS[one.name]


def put(body: JsonObject, machine: StateMachine, one: Field, value: Any) -> None:
    """Write a field into an object."""
    *path, last = one.part.path
    place = body
    for key in path:
        place = place.setdefault(key, {})
    if one.key is not None:
        texts = place.setdefault(last, {})
        texts.pop(one.key, None)
        if value is not None:
            texts[one.key] = value
    elif isinstance(value, dict):
        kept = {key: text for key, text in place.get(last, {}).items() if key in machine.keys(one.part)}
        place[last] = {**kept, **value}
    elif value is None:
        place.pop(last, None)
    else:
        place[last] = value


class Drawing:
    """Draws writes to the objects of one state machine; the same ones for the same seed."""

    def __init__(self, machine: StateMachine, seed: int, owner: JsonObject) -> None:
        self._machine = machine
        self._owner = owner
        self._random = random.Random(seed)

    def body(self, name: str) -> JsonObject:
        """Draw an object as some transition finds it, with up to two fields of anything."""
        body: JsonObject = {"metadata": {"name": name}}
        if self._machine.name == "records":
            body["metadata"]["labels"] = {POOL_RECORD: "true"}
        rows = self._machine.transitions.values()
        found = self._random.choice([row for row in rows if row.on != "CREATE"])
        made = self._random.choice([row for row in rows if row.on == "CREATE"])
        for one in self._machine.fields:
            self._draw(body, one, found.old.get(one, made.new.get(one, ANYTHING)), usual=0.7)
        self._disturb(body, self._random.choice((0, 0, 1, 2)))
        return body

    def changes(self, before: JsonObject, count: int) -> Iterator[JsonObject]:
        """Draw what an object may be after a write: a transition that fits, or something beside it."""
        rows = self._machine.transitions.values()
        found = [row for row in rows if row.on == "UPDATE" and self._fits(row, before)]
        for _ in range(count):
            after = copy.deepcopy(before)
            for one, allowed in self._random.choice(found).new.items():
                if allowed != ANYTHING or self._random.random() < 0.2:
                    self._draw(after, one, allowed, usual=0)
            self._disturb(after, self._random.choice((0, 0, 0, 1, 2)))
            yield signed(after)

    def pairs(self, before: JsonObject) -> Iterator[JsonObject]:
        """Yield an object with each other combination of what its data may hold, all else as it was."""
        of_data = [one for one in self._machine.fields if one.part == state_machine.DATA]
        for values in product(*(choices(self._machine, one, self._owner) for one in of_data)):
            after = copy.deepcopy(before)
            for one, value in zip(of_data, values, strict=True):
                put(after, self._machine, one, value)
            yield signed(after)

    def _fits(self, row: Transition, before: JsonObject) -> bool:
        return all(permits(values, text_of(self._machine, one, before)) for one, values in row.old.items())

    def _disturb(self, body: JsonObject, count: int) -> None:
        for one in self._random.sample(self._machine.fields, count):
            put(body, self._machine, one, self._random.choice(choices(self._machine, one, self._owner)))

    def _draw(self, body: JsonObject, one: Field, allowed: AllowedValues, *, usual: float) -> None:
        values = choices(self._machine, one, self._owner)
        if allowed == ANYTHING:
            value = values[0] if self._random.random() < usual else self._random.choice(values)
        elif one.key is None:
            value = None if one.part.empty != "{}" else {}
        else:
            value = self._random.choice([text for text in values if permits(allowed, text)])
        put(body, self._machine, one, value)


def signed(body: JsonObject) -> JsonObject:
    """Return settings with their own uid where it is meant, if they are there."""
    data = body.get("data") or {}
    if data.get(POOL_UID) != OWN_UID or "uid" not in body["metadata"]:
        return body
    return {**body, "data": {**data, POOL_UID: body["metadata"]["uid"]}}


def said(body: JsonObject, words: LabelScheme) -> JsonObject:
    """Return an account as a pool with these words has it; one that is dirty says so in them."""
    labels = words.labels(part_of(body, state_machine.LABELS) or {})
    if words.dirty is not None and labels.get(POOL_STATE) == "dirty" and words.dirty not in labels:
        del labels[POOL_STATE]
        labels[words.dirty] = "true"
    return _with(body, labels=labels)


def understood(body: JsonObject, words: LabelScheme) -> JsonObject:
    """Return an account in credfleet's words; what says dirty below another state is a label like others."""
    own = {theirs: key for key, theirs in words.renamed.items()}
    given: JsonObject = part_of(body, state_machine.LABELS) or {}
    labels = {own.get(key, key): text for key, text in given.items()}
    if words.dirty is not None and words.dirty in labels and POOL_STATE not in labels:
        word = labels.pop(words.dirty)
        labels[POOL_STATE] = "dirty" if word == "true" else word
    return _with(body, labels=labels)


def meant(write: Write, words: LabelScheme) -> Write:
    """Return a write to an account in credfleet's words.

    While an account has another state, the label that says dirty is one for itself. Below a quarantine it
    also says that the account is to be cleaned.
    """
    if (dirty := words.dirty) is None:
        return write
    both = all(
        POOL_STATE in (part_of(body, state_machine.LABELS) or {}) for body in (write.before, write.after)
    )

    def of(body: JsonObject | None) -> JsonObject | None:
        if body is None:
            return None
        labels = dict(part_of(own := understood(body, words), state_machine.LABELS) or {})
        notes = dict(part_of(body, state_machine.ANNOTATIONS) or {})
        word = labels.get(dirty) if both else labels.pop(dirty, None)
        if labels.get(POOL_STATE) == "quarantined" and word == "true":
            notes.setdefault(STATE_BEFORE, "dirty")
        return _with(own, labels=labels, annotations=notes)

    return replace(write, before=of(write.before), after=of(write.after))


def _with(body: JsonObject, **parts: JsonObject) -> JsonObject:
    return {**body, "metadata": {**body["metadata"], **parts}}


def merge_patch(before: Any, after: Any) -> Any:
    """Return the JSON merge patch that makes the one object of the other."""
    patch: JsonObject = {}
    for key in before.keys() | after.keys():
        if key not in after:
            patch[key] = None
        elif isinstance(after[key], dict) and isinstance(before.get(key), dict):
            if inner := merge_patch(before[key], after[key]):
                patch[key] = inner
        elif before.get(key) != after[key]:
            patch[key] = after[key]
    return patch


SETTINGS: Final = PoolConfigMap(("eu-access",))
MACHINES: Final = {
    **{each.name: each for each in transitions.list_state_machines(SETTINGS.partition_keys)},
    "renewed": transitions.list_state_machines(SETTINGS.partition_keys, RENEWED)[0],
}
