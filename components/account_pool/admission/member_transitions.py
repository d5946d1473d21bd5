"""Transitions of a pool's accounts; the letters are steps of docs/design/claim-protocol.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from components.account_pool.admission.conditions import (
    BLOCKING,
    BY_CLAIMS,
    BY_STACK,
    CEL_NAME,
    OTHER_ANNOTATIONS,
    OTHER_DATA,
    OTHER_LABELS,
    OWNER,
    TEXT,
    TYPE,
    cel_number,
    compare_entries,
    has_any_key,
    join_or,
)
from components.account_pool.admission.state_machine import (
    ABSENT,
    ANNOTATIONS,
    LABELS,
    PART,
    PRESENT,
    AllowedValues,
    Condition,
    Field,
    StateMachine,
    Transition,
    Verb,
    find_condition,
    list_transitions,
    one_of,
)
from components.account_pool.core import keys
from components.account_pool.core.model import KeyPhase
from components.account_pool.core.other_key import OTHER_KEY
from components.labels import ACCOUNT_ID, BRING_YOUR_OWN, EXPIRES_AT, HYPERSCALER_TYPE, SHARED, TENANT_NAME

_STATES: Final = "run `credfleet pool clean`, or let an operator quarantine it or let it back"
STATE: Final = Field("state", LABELS, _STATES, keys.POOL_STATE)
SHARING: Final = Field("sharing", LABELS, BY_STACK, SHARED)
KEPT_BACK: Final = Field("kept-back", LABELS, BY_STACK, keys.INTERNAL)
FORMER: Final = Field("former", ANNOTATIONS, BY_CLAIMS, keys.CLAIM_FORMER)
TOKEN: Final = Field("token", ANNOTATIONS, BY_CLAIMS, keys.CLAIM_TOKEN)
ORIGIN: Final = Field("origin", ANNOTATIONS, BY_CLAIMS, keys.CLAIM_ORIGIN)
POLICY: Final = Field("policy", ANNOTATIONS, BY_CLAIMS, keys.CLAIM_POLICY)
TENANT: Final = Field("tenant", ANNOTATIONS, BY_CLAIMS, keys.TENANT_ID)
PLACES: Final = Field("places", ANNOTATIONS, BY_CLAIMS, keys.SHARED_CLAIMS)
CLEANING: Final = Field("cleaning", ANNOTATIONS, _STATES, keys.CLEANING_TOKEN)
REASON: Final = Field("reason", ANNOTATIONS, _STATES, keys.STATE_REASON)
BEFORE: Final = Field("before", ANNOTATIONS, _STATES, keys.STATE_BEFORE)
AGAIN: Final = Field("again", ANNOTATIONS, _STATES, keys.CREATED_AGAIN)
CUT_OFF: Final = Field("cut", ANNOTATIONS, _STATES, keys.CUT)
FREED_BY: Final = Field("freed", ANNOTATIONS, _STATES, keys.FREED)
_ROTATIONS: Final = "run `credfleet pool rotate`"
KEYS: Final = Field("key-phase", LABELS, _ROTATIONS, keys.KEY_PHASE)
ROTATION: Final = Field("key-operation", ANNOTATIONS, _ROTATIONS, keys.KEY_OPERATION)
KEY: Final = Field("key-id", ANNOTATIONS, _ROTATIONS, keys.KEY_ID)
KEY_WHY: Final = Field("key-reason", ANNOTATIONS, _ROTATIONS, keys.KEY_REASON)
REPLACED: Final = Field("key-replaced", ANNOTATIONS, _ROTATIONS, keys.KEY_REPLACED)
CHANGED: Final = Field("key-changed", ANNOTATIONS, _STATES, keys.KEY_CHANGED)
CAPACITY: Final = Field("capacity", ANNOTATIONS, BY_STACK, keys.SHARED_CAPACITY)
ACCOUNT: Final = Field("account", ANNOTATIONS, BY_STACK, ACCOUNT_ID)
EXPIRES: Final = Field("expires", ANNOTATIONS, BY_STACK, EXPIRES_AT)
BROUGHT: Final = Field("brought", ANNOTATIONS, BY_STACK, BRING_YOUR_OWN)


_PLACE: Final = rf'"claim-[^"\\]*": {TEXT}'
_VARIABLES: Final = {
    **compare_entries(PLACES, _PLACE, "PlaceEntries"),
    "capacity": cel_number(f"variables.newAnnotations[?'{keys.SHARED_CAPACITY}'].orValue('')"),
    **{
        f"{age}Cleaner": f"{text}.substring(0, {text}.lastIndexOf('/'))"
        for age in ("old", "new")
        for text in [f"{CLEANING.cel(age)}.orValue('')"]
    },
}
_FREES: Final = (
    "returnsCleanedToPool",
    "returnsCleanedToOwner",
    "returnsCleanedToRetainer",
    "releasesToPool",
)
_UNMARKS: Final = (*_FREES[:3], "failsCleaning", "endsCleaning", "quarantinesUnclean", "swapsKey")


def _renew(types: Sequence[str], listed: Mapping[str, Transition]) -> dict[str, Transition]:
    """Return the transitions of a pool in which these types become free only with a new key.

    A cleaner can rotate keys as operators can. With the new credential it marks the account as changed by its
    run, and no other credential is written until the run ends.
    """
    type_, named = "variables.oldType.orValue('')", sorted(types)
    renewed = Condition(
        "isFreedWithAnotherKey",
        f"!({type_} in {named} || {type_}.split('_')[0] in {named}) ||\nvariables.newOwner.hasValue() ||\n"
        "(variables.oldKeyChanged.hasValue() && variables.oldKeyChanged == variables.oldCleaning &&\n"
        "!variables.oldKeyPhase.hasValue())",
    )
    stays, found = find_condition("credentialStaysOnceChanged"), {**listed}
    for name, one in listed.items():
        is_written = OTHER_DATA in one.new and KEYS not in one.new and one.on == "UPDATE"
        when = ((renewed,) if name in _FREES else ()) + ((stays,) if is_written else ())
        found[name] = _amend(one, {CHANGED: ABSENT} if name in _UNMARKS else {}, *when)
    cleaned = listed["changesCredentialInCleaning"].old
    for name, one in listed.items():
        if KEYS in one.old:
            old = {**one.old, **cleaned}
            found[f"{name}InCleaning"] = replace(one, does=f"K3: {one.does}", old=old, by=(Verb.CLEAN,))
    changed_now = find_condition("keyIsChangedInThisCleaning")
    swaps = _amend(found["swapsKeyInCleaning"], {CHANGED: PRESENT}, changed_now)
    prepared = one_of(str(KeyPhase.PREPARED))
    found["swapsKeyInCleaning"] = replace(swaps, old={**swaps.old, KEYS: prepared})
    return found


def _amend(one: Transition, new: Mapping[Field, AllowedValues], *when: Condition) -> Transition:
    return replace(one, new={**one.new, **new}, when=(*one.when, *when))


def build_member_machine(partition_keys: Sequence[str], new_keys: Sequence[str] = ()) -> StateMachine:
    """Return the state machine of the accounts of a pool with these partition keys.

    `new_keys`: types whose accounts get a new key between tenants.
    """
    parts = [Field(f"{PART}{number}", LABELS, BY_STACK, key) for number, key in enumerate(partition_keys)]
    fields = (
        *(TYPE, OWNER, STATE, SHARING, KEPT_BACK, *parts, OTHER_LABELS),
        *(TOKEN, FORMER, ORIGIN, POLICY, TENANT, PLACES, CLEANING, REASON, BEFORE, AGAIN, CUT_OFF, FREED_BY),
        *(KEYS, ROTATION, KEY, KEY_WHY, REPLACED, *((CHANGED,) if new_keys else ())),
        *(CAPACITY, ACCOUNT, EXPIRES, BROUGHT, OTHER_ANNOTATIONS, OTHER_DATA, *BLOCKING),
    )
    marks = (keys.POOL_STATE, TENANT_NAME, HYPERSCALER_TYPE)
    traces = (
        keys.CLAIM_TOKEN,
        keys.CLAIM_ORIGIN,
        keys.SHARED_CLAIMS,
        keys.CLEANING_TOKEN,
        keys.STATE_BEFORE,
        keys.CREATED_AGAIN,
        keys.KEY_ID,
    )
    listed = list_transitions("members", fields)
    return StateMachine(
        name="members",
        noun="account",
        resource="secrets",
        fix=f"release and clean it, or give it up with `credfleet pool decommission`; else {BY_STACK}",
        belongs=join_or(
            (
                has_any_key(LABELS, marks),
                has_any_key(ANNOTATIONS, traces),
                f"{CEL_NAME}.endsWith('{OTHER_KEY}')",
            )
        ),
        fields=fields,
        transitions=_renew(new_keys, listed) | list_transitions("renewed", fields) if new_keys else listed,
        variables=_VARIABLES,
    )
