"""Who may write the accounts of a pool; the letters are steps of docs/design/claim-protocol.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from components.account_pool.admission.conditions import (
    BLOCKING,
    BRING,
    BY_CLAIMS,
    BY_STACK,
    CEL_NAME,
    CLAIM,
    CLEAN,
    COLLECTED,
    OPERATE,
    OTHER_ANNOTATIONS,
    OTHER_DATA,
    OTHER_LABELS,
    OWNER,
    OWNER_AGREES,
    POLICIES,
    RELEASERS,
    TEXT,
    TYPE,
    WRITE_OTHER_ANNOTATIONS,
    allow,
    cel_number,
    change,
    clear,
    compare_entries,
    delete_with_namespace,
    has_any_key,
    join_or,
    json_form,
)
from components.account_pool.admission.state_machine import (
    ABSENT,
    ANNOTATIONS,
    ANYTHING,
    LABELS,
    PRESENT,
    AllowedValues,
    Condition,
    Field,
    StateMachine,
    Transition,
    one_of,
)
from components.account_pool.core.bringing import BROUGHT_NAME
from components.account_pool.core.keys import (
    CLAIM_FORMER,
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    CREATED_AGAIN,
    CUT,
    FREED,
    INTERNAL,
    KEY_CHANGED,
    KEY_ID,
    KEY_OPERATION,
    KEY_PHASE,
    KEY_REASON,
    KEY_REPLACED,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_BEFORE,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.core.model import EVACUATING, KeyPhase
from components.account_pool.core.rotation import OTHER_KEY
from components.labels import ACCOUNT_ID, BRING_YOUR_OWN, EXPIRES_AT, HYPERSCALER_TYPE, SHARED, TENANT_NAME

_STATES: Final = "run `credfleet pool clean`, or let an operator quarantine it or let it back"
STATE: Final = Field("state", LABELS, _STATES, POOL_STATE)
SHARING: Final = Field("sharing", LABELS, BY_STACK, SHARED)
KEPT_BACK: Final = Field("kept-back", LABELS, BY_STACK, INTERNAL)
FORMER: Final = Field("former", ANNOTATIONS, BY_CLAIMS, CLAIM_FORMER)
TOKEN: Final = Field("token", ANNOTATIONS, BY_CLAIMS, CLAIM_TOKEN)
ORIGIN: Final = Field("origin", ANNOTATIONS, BY_CLAIMS, CLAIM_ORIGIN)
POLICY: Final = Field("policy", ANNOTATIONS, BY_CLAIMS, CLAIM_POLICY)
TENANT: Final = Field("tenant", ANNOTATIONS, BY_CLAIMS, TENANT_ID)
PLACES: Final = Field("places", ANNOTATIONS, BY_CLAIMS, SHARED_CLAIMS)
CLEANING: Final = Field("cleaning", ANNOTATIONS, _STATES, CLEANING_TOKEN)
REASON: Final = Field("reason", ANNOTATIONS, _STATES, STATE_REASON)
BEFORE: Final = Field("before", ANNOTATIONS, _STATES, STATE_BEFORE)
AGAIN: Final = Field("again", ANNOTATIONS, _STATES, CREATED_AGAIN)
CUT_OFF: Final = Field("cut", ANNOTATIONS, _STATES, CUT)
FREED_BY: Final = Field("freed", ANNOTATIONS, _STATES, FREED)
_ROTATIONS: Final = "run `credfleet pool rotate`"
KEYS: Final = Field("key-phase", LABELS, _ROTATIONS, KEY_PHASE)
ROTATION: Final = Field("key-operation", ANNOTATIONS, _ROTATIONS, KEY_OPERATION)
KEY: Final = Field("key-id", ANNOTATIONS, _ROTATIONS, KEY_ID)
KEY_WHY: Final = Field("key-reason", ANNOTATIONS, _ROTATIONS, KEY_REASON)
REPLACED: Final = Field("key-replaced", ANNOTATIONS, _ROTATIONS, KEY_REPLACED)
CHANGED: Final = Field("key-changed", ANNOTATIONS, _STATES, KEY_CHANGED)
CAPACITY: Final = Field("capacity", ANNOTATIONS, BY_STACK, SHARED_CAPACITY)
ACCOUNT: Final = Field("account", ANNOTATIONS, BY_STACK, ACCOUNT_ID)
EXPIRES: Final = Field("expires", ANNOTATIONS, BY_STACK, EXPIRES_AT)
BROUGHT: Final = Field("brought", ANNOTATIONS, BY_STACK, BRING_YOUR_OWN)


_NAMED_AS_BROUGHT: Final = Condition("isNamedAsBrought", f"{CEL_NAME}.startsWith('{BROUGHT_NAME}')")
_OWNER_DISAGREED: Final = Condition(
    "ownerWasNotTheTenant", "variables.oldOwner.orValue('') != variables.oldTenant.orValue('')"
)
_OWNER_STAYS: Final = Condition(
    "ownerStaysOrIsPutBack",
    "variables.oldOwner == variables.newOwner ||\n"
    f"(!variables.oldOwner.hasValue() && variables.{OWNER_AGREES.name})",
)

_PLACE: Final = rf'"claim-[^"\\]*": {TEXT}'
_VARIABLES: Final = {
    **compare_entries(PLACES, _PLACE, "PlaceEntries"),
    "capacity": cel_number(f"variables.newAnnotations[?'{SHARED_CAPACITY}'].orValue('')"),
    **{
        f"{age}Cleaner": f"{text}.substring(0, {text}.lastIndexOf('/'))"
        for age in ("old", "new")
        for text in [f"{CLEANING.cel(age)}.orValue('')"]
    },
}
_SAME_CLEANER: Final = Condition(
    "cleanerIsTheSame",
    "variables.oldCleaning.orValue('').contains('/') &&\nvariables.oldCleaner == variables.newCleaner",
)
_HAS_ROOM: Final = Condition("hasRoom", "variables.newPlaceEntries.size() <= variables.capacity")
_ONE_PLACE_TAKEN: Final = Condition(
    "takesOnePlace", "variables.countPlaceEntriesAdded == 1 &&\nvariables.countPlaceEntriesRemoved == 0"
)
_ONE_PLACE_LEFT: Final = Condition(
    "leavesOnePlace", "variables.countPlaceEntriesAdded == 0 &&\nvariables.countPlaceEntriesRemoved == 1"
)
_ONE_PLACE_BOUND: Final = Condition(
    "bindsOnePlace", "variables.countPlaceEntriesAdded == 1 &&\nvariables.countPlaceEntriesRemoved <= 1"
)
_CAPACITY_SUFFICES: Final = Condition(
    "capacityStaysOrSuffices",
    f"variables.oldCapacity == variables.newCapacity ||\nvariables.{_HAS_ROOM.name}",
)

_FORMER_NAMED: Final = Condition(
    "namesTheTokenItHad", "variables.newFormer.orValue('') == variables.oldToken.orValue('')"
)
_PLACE_MOVED: Final = Condition(
    "movesThePlaceItNames",
    "variables.countPlaceEntriesAdded == 1 &&\nvariables.countPlaceEntriesRemoved == 1 &&\n"
    "variables.removedPlaceEntries.all(each, each.startsWith('\"' + variables.newFormer.orValue('') + '\"'))",
)
_DATA_STAYS: Final = Condition(
    "credentialStaysDuringRotation",
    "!variables.oldKeyPhase.hasValue() ||\nvariables.oldData == variables.newData",
)
_KEY_DIFFERS: Final = Condition(
    "credentialAndItsKeyDiffer",
    "variables.oldKeyId != variables.newKeyId &&\nvariables.oldData != variables.newData",
)

_KEY_STAYS: Final = Condition(
    "credentialStaysOnceChanged",
    "!variables.oldKeyChanged.hasValue() ||\nvariables.oldData == variables.newData",
)
_CHANGED_NOW: Final = Condition(
    "keyIsChangedInThisCleaning", "variables.newKeyChanged == variables.oldCleaning"
)
_NAMED_OTHER_KEY: Final = Condition("isNamedAsOtherKey", f"{CEL_NAME}.endsWith('{OTHER_KEY}')")

_IS_TOKEN: Final = AllowedValues(form=r'claim-[^."\\]+[.][^"\\]+[.][0-9]{1,9}')
_IS_PLACES: Final = AllowedValues(form=json_form(_PLACE))
_NONE: Final = AllowedValues(("{}",), absent=True)
_DIRTY, _CLEANING, _QUARANTINED = (one_of(state) for state in ("dirty", "cleaning", "quarantined"))
_NOT_CLEANING: Final = AllowedValues(("cleaning",), negated=True)
_NOT_DIRTY: Final = AllowedValues(("dirty", "cleaning"), negated=True)
_MARKED: Final = AllowedValues(("dirty", EVACUATING), absent=True)
_LEFT: Final = one_of(EVACUATING)
_LEAVABLE: Final = AllowedValues((EVACUATING,), absent=True)
_GIVEN_UP: Final = one_of("decommissioned")
_NOT_POOL: Final = AllowedValues(("pool",), negated=True)
_POOLS: Final = AllowedValues(("pool", "retained"))
_NOT_POOLS: Final = AllowedValues(("pool", "retained"), negated=True)

_KEPT_OUT: Final = {OWNER: PRESENT, STATE: _QUARANTINED, REASON: ANYTHING, BEFORE: _MARKED}
_UNCLAIMED: Final = {TOKEN: ABSENT, PLACES: _NONE}
_NOT_TRUE: Final = AllowedValues(("true",), negated=True)
_FREE: Final = {**_UNCLAIMED, TYPE: PRESENT, SHARING: _NOT_TRUE, STATE: ABSENT}
_CLAIMED: Final = {TOKEN: _IS_TOKEN, POLICY: POLICIES, TENANT: PRESENT}
_LOST: Final = {**_FREE, STATE: _DIRTY, AGAIN: PRESENT}
_TAKEN_BACK: Final = {**_CLAIMED, **clear(STATE, REASON, AGAIN)}
_RELEASED: Final = clear(TOKEN, POLICY)
_NOT_RELEASE: Final = one_of("clean", "quarantine", "retain")
_BINDABLE: Final = {TYPE: PRESENT, OWNER: PRESENT, STATE: _NOT_CLEANING}
_PREPARING, _PREPARED, _DELIVERED, _COMPLETING = (one_of(str(phase)) for phase in KeyPhase)
_ASKING: Final = AllowedValues((KeyPhase.PREPARING, KeyPhase.COMPLETING))
_IN_USE: Final = AllowedValues((KeyPhase.PREPARED, KeyPhase.DELIVERED))
_PASSING: Final = change(OTHER_LABELS, OTHER_ANNOTATIONS, OTHER_DATA, EXPIRES, *BLOCKING)
_DECLARING: Final = {**_PASSING, **change(SHARING, KEPT_BACK, CAPACITY, ACCOUNT, BROUGHT)}

_CLAIMS: Final = allow(
    (CLAIM,),
    {
        "takesFreeAccount": Transition(
            "C3: take a free account",
            {**_FREE, OWNER: ABSENT, KEPT_BACK: _NOT_TRUE},
            {**_CLAIMED, OWNER: PRESENT, ORIGIN: one_of("pool"), FREED_BY: ANYTHING},
            when=(OWNER_AGREES,),
        ),
        "takesOwnAccount": Transition(
            "C3: take an account that is its tenant's",
            {**_FREE, OWNER: PRESENT, ORIGIN: ABSENT},
            {**_CLAIMED, ORIGIN: one_of("owner")},
            when=(OWNER_AGREES,),
        ),
        "takesAccountHadBefore": Transition(
            "C3: take an account that its tenant had from the pool",
            {**_FREE, OWNER: PRESENT, ORIGIN: _POOLS},
            {**_CLAIMED, ORIGIN: _POOLS},
            when=(OWNER_AGREES,),
        ),
        "takesBackUnowned": Transition(
            "C3: take back a lost account",
            {**_LOST, OWNER: ABSENT, KEPT_BACK: _NOT_TRUE},
            {**_TAKEN_BACK, OWNER: PRESENT, ORIGIN: one_of("pool")},
            when=(OWNER_AGREES,),
        ),
        "takesBackOwn": Transition(
            "C3: take back its tenant's lost account",
            {**_LOST, OWNER: PRESENT, ORIGIN: ABSENT},
            {**_TAKEN_BACK, ORIGIN: one_of("owner")},
            when=(OWNER_AGREES,),
        ),
        "takesPlace": Transition(
            "C3: take a place on a shared account",
            {TYPE: PRESENT, SHARING: one_of("true"), STATE: ABSENT, OWNER: ABSENT, TOKEN: ABSENT},
            {PLACES: _IS_PLACES},
            when=(_ONE_PLACE_TAKEN, _HAS_ROOM),
        ),
        "followsClaim": Transition(
            "N2: follow a claim to its new name",
            {TOKEN: _IS_TOKEN},
            {TOKEN: _IS_TOKEN, FORMER: _IS_TOKEN, TENANT: PRESENT, OWNER: PRESENT},
            when=(OWNER_AGREES, _FORMER_NAMED),
        ),
        "followsPlace": Transition(
            "N2: follow a claim on a shared account to its new name",
            {TYPE: PRESENT, SHARING: one_of("true"), OWNER: ABSENT, TOKEN: ABSENT},
            {PLACES: _IS_PLACES, FORMER: _IS_TOKEN},
            when=(_PLACE_MOVED,),
        ),
        "changesPolicy": Transition(
            "update: note another policy of a claim, by which no account is free at once",
            {TOKEN: _IS_TOKEN},
            {POLICY: _NOT_RELEASE},
        ),
    },
)

_RELEASES: Final = allow(
    RELEASERS,
    {
        "restoresOwner": Transition(
            "C4, C8: put back the owner that a claim names",
            {OWNER: ABSENT, TOKEN: _IS_TOKEN},
            {OWNER: PRESENT},
            when=(OWNER_AGREES,),
        ),
        "releasesToPool": Transition(
            "X2: leave it free, of a claim by policy `release`",
            {TOKEN: PRESENT, ORIGIN: _POOLS, POLICY: one_of("release")},
            {**_RELEASED, **clear(OWNER, ORIGIN, TENANT), FREED_BY: PRESENT},
        ),
        "releasesToOwner": Transition(
            "X2: leave it to its tenant, whose it was before",
            {TOKEN: PRESENT, ORIGIN: _NOT_POOLS},
            {**_RELEASED, OWNER: PRESENT, ORIGIN: ABSENT},
            when=(_OWNER_STAYS,),
        ),
        "releasesToRetainer": Transition(
            "X2: leave it to its tenant, who retains it",
            {TOKEN: PRESENT, ORIGIN: _POOLS},
            {**_RELEASED, OWNER: PRESENT, ORIGIN: one_of("retained")},
            when=(_OWNER_STAYS,),
        ),
        "releasesToNewOwner": Transition(
            "X2: leave it to the tenant it was given to by hand",
            {TOKEN: PRESENT, OWNER: PRESENT},
            {**_RELEASED, **clear(ORIGIN, TENANT)},
            when=(_OWNER_DISAGREED,),
        ),
        "releasesDirty": Transition(
            "X2: leave it dirty",
            {TOKEN: PRESENT, ORIGIN: _POOLS, STATE: AllowedValues(("cleaning", "quarantined"), negated=True)},
            {**_RELEASED, OWNER: PRESENT, STATE: _DIRTY, ORIGIN: one_of("pool")},
            when=(_OWNER_STAYS,),
        ),
        "releasesQuarantined": Transition(
            "X2: leave it quarantined",
            {TOKEN: PRESENT, ORIGIN: _POOLS},
            {**_RELEASED, **_KEPT_OUT, ORIGIN: one_of("pool")},
            when=(_OWNER_STAYS,),
        ),
        "releasesWithoutOwner": Transition(
            "X2: leave dirty, or quarantined, what has no owner any more",
            {TOKEN: PRESENT, OWNER: ABSENT, STATE: _NOT_CLEANING},
            {
                **_RELEASED,
                ORIGIN: one_of("pool"),
                STATE: AllowedValues(("dirty", "quarantined")),
                BEFORE: _MARKED,
            },
        ),
        "leavesPlace": Transition(
            "X2: leave a place on a shared account",
            {SHARING: one_of("true")},
            {PLACES: _IS_PLACES},
            when=(_ONE_PLACE_LEFT,),
        ),
    },
)

_CLEANINGS: Final = allow(
    (CLEAN,),
    {
        "beginsCleaning": Transition(
            "K2: begin to clean a dirty account that is not held",
            {**_UNCLAIMED, STATE: _DIRTY, AGAIN: ABSENT},
            {STATE: _CLEANING, CLEANING: PRESENT},
        ),
        "beginsCleaningAgain": Transition(
            "K2: begin again what this cleaner began",
            {**_UNCLAIMED, STATE: _CLEANING},
            {CLEANING: PRESENT},
            when=(_SAME_CLEANER,),
        ),
        "changesCredentialInCleaning": Transition(
            "K3: change the credential of an account that is being cleaned",
            {**_UNCLAIMED, STATE: _CLEANING},
            change(OTHER_DATA, EXPIRES),
        ),
        "failsCleaning": Transition(
            "K3: keep an account out of the pool that could not be cleaned",
            {STATE: _CLEANING},
            {STATE: _QUARANTINED, BEFORE: _DIRTY, REASON: PRESENT, CLEANING: ABSENT},
        ),
        "endsCleaning": Transition(
            "K3: let go of an account that an operator quarantined meanwhile",
            {STATE: AllowedValues(("dirty", "quarantined"))},
            {CLEANING: ABSENT},
        ),
        "returnsCleanedToPool": Transition(
            "K4: leave a cleaned account to the pool",
            {**_UNCLAIMED, STATE: _CLEANING, ORIGIN: one_of("pool")},
            {**clear(STATE, CLEANING, REASON, BEFORE, ORIGIN, OWNER, TENANT), FREED_BY: PRESENT},
        ),
        "returnsCleanedToOwner": Transition(
            "K4: leave a cleaned account to its tenant",
            {**_UNCLAIMED, STATE: _CLEANING, ORIGIN: _NOT_POOLS},
            {**clear(STATE, CLEANING, REASON, BEFORE, ORIGIN), FREED_BY: ANYTHING},
        ),
        "returnsCleanedToRetainer": Transition(
            "K4: leave a cleaned account to the tenant that retains it",
            {**_UNCLAIMED, STATE: _CLEANING, ORIGIN: one_of("retained")},
            {**clear(STATE, CLEANING, REASON, BEFORE), FREED_BY: ANYTHING},
        ),
    },
)

_DECISIONS: Final = allow(
    (OPERATE,),
    {
        "takesOverCleaning": Transition(
            "K2: take a cleaning over from another cleaner",
            {**_UNCLAIMED, STATE: _CLEANING},
            {CLEANING: PRESENT},
        ),
        "quarantinesClean": Transition(
            "quarantine a usable account",
            {STATE: ABSENT},
            {STATE: _QUARANTINED, REASON: ANYTHING, CUT_OFF: ANYTHING, **clear(BEFORE, CLEANING)},
        ),
        "quarantinesUnclean": Transition(
            "quarantine an account that is not clean",
            {STATE: AllowedValues(("quarantined",), absent=True, negated=True)},
            {STATE: _QUARANTINED, BEFORE: _DIRTY, REASON: ANYTHING, CLEANING: ANYTHING, CUT_OFF: ANYTHING},
        ),
        "changesReason": Transition(
            "say again why an account is quarantined",
            {STATE: _QUARANTINED},
            {REASON: ANYTHING, CLEANING: ANYTHING, CUT_OFF: ANYTHING},
        ),
        "marksQuarantinedDirty": Transition(
            "mark what is quarantined as dirty",
            {STATE: _QUARANTINED, BEFORE: ABSENT},
            {OTHER_LABELS: ANYTHING, BEFORE: _DIRTY},
        ),
        "givesUp": Transition(
            "give an account up",
            {**_UNCLAIMED, STATE: _NOT_CLEANING},
            {STATE: _QUARANTINED, BEFORE: _GIVEN_UP, REASON: ANYTHING, CLEANING: ANYTHING},
        ),
        "evacuates": Transition(
            "have an account left by the tenant that holds it",
            {TOKEN: PRESENT, STATE: AllowedValues(("quarantined",), absent=True), BEFORE: _LEAVABLE},
            {STATE: _QUARANTINED, BEFORE: _LEFT, REASON: ANYTHING},
        ),
        "readmitsHeld": Transition(
            "let a quarantined account back to the tenant that holds it",
            {STATE: _QUARANTINED, TOKEN: PRESENT, BEFORE: _LEAVABLE},
            clear(STATE, REASON, BEFORE, CUT_OFF),
        ),
        "readmitsUnreleased": Transition(
            "let a quarantined account back that no claim has left",
            {STATE: _QUARANTINED, ORIGIN: _NOT_POOL, BEFORE: ABSENT},
            clear(STATE, REASON, CUT_OFF),
        ),
        "marksDirty": Transition(
            "leave an account to the cleaner, also a quarantined one, or one of an unknown state",
            {STATE: _NOT_CLEANING},
            {STATE: _DIRTY, REASON: ANYTHING, **clear(BEFORE, AGAIN, CUT_OFF)},
        ),
        "returnsRetained": Transition(
            "let a retained account go back to the pool, by way of the cleaner",
            {**_UNCLAIMED, OWNER: PRESENT, BROUGHT: ABSENT, STATE: _NOT_CLEANING},
            {STATE: AllowedValues(("dirty", "quarantined")), ORIGIN: one_of("pool")},
        ),
        "bindsClaim": Transition(
            "bind a restored claim to its account",
            {**_BINDABLE, ORIGIN: AllowedValues(("pool", "owner", "retained"))},
            _CLAIMED,
            when=(OWNER_AGREES,),
        ),
        "bindsClaimWithoutTraces": Transition(
            "bind a restored claim to an account without traces of one",
            {**_BINDABLE, ORIGIN: ABSENT},
            {**_CLAIMED, ORIGIN: one_of("owner")},
            when=(OWNER_AGREES,),
        ),
        "bindsPlace": Transition(
            "bind a restored claim to its shared account",
            {TYPE: PRESENT, SHARING: one_of("true")},
            {PLACES: _IS_PLACES},
            when=(_ONE_PLACE_BOUND, _HAS_ROOM),
        ),
        "removesBrokenToken": Transition(
            "take off what is no token, of an account that has an owner",
            {TOKEN: AllowedValues(form=_IS_TOKEN.form, absent=True, negated=True), OWNER: PRESENT},
            clear(TOKEN),
        ),
        "repairsPlaces": Transition(
            "restore who shares an account, where that cannot be read",
            {PLACES: AllowedValues(form=_IS_PLACES.form, absent=True, negated=True)},
            {PLACES: AllowedValues(form=_IS_PLACES.form, absent=True)},
        ),
    },
)
"""What operators decide."""

_OF_KEYS: Final = allow(
    (OPERATE,),
    {
        "beginsRotation": Transition(
            "rotate: note the key in use, before a second one is made",
            {KEYS: ABSENT, STATE: _NOT_DIRTY},
            {KEYS: _PREPARING, ROTATION: PRESENT, KEY: PRESENT, KEY_WHY: ABSENT},
        ),
        "goesOnWithRotation": Transition(
            "rotate: go on where a run died", {KEYS: _ASKING}, {ROTATION: PRESENT, KEY_WHY: ABSENT}
        ),
        "preparesKey": Transition(
            "rotate: note that the second key works",
            {KEYS: _PREPARING},
            {KEYS: _PREPARED, ROTATION: PRESENT, KEY_WHY: ABSENT},
        ),
        "swapsKey": Transition(
            "rotate: put the other key into use",
            {KEYS: _IN_USE},
            {
                **dict.fromkeys((ROTATION, KEY, REPLACED), PRESENT),
                KEYS: _DELIVERED,
                KEY_WHY: ABSENT,
                OTHER_DATA: ANYTHING,
            },
            when=(_KEY_DIFFERS,),
        ),
        "completesRotation": Transition(
            "rotate: begin to revoke the key that is not in use",
            {KEYS: PRESENT},
            {KEYS: _COMPLETING, ROTATION: PRESENT, KEY_WHY: ABSENT},
        ),
        "endsRotation": Transition(
            "rotate: note that one key is left", {KEYS: _COMPLETING}, clear(KEYS, ROTATION, KEY_WHY)
        ),
        "notesWhyKeyStays": Transition(
            "rotate: say why it does not go on", {KEYS: PRESENT}, {KEY_WHY: PRESENT}
        ),
    },
)


_FREES: Final = (
    "returnsCleanedToPool",
    "returnsCleanedToOwner",
    "returnsCleanedToRetainer",
    "releasesToPool",
)
_UNMARKS: Final = (*_FREES[:3], "failsCleaning", "endsCleaning", "quarantinesUnclean", "swapsKey")


def _renew(types: Sequence[str], transitions: Mapping[str, Transition]) -> Mapping[str, Transition]:
    """Return the transitions of a pool whose accounts of these types are free only with another key.

    A cleaner may do to keys what operators may. With another credential it marks the account as changed by
    its run, and until that is over no other is written.
    """
    type_, named = "variables.oldType.orValue('')", sorted(types)
    renewed = Condition(
        "isFreedWithAnotherKey",
        f"!({type_} in {named} || {type_}.split('_')[0] in {named}) ||\nvariables.newOwner.hasValue() ||\n"
        "(variables.oldKeyChanged.hasValue() && variables.oldKeyChanged == variables.oldCleaning &&\n"
        "!variables.oldKeyPhase.hasValue())",
    )
    found = {**transitions}
    for name, one in transitions.items():
        is_written = OTHER_DATA in one.new and KEYS not in one.new and one.on == "UPDATE"
        when = ((renewed,) if name in _FREES else ()) + ((_KEY_STAYS,) if is_written else ())
        found[name] = _amend(one, clear(CHANGED) if name in _UNMARKS else {}, *when)
    for name, one in _OF_KEYS.items():
        old = {**one.old, **_UNCLAIMED, STATE: _CLEANING}
        found[f"{name}InCleaning"] = replace(one, does=f"K3: {one.does}", old=old, by=(CLEAN,))
    swaps = _amend(found["swapsKeyInCleaning"], {CHANGED: PRESENT}, _CHANGED_NOW)
    found["swapsKeyInCleaning"] = replace(swaps, old={**swaps.old, KEYS: _PREPARED})
    named_so, unused = (_NAMED_OTHER_KEY,), clear(TYPE, OWNER, TOKEN)
    both = Transition("K3: keep both keys", new=change(OTHER_DATA), when=named_so, on="CREATE")
    single = Transition("K3: keep one key", unused, when=named_so, on="DELETE")
    return found | allow((CLEAN,), {"keepsBothKeys": both, "keepsOneKey": single})


def _amend(one: Transition, new: Mapping[Field, AllowedValues], *when: Condition) -> Transition:
    return replace(one, new={**one.new, **new}, when=(*one.when, *when))


_OTHERS: Final = {
    **WRITE_OTHER_ANNOTATIONS,
    **COLLECTED,
    "deletesAccount": Transition(
        "delete an account that is neither held nor dirty",
        {**_UNCLAIMED, STATE: _NOT_DIRTY},
        on="DELETE",
        by=(OPERATE,),
    ),
    **delete_with_namespace({**_UNCLAIMED, STATE: _NOT_DIRTY}),
}


def _declare(fields: Sequence[Field], parts: Sequence[Field]) -> Mapping[str, Transition]:
    """Return what the program writes, operators by hand, and tenants that bring accounts."""
    declaring = {**_DECLARING, **change(*parts)}
    by_operators = allow(
        (OPERATE,),
        {
            "declaresAccount": Transition(
                "declare an account, or restore one", new=change(*fields), on="CREATE"
            ),
            "rotatesCredential": Transition(
                "rotate the credential; add capacity, other labels and annotations, owner references, …",
                new={**_PASSING, CAPACITY: ANYTHING, REPLACED: ANYTHING},
                when=(_CAPACITY_SUFFICES, _DATA_STAYS),
            ),
            "changesUnheldAccount": Transition(
                "change an account that is neither held nor being cleaned; put a Secret into the pool",
                {**_UNCLAIMED, STATE: _NOT_CLEANING},
                {**declaring, TYPE: PRESENT},
                when=(_DATA_STAYS,),
            ),
            "takesOutOfPool": Transition(
                "take an account out of the pool that is neither held nor dirty",
                {**_UNCLAIMED, STATE: _NOT_DIRTY},
                {**declaring, TYPE: ABSENT},
                when=(_DATA_STAYS,),
            ),
            "restoresType": Transition("give an account its type back", {TYPE: ABSENT}, {TYPE: PRESENT}),
            "givesToTenant": Transition(
                "give an account to a tenant, who brought it along or had it before",
                {**_UNCLAIMED, OWNER: ABSENT, ORIGIN: ABSENT, STATE: _NOT_CLEANING},
                {
                    **declaring,
                    TYPE: PRESENT,
                    OWNER: PRESENT,
                    BROUGHT: AllowedValues(("true",), absent=True),
                    TENANT: ANYTHING,
                },
                when=(_DATA_STAYS,),
            ),
            "takesFromTenant": Transition(
                "take an account from its tenant, to be cleaned",
                {**_UNCLAIMED, STATE: _NOT_CLEANING},
                {**declaring, OWNER: ABSENT, STATE: _DIRTY, TENANT: ANYTHING},
                when=(_DATA_STAYS,),
            ),
        },
    )
    brought = {
        **change(*parts, ACCOUNT, EXPIRES, OTHER_DATA),
        TYPE: PRESENT,
        OWNER: PRESENT,
        BROUGHT: one_of("true"),
    }
    does = "bring an account along for a tenant"
    brings = Transition(does, new=brought, when=(_NAMED_AS_BROUGHT,), on="CREATE", by=(BRING,))
    return {**by_operators, "bringsAccount": brings}


def build_member_machine(partition_keys: Sequence[str], new_keys: Sequence[str] = ()) -> StateMachine:
    """Return the state machine of the accounts of a pool that is divided by these labels.

    new_keys: types whose accounts get another key between tenants.
    """
    parts = [Field(f"part-{number}", LABELS, BY_STACK, key) for number, key in enumerate(partition_keys)]
    fields = (
        *(TYPE, OWNER, STATE, SHARING, KEPT_BACK, *parts, OTHER_LABELS),
        *(TOKEN, FORMER, ORIGIN, POLICY, TENANT, PLACES, CLEANING, REASON, BEFORE, AGAIN, CUT_OFF, FREED_BY),
        *(KEYS, ROTATION, KEY, KEY_WHY, REPLACED, *((CHANGED,) if new_keys else ())),
        *(CAPACITY, ACCOUNT, EXPIRES, BROUGHT, OTHER_ANNOTATIONS, OTHER_DATA, *BLOCKING),
    )
    marks = (POOL_STATE, TENANT_NAME, HYPERSCALER_TYPE)
    traces = (CLAIM_TOKEN, CLAIM_ORIGIN, SHARED_CLAIMS, CLEANING_TOKEN, STATE_BEFORE, CREATED_AGAIN, KEY_ID)
    transitions = {
        **_declare(fields, parts),
        **_CLAIMS,
        **_RELEASES,
        **_CLEANINGS,
        **_DECISIONS,
        **_OF_KEYS,
        **_OTHERS,
    }
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
        transitions=_renew(new_keys, transitions) if new_keys else transitions,
        variables=_VARIABLES,
    )
