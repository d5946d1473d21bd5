"""Who may make which step of a pool's accounts, records, settings and Events: the state machine as tables.

A new step is a new row, beside those of its kind; the API server keeps it (`admission.py`), the tests try
it. The letters are the steps of docs/design/claim-protocol.md. What the program does is the operators': it
declares a pool with their verb.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from components.account_pool.audit import COMPONENT
from components.account_pool.config_map import CONFIG_MAP, POOL_UID
from components.account_pool.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    INTERNAL,
    POOL_RECORD,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_BEFORE,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.model import JsonObject, Phase, Policy, State
from components.account_pool.rows import (
    ABSENT,
    ANYTHING,
    BYTES,
    DATA,
    FINALIZERS,
    LABELS,
    LOCK,
    NOTES,
    PRESENT,
    REFERENCES,
    Among,
    Field,
    Relation,
    Step,
    Table,
    Verb,
    Where,
    Write,
    one_of,
)
from components.labels import ACCOUNT_ID, BRING_YOUR_OWN, HYPERSCALER_TYPE, SHARED, TENANT_NAME

CLAIM, CLEAN, OPERATE = Verb.CLAIM, Verb.CLEAN, Verb.OPERATE

_ASK: Final = "or ask for the verb operate on accounts.credfleet.io"
_CLAIMS: Final = "run `credfleet pool claim` or `credfleet pool release`"
_STATES: Final = "run `credfleet pool clean`, or let an operator quarantine it or let it back"
_DECLARED: Final = f"change the stack that declares it, {_ASK}"
_HANGING: Final = (
    f"it lets others delete the object, or keeps it from going and from rotating; leave it, {_ASK}"
)

TYPE: Final = Field("type", LABELS, _DECLARED, HYPERSCALER_TYPE)
OWNER: Final = Field("owner", LABELS, _CLAIMS, TENANT_NAME)
STATE: Final = Field("state", LABELS, _STATES, POOL_STATE)
SHARING: Final = Field("sharing", LABELS, _DECLARED, SHARED)
KEPT_BACK: Final = Field("kept-back", LABELS, _DECLARED, INTERNAL)
OTHER_LABELS: Final = Field("labels", LABELS, _DECLARED)
TOKEN: Final = Field("token", NOTES, _CLAIMS, CLAIM_TOKEN)
ORIGIN: Final = Field("origin", NOTES, _CLAIMS, CLAIM_ORIGIN)
POLICY: Final = Field("policy", NOTES, _CLAIMS, CLAIM_POLICY)
TENANT: Final = Field("tenant", NOTES, _CLAIMS, TENANT_ID)
PLACES: Final = Field("places", NOTES, _CLAIMS, SHARED_CLAIMS)
CLEANING: Final = Field("cleaning", NOTES, _STATES, CLEANING_TOKEN)
REASON: Final = Field("reason", NOTES, _STATES, STATE_REASON)
BEFORE: Final = Field("before", NOTES, _STATES, STATE_BEFORE)
CAPACITY: Final = Field("capacity", NOTES, _DECLARED, SHARED_CAPACITY)
ACCOUNT: Final = Field("account", NOTES, _DECLARED, ACCOUNT_ID)
BROUGHT: Final = Field("brought", NOTES, _DECLARED, BRING_YOUR_OWN)
OTHER_NOTES: Final = Field("annotations", NOTES, _DECLARED)
OTHER_DATA: Final = Field("data", DATA, _DECLARED)
OTHER_BYTES: Final = Field("binaryData", BYTES, _DECLARED)
OWNERS: Final = Field("ownerReferences", REFERENCES, _HANGING)
KEEPERS: Final = Field("finalizers", FINALIZERS, _HANGING)
LOCKED: Final = Field("immutable", LOCK, _HANGING)

HANGING: Final = (OWNERS, KEEPERS, LOCKED)


def _touching(*fields: Field) -> dict[Field, Among]:
    return dict.fromkeys(fields, ANYTHING)


def _without(*fields: Field) -> dict[Field, Among]:
    return dict.fromkeys(fields, ABSENT)


def _text(where: Where, key: str, body: JsonObject | None) -> str:
    return str(cast("Mapping[str, Any]", where.of(body) or {}).get(key) or "")


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _cel_number(text: str) -> str:
    return f"({text}.matches('^[0-9]{{1,18}}$') ? int({text}) : 0)"


def _either(where: Where, keys: Sequence[str]) -> Relation:
    """Return whether the object has one of these keys, before or after."""
    path = ".?".join(where.path[1:])

    def holds(write: Write) -> bool:
        return any(key in (where.of(body) or {}) for body in (write.before, write.after) for key in keys)

    cel = " || ".join(
        f"({moment} != null && {list(keys)}.exists(key, key in {moment}.metadata.?{path}.orValue({{}})))"
        for moment in ("object", "oldObject")
    )
    return Relation(cel, holds)


def _any_of(*relations: Relation) -> Relation:
    return Relation(
        " || ".join(f"({relation.cel})" for relation in relations),
        lambda write: any(relation.holds(write) for relation in relations),
    )


_NAME: Final = "(object == null ? oldObject : object).metadata.name"
"""Unlike `request.name`, it is there when many are deleted at once."""


def _name(write: Write) -> str:
    return str(cast("JsonObject", write.after or write.before)["metadata"]["name"])


_IS_CLAIM: Final = Relation(f"{_NAME}.startsWith('claim-')", lambda write: _name(write).startswith("claim-"))
_IS_DIGEST: Final = Relation(
    f"{_NAME}.matches('^claim-[0-9a-f]{{40}}$')",
    lambda write: re.fullmatch("claim-[0-9a-f]{40}", _name(write)) is not None,
)
_IS_SETTINGS: Final = Relation(f"{_NAME} == '{CONFIG_MAP}'", lambda write: _name(write) == CONFIG_MAP)

_NAMESPACE_GOES: Final = Relation(
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
    new=_without(KEEPERS),
    when=(_COLLECTED,),
)


def _agrees(write: Write) -> bool:
    owner, tenant = _text(LABELS, TENANT_NAME, write.after), _text(NOTES, TENANT_ID, write.after)
    return owner == tenant or owner.startswith("enc-")


def _owner(age: str) -> str:
    return f"variables.{age}Labels[?'{TENANT_NAME}']"


_AGREES: Final = Relation(
    f"{_owner('new')}.orValue('') == variables.newNotes[?'{TENANT_ID}'].orValue('')"
    f" || {_owner('new')}.orValue('').startsWith('enc-')",
    _agrees,
)
_DISAGREED: Final = Relation(
    f"{_owner('old')}.orValue('') != variables.oldNotes[?'{TENANT_ID}'].orValue('')",
    lambda write: _text(LABELS, TENANT_NAME, write.before) != _text(NOTES, TENANT_ID, write.before),
)


def _is_owner_kept(write: Write) -> bool:
    """Whether the owner is as it was, or put back as the claim names it."""
    old, new = (_text(LABELS, TENANT_NAME, body) for body in (write.before, write.after))
    was_there = TENANT_NAME in cast("JsonObject", LABELS.of(write.before) or {})
    return old == new if was_there else _agrees(write)


_OWNER_STAYS: Final = Relation(
    f"{_owner('old')} == {_owner('new')} || (!{_owner('old')}.hasValue() && ({_AGREES.cel}))", _is_owner_kept
)


def _cleaner(body: JsonObject | None) -> str:
    return _text(NOTES, CLEANING_TOKEN, body).rpartition("/")[0]


def _cel_cleaner(age: str) -> str:
    text = f"variables.{age}Notes[?'{CLEANING_TOKEN}'].orValue('/')"
    return f"{text}.substring(0, {text}.lastIndexOf('/'))"


_SAME_CLEANER: Final = Relation(
    f"variables.oldNotes[?'{CLEANING_TOKEN}'].orValue('').contains('/')"
    f" && {_cel_cleaner('old')} == {_cel_cleaner('new')}",
    lambda write: (
        "/" in _text(NOTES, CLEANING_TOKEN, write.before) and _cleaner(write.before) == _cleaner(write.after)
    ),
)

_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_PLACE: Final = rf'"claim-[^"\\]*": {_TEXT}'
_HOLDER: Final = rf"{_TEXT}: [0-9]{{1,18}}"
_COMPARED: Final = 500
"""How many entries are compared with each other; more are counted only, or the API server would give up."""


def _json_of(entry: str) -> str:
    """Return the form of a JSON object of such entries, as the protocol writes one."""
    return f"[{{]({entry}(, {entry})*)?[}}]"


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of a JSON object in a text, before and after: which came, which went, and how many."""

    where: Where
    key: str
    entry: str

    def lists(self, noun: str) -> dict[str, str]:
        """Return variables of CEL: the lists, whether they are too long to compare, what came, what went."""
        old, new = f"variables.old{noun}", f"variables.new{noun}"
        return {
            **{
                f"{age}{noun}": f"{text}.matches(r'^{_json_of(self.entry)}$')"
                f" ? {text}.findAll(r'{self.entry}') : []"
                for age in ("old", "new")
                for text in [f"variables.{age}{self.where.name}[?'{self.key}'].orValue('')"]
            },
            f"many{noun}": f"{old}.size() > {_COMPARED} || {new}.size() > {_COMPARED}",
            f"come{noun}": f"variables.many{noun} ? [] : {new}.filter(entry, !(entry in {old}))",
            f"gone{noun}": f"variables.many{noun} ? [] : {old}.filter(entry, !(entry in {new}))",
            f"more{noun}": f"variables.many{noun} ? [{new}.size() - {old}.size(), 0].max()"
            f" : variables.come{noun}.size()",
            f"less{noun}": f"variables.many{noun} ? [{old}.size() - {new}.size(), 0].max()"
            f" : variables.gone{noun}.size()",
        }

    def of(self, body: JsonObject | None) -> dict[str, Any]:
        """Return them as JSON has them; none of a text that the protocol does not write."""
        text = _text(self.where, self.key, body)
        return json.loads(text) if re.fullmatch(_json_of(self.entry), text) else {}

    def steps(self, write: Write) -> tuple[int, int, int]:
        """Return how many there are, how many came, and how many went."""
        old, new = self.of(write.before), self.of(write.after)
        if max(len(old), len(new)) > _COMPARED:
            return len(new), max(len(new) - len(old), 0), max(len(old) - len(new), 0)
        return len(new), len(new.items() - old.items()), len(old.items() - new.items())


_SHARERS: Final = _Entries(NOTES, SHARED_CLAIMS, _PLACE)
_HOLDERS: Final = _Entries(DATA, "holders", _HOLDER)


def _has_room(write: Write) -> bool:
    return _SHARERS.steps(write)[0] <= _number(_text(NOTES, SHARED_CAPACITY, write.after))


_CEL_ROOM: Final = "variables.newPlaces.size() <= " + _cel_number(
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
        _text(NOTES, SHARED_CAPACITY, write.before) == _text(NOTES, SHARED_CAPACITY, write.after)
        or _has_room(write)
    ),
)

_KNOWN: Final = tuple(str(state) for state in State)
_POLICIES: Final = one_of(*(str(policy) for policy in Policy))
_IS_TOKEN: Final = Among(form=r'claim-[^."\\]+[.][^"\\]+[.][0-9]{1,9}')
_IS_PLACES: Final = Among(form=_json_of(_PLACE))
_NOBODY: Final = Among(("{}",), absent=True)
_DIRTY, _CLEANING, _QUARANTINED = (one_of(state) for state in ("dirty", "cleaning", "quarantined"))
_NOT_CLEANING: Final = Among(("cleaning",), negated=True)
_GIVEN_UP: Final = one_of("decommissioned")
_NOT_POOL: Final = Among(("pool",), negated=True)

_UNCLAIMED: Final = {TOKEN: ABSENT, PLACES: _NOBODY}
_NOT_TRUE: Final = Among(("true",), negated=True)
_FREE: Final = {**_UNCLAIMED, TYPE: PRESENT, SHARING: _NOT_TRUE, STATE: ABSENT}
_CLAIMED: Final = {TOKEN: _IS_TOKEN, POLICY: _POLICIES, TENANT: PRESENT}
_RELEASED: Final = _without(TOKEN, POLICY)
_PASSING: Final = _touching(OTHER_LABELS, OTHER_NOTES, OTHER_DATA, *HANGING)
_DECLARING: Final = {**_PASSING, **_touching(SHARING, KEPT_BACK, CAPACITY, ACCOUNT, BROUGHT)}
_RELEASERS: Final = (CLAIM, OPERATE)


def member_table(partition_keys: Sequence[str]) -> Table:
    """Return the state machine of the accounts of a pool that is divided by these labels."""
    parts = tuple(
        Field(f"part-{number}", LABELS, _DECLARED, key) for number, key in enumerate(partition_keys)
    )
    declaring = {**_DECLARING, **_touching(*parts)}
    fields = (
        *(TYPE, OWNER, STATE, SHARING, KEPT_BACK, *parts, OTHER_LABELS),
        *(TOKEN, ORIGIN, POLICY, TENANT, PLACES, CLEANING, REASON, BEFORE),
        *(CAPACITY, ACCOUNT, BROUGHT, OTHER_NOTES, OTHER_DATA, *HANGING),
    )
    steps = (
        # What is declared: the program, and operators by hand.
        Step("declare an account, or restore one", (OPERATE,), new=_touching(*fields), on="CREATE"),
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
            {**_FREE, OWNER: PRESENT, ORIGIN: Among(("pool", "retained"))},
            {**_CLAIMED, ORIGIN: one_of("pool")},
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
            _RELEASERS,
            {OWNER: ABSENT, TOKEN: _IS_TOKEN},
            {OWNER: PRESENT},
            when=(_AGREES,),
        ),
        # Releases.
        Step(
            "X2: leave it free, of a claim by policy `release`",
            _RELEASERS,
            {TOKEN: PRESENT, ORIGIN: one_of("pool"), POLICY: one_of("release")},
            {**_RELEASED, **_without(OWNER, ORIGIN, TENANT)},
        ),
        Step(
            "X2: leave it to its tenant, whose it was before",
            _RELEASERS,
            {TOKEN: PRESENT, ORIGIN: _NOT_POOL},
            {**_RELEASED, OWNER: PRESENT, ORIGIN: ABSENT},
            when=(_OWNER_STAYS,),
        ),
        Step(
            "X2: leave it to its tenant, who retains it",
            _RELEASERS,
            {TOKEN: PRESENT, ORIGIN: one_of("pool")},
            {**_RELEASED, OWNER: PRESENT, ORIGIN: one_of("retained")},
            when=(_OWNER_STAYS,),
        ),
        Step(
            "X2: leave it to whom it was given by hand",
            _RELEASERS,
            {TOKEN: PRESENT, OWNER: PRESENT},
            {**_RELEASED, **_without(ORIGIN, TENANT)},
            when=(_DISAGREED,),
        ),
        Step(
            "X2: leave it dirty",
            _RELEASERS,
            {TOKEN: PRESENT, ORIGIN: one_of("pool"), STATE: Among(("cleaning", "quarantined"), negated=True)},
            {**_RELEASED, OWNER: PRESENT, STATE: _DIRTY},
            when=(_OWNER_STAYS,),
        ),
        Step(
            "X2: leave it quarantined",
            _RELEASERS,
            {TOKEN: PRESENT, ORIGIN: one_of("pool")},
            {**_RELEASED, OWNER: PRESENT, STATE: _QUARANTINED, REASON: ANYTHING},
            when=(_OWNER_STAYS,),
        ),
        Step(
            "X2: leave dirty, or quarantined, what nobody owns any more",
            _RELEASERS,
            {TOKEN: PRESENT, OWNER: ABSENT, STATE: _NOT_CLEANING},
            {**_RELEASED, ORIGIN: one_of("pool"), STATE: Among(("dirty", "quarantined"))},
        ),
        Step(
            "X2: leave a place on a shared account",
            _RELEASERS,
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
            _without(STATE, CLEANING, REASON, BEFORE, ORIGIN, OWNER, TENANT),
        ),
        Step(
            "K4: leave a cleaned account to whom it belongs",
            (CLEAN,),
            {**_UNCLAIMED, STATE: _CLEANING, ORIGIN: Among(("pool", "retained"), negated=True)},
            _without(STATE, CLEANING, REASON, BEFORE, ORIGIN),
        ),
        Step(
            "K4: leave a cleaned account to who retains it",
            (CLEAN,),
            {**_UNCLAIMED, STATE: _CLEANING, ORIGIN: one_of("retained")},
            _without(STATE, CLEANING, REASON, BEFORE),
        ),
        # What operators decide.
        Step(
            "quarantine a usable account",
            (OPERATE,),
            {STATE: ABSENT},
            {STATE: _QUARANTINED, REASON: ANYTHING, **_without(BEFORE, CLEANING)},
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
            "give an account up",
            (OPERATE,),
            {**_UNCLAIMED, STATE: _NOT_CLEANING},
            {STATE: _QUARANTINED, BEFORE: _GIVEN_UP, REASON: ANYTHING, CLEANING: ABSENT},
        ),
        Step(
            "let a quarantined account back to whoever holds it",
            (OPERATE,),
            {STATE: _QUARANTINED, TOKEN: PRESENT, BEFORE: ABSENT},
            _without(STATE, REASON),
        ),
        Step(
            "let a quarantined account back that nobody has left",
            (OPERATE,),
            {STATE: _QUARANTINED, ORIGIN: _NOT_POOL, BEFORE: ABSENT},
            _without(STATE, REASON),
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
            {OWNER: PRESENT, ORIGIN: Among(("pool", "owner", "retained")), STATE: _NOT_CLEANING},
            _CLAIMED,
            when=(_AGREES,),
        ),
        Step(
            "bind a restored claim to an account without traces of one",
            (OPERATE,),
            {OWNER: PRESENT, ORIGIN: ABSENT, STATE: _NOT_CLEANING},
            {**_CLAIMED, ORIGIN: one_of("owner")},
            when=(_AGREES,),
        ),
        Step(
            "bind a restored claim to its shared account",
            (OPERATE,),
            {SHARING: one_of("true")},
            {PLACES: _IS_PLACES},
            when=(_PLACE_REBOUND,),
        ),
        Step(
            "take off what is no token, of an account that has an owner",
            (OPERATE,),
            {TOKEN: Among(form=_IS_TOKEN.form, absent=True, negated=True), OWNER: PRESENT},
            _without(TOKEN),
        ),
        Step(
            "restore who shares an account, where that cannot be read",
            (OPERATE,),
            {PLACES: Among(form=_IS_PLACES.form, absent=True, negated=True)},
            {PLACES: Among(form=_IS_PLACES.form, absent=True)},
        ),
        # What is nobody's business, and what goes.
        Step("write annotations that mean nothing to the pool", new=_touching(OTHER_NOTES)),
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
                ("delete it with its namespace", (), (_NAMESPACE_GOES,)),
            )
        ),
    )
    marks = (POOL_STATE, TENANT_NAME, HYPERSCALER_TYPE)
    traces = (CLAIM_TOKEN, CLAIM_ORIGIN, SHARED_CLAIMS, CLEANING_TOKEN, STATE_BEFORE)
    belongs = _any_of(_either(LABELS, marks), _either(NOTES, traces))
    mend = f"release and clean it, or give it up with `credfleet pool decommission`; else {_DECLARED}"
    return Table("members", "account", "secrets", mend, belongs, fields, steps, _SHARERS.lists("Places"))


_RECORDED: Final = "leave the record to its claim; `credfleet pool sweep` finishes what nobody pursues"


def _datum(name: str, key: str = "") -> Field:
    return Field(name, DATA, _RECORDED, key or name)


MARK: Final = Field("mark", LABELS, _RECORDED, POOL_RECORD)
WHOSE, PART, SLOT = _datum("tenant"), _datum("partition"), _datum("slot")
MEMBER, MEMBER_UID, ATTEMPT = _datum("member"), _datum("member-uid", "memberUid"), _datum("attempt")
PHASE, AGREED, LIMIT = _datum("phase"), _datum("policy"), _datum("limit")
HOLDERS, RETIRED, FORMER = _datum("holders"), _datum("retired"), _datum("former-uid", "formerUid")

_COUNT: Final = Among(form="[0-9]{1,9}")
_COUNT_OR_NONE: Final = Among(form="[0-9]{1,9}", absent=True)
_SOMEBODY: Final = Among(form=f"[{{]{_HOLDER}(, {_HOLDER})*[}}]")
_PENDING, _BOUND, _RELEASING = (one_of(str(phase)) for phase in Phase)
_READABLE: Final = {
    **dict.fromkeys((WHOSE, PART, SLOT, MEMBER), PRESENT),
    ATTEMPT: _COUNT,
    PHASE: one_of(*(str(phase) for phase in Phase)),
    AGREED: _POLICIES,
    LIMIT: _COUNT_OR_NONE,
    RETIRED: _COUNT_OR_NONE,
    HOLDERS: Among(form=_json_of(_HOLDER)),
}


def _is_unreadable(write: Write) -> bool:
    data: Mapping[str, str] = DATA.of(write.before) or {}
    return not all(among.holds(data.get(f.shown)) for f, among in _READABLE.items())


_UNREADABLE: Final = Relation(
    "!(" + " && ".join(among.cel(f"variables.oldData[?'{f.key}']") for f, among in _READABLE.items()) + ")",
    _is_unreadable,
)


def _is_next_attempt(write: Write) -> bool:
    old, new = (_number(_text(DATA, "attempt", body)) for body in (write.before, write.after))
    return new == old + 1


_OLD_ATTEMPT, _NEW_ATTEMPT, _OLD_RETIRED, _NEW_RETIRED = (
    _cel_number(f"variables.{age}Data[?'{key}'].orValue('')")
    for key in ("attempt", "retired")
    for age in ("old", "new")
)
_NEXT_ATTEMPT: Final = Relation(f"{_NEW_ATTEMPT} == {_OLD_ATTEMPT} + 1", _is_next_attempt)


def _keeps_its_numbers(write: Write) -> bool:
    """Whether nobody came, or one with the next number; nobody left, or one whose number is remembered."""
    old, new = _HOLDERS.of(write.before), _HOLDERS.of(write.after)
    before, after = (_number(_text(DATA, "retired", body)) for body in (write.before, write.after))
    _, more, less = _HOLDERS.steps(write)
    if max(len(old), len(new)) > _COMPARED:
        return more <= 1 and less <= 1 and after >= before
    left = [number for holder, number in old.items() if holder not in new]
    come = [1 + max(after, old.get(holder, 0)) for holder in new if old.get(holder) != new[holder]]
    return (
        more <= 1
        and less <= 1
        and after == max([before, *left])
        and come == [new[holder] for holder in new if old.get(holder) != new[holder]]
    )


def _key(entry: str) -> str:
    return f"{entry}.substring(0, {entry}.lastIndexOf(':'))"


def _order(entry: str) -> str:
    return f"int({entry}.find('[0-9]+$'))"


_NUMBERED: Final = Relation(
    "variables.moreHolders <= 1 && variables.lessHolders <= 1 && (variables.manyHolders"
    f" ? {_NEW_RETIRED} >= {_OLD_RETIRED} : ({_NEW_RETIRED} == ([{_OLD_RETIRED}] + variables.goneHolders"
    f".filter(left, !variables.comeHolders.exists(one, {_key('one')} == {_key('left')}))"
    f".map(left, {_order('left')})).max()"
    f" && variables.comeHolders.all(one, {_order('one')} == 1 + ([{_NEW_RETIRED}] + variables.goneHolders"
    f".filter(left, {_key('one')} == {_key('left')}).map(left, {_order('left')})).max())))",
    _keeps_its_numbers,
)


def _is_within_limit(write: Write) -> bool:
    count, more, less = _HOLDERS.steps(write)
    limit = _text(DATA, "limit", write.after)
    is_as_before = limit == _text(DATA, "limit", write.before) and more <= less
    return not limit or is_as_before or count <= _number(limit)


_WITHIN_LIMIT: Final = Relation(
    "!variables.newData[?'limit'].hasValue() || (variables.moreHolders <= variables.lessHolders"
    " && variables.newData[?'limit'] == variables.oldData[?'limit'])"
    " || variables.newHolders.size() <= " + _cel_number("variables.newData[?'limit'].orValue('')"),
    _is_within_limit,
)


def _is_labelled(write: Write) -> bool:
    owner, tenant = _text(LABELS, TENANT_NAME, write.after), _text(DATA, "tenant", write.after)
    return owner == tenant or owner.startswith("enc-")


_LABELLED: Final = Relation(
    f"{_owner('new')}.orValue('') == variables.newData[?'tenant'].orValue('')"
    f" || {_owner('new')}.orValue('').startsWith('enc-')",
    _is_labelled,
)


def _partition_form(partition_keys: Sequence[str]) -> str:
    """Return the form of `Partition` as a text in a pool with these keys."""
    value = "[-A-Za-z0-9_.]+"
    terms = {key: f"(?:!{_quoted(key)}|{_quoted(key)}={value})" for key in partition_keys}
    terms[HYPERSCALER_TYPE] = f"{HYPERSCALER_TYPE}={value}"
    plain, shared = terms, {**terms, SHARED: f"{_quoted(SHARED)}=true"}
    return "|".join(",".join(each[key] for key in sorted(each)) for each in (plain, shared))


def _quoted(key: str) -> str:
    return key.replace(".", "[.]")


def record_table(partition_keys: Sequence[str]) -> Table:
    """Return the state machine of the claims' records of a pool that is divided by these labels."""
    dropped = (OTHER_LABELS, OTHER_NOTES, OTHER_DATA, OTHER_BYTES, *HANGING)
    found_by = (MARK, TYPE, OWNER)
    identity = (WHOSE, PART, SLOT)
    fields = (
        *(PHASE, *identity, MEMBER, MEMBER_UID, ATTEMPT, AGREED, LIMIT, HOLDERS, RETIRED, FORMER),
        *(*found_by, *dropped),
    )

    def written(
        does: str,
        old: Among | None,
        new: Mapping[Field, Among],
        *when: Relation,
        by: tuple[Verb, ...] = (CLAIM,),
    ) -> Step:
        return Step(does, by, {} if old is None else {PHASE: old}, new, dropped, when)

    steps = (
        Step(
            "C2: begin a claim",
            (CLAIM,),
            new={
                **_READABLE,
                PART: Among(form=_partition_form(partition_keys)),
                ATTEMPT: one_of("1"),
                PHASE: _PENDING,
                HOLDERS: Among(form=f"[{{]{_TEXT}: 1[}}]"),
                MEMBER_UID: PRESENT,
                RETIRED: ABSENT,
                MARK: one_of("true"),
                TYPE: PRESENT,
                OWNER: PRESENT,
            },
            when=(_IS_DIGEST, _LABELLED),
            on="CREATE",
        ),
        Step("restore a record", (OPERATE,), new=_touching(*fields), on="CREATE"),
        written(
            "C5: say that the account was taken, and join",
            _PENDING,
            {PHASE: _BOUND, MEMBER_UID: PRESENT, HOLDERS: _SOMEBODY},
            _NUMBERED,
            _WITHIN_LIMIT,
        ),
        written(
            "C6: try another account",
            _PENDING,
            {MEMBER: PRESENT, MEMBER_UID: PRESENT, ATTEMPT: _COUNT},
            _NEXT_ATTEMPT,
        ),
        written(
            "C8, R1, update: a holder joins, claims again, leaves, or agrees on policy and limit",
            _BOUND,
            {HOLDERS: _SOMEBODY, RETIRED: _COUNT_OR_NONE, AGREED: _POLICIES, LIMIT: _COUNT_OR_NONE},
            _NUMBERED,
            _WITHIN_LIMIT,
        ),
        written(
            "R1: a holder leaves a claim that has no account yet",
            _PENDING,
            {HOLDERS: _SOMEBODY, RETIRED: _COUNT_OR_NONE},
            _NUMBERED,
            by=_RELEASERS,
        ),
        written(
            "R2: the last holder leaves",
            Among((Phase.PENDING, Phase.BOUND)),
            {PHASE: _RELEASING, HOLDERS: one_of("{}"), RETIRED: _COUNT_OR_NONE},
            _NUMBERED,
            by=_RELEASERS,
        ),
        written(
            "S3: end a claim that nobody pursues",
            _PENDING,
            {PHASE: _RELEASING, HOLDERS: one_of("{}")},
            by=_RELEASERS,
        ),
        written(
            "note the uid a restored record had",
            Among((Phase.PENDING, Phase.BOUND)),
            {FORMER: PRESENT},
            by=(OPERATE,),
        ),
        Step(
            "add labels, annotations, owner references, …; label what is a record",
            (OPERATE,),
            new={**_touching(*dropped), MARK: one_of("true"), TYPE: ANYTHING, OWNER: ANYTHING},
        ),
        Step("restore a record that cannot be read", (OPERATE,), new=_touching(*fields), when=(_UNREADABLE,)),
        Step("write annotations that mean nothing to the pool", new=_touching(OTHER_NOTES)),
        COLLECTING,
        *(
            Step(does, by, {PHASE: Among((Phase.BOUND,), negated=True)}, when=when, on="DELETE")
            for does, by, when in (
                ("C6, X3: end a claim that is not bound", _RELEASERS, ()),
                ("delete it with its namespace", (), (_NAMESPACE_GOES,)),
            )
        ),
        Step("delete what cannot be read", (OPERATE,), when=(_UNREADABLE,), on="DELETE"),
    )
    belongs = _any_of(_IS_CLAIM, _either(LABELS, (POOL_RECORD,)))
    return Table("records", "claim", "configmaps", _CLAIMS, belongs, fields, steps, _HOLDERS.lists("Holders"))


SIGNATURE: Final = Field("signature", DATA, _DECLARED, POOL_UID)
_SIGNED: Final = Relation(
    f"variables.newData[?'{POOL_UID}'].orValue('') == oldObject.metadata.uid",
    lambda write: _text(DATA, POOL_UID, write.after) == cast("JsonObject", write.before)["metadata"]["uid"],
)


def settings_table() -> Table:
    """Return the state machine of what a pool says about itself."""
    fields = (SIGNATURE, OTHER_DATA, OTHER_BYTES, OTHER_LABELS, OTHER_NOTES, *HANGING)
    steps = (
        Step("divide the pool, or restore what it said", (OPERATE,), new=_touching(*fields), on="CREATE"),
        Step("change what the pool says", (OPERATE,), new=_touching(*fields)),
        Step("add its uid, once", (CLAIM,), {SIGNATURE: ABSENT}, {SIGNATURE: PRESENT}, when=(_SIGNED,)),
        COLLECTING,
        Step("remove the pool", (OPERATE,), on="DELETE"),
        Step("delete it with its namespace", when=(_NAMESPACE_GOES,), on="DELETE"),
    )
    return Table("settings", "pool", "configmaps", _DECLARED, _IS_SETTINGS, fields, steps)


def _is_of_pool(body: JsonObject | None) -> bool:
    event = body or {}
    return COMPONENT in (event.get("reportingComponent"), (event.get("source") or {}).get("component"))


_IS_TOLD: Final = Relation(
    " || ".join(
        f"({moment} != null && '{COMPONENT}' in [{moment}.?reportingComponent.orValue(''),"
        f" {moment}.?source.?component.orValue('')])"
        for moment in ("object", "oldObject")
    ),
    lambda write: _is_of_pool(write.before) or _is_of_pool(write.after),
)
_SIGNED_BY_WRITER: Final = Relation(
    "object.?reportingInstance.orValue('') == request.userInfo.username",
    lambda write: (write.after or {}).get("reportingInstance", "") == write.user,
)


def _reason_is(*reasons: str) -> Relation:
    return Relation(
        f"object.?reason.orValue('') in {list(reasons)}",
        lambda write: (write.after or {}).get("reason") in reasons,
    )


def event_table() -> Table:
    """Return the state machine of the Events that tell what was done: they come, and never change."""
    steps = (
        *(
            Step(f"tell under one's own name {does}", by, when=(_SIGNED_BY_WRITER, *when), on="CREATE")
            for does, by, when in (
                ("of claims and releases", (CLAIM,), (_reason_is("Claimed", "ClaimRefused", "Released"),)),
                ("of cleaning", (CLEAN,), (_reason_is("Cleaned"),)),
                ("of anything", (OPERATE,), ()),
            )
        ),
        Step("delete an Event", (OPERATE,), on="DELETE"),
        Step("delete it with its namespace", when=(_NAMESPACE_GOES,), on="DELETE"),
    )
    mend = "an Event is written by whoever did what it tells, under its own name, and stays as it is"
    return Table("events", "event", "events", mend, _IS_TOLD, (), steps)


def tables(partition_keys: Sequence[str]) -> tuple[Table, ...]:
    """Return all tables of a pool that is divided by these labels, in the order their policies are drawn."""
    keys = sorted(partition_keys)
    return member_table(keys), record_table(keys), settings_table(), event_table()
