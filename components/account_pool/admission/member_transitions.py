"""Who may make which step of a pool's accounts; the letters are steps of docs/design/claim-protocol.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from components.account_pool.admission.conditions import (
    BRING,
    BY_CLAIMS,
    BY_STACK,
    CEL_NAME,
    CLAIM,
    CLEAN,
    COLLECTING,
    HANGING,
    NAMESPACE_GOES,
    OPERATE,
    OTHER_DATA,
    OTHER_LABELS,
    OTHER_NOTES,
    OWNER,
    POLICIES,
    RELEASERS,
    TEXT,
    TYPE,
    Entries,
    any_of,
    cel_number,
    either,
    json_form,
    name_of,
    number_in,
    owner_is,
    text_in,
    touching,
    without,
)
from components.account_pool.admission.state_machine import (
    ABSENT,
    ANYTHING,
    LABELS,
    NOTES,
    PRESENT,
    Among,
    Field,
    Relation,
    Step,
    Table,
    Write,
    one_of,
)
from components.account_pool.core.bringing import BROUGHT_NAME
from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    INTERNAL,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_BEFORE,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.core.model import TO_BE_LEFT, JsonObject
from components.labels import ACCOUNT_ID, BRING_YOUR_OWN, HYPERSCALER_TYPE, SHARED, TENANT_NAME

_STATES: Final = "run `credfleet pool clean`, or let an operator quarantine it or let it back"
STATE: Final = Field("state", LABELS, _STATES, POOL_STATE)
SHARING: Final = Field("sharing", LABELS, BY_STACK, SHARED)
KEPT_BACK: Final = Field("kept-back", LABELS, BY_STACK, INTERNAL)
TOKEN: Final = Field("token", NOTES, BY_CLAIMS, CLAIM_TOKEN)
ORIGIN: Final = Field("origin", NOTES, BY_CLAIMS, CLAIM_ORIGIN)
POLICY: Final = Field("policy", NOTES, BY_CLAIMS, CLAIM_POLICY)
TENANT: Final = Field("tenant", NOTES, BY_CLAIMS, TENANT_ID)
PLACES: Final = Field("places", NOTES, BY_CLAIMS, SHARED_CLAIMS)
CLEANING: Final = Field("cleaning", NOTES, _STATES, CLEANING_TOKEN)
REASON: Final = Field("reason", NOTES, _STATES, STATE_REASON)
BEFORE: Final = Field("before", NOTES, _STATES, STATE_BEFORE)
CAPACITY: Final = Field("capacity", NOTES, BY_STACK, SHARED_CAPACITY)
ACCOUNT: Final = Field("account", NOTES, BY_STACK, ACCOUNT_ID)
BROUGHT: Final = Field("brought", NOTES, BY_STACK, BRING_YOUR_OWN)


_NAMED_AS_BROUGHT: Final = Relation(
    f"{CEL_NAME}.startsWith('{BROUGHT_NAME}')", lambda write: name_of(write).startswith(BROUGHT_NAME)
)
_AGREES: Final = owner_is(NOTES, TENANT_ID)
_OWNER: Final = f"Labels[?'{TENANT_NAME}']"
_DISAGREED: Final = Relation(
    f"variables.old{_OWNER}.orValue('') != variables.oldNotes[?'{TENANT_ID}'].orValue('')",
    lambda write: text_in(LABELS, TENANT_NAME, write.before) != text_in(NOTES, TENANT_ID, write.before),
)


def _is_owner_kept(write: Write) -> bool:
    """Whether the owner is as it was, or put back as the claim names it."""
    old, new = (text_in(LABELS, TENANT_NAME, body) for body in (write.before, write.after))
    was_there = TENANT_NAME in cast("JsonObject", LABELS.of(write.before) or {})
    return old == new if was_there else _AGREES.holds(write)


_OWNER_STAYS: Final = Relation(
    f"variables.old{_OWNER} == variables.new{_OWNER}"
    f" || (!variables.old{_OWNER}.hasValue() && ({_AGREES.cel}))",
    _is_owner_kept,
)


def _cleaner(body: JsonObject | None) -> str:
    return text_in(NOTES, CLEANING_TOKEN, body).rpartition("/")[0]


def _cel_cleaner(age: str) -> str:
    text = f"variables.{age}Notes[?'{CLEANING_TOKEN}'].orValue('/')"
    return f"{text}.substring(0, {text}.lastIndexOf('/'))"


_SAME_CLEANER: Final = Relation(
    f"variables.oldNotes[?'{CLEANING_TOKEN}'].orValue('').contains('/')"
    f" && {_cel_cleaner('old')} == {_cel_cleaner('new')}",
    lambda write: (
        "/" in text_in(NOTES, CLEANING_TOKEN, write.before)
        and _cleaner(write.before) == _cleaner(write.after)
    ),
)

_PLACE: Final = rf'"claim-[^"\\]*": {TEXT}'
_SHARERS: Final = Entries(NOTES, SHARED_CLAIMS, _PLACE)


def _has_room(write: Write) -> bool:
    return _SHARERS.steps(write)[0] <= number_in(text_in(NOTES, SHARED_CAPACITY, write.after))


_CEL_ROOM: Final = "variables.newPlaces.size() <= " + cel_number(
    f"variables.newNotes[?'{SHARED_CAPACITY}'].orValue('')"
)
_PLACE_TAKEN: Final = Relation(
    f"variables.morePlaces == 1 && variables.lessPlaces == 0 && {_CEL_ROOM}",
    lambda write: _SHARERS.steps(write)[1:] == (1, 0) and _has_room(write),
)
_PLACE_LEFT: Final = Relation(
    "variables.morePlaces == 0 && variables.lessPlaces == 1",
    lambda write: _SHARERS.steps(write)[1:] == (0, 1),
)
_PLACE_REBOUND: Final = Relation(
    f"variables.morePlaces == 1 && variables.lessPlaces <= 1 && {_CEL_ROOM}",
    lambda write: _SHARERS.steps(write)[1:] in ((1, 0), (1, 1)) and _has_room(write),
)
_CAPACITY_SUFFICES: Final = Relation(
    f"variables.newNotes[?'{SHARED_CAPACITY}'] == variables.oldNotes[?'{SHARED_CAPACITY}'] || {_CEL_ROOM}",
    lambda write: (
        text_in(NOTES, SHARED_CAPACITY, write.before) == text_in(NOTES, SHARED_CAPACITY, write.after)
        or _has_room(write)
    ),
)

_IS_TOKEN: Final = Among(form=r'claim-[^."\\]+[.][^"\\]+[.][0-9]{1,9}')
_IS_PLACES: Final = Among(form=json_form(_PLACE))
_NOBODY: Final = Among(("{}",), absent=True)
_DIRTY, _CLEANING, _QUARANTINED = (one_of(state) for state in ("dirty", "cleaning", "quarantined"))
_NOT_CLEANING: Final = Among(("cleaning",), negated=True)
_MARKED: Final = Among(("dirty", TO_BE_LEFT), absent=True)
_LEFT: Final = one_of(TO_BE_LEFT)
_LEAVABLE: Final = Among((TO_BE_LEFT,), absent=True)
_GIVEN_UP: Final = one_of("decommissioned")
_NOT_POOL: Final = Among(("pool",), negated=True)
_POOLS: Final = Among(("pool", "retained"))
_NOT_POOLS: Final = Among(("pool", "retained"), negated=True)

_KEPT_OUT: Final = {OWNER: PRESENT, STATE: _QUARANTINED, REASON: ANYTHING, BEFORE: _MARKED}
_UNCLAIMED: Final = {TOKEN: ABSENT, PLACES: _NOBODY}
_NOT_TRUE: Final = Among(("true",), negated=True)
_FREE: Final = {**_UNCLAIMED, TYPE: PRESENT, SHARING: _NOT_TRUE, STATE: ABSENT}
_CLAIMED: Final = {TOKEN: _IS_TOKEN, POLICY: POLICIES, TENANT: PRESENT}
_RELEASED: Final = without(TOKEN, POLICY)
_NOT_RELEASE: Final = one_of("clean", "quarantine", "retain")
_BINDABLE: Final = {TYPE: PRESENT, OWNER: PRESENT, STATE: _NOT_CLEANING}
_PASSING: Final = touching(OTHER_LABELS, OTHER_NOTES, OTHER_DATA, *HANGING)
_DECLARING: Final = {**_PASSING, **touching(SHARING, KEPT_BACK, CAPACITY, ACCOUNT, BROUGHT)}


def member_table(partition_keys: Sequence[str]) -> Table:
    """Return the state machine of the accounts of a pool that is divided by these labels."""
    parts = tuple(Field(f"part-{number}", LABELS, BY_STACK, key) for number, key in enumerate(partition_keys))
    declaring = {**_DECLARING, **touching(*parts)}
    fields = (
        *(TYPE, OWNER, STATE, SHARING, KEPT_BACK, *parts, OTHER_LABELS),
        *(TOKEN, ORIGIN, POLICY, TENANT, PLACES, CLEANING, REASON, BEFORE),
        *(CAPACITY, ACCOUNT, BROUGHT, OTHER_NOTES, OTHER_DATA, *HANGING),
    )
    steps = (
        # What is declared: the program, and operators by hand.
        Step("declare an account, or restore one", (OPERATE,), new=touching(*fields), on="CREATE"),
        Step(
            "rotate the credential; add capacity, other labels and annotations, owner references, …",
            (OPERATE,),
            new={**_PASSING, CAPACITY: ANYTHING},
            when=(_CAPACITY_SUFFICES,),
        ),
        Step(
            "change an account that nobody holds and nobody cleans; put a Secret into the pool",
            (OPERATE,),
            {**_UNCLAIMED, STATE: _NOT_CLEANING},
            {**declaring, TYPE: PRESENT},
        ),
        Step(
            "take an account out of the pool that is neither held nor dirty",
            (OPERATE,),
            {**_UNCLAIMED, STATE: Among(("dirty", "cleaning"), negated=True)},
            {**declaring, TYPE: ABSENT},
        ),
        Step("give an account its type back", (OPERATE,), {TYPE: ABSENT}, {TYPE: PRESENT}),
        Step(
            "give an account to a tenant, who brought it along or had it before",
            (OPERATE,),
            {**_UNCLAIMED, OWNER: ABSENT, ORIGIN: ABSENT, STATE: _NOT_CLEANING},
            {
                **declaring,
                TYPE: PRESENT,
                OWNER: PRESENT,
                BROUGHT: Among(("true",), absent=True),
                TENANT: ANYTHING,
            },
        ),
        Step(
            "take an account from its tenant, to be cleaned",
            (OPERATE,),
            {**_UNCLAIMED, STATE: _NOT_CLEANING},
            {**declaring, OWNER: ABSENT, STATE: _DIRTY, TENANT: ANYTHING},
        ),
        Step(
            "bring an account along for a tenant",
            (BRING,),
            new={
                **touching(*parts, ACCOUNT, OTHER_DATA),
                TYPE: PRESENT,
                OWNER: PRESENT,
                BROUGHT: one_of("true"),
            },
            when=(_NAMED_AS_BROUGHT,),
            on="CREATE",
        ),
        # Claims.
        Step(
            "C3: take a free account",
            (CLAIM,),
            {**_FREE, OWNER: ABSENT, KEPT_BACK: _NOT_TRUE},
            {**_CLAIMED, OWNER: PRESENT, ORIGIN: one_of("pool")},
            when=(_AGREES,),
        ),
        Step(
            "C3: take an account that is its tenant's",
            (CLAIM,),
            {**_FREE, OWNER: PRESENT, ORIGIN: ABSENT},
            {**_CLAIMED, ORIGIN: one_of("owner")},
            when=(_AGREES,),
        ),
        Step(
            "C3: take an account that its tenant had from the pool",
            (CLAIM,),
            {**_FREE, OWNER: PRESENT, ORIGIN: _POOLS},
            {**_CLAIMED, ORIGIN: _POOLS},
            when=(_AGREES,),
        ),
        Step(
            "C3: take a place on a shared account",
            (CLAIM,),
            {TYPE: PRESENT, SHARING: one_of("true"), STATE: ABSENT, OWNER: ABSENT, TOKEN: ABSENT},
            {PLACES: _IS_PLACES},
            when=(_PLACE_TAKEN,),
        ),
        Step(
            "C4, C8: put back the owner that a claim names",
            RELEASERS,
            {OWNER: ABSENT, TOKEN: _IS_TOKEN},
            {OWNER: PRESENT},
            when=(_AGREES,),
        ),
        Step(
            "update: note another policy of a claim, by which no account is free at once",
            (CLAIM,),
            {TOKEN: _IS_TOKEN},
            {POLICY: _NOT_RELEASE},
        ),
        # Releases.
        Step(
            "X2: leave it free, of a claim by policy `release`",
            RELEASERS,
            {TOKEN: PRESENT, ORIGIN: _POOLS, POLICY: one_of("release")},
            {**_RELEASED, **without(OWNER, ORIGIN, TENANT)},
        ),
        Step(
            "X2: leave it to its tenant, whose it was before",
            RELEASERS,
            {TOKEN: PRESENT, ORIGIN: _NOT_POOLS},
            {**_RELEASED, OWNER: PRESENT, ORIGIN: ABSENT},
            when=(_OWNER_STAYS,),
        ),
        Step(
            "X2: leave it to its tenant, who retains it",
            RELEASERS,
            {TOKEN: PRESENT, ORIGIN: _POOLS},
            {**_RELEASED, OWNER: PRESENT, ORIGIN: one_of("retained")},
            when=(_OWNER_STAYS,),
        ),
        Step(
            "X2: leave it to whom it was given by hand",
            RELEASERS,
            {TOKEN: PRESENT, OWNER: PRESENT},
            {**_RELEASED, **without(ORIGIN, TENANT)},
            when=(_DISAGREED,),
        ),
        Step(
            "X2: leave it dirty",
            RELEASERS,
            {TOKEN: PRESENT, ORIGIN: _POOLS, STATE: Among(("cleaning", "quarantined"), negated=True)},
            {**_RELEASED, OWNER: PRESENT, STATE: _DIRTY, ORIGIN: one_of("pool")},
            when=(_OWNER_STAYS,),
        ),
        Step(
            "X2: leave it quarantined",
            RELEASERS,
            {TOKEN: PRESENT, ORIGIN: _POOLS},
            {**_RELEASED, **_KEPT_OUT, ORIGIN: one_of("pool")},
            when=(_OWNER_STAYS,),
        ),
        Step(
            "X2: leave dirty, or quarantined, what nobody owns any more",
            RELEASERS,
            {TOKEN: PRESENT, OWNER: ABSENT, STATE: _NOT_CLEANING},
            {**_RELEASED, ORIGIN: one_of("pool"), STATE: Among(("dirty", "quarantined")), BEFORE: _MARKED},
        ),
        Step(
            "X2: leave a place on a shared account",
            RELEASERS,
            {SHARING: one_of("true")},
            {PLACES: _IS_PLACES},
            when=(_PLACE_LEFT,),
        ),
        # Cleaning.
        Step(
            "K2: begin to clean a dirty account that nobody holds",
            (CLEAN,),
            {**_UNCLAIMED, STATE: _DIRTY},
            {STATE: _CLEANING, CLEANING: PRESENT},
        ),
        Step(
            "K2: begin again what this cleaner began",
            (CLEAN,),
            {**_UNCLAIMED, STATE: _CLEANING},
            {CLEANING: PRESENT},
            when=(_SAME_CLEANER,),
        ),
        Step(
            "K2: take a cleaning over from another cleaner",
            (OPERATE,),
            {**_UNCLAIMED, STATE: _CLEANING},
            {CLEANING: PRESENT},
        ),
        Step(
            "K3: change the credential of an account that is being cleaned",
            (CLEAN,),
            {**_UNCLAIMED, STATE: _CLEANING},
            {OTHER_DATA: ANYTHING},
        ),
        Step(
            "K3: keep an account out of the pool that could not be cleaned",
            (CLEAN,),
            {STATE: _CLEANING},
            {STATE: _QUARANTINED, BEFORE: _DIRTY, REASON: PRESENT, CLEANING: ABSENT},
        ),
        Step(
            "K4: leave a cleaned account to the pool",
            (CLEAN,),
            {**_UNCLAIMED, STATE: _CLEANING, ORIGIN: one_of("pool")},
            without(STATE, CLEANING, REASON, BEFORE, ORIGIN, OWNER, TENANT),
        ),
        Step(
            "K4: leave a cleaned account to whom it belongs",
            (CLEAN,),
            {**_UNCLAIMED, STATE: _CLEANING, ORIGIN: _NOT_POOLS},
            without(STATE, CLEANING, REASON, BEFORE, ORIGIN),
        ),
        Step(
            "K4: leave a cleaned account to who retains it",
            (CLEAN,),
            {**_UNCLAIMED, STATE: _CLEANING, ORIGIN: one_of("retained")},
            without(STATE, CLEANING, REASON, BEFORE),
        ),
        # What operators decide.
        Step(
            "quarantine a usable account",
            (OPERATE,),
            {STATE: ABSENT},
            {STATE: _QUARANTINED, REASON: ANYTHING, **without(BEFORE, CLEANING)},
        ),
        Step(
            "quarantine an account that is not clean",
            (OPERATE,),
            {STATE: Among(("quarantined",), absent=True, negated=True)},
            {STATE: _QUARANTINED, BEFORE: _DIRTY, REASON: ANYTHING, CLEANING: ABSENT},
        ),
        Step(
            "say anew why an account is quarantined",
            (OPERATE,),
            {STATE: _QUARANTINED},
            {REASON: ANYTHING, CLEANING: ABSENT},
        ),
        Step(
            "mark what is quarantined as dirty",
            (OPERATE,),
            {STATE: _QUARANTINED, BEFORE: ABSENT},
            {OTHER_LABELS: ANYTHING, BEFORE: _DIRTY},
        ),
        Step(
            "give an account up",
            (OPERATE,),
            {**_UNCLAIMED, STATE: _NOT_CLEANING},
            {STATE: _QUARANTINED, BEFORE: _GIVEN_UP, REASON: ANYTHING, CLEANING: ABSENT},
        ),
        Step(
            "have an account left by whoever holds it",
            (OPERATE,),
            {TOKEN: PRESENT, STATE: Among(("quarantined",), absent=True), BEFORE: _LEAVABLE},
            {STATE: _QUARANTINED, BEFORE: _LEFT, REASON: ANYTHING},
        ),
        Step(
            "let a quarantined account back to whoever holds it",
            (OPERATE,),
            {STATE: _QUARANTINED, TOKEN: PRESENT, BEFORE: _LEAVABLE},
            without(STATE, REASON, BEFORE),
        ),
        Step(
            "let a quarantined account back that nobody has left",
            (OPERATE,),
            {STATE: _QUARANTINED, ORIGIN: _NOT_POOL, BEFORE: ABSENT},
            without(STATE, REASON),
        ),
        Step(
            "leave an account to the cleaner, also a quarantined one, or one of an unknown state",
            (OPERATE,),
            {STATE: _NOT_CLEANING},
            {STATE: _DIRTY, REASON: ANYTHING, BEFORE: ABSENT},
        ),
        Step(
            "let a retained account go back to the pool, by way of the cleaner",
            (OPERATE,),
            {**_UNCLAIMED, OWNER: PRESENT, BROUGHT: ABSENT, STATE: _NOT_CLEANING},
            {STATE: Among(("dirty", "quarantined")), ORIGIN: one_of("pool")},
        ),
        Step(
            "bind a restored claim to its account",
            (OPERATE,),
            {**_BINDABLE, ORIGIN: Among(("pool", "owner", "retained"))},
            _CLAIMED,
            when=(_AGREES,),
        ),
        Step(
            "bind a restored claim to an account without traces of one",
            (OPERATE,),
            {**_BINDABLE, ORIGIN: ABSENT},
            {**_CLAIMED, ORIGIN: one_of("owner")},
            when=(_AGREES,),
        ),
        Step(
            "bind a restored claim to its shared account",
            (OPERATE,),
            {TYPE: PRESENT, SHARING: one_of("true")},
            {PLACES: _IS_PLACES},
            when=(_PLACE_REBOUND,),
        ),
        Step(
            "take off what is no token, of an account that has an owner",
            (OPERATE,),
            {TOKEN: Among(form=_IS_TOKEN.form, absent=True, negated=True), OWNER: PRESENT},
            without(TOKEN),
        ),
        Step(
            "restore who shares an account, where that cannot be read",
            (OPERATE,),
            {PLACES: Among(form=_IS_PLACES.form, absent=True, negated=True)},
            {PLACES: Among(form=_IS_PLACES.form, absent=True)},
        ),
        # What is nobody's business, and what goes.
        Step("write annotations that mean nothing to the pool", new=touching(OTHER_NOTES)),
        COLLECTING,
        *(
            Step(
                does,
                by,
                {**_UNCLAIMED, STATE: Among(("dirty", "cleaning"), negated=True)},
                when=when,
                on="DELETE",
            )
            for does, by, when in (
                ("delete an account that is neither held nor dirty", (OPERATE,), ()),
                ("delete it with its namespace", (), (NAMESPACE_GOES,)),
            )
        ),
    )
    marks = (POOL_STATE, TENANT_NAME, HYPERSCALER_TYPE)
    traces = (CLAIM_TOKEN, CLAIM_ORIGIN, SHARED_CLAIMS, CLEANING_TOKEN, STATE_BEFORE)
    belongs = any_of(either(LABELS, marks), either(NOTES, traces))
    mend = f"release and clean it, or give it up with `credfleet pool decommission`; else {BY_STACK}"
    return Table("members", "account", "secrets", mend, belongs, fields, steps, _SHARERS.lists("Places"))
