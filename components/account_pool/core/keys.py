"""Labels and annotations that the claim protocol reads and writes on members and records.

Writers: the pool owner writes `INTERNAL` and `SHARED_CAPACITY`; operators and cleaners `POOL_STATE`,
`STATE_REASON`, `STATE_BEFORE` and `CLEANING_TOKEN`; rotations `KEY_…`; the protocol all others
(docs/design/claim-protocol.md).
"""

from __future__ import annotations

from typing import Final

from components.labels import PREFIX, TENANT_NAME

POOL_STATE: Final = f"{PREFIX}pool-state"
POOL_RECORD: Final = f"{PREFIX}pool-record"
POOL_QUOTA: Final = f"{PREFIX}pool-quota"
INTERNAL: Final = f"{PREFIX}internal"
UNSEALED: Final = f"{PREFIX}unsealed"
"""Annotation of a pool's namespace that lifts the deletion guard."""

CLAIM_TOKEN: Final = f"{PREFIX}claim-token"
CLAIM_FORMER: Final = f"{PREFIX}claim-former"
CLAIM_ORIGIN: Final = f"{PREFIX}claim-origin"
CLAIM_POLICY: Final = f"{PREFIX}claim-policy"
TENANT_ID: Final = f"{PREFIX}tenant-id"
CLEANING_TOKEN: Final = f"{PREFIX}cleaning-token"
STATE_REASON: Final = f"{PREFIX}state-reason"
STATE_BEFORE: Final = f"{PREFIX}state-before"
FREED: Final = f"{PREFIX}freed"
CUT: Final = f"{PREFIX}cut"
CREATED_AGAIN: Final = f"{PREFIX}created-again"
REMEMBERED: Final = f"{PREFIX}remembered"
SHARED_CAPACITY: Final = f"{PREFIX}shared-capacity"
SHARED_CLAIMS: Final = f"{PREFIX}shared-claims"
REMEMBERED_LABELS: Final = (TENANT_NAME, POOL_STATE)
REMEMBERED_ANNOTATIONS: Final = (
    CLAIM_TOKEN,
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    TENANT_ID,
    SHARED_CLAIMS,
    CREATED_AGAIN,
    STATE_REASON,
    STATE_BEFORE,
    CUT,
)
"""Annotations that a recreated account can have from the start; `REMEMBERED` marks such an account."""

KEY_PHASE: Final = f"{PREFIX}key-phase"
KEY_OPERATION: Final = f"{PREFIX}key-operation"
KEY_ID: Final = f"{PREFIX}key-id"
KEY_REASON: Final = f"{PREFIX}key-reason"
KEY_REPLACED: Final = f"{PREFIX}key-replaced"
KEY_CHANGED: Final = f"{PREFIX}key-changed"
