"""Who may make which step of a pool's accounts, records, settings and Events: the state machine as tables.

A new step is a new row, beside those of its kind; the API server keeps it (`admission.py`), the tests try
it. The letters are the steps of docs/design/claim-protocol.md. What the program does is the operators': it
declares a pool with their verb.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from components.account_pool.admission.conditions import (
    BY_CLAIMS,
    BY_STACK,
    CEL_NAME,
    CLAIM,
    CLEAN,
    COLLECTING,
    HANGING,
    NAMESPACE_GOES,
    OPERATE,
    OTHER_BYTES,
    OTHER_DATA,
    OTHER_LABELS,
    OTHER_NOTES,
    any_of,
    either,
    name_of,
    text_in,
    touching,
)
from components.account_pool.admission.member_transitions import member_table
from components.account_pool.admission.record_transitions import record_table
from components.account_pool.admission.state_machine import (
    ABSENT,
    DATA,
    LABELS,
    PRESENT,
    Field,
    Relation,
    Step,
    Table,
)
from components.account_pool.core.audit import COMPONENT
from components.account_pool.core.config_map import CONFIG_MAP, POOL_UID
from components.account_pool.core.keys import POOL_QUOTA
from components.account_pool.core.model import JsonObject
from components.account_pool.core.quotas import COUNTED_IN, ENTERED

_IS_SETTINGS: Final = Relation(f"{CEL_NAME} == '{CONFIG_MAP}'", lambda write: name_of(write) == CONFIG_MAP)

SIGNATURE: Final = Field("signature", DATA, BY_STACK, POOL_UID)
_SIGNED: Final = Relation(
    f"variables.newData[?'{POOL_UID}'].orValue('') == oldObject.metadata.uid",
    lambda write: text_in(DATA, POOL_UID, write.after) == cast("JsonObject", write.before)["metadata"]["uid"],
)


_IS_QUOTA: Final = Relation(
    f"{CEL_NAME}.startsWith('quota-')", lambda write: name_of(write).startswith("quota-")
)
ENTRIES: Final = Field("entries", DATA, BY_CLAIMS, ENTERED)
COUNTED: Final = Field("counted", DATA, BY_CLAIMS, COUNTED_IN)
_COUNTED: Final = Relation(
    f"variables.newData[?'{COUNTED_IN}'].orValue('') == oldObject.metadata.uid",
    lambda write: (
        text_in(DATA, COUNTED_IN, write.after) == cast("JsonObject", write.before)["metadata"]["uid"]
    ),
)


def settings_table() -> Table:
    """Return the state machine of what a pool says about itself."""
    fields = (SIGNATURE, OTHER_DATA, OTHER_BYTES, OTHER_LABELS, OTHER_NOTES, *HANGING)
    steps = (
        Step("divide the pool, or restore what it said", (OPERATE,), new=touching(*fields), on="CREATE"),
        Step("change what the pool says", (OPERATE,), new=touching(*fields)),
        Step("add its uid, once", (CLAIM,), {SIGNATURE: ABSENT}, {SIGNATURE: PRESENT}, when=(_SIGNED,)),
        COLLECTING,
        Step("remove the pool", (OPERATE,), on="DELETE"),
        Step("delete it with its namespace", when=(NAMESPACE_GOES,), on="DELETE"),
    )
    return Table("settings", "pool", "configmaps", BY_STACK, _IS_SETTINGS, fields, steps)


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
        Step("delete it with its namespace", when=(NAMESPACE_GOES,), on="DELETE"),
    )
    mend = "an Event is written by whoever did what it tells, under its own name, and stays as it is"
    return Table("events", "event", "events", mend, _IS_TOLD, (), steps)


def quota_table() -> Table:
    """Return the state machine of what counts the accounts of a consumer."""
    fields = (ENTRIES, COUNTED, OTHER_DATA, OTHER_BYTES, OTHER_LABELS, OTHER_NOTES, *HANGING)
    steps = (
        Step("declare a quota, or restore one", (OPERATE,), new=touching(*fields), on="CREATE"),
        Step("change a quota", (OPERATE,), new=touching(*fields)),
        Step("Q2: enter a claim", (CLAIM,), new={ENTRIES: PRESENT, COUNTED: PRESENT}, when=(_COUNTED,)),
        COLLECTING,
        Step("remove a quota", (OPERATE,), on="DELETE"),
        Step("delete it with its namespace", when=(NAMESPACE_GOES,), on="DELETE"),
    )
    belongs = any_of(_IS_QUOTA, either(LABELS, (POOL_QUOTA,)))
    return Table("quotas", "quota", "configmaps", BY_STACK, belongs, fields, steps)


def tables(partition_keys: Sequence[str], *, quotas: bool = False) -> tuple[Table, ...]:
    """Return all tables of a pool that is divided by these labels, in the order their policies are drawn.

    quotas: it gives some consumer so many accounts at most.
    """
    keys = sorted(partition_keys)
    counting = (quota_table(),) if quotas else ()
    return member_table(keys), record_table(keys), settings_table(), event_table(), *counting
