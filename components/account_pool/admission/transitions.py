"""The state machines of a pool: of its settings, Events and quotas; `list_state_machines` returns all.

Those of accounts and records stand in `member_transitions.py` and `record_transitions.py`. A new transition
is a row of its table: the API server keeps it (`policies.py`), the tests try it. The letters are steps of
docs/design/claim-protocol.md. The program declares a pool with the operators' verb.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from components.account_pool.admission.conditions import (
    BLOCKING,
    BY_CLAIMS,
    BY_STACK,
    CEL_NAME,
    CLAIM,
    CLEAN,
    COLLECTED,
    OPERATE,
    OTHER_ANNOTATIONS,
    OTHER_BINARY_DATA,
    OTHER_DATA,
    OTHER_LABELS,
    change,
    delete_with_namespace,
    has_any_key,
    join_or,
)
from components.account_pool.admission.member_transitions import build_member_machine
from components.account_pool.admission.record_transitions import build_record_machine
from components.account_pool.admission.state_machine import (
    ABSENT,
    DATA,
    LABELS,
    PRESENT,
    Condition,
    Field,
    StateMachine,
    Transition,
)
from components.account_pool.core.audit import COMPONENT
from components.account_pool.core.config_map import CONFIG_MAP, POOL_UID
from components.account_pool.core.keys import POOL_QUOTA
from components.account_pool.core.quotas import COUNTED_IN, ENTERED

_OTHERS: Final = (OTHER_DATA, OTHER_BINARY_DATA, OTHER_LABELS, OTHER_ANNOTATIONS, *BLOCKING)

_SIGNATURE: Final = Field("signature", DATA, BY_STACK, POOL_UID)
_SIGNED: Final = Condition("signsWithItsUid", "variables.newSignature.orValue('') == oldObject.metadata.uid")
_SETTINGS: Final = (_SIGNATURE, *_OTHERS)
SETTINGS: Final = StateMachine(
    name="settings",
    noun="pool",
    resource="configmaps",
    fix=BY_STACK,
    belongs=f"{CEL_NAME} == '{CONFIG_MAP}'",
    fields=_SETTINGS,
    transitions={
        "declaresPool": Transition(
            "divide the pool, or restore its settings", new=change(*_SETTINGS), on="CREATE", by=(OPERATE,)
        ),
        "changesPool": Transition("change the settings of the pool", new=change(*_SETTINGS), by=(OPERATE,)),
        "signsPool": Transition(
            "add its uid, once", {_SIGNATURE: ABSENT}, {_SIGNATURE: PRESENT}, when=(_SIGNED,), by=(CLAIM,)
        ),
        **COLLECTED,
        "removesPool": Transition("remove the pool", on="DELETE", by=(OPERATE,)),
        **delete_with_namespace(),
    },
)
"""What a pool says about itself."""

_SIGNED_BY_WRITER: Final = Condition(
    "isSignedByItsWriter", "object.?reportingInstance.orValue('') == request.userInfo.username"
)
_OF_CLAIMS: Final = Condition(
    "reasonBelongsToClaims", "object.?reason.orValue('') in ['Claimed', 'ClaimRefused', 'Released']"
)
_OF_CLEANING: Final = Condition("reasonBelongsToCleaning", "object.?reason.orValue('') == 'Cleaned'")
EVENTS: Final = StateMachine(
    name="events",
    noun="event",
    resource="events",
    fix="an Event is written by the user who did what it reports, under that user's name, and stays as it is",
    belongs=join_or(
        f"({moment} != null && '{COMPONENT}' in [{moment}.?reportingComponent.orValue(''),"
        f" {moment}.?source.?component.orValue('')])"
        for moment in ("object", "oldObject")
    ),
    fields=(),
    transitions={
        "reportsOwnClaims": Transition(
            "report claims and releases under one's own name",
            when=(_SIGNED_BY_WRITER, _OF_CLAIMS),
            on="CREATE",
            by=(CLAIM,),
        ),
        "reportsOwnCleanings": Transition(
            "report cleaning under one's own name",
            when=(_SIGNED_BY_WRITER, _OF_CLEANING),
            on="CREATE",
            by=(CLEAN,),
        ),
        "reportsOwnActs": Transition(
            "report anything under one's own name", when=(_SIGNED_BY_WRITER,), on="CREATE", by=(OPERATE,)
        ),
        "deletesEvent": Transition("delete an Event", on="DELETE", by=(OPERATE,)),
        **delete_with_namespace(),
    },
)
"""The Events that report what was done: they come, and never change."""

_ENTRIES: Final = Field("entries", DATA, BY_CLAIMS, ENTERED)
_COUNTER: Final = Field("counted", DATA, BY_CLAIMS, COUNTED_IN)
_COUNTED: Final = Condition(
    "countsInTheQuotaItself", "variables.newCounted.orValue('') == oldObject.metadata.uid"
)
_QUOTA: Final = (_ENTRIES, _COUNTER, *_OTHERS)
QUOTAS: Final = StateMachine(
    name="quotas",
    noun="quota",
    resource="configmaps",
    fix=BY_STACK,
    belongs=join_or((f"{CEL_NAME}.startsWith('quota-')", has_any_key(LABELS, (POOL_QUOTA,)))),
    fields=_QUOTA,
    transitions={
        "declaresQuota": Transition(
            "declare a quota, or restore one", new=change(*_QUOTA), on="CREATE", by=(OPERATE,)
        ),
        "changesQuota": Transition("change a quota", new=change(*_QUOTA), by=(OPERATE,)),
        "entersClaim": Transition(
            "Q2: enter a claim", new={_ENTRIES: PRESENT, _COUNTER: PRESENT}, when=(_COUNTED,), by=(CLAIM,)
        ),
        **COLLECTED,
        "removesQuota": Transition("remove a quota", on="DELETE", by=(OPERATE,)),
        **delete_with_namespace(),
    },
)
"""What counts the accounts of a consumer."""


def list_state_machines(
    partition_keys: Sequence[str], new_keys: Sequence[str] = (), *, quotas: bool = False
) -> tuple[StateMachine, ...]:
    """Return the state machines of a pool that is divided by these labels, in the order of their policies.

    new_keys: types whose accounts get a new key between tenants. quotas: some consumer has so many at most.
    """
    keys = sorted(partition_keys)
    members, records = build_member_machine(keys, new_keys), build_record_machine(keys)
    return members, records, SETTINGS, EVENTS, *((QUOTAS,) if quotas else ())
