"""Writes to a pool's objects, allowed and not: pairs of (before, after), drawn from a table's rows and near.

Half of the pairs are a step of a row as it is; the others are steps with one or two fields of anything more.
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
from components.account_pool.admission.state_machine import ANYTHING, Among, Field, Step, Table, Where, Write
from components.account_pool.core.config_map import POOL_UID, PoolConfigMap
from components.account_pool.core.dialect import Dialect
from components.account_pool.core.keys import POOL_RECORD, POOL_STATE, STATE_BEFORE
from components.account_pool.core.model import JsonObject

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
    "capacity": (None, "1", "2", "x"),
    "account": (None, "1", "2"),
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
    "former-uid": (None, "u-0"),
    "signature": (None, OWN_UID, "another"),
}
_POLICIES: Final = ("release", "retain", "clean", "quarantine", "forget", None)
_TENANTS: Final = ("acme", "globex", "A tenant", None)
_REST: Final[Mapping[Where, tuple[Any, ...]]] = {
    state_machine.LABELS: ({}, {"note": "x"}, {"dirty": "true"}, {"dirty": "false"}),
    state_machine.NOTES: ({}, {"note": "x"}, {"note": "y", "other": ""}),
    state_machine.DATA: ({}, {"key": "c2VjcmV0"}, {"key": "bmV3"}),
    state_machine.BYTES: (None, {"bytes": "eA=="}),
    state_machine.FINALIZERS: (None, ["example.com/kept"], ["foregroundDeletion"]),
    state_machine.LOCK: (None, True),
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


def choices(table: Table, one: Field, owner: JsonObject) -> tuple[Any, ...]:
    """Return what a field is tried with; owner: an owner reference to what is there."""
    if one.where == state_machine.REFERENCES:
        return None, [owner]
    if table.name == "settings" and one == conditions.OTHER_DATA:
        return _SAID
    if one.key is None:
        return _REST[one.where]
    if one.name == "policy":
        return _POLICIES
    return _TENANTS if one.name == "tenant" else DOMAINS[one.name]


def put(body: JsonObject, table: Table, one: Field, value: Any) -> None:
    """Write a field into an object."""
    *path, last = one.where.path
    place = body
    for key in path:
        place = place.setdefault(key, {})
    if one.key is not None:
        texts = place.setdefault(last, {})
        texts.pop(one.key, None)
        if value is not None:
            texts[one.key] = value
    elif isinstance(value, dict):
        kept = {key: text for key, text in place.get(last, {}).items() if key in table.keys(one.where)}
        place[last] = {**kept, **value}
    elif value is None:
        place.pop(last, None)
    else:
        place[last] = value


class Drawing:
    """Draws writes to the objects of one table; the same ones for the same seed."""

    def __init__(self, table: Table, seed: int, owner: JsonObject) -> None:
        self._table = table
        self._owner = owner
        self._random = random.Random(seed)

    def body(self, name: str) -> JsonObject:
        """Draw an object as some row finds it, with up to two fields of anything."""
        body: JsonObject = {"metadata": {"name": name}}
        if self._table.name == "records":
            body["metadata"]["labels"] = {POOL_RECORD: "true"}
        step = self._random.choice([step for step in self._table.steps if step.on != "CREATE"])
        likely = self._random.choice([step for step in self._table.steps if step.on == "CREATE"])
        for one in self._table.fields:
            among = step.old.get(one, likely.new.get(one, ANYTHING))
            self._draw(body, one, among, usual=0.7)
        self._disturb(body, self._random.choice((0, 0, 1, 2)))
        return body

    def changes(self, before: JsonObject, count: int) -> Iterator[JsonObject]:
        """Draw what an object may be after a write: a step of a row that fits, or something beside it."""
        found = [step for step in self._table.steps if step.on == "UPDATE" and self._fits(step, before)]
        for _ in range(count):
            after = copy.deepcopy(before)
            step = self._random.choice(found)
            for one, among in step.new.items():
                if among != ANYTHING or self._random.random() < 0.2:
                    self._draw(after, one, among, usual=0)
            self._disturb(after, self._random.choice((0, 0, 0, 1, 2)))
            yield signed(after)

    def pairs(self, before: JsonObject) -> Iterator[JsonObject]:
        """Yield an object with each other combination of what its data may hold, all else as it was."""
        of_data = [one for one in self._table.fields if one.where == state_machine.DATA]
        for values in product(*(choices(self._table, one, self._owner) for one in of_data)):
            after = copy.deepcopy(before)
            for one, value in zip(of_data, values, strict=True):
                put(after, self._table, one, value)
            yield signed(after)

    def _fits(self, step: Step, before: JsonObject) -> bool:
        return all(among.holds(self._table.text(one, before)) for one, among in step.old.items())

    def _disturb(self, body: JsonObject, count: int) -> None:
        for one in self._random.sample(self._table.fields, count):
            put(body, self._table, one, self._random.choice(choices(self._table, one, self._owner)))

    def _draw(self, body: JsonObject, one: Field, among: Among, *, usual: float) -> None:
        values = choices(self._table, one, self._owner)
        if among == ANYTHING:
            value = values[0] if self._random.random() < usual else self._random.choice(values)
        elif one.key is None:
            value = None if one.where.empty != "{}" else {}
        else:
            value = self._random.choice([text for text in values if among.holds(text)])
        put(body, self._table, one, value)


def signed(body: JsonObject) -> JsonObject:
    """Return settings with their own uid where it is meant, if they are there."""
    data = body.get("data") or {}
    if data.get(POOL_UID) != OWN_UID or "uid" not in body["metadata"]:
        return body
    return {**body, "data": {**data, POOL_UID: body["metadata"]["uid"]}}


def said(body: JsonObject, words: Dialect) -> JsonObject:
    """Return an account as a pool with these words has it; one that is dirty says so in them."""
    labels = words.labels(state_machine.LABELS.of(body) or {})
    if words.dirty is not None and labels.get(POOL_STATE) == "dirty" and words.dirty not in labels:
        del labels[POOL_STATE]
        labels[words.dirty] = "true"
    return _with(body, labels=labels)


def understood(body: JsonObject, words: Dialect) -> JsonObject:
    """Return an account in credfleet's words; what says dirty below another state is a label like others."""
    own = {theirs: key for key, theirs in words.renamed.items()}
    given: JsonObject = state_machine.LABELS.of(body) or {}
    labels = {own.get(key, key): text for key, text in given.items()}
    if words.dirty is not None and words.dirty in labels and POOL_STATE not in labels:
        word = labels.pop(words.dirty)
        labels[POOL_STATE] = "dirty" if word == "true" else word
    return _with(body, labels=labels)


def meant(write: Write, words: Dialect) -> Write:
    """Return a write to an account in credfleet's words.

    While an account has another state, the label that says dirty is one for itself. Below a quarantine it
    also says that the account is to be cleaned.
    """
    if (dirty := words.dirty) is None:
        return write
    both = all(POOL_STATE in (state_machine.LABELS.of(body) or {}) for body in (write.before, write.after))

    def of(body: JsonObject | None) -> JsonObject | None:
        if body is None:
            return None
        labels = dict(state_machine.LABELS.of(own := understood(body, words)) or {})
        notes = dict(state_machine.NOTES.of(body) or {})
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
TABLES: Final = {table.name: table for table in transitions.tables(SETTINGS.partition_keys)}
