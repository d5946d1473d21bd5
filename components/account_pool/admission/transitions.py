"""State machines of a pool: settings, Events and quotas; `list_state_machines` returns all.

Those of accounts and records are in `member_transitions.py` and `record_transitions.py`. To add a transition,
add a row to `transitions.yaml`: the API server enforces it (`policies.py`), and tests cover it. The letters
are steps of docs/design/claim-protocol.md. The program declares a pool with the operators' verb.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from components.account_pool.admission.conditions import (
    BLOCKING,
    BY_CLAIMS,
    BY_STACK,
    CEL_NAME,
    OTHER_ANNOTATIONS,
    OTHER_BINARY_DATA,
    OTHER_DATA,
    OTHER_LABELS,
    has_any_key,
    join_or,
)
from components.account_pool.admission.member_transitions import build_member_machine
from components.account_pool.admission.record_transitions import build_record_machine
from components.account_pool.admission.state_machine import (
    DATA,
    LABELS,
    Field,
    StateMachine,
    list_transitions,
)
from components.account_pool.core.audit import COMPONENT
from components.account_pool.core.config_map import CONFIG_MAP, POOL_UID
from components.account_pool.core.keys import POOL_QUOTA
from components.account_pool.core.quotas import COUNTED_IN, ENTERED

_OTHERS: Final = (OTHER_DATA, OTHER_BINARY_DATA, OTHER_LABELS, OTHER_ANNOTATIONS, *BLOCKING)

_SETTINGS: Final = (Field("signature", DATA, BY_STACK, POOL_UID), *_OTHERS)
_QUOTA: Final = (
    Field("entries", DATA, BY_CLAIMS, ENTERED),
    Field("counted", DATA, BY_CLAIMS, COUNTED_IN),
    *_OTHERS,
)


@cache
def build_settings_machine() -> StateMachine:
    """Return the state machine of a pool's settings."""
    return StateMachine(
        name="settings",
        noun="pool",
        resource="configmaps",
        fix=BY_STACK,
        belongs=f"{CEL_NAME} == '{CONFIG_MAP}'",
        fields=_SETTINGS,
        transitions=list_transitions("settings", _SETTINGS),
    )


@cache
def build_event_machine() -> StateMachine:
    """Return the state machine of the audit Events, which can be created but never changed."""
    return StateMachine(
        name="events",
        noun="event",
        resource="events",
        fix="an Event is written by the user who did what it reports, under that user's name, and stays as it"
        " is",
        belongs=join_or(
            f"({moment} != null && '{COMPONENT}' in [{moment}.?reportingComponent.orValue(''),"
            f" {moment}.?source.?component.orValue('')])"
            for moment in ("object", "oldObject")
        ),
        fields=(),
        transitions=list_transitions("events", ()),
    )


@cache
def build_quota_machine() -> StateMachine:
    """Return the state machine of the quotas of consumers."""
    return StateMachine(
        name="quotas",
        noun="quota",
        resource="configmaps",
        fix=BY_STACK,
        belongs=join_or((f"{CEL_NAME}.startsWith('quota-')", has_any_key(LABELS, (POOL_QUOTA,)))),
        fields=_QUOTA,
        transitions=list_transitions("quotas", _QUOTA),
    )


def list_state_machines(
    partition_keys: Sequence[str], new_keys: Sequence[str] = (), *, quotas: bool = False
) -> tuple[StateMachine, ...]:
    """Return the state machines of a pool with these partition keys, in the order of their policies.

    `new_keys`: types whose accounts get a new key between tenants. `quotas`: whether a consumer has a quota.
    """
    keys = sorted(partition_keys)
    members, records = build_member_machine(keys, new_keys), build_record_machine(keys)
    others = build_settings_machine(), build_event_machine()
    return members, records, *others, *((build_quota_machine(),) if quotas else ())
