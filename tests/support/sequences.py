"""Sequences of writes that a pool's state machines allow: to one object, and the states it can come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

from components.account_pool.admission.conditions import OWNER, TYPE
from components.account_pool.admission.member_transitions import POLICY, STATE, TENANT, TOKEN
from components.account_pool.admission.state_machine import Field, StateMachine, Transition, Verb
from components.account_pool.core.model import JsonObject
from tests.support.admission_twin import Write, holds, permits
from tests.support.transitions import put

Texts: TypeAlias = Mapping[Field, str | None]
Domains: TypeAlias = Mapping[Field, Sequence[str | None]]

USERS: Final[Mapping[str, frozenset[Verb]]] = {
    "editor": frozenset(),
    **{str(verb): frozenset({verb}) for verb in Verb},
}


@dataclass(frozen=True)
class Turn:
    """One allowed write: by whom, by which transition, from what, to what."""

    user: str
    transition: Transition
    old: Texts
    new: Texts

    def __str__(self) -> str:
        changed = {field.name: self.new[field] for field in self.new if self.new[field] != self.old[field]}
        return f"{self.user}: {self.transition.does} {changed}"


def turns(
    machine: StateMachine, domains: Domains, old: Texts, users: Mapping[str, frozenset[Verb]] = USERS
) -> Iterator[Turn]:
    """Yield every change of an object that the machine allows one of these users."""
    before = body_of(machine, old)
    for transition in machine.transitions.values():
        by = [user for user, verbs in users.items() if not transition.by or verbs & set(transition.by)]
        fits = all(permits(values, old.get(field)) for field, values in transition.old.items())
        if transition.on != "UPDATE" or not by or not fits:
            continue
        fitting = [
            [text for text in domains[field] if permits(transition.new[field], text)]
            if field in transition.new
            else [old[field]]
            for field in domains
        ]
        if not all(permits(values, None) for field, values in transition.new.items() if field not in domains):
            continue
        for texts in product(*fitting):
            new = dict(zip(domains, texts, strict=True))
            if new == old:
                continue
            write = Write(before, body_of(machine, new))
            if all(holds(machine, condition.name, write) for condition in transition.when):
                yield from (Turn(user, transition, old, new) for user in by)


def body_of(machine: StateMachine, texts: Texts) -> JsonObject:
    """Return an object with these fields."""
    body: JsonObject = {"metadata": {"name": "claim-0"}}
    for field, text in texts.items():
        put(body, machine, field, text)
    return body


def account_after(turn: Turn, *, was_soiled: bool) -> tuple[bool, str | None]:
    """Return whether an account is now used and not cleaned since, and which promise the write broke.

    What a claim by policy `release` leaves free counts as clean: so it was agreed.
    """
    old, new = turn.old, turn.new
    is_freed_by_claim = (
        old[TOKEN] is not None and new[TOKEN] is None and old[POLICY] == "release" and new[OWNER] is None
    )
    is_cleaned = turn.user == "clean" and old[STATE] == "cleaning" and new[STATE] is None
    soiled = (was_soiled and not is_freed_by_claim and not is_cleaned) or new[OWNER] is not None
    broken = None
    if new[TYPE] and soiled and new[OWNER] is new[STATE] is new[TOKEN] is None:
        broken = "an uncleaned account is free"
    if old[OWNER] != new[OWNER] is not None:
        if old[OWNER] is not None:
            broken = "an account of one tenant is another's"
        elif turn.user != "operate" and (new[TOKEN] is None or new[TENANT] != new[OWNER]):
            broken = "an owner is forged"
    if new[STATE] == "cleaning" != old[STATE] and new[TOKEN] is not None:
        broken = "an account in use is cleaned"
    if old[TOKEN] is not None and new[TOKEN] not in (None, old[TOKEN]) and turn.user != "operate":
        broken = "a claim is taken over"
    return soiled, broken
