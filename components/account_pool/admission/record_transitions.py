"""Transitions of a pool's claim records; the letters are steps of docs/design/claim-protocol.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from components.account_pool.admission.conditions import (
    BLOCKING,
    BY_CLAIMS,
    CEL_NAME,
    OTHER_ANNOTATIONS,
    OTHER_BINARY_DATA,
    OTHER_DATA,
    OTHER_LABELS,
    OWNER,
    TEXT,
    TYPE,
    cel_number,
    compare_entries,
    has_any_key,
    join_and,
    join_or,
)
from components.account_pool.admission.state_machine import (
    DATA,
    LABELS,
    Condition,
    Field,
    StateMachine,
    list_readable,
    list_transitions,
)
from components.account_pool.core.keys import POOL_RECORD
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
FIELDS: Final = (
    *(PHASE, WHOSE, PART, SLOT, MEMBER, MEMBER_UID, ATTEMPT, AGREED, LIMIT, HOLDERS, RETIRED, FORMER),
    *(STATES, MOVES, RECEIPTS, MARK, TYPE, OWNER, *_OTHERS),
)

_HOLDER: Final = rf"{TEXT}: [0-9]{{1,18}}"


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


def build_record_machine(partition_keys: Sequence[str]) -> StateMachine:
    """Return the state machine of the claim records of a pool with these partition keys."""
    is_readable = join_and(values.cel(each.cel("old")) for each, values in list_readable(FIELDS).items())
    unreadable = Condition("isUnreadable", f"!({is_readable})")
    return StateMachine(
        name="records",
        noun="claim",
        resource="configmaps",
        fix=BY_CLAIMS,
        belongs=join_or((f"{CEL_NAME}.startsWith('claim-')", has_any_key(LABELS, (POOL_RECORD,)))),
        fields=FIELDS,
        transitions=list_transitions(
            "records", FIELDS, unreadable, forms={"<partition>": _partition_form(partition_keys)}
        ),
        variables=_VARIABLES,
    )


def _partition_form(partition_keys: Sequence[str]) -> str:
    """Return the regular expression of a rendered `Partition` in a pool with these keys."""
    value = "[-A-Za-z0-9_.]+"
    terms = {key: f"(?:!{_escape(key)}|{_escape(key)}={value})" for key in partition_keys}
    terms[HYPERSCALER_TYPE] = f"{HYPERSCALER_TYPE}={value}"
    plain, shared = terms, {**terms, SHARED: f"{_escape(SHARED)}=true"}
    return "|".join(",".join(each[key] for key in sorted(each)) for each in (plain, shared))


def _escape(key: str) -> str:
    return key.replace(".", "[.]")
