"""Who may write the records of a pool's claims; the letters are steps of docs/design/claim-protocol.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from components.account_pool.admission.conditions import (
    BLOCKING,
    BY_CLAIMS,
    CEL_NAME,
    CLAIM,
    COLLECTED,
    OPERATE,
    OTHER_ANNOTATIONS,
    OTHER_BINARY_DATA,
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
    compare_entries,
    delete_with_namespace,
    has_any_key,
    join_and,
    join_or,
    json_form,
)
from components.account_pool.admission.state_machine import (
    ABSENT,
    ANYTHING,
    DATA,
    LABELS,
    PRESENT,
    AllowedValues,
    Condition,
    Field,
    StateMachine,
    Transition,
    one_of,
)
from components.account_pool.core.keys import POOL_RECORD
from components.account_pool.core.model import Phase
from components.labels import HYPERSCALER_TYPE, SHARED

_RECORDED: Final = "leave the record to its claim; `credfleet pool sweep` ends abandoned claims"


def _datum(name: str, key: str = "") -> Field:
    return Field(name, DATA, _RECORDED, key or name)


MARK: Final = Field("mark", LABELS, _RECORDED, POOL_RECORD)
WHOSE, PART, SLOT = _datum("tenant"), _datum("partition"), _datum("slot")
MEMBER, MEMBER_UID, ATTEMPT = _datum("member"), _datum("member-uid", "memberUid"), _datum("attempt")
PHASE, AGREED, LIMIT = _datum("phase"), _datum("policy"), _datum("limit")
HOLDERS, RETIRED, FORMER = _datum("holders"), _datum("retired"), _datum("former-uid", "formerUid")
MOVES: Final = _datum("moves")
STATES, RECEIPTS = _datum("states"), _datum("receipts")
_OTHERS: Final = (OTHER_LABELS, OTHER_ANNOTATIONS, OTHER_DATA, OTHER_BINARY_DATA, *BLOCKING)
_FIELDS: Final = (
    *(PHASE, WHOSE, PART, SLOT, MEMBER, MEMBER_UID, ATTEMPT, AGREED, LIMIT, HOLDERS, RETIRED, FORMER),
    *(STATES, MOVES, RECEIPTS, MARK, TYPE, OWNER, *_OTHERS),
)

_HOLDER: Final = rf"{TEXT}: [0-9]{{1,18}}"
_TOKEN: Final = AllowedValues(form=r'claim-[^."\\]+[.][^"\\]+[.][0-9]{1,9}')
_COUNT: Final = AllowedValues(form="[0-9]{1,9}")
_COUNT_OR_NONE: Final = AllowedValues(form="[0-9]{1,9}", absent=True)
_HELD: Final = AllowedValues(form=f"[{{]{_HOLDER}(, {_HOLDER})*[}}]")
_HELD_ONCE: Final = AllowedValues(form=f"[{{]{TEXT}: 1[}}]")
_LEFT: Final = {RETIRED: _COUNT_OR_NONE, STATES: ANYTHING, RECEIPTS: ANYTHING}
_HOLDING: Final = {**_LEFT, HOLDERS: _HELD}
_PENDING, _BOUND, _RELEASING = (one_of(str(phase)) for phase in Phase)
_LIVE: Final = one_of(str(Phase.PENDING), str(Phase.BOUND))
_NOT_BOUND: Final = AllowedValues((Phase.BOUND,), negated=True)
READABLE: Final = {
    **dict.fromkeys((WHOSE, PART, SLOT, MEMBER), PRESENT),
    ATTEMPT: _COUNT,
    PHASE: one_of(*(str(phase) for phase in Phase)),
    AGREED: POLICIES,
    LIMIT: _COUNT_OR_NONE,
    RETIRED: _COUNT_OR_NONE,
    HOLDERS: AllowedValues(form=json_form(_HOLDER)),
}


def _key(entry: str) -> str:
    return f"{entry}.substring(0, {entry}.lastIndexOf(':'))"


def _number(entry: str) -> str:
    return f"int({entry}.find('[0-9]+$'))"


_VARIABLES: Final = {
    **compare_entries(HOLDERS, _HOLDER, "HolderEntries"),
    **{
        f"{age}{name.capitalize()}Number": cel_number(f"{each.cel(age)}.orValue('')")
        for name, each in (("attempt", ATTEMPT), ("retired", RETIRED), ("limit", LIMIT))
        for age in ("old", "new")
    },
    "numbersOfLeavers": (
        "variables.removedHolderEntries\n"
        f".filter(left, !variables.addedHolderEntries.exists(each, {_key('each')} == {_key('left')}))\n"
        f".map(left, {_number('left')})"
    ),
}
_DIGEST: Final = Condition("nameIsADigest", f"{CEL_NAME}.matches('^claim-[0-9a-f]{{40}}$')")
_UNREADABLE: Final = Condition(
    "isUnreadable", f"!({join_and(values.cel(each.cel('old')) for each, values in READABLE.items())})"
)
_NEXT_ATTEMPT: Final = Condition(
    "isTheNextAttempt", "variables.newAttemptNumber == variables.oldAttemptNumber + 1"
)
_ONE_AT_A_TIME: Final = Condition(
    "changesOneHolder", "variables.countHolderEntriesAdded <= 1 &&\nvariables.countHolderEntriesRemoved <= 1"
)
_REMEMBERED: Final = Condition(
    "remembersNumbersOfLeavers",
    "variables.tooManyHolderEntries\n"
    "? variables.newRetiredNumber >= variables.oldRetiredNumber\n"
    ": variables.newRetiredNumber == ([variables.oldRetiredNumber] + variables.numbersOfLeavers).max()",
)
_NEXT_NUMBER: Final = Condition(
    "newHolderHasTheNextNumber",
    f"variables.addedHolderEntries.all(each, {_number('each')} == 1 +\n"
    "([variables.newRetiredNumber] + variables.removedHolderEntries\n"
    f".filter(left, {_key('each')} == {_key('left')}).map(left, {_number('left')})).max())",
)
_NUMBERED: Final = (_ONE_AT_A_TIME, _REMEMBERED, _NEXT_NUMBER)
_WITHIN_LIMIT: Final = Condition(
    "isWithinLimit",
    "!variables.newLimit.hasValue() ||\n"
    "variables.newHolderEntries.size() <= variables.newLimitNumber ||\n"
    "(variables.newLimit == variables.oldLimit &&\n"
    "variables.countHolderEntriesAdded <= variables.countHolderEntriesRemoved)",
)


def _rewrite(
    does: str, old: AllowedValues, new: Mapping[Field, AllowedValues], *when: Condition
) -> Transition:
    """Return a transition by a client that writes the record whole, from a phase."""
    return Transition(does, {PHASE: old}, new, _OTHERS, when)


_CLAIMS: Final = allow(
    (CLAIM,),
    {
        "bindsClaim": _rewrite(
            "C5: say that the account was taken, and join",
            _PENDING,
            {PHASE: _BOUND, MEMBER_UID: PRESENT, HOLDERS: _HELD, STATES: ANYTHING},
            *_NUMBERED,
            _WITHIN_LIMIT,
        ),
        "triesAnotherAccount": _rewrite(
            "C6: try another account",
            _PENDING,
            {MEMBER: PRESENT, MEMBER_UID: PRESENT, ATTEMPT: _COUNT},
            _NEXT_ATTEMPT,
        ),
        "givesReceipt": _rewrite(
            "say which key all has that a holder makes of the account", _BOUND, {RECEIPTS: PRESENT}
        ),
        "changesHoldersOfBound": _rewrite(
            "C8, R1, update: a holder joins, claims again, leaves, or agrees on policy and limit",
            _BOUND,
            {**_HOLDING, AGREED: POLICIES, LIMIT: _COUNT_OR_NONE},
            *_NUMBERED,
            _WITHIN_LIMIT,
        ),
    },
)

_RELEASES: Final = allow(
    RELEASERS,
    {
        "changesHoldersOfPending": _rewrite(
            "R1: a holder leaves a claim that has no account yet",
            _PENDING,
            _HOLDING,
            *_NUMBERED,
        ),
        "removesLastHolder": _rewrite(
            "R2: the last holder leaves",
            _LIVE,
            {**_LEFT, PHASE: _RELEASING, HOLDERS: one_of("{}")},
            *_NUMBERED,
        ),
        "endsAbandonedClaim": _rewrite(
            "S3: end a claim that is not pursued any more",
            _PENDING,
            {PHASE: _RELEASING, HOLDERS: one_of("{}"), STATES: ANYTHING},
        ),
        "deletesUnboundClaim": Transition(
            "C6, X3: end a claim that is not bound", {PHASE: _NOT_BOUND}, on="DELETE"
        ),
    },
)

_DECISIONS: Final = allow(
    (OPERATE,),
    {
        "restoresRecord": Transition("restore a record", new=change(*_FIELDS), on="CREATE"),
        "notesFormerUid": _rewrite("note the uid a restored record had", _LIVE, {FORMER: PRESENT}),
        "labelsRecord": Transition(
            "add labels, annotations, owner references, …; label what is a record",
            new={**change(*_OTHERS), MARK: one_of("true"), TYPE: ANYTHING, OWNER: ANYTHING},
        ),
        "repairsRecord": Transition(
            "restore a record that cannot be read", new=change(*_FIELDS), when=(_UNREADABLE,)
        ),
        "deletesUnreadable": Transition("delete what cannot be read", when=(_UNREADABLE,), on="DELETE"),
    },
)
"""What operators decide."""


def build_record_machine(partition_keys: Sequence[str]) -> StateMachine:
    """Return the state machine of the claims' records of a pool that is divided by these labels."""
    begun: Final = {
        **READABLE,
        PART: AllowedValues(form=_partition_form(partition_keys)),
        ATTEMPT: one_of("1"),
        PHASE: _PENDING,
        HOLDERS: _HELD_ONCE,
        MEMBER_UID: PRESENT,
        RETIRED: ABSENT,
        STATES: ANYTHING,
        MARK: one_of("true"),
        TYPE: PRESENT,
        OWNER: PRESENT,
    }
    begins = Transition(
        "C2: begin a claim", new=begun, when=(_DIGEST, OWNER_AGREES), on="CREATE", by=(CLAIM,)
    )
    moved = {**begun, PHASE: _BOUND, MOVES: _TOKEN}
    does = "N1: give a claim a new name"
    moves = Transition(does, new=moved, when=(_DIGEST, OWNER_AGREES), on="CREATE", by=(CLAIM,))
    return StateMachine(
        name="records",
        noun="claim",
        resource="configmaps",
        fix=BY_CLAIMS,
        belongs=join_or((f"{CEL_NAME}.startsWith('claim-')", has_any_key(LABELS, (POOL_RECORD,)))),
        fields=_FIELDS,
        transitions={
            "beginsClaim": begins,
            "movesClaim": moves,
            **_CLAIMS,
            **_RELEASES,
            **_DECISIONS,
            **WRITE_OTHER_ANNOTATIONS,
            **COLLECTED,
            **delete_with_namespace({PHASE: _NOT_BOUND}),
        },
        variables=_VARIABLES,
    )


def _partition_form(partition_keys: Sequence[str]) -> str:
    """Return the form of `Partition` as a text in a pool with these keys."""
    value = "[-A-Za-z0-9_.]+"
    terms = {key: f"(?:!{_escape(key)}|{_escape(key)}={value})" for key in partition_keys}
    terms[HYPERSCALER_TYPE] = f"{HYPERSCALER_TYPE}={value}"
    plain, shared = terms, {**terms, SHARED: f"{_escape(SHARED)}=true"}
    return "|".join(",".join(each[key] for key in sorted(each)) for each in (plain, shared))


def _escape(key: str) -> str:
    return key.replace(".", "[.]")
