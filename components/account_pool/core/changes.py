"""Every change to a member, each as one merge patch at the resourceVersion it was decided on.

A patch without a resourceVersion could silently overwrite an owner; this module cannot build one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from components.account_pool.core.calls import Kind, Patch
from components.account_pool.core.keys import (
    CLAIM_FORMER,
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    CREATED_AGAIN,
    CUT,
    FREED,
    KEY_CHANGED,
    KEY_ID,
    KEY_OPERATION,
    KEY_PHASE,
    KEY_REASON,
    KEY_REPLACED,
    POOL_STATE,
    SHARED_CLAIMS,
    STATE_BEFORE,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.core.model import (
    EVACUATING,
    JsonObject,
    KeyPhase,
    Member,
    Origin,
    Policy,
    State,
    tenant_label,
)
from components.account_pool.core.records import Record
from components.account_pool.core.tokens import Token
from components.errors import NotAllowed
from components.labels import BRING_YOUR_OWN, TENANT_NAME

Keys: TypeAlias = Mapping[str, str | None]


def _patch(member: Member, labels: Keys, annotations: Keys, data: Keys | None = None) -> Patch:
    body: JsonObject = {
        "metadata": {
            "resourceVersion": member.resource_version,
            "labels": dict(labels),
            "annotations": dict(annotations),
        },
        **({} if data is None else {"data": dict(data)}),
    }
    return Patch(Kind.MEMBER, member.name, body)


def apply(member: Member, patch: Patch) -> Member:
    """Return the member as it is after one of these patches."""
    changed = patch.body["metadata"]
    return replace(
        member,
        labels=_merged(member.labels, changed["labels"]),
        annotations=_merged(member.annotations, changed["annotations"]),
    )


def _merged(texts: Mapping[str, str], changed: Keys) -> dict[str, str]:
    return {key: text for key, text in {**texts, **changed}.items() if text is not None}


def take(member: Member, record: Record) -> Patch:
    """C3: assign the member to the record.

    A member that its tenant brought never returns to the pool. A member that the tenant retained stays marked
    as retained until the claim is bound.
    """
    if record.partition.shared:
        claims = {**member.shared_claims, str(record.token): record.slot}
        return _patch(member, {}, {SHARED_CLAIMS: json.dumps(claims, sort_keys=True)})
    origin = Origin.POOL
    if member.tenant == record.tenant_label and member.origin in (None, Origin.RETAINED):
        origin = Origin.RETAINED if member.origin else Origin.OWNER
    taken_back: Keys = {STATE_REASON: None, CREATED_AGAIN: None} if member.is_created_again else {}
    rested: Keys = {FREED: None} if FREED in member.annotations else {}
    return _patch(
        member,
        {TENANT_NAME: record.tenant_label, **({POOL_STATE: None} if taken_back else {})},
        {
            CLAIM_TOKEN: str(record.token),
            CLAIM_ORIGIN: str(origin),
            CLAIM_POLICY: str(record.policy),
            TENANT_ID: record.tenant,
            **taken_back,
            **rested,
        },
    )


def heal(member: Member, record: Record) -> Patch:
    """C4, C8: restore an owner label that was removed manually while the token stayed."""
    return _patch(member, {TENANT_NAME: record.tenant_label}, {})


def agree(member: Member, record: Record) -> Patch | None:
    """Update the member's copy of its claim's policy; return None if it is equal or must not change.

    Only the first write of a claim can set `release`: otherwise a claimer could free an account that is in
    use.
    """
    noted = member.annotations.get(CLAIM_POLICY)
    if record.partition.shared or record.policy in (noted, Policy.RELEASE):
        return None
    return _patch(member, {}, {CLAIM_POLICY: str(record.policy)})


def follow(member: Member, record: Record) -> Patch:
    """N2: move the member to the new name of its claim."""
    if record.partition.shared:
        claims = {text: slot for text, slot in member.shared_claims.items() if text != str(record.moves)}
        claims[str(record.token)] = record.slot
        places = json.dumps(claims, sort_keys=True)
        return _patch(member, {}, {SHARED_CLAIMS: places, CLAIM_FORMER: str(record.moves)})
    noted = {CLAIM_TOKEN: str(record.token), CLAIM_FORMER: str(record.moves), TENANT_ID: record.tenant}
    return _patch(member, {TENANT_NAME: record.tenant_label}, noted)


def rebind(member: Member, record: Record, stale: Token | None) -> Patch:
    """Recovery: replace the claim token from before the backup with that of the restored record."""
    if record.partition.shared:
        claims = {text: consumer for text, consumer in member.shared_claims.items() if text != str(stale)}
        claims[str(record.token)] = record.slot
        return _patch(member, {}, {SHARED_CLAIMS: json.dumps(claims, sort_keys=True)})
    return _patch(
        member,
        {},
        {
            CLAIM_TOKEN: str(record.token),
            CLAIM_ORIGIN: str(Origin.OWNER) if member.origin is None else member.origin,
            CLAIM_POLICY: str(record.policy),
            TENANT_ID: record.tenant,
        },
    )


def remove(member: Member, token: Token, record: Record | None, policy: Policy | None = None) -> Patch:
    """Remove a token from a member, and change the member as the release policy requires.

    `record`: any record with the token's name. It gives the tenant if the member's annotation does not: a
    claimer might have written the token of another tenant's claim. `policy`: by default the member's copy of
    the record's policy. `release` frees a member immediately only if the copy says `release` too, because the
    claimer might have used the account. These keep their label and state: a member that its tenant owned
    before, one relabelled manually, and a retained one whose claim was never bound. A member quarantined
    meanwhile stays quarantined. A missing owner label counts as present.
    """
    if member.shared:
        claims = {text: consumer for text, consumer in member.shared_claims.items() if text != str(token)}
        return _patch(member, {}, {SHARED_CLAIMS: json.dumps(claims, sort_keys=True)})
    annotations: dict[str, str | None] = {CLAIM_TOKEN: None, CLAIM_ORIGIN: None, CLAIM_POLICY: None}
    claimant = _tenant_of(member) or (record.tenant_label if record else member.tenant)
    owner = claimant if member.tenant is None else member.tenant
    labels: dict[str, str | None] = {} if member.tenant == owner else {TENANT_NAME: owner}
    if owner != claimant:
        annotations[TENANT_ID] = None
    elif owner is not None and member.origin == Origin.RETAINED and not (record and record.has_had(member)):
        annotations[CLAIM_ORIGIN] = str(Origin.RETAINED)
    elif owner is None or member.origin in (Origin.POOL, Origin.RETAINED):
        match Policy.CLEAN if owner is None else _policy_of(member, policy):
            case Policy.RELEASE:
                labels[TENANT_NAME] = None
                annotations |= {TENANT_ID: None, FREED: "released"}
            case Policy.RETAIN:
                annotations[CLAIM_ORIGIN] = str(Origin.RETAINED)
            case Policy.CLEAN | Policy.QUARANTINE if member.state == State.QUARANTINED:
                annotations[CLAIM_ORIGIN] = str(Origin.POOL)
            case Policy.CLEAN:
                labels[POOL_STATE] = str(State.DIRTY)
                annotations[CLAIM_ORIGIN] = str(Origin.POOL)
            case Policy.QUARANTINE:
                labels[POOL_STATE] = str(State.QUARANTINED)
                annotations[STATE_REASON] = "released by its tenant, whose policy is quarantine"
                annotations[CLAIM_ORIGIN] = str(Origin.POOL)
    return _patch(member, labels, annotations)


def _tenant_of(member: Member) -> str | None:
    tenant = member.annotations.get(TENANT_ID)
    return tenant_label(tenant) if tenant else None


def _policy_of(member: Member, asked: Policy | None) -> Policy:
    noted = member.annotations.get(CLAIM_POLICY)
    copy = Policy(noted) if noted in set(Policy) else Policy.CLEAN
    policy = Policy.CLEAN if asked is Policy.RELEASE and copy is not Policy.RELEASE else asked or copy
    return Policy.CLEAN if policy is Policy.RELEASE and member.needs_new_key else policy


def start_cleaning(member: Member, cleaning_token: str) -> Patch:
    """K2: change a member from dirty to cleaning, for one run of one cleaner."""
    return _patch(member, {POOL_STATE: str(State.CLEANING)}, {CLEANING_TOKEN: cleaning_token})


def owes_new_key(member: Member) -> bool:
    """Return whether this cleaning run must replace the member's key before the member is free."""
    is_freed = member.tenant is None or member.origin == Origin.POOL
    changed, run = (member.annotations.get(key) for key in (KEY_CHANGED, CLEANING_TOKEN))
    return member.needs_new_key and is_freed and (changed != run or member.key_phase is not None)


def finish_cleaning(member: Member) -> Patch:
    """K4: make a cleaned member usable, if a required new key exists; a tenant that brought it keeps it."""
    if owes_new_key(member):
        return fail_cleaning(member, "its key was not changed")
    labels: dict[str, str | None] = {POOL_STATE: None}
    annotations: dict[str, str | None] = {
        CLEANING_TOKEN: None,
        STATE_REASON: None,
        STATE_BEFORE: None,
        **_without(member, KEY_CHANGED),
    }
    if member.origin != Origin.RETAINED:
        annotations[CLAIM_ORIGIN] = None
    if member.origin == Origin.POOL:
        labels[TENANT_NAME] = None
        annotations[TENANT_ID] = None
    if labels.get(TENANT_NAME, member.tenant) is None:
        annotations[FREED] = "cleaned"
    return _patch(member, labels, annotations)


def end_cleaning(member: Member) -> Patch:
    """Record that the cleaning run ended, whatever state an operator set meanwhile."""
    return _patch(member, {}, {CLEANING_TOKEN: None, **_without(member, KEY_CHANGED)})


def _without(member: Member, *keys: str) -> Keys:
    return {key: None for key in keys if key in member.annotations}


_GIVEN_UP: Final = "decommissioned"
_GIVEN_UP_REASON: Final = "decommissioned by an operator; never used again"
"""Identifies accounts that were decommissioned before the previous state was recorded."""


def fail_cleaning(member: Member, reason: str) -> Patch:
    """K3: quarantine a member whose cleaning failed."""
    return _quarantined(member, reason, str(State.DIRTY), {CLEANING_TOKEN: None})


def quarantine(_namespace: str, member: Member, reason: str, *, cut: bool = False) -> Patch:
    """Keep a member from new holders until an operator releases it; present holders keep it.

    The previous state is recorded, so that a dirty account is cleaned after its quarantine. A cleaning that
    is running continues. `cut`: also stop the present holders from reading the credential.
    """
    before = str(State.DIRTY) if member.state is not None else None
    if member.state == State.QUARANTINED:
        before = _GIVEN_UP if is_given_up(member) else member.annotations.get(STATE_BEFORE)
    cut_off: Keys = {CUT: "true"} if cut else {}
    return _quarantined(
        member, reason, before, {**cut_off, **({} if member.state else {CLEANING_TOKEN: None})}
    )


def evacuate(namespace: str, member: Member, reason: str) -> Patch:
    """Quarantine a member and have its holders move to another one at the next update of each stack.

    Raises NotAllowed for a member that is shared, has no holder, or is in a state other than quarantined.
    """
    if member.shared or not member.tokens:
        raise NotAllowed(
            place=f"Secret {member.name}",
            problem="it has no holder of its own that could leave it",
            fix="keep it from new holders with"
            f" `credfleet pool quarantine {member.name} --reason leaving -n {namespace}`",
        )
    is_marked = STATE_BEFORE in member.annotations and not member.is_to_be_left
    if member.state not in (None, State.QUARANTINED) or is_marked:
        raise NotAllowed(
            place=f"Secret {member.name}",
            problem="it is not clean, and held nevertheless",
            fix="release its claims; the cleaner gets it then",
        )
    return _quarantined(member, reason, EVACUATING, {})


def unquarantine(namespace: str, member: Member, *, decommissioned: bool = False) -> Patch:
    """End a quarantine: the member becomes dirty if it was not clean, otherwise usable.

    `decommissioned`: also accept a decommissioned member. Raises NotAllowed for a member that is not
    quarantined, and for a decommissioned one otherwise.
    """
    if member.state != State.QUARANTINED:
        raise NotAllowed(
            place=f"Secret {member.name}",
            problem=f"it is not quarantined ({member.state or 'usable'}), so there is nothing to take back",
            fix=f"look at it with `credfleet pool status -n {namespace}`",
        )
    if is_given_up(member) and not decommissioned:
        raise _given_up(namespace, member)
    released = member.token is None and member.origin == Origin.POOL
    is_held = member.is_to_be_left and member.token is not None
    is_dirty = released or is_given_up(member) or (STATE_BEFORE in member.annotations and not is_held)
    state = str(State.DIRTY) if is_dirty else None
    annotations = {STATE_REASON: None, STATE_BEFORE: None, **_without(member, CUT)}
    return _patch(member, {POOL_STATE: state}, annotations)


def decommission(_namespace: str, member: Member) -> Patch:
    """Decommission a member without cleaning it, so that its declaration can be removed.

    Raises NotAllowed while it is claimed or being cleaned.
    """
    _refuse_in_use(member)
    return _quarantined(member, _GIVEN_UP_REASON, _GIVEN_UP, {})


def mark_dirty(namespace: str, member: Member, reason: str) -> Patch:
    """Mark an unclaimed member dirty; a member that a tenant owns stays the tenant's.

    Raises NotAllowed while it is claimed or being cleaned, and for a decommissioned member.
    """
    _refuse_in_use(member)
    if is_given_up(member):
        raise _given_up(namespace, member)
    known = _without(member, CREATED_AGAIN, CUT)
    annotations = {STATE_REASON: reason, STATE_BEFORE: None, **known}
    return _patch(member, {POOL_STATE: str(State.DIRTY)}, annotations)


def take_back(namespace: str, member: Member) -> Patch:
    """Return a member that its tenant retained to the pool, through the cleaner.

    Raises NotAllowed while it is claimed or being cleaned, without an owner, or if its owner brought it.
    """
    _refuse_in_use(member)
    if member.tenant is None:
        raise NotAllowed(
            place=f"Secret {member.name}",
            problem="no tenant owns it, so there is nothing to return",
            fix=f"look at it with `credfleet pool status -n {namespace}`",
        )
    if BRING_YOUR_OWN in member.annotations:
        raise NotAllowed(
            place=f"Secret {member.name}",
            problem=f"tenant {member.tenant} brought it along, so it is not the pool's to hand out",
            fix="remove the member from the stack that declares it",
        )
    return _patch(member, {POOL_STATE: member.state or str(State.DIRTY)}, {CLAIM_ORIGIN: str(Origin.POOL)})


def _refuse_in_use(member: Member) -> None:
    if member.tokens or member.state == State.CLEANING:
        raise NotAllowed(
            place=f"Secret {member.name}",
            problem="it is claimed or being cleaned, so the account may still be in use",
            fix="release the claim, or wait for the cleaner, and run again",
        )


def _given_up(namespace: str, member: Member) -> NotAllowed:
    return NotAllowed(
        place=f"Secret {member.name}",
        problem="it was decommissioned, never to be used again, and may be closed at its cloud",
        fix="if it is to come back all the same, to be cleaned before it is used, run"
        f" `credfleet pool unquarantine {member.name} --decommissioned -n {namespace}`",
    )


def _quarantined(member: Member, reason: str, before: str | None, rest: Keys) -> Patch:
    annotations = {STATE_REASON: reason, STATE_BEFORE: before, **rest, **_without(member, KEY_CHANGED)}
    return _patch(member, {POOL_STATE: str(State.QUARANTINED)}, annotations)


def is_given_up(member: Member) -> bool:
    """Return whether an operator decommissioned the account."""
    before, reason = (member.annotations.get(key) for key in (STATE_BEFORE, STATE_REASON))
    return before == _GIVEN_UP or reason == _GIVEN_UP_REASON


def begin_rotation(member: Member, operation: str, key_id: str) -> Patch:
    """Record the key in use before a new key is created."""
    annotations = {KEY_OPERATION: operation, KEY_ID: key_id, KEY_REASON: None}
    return _patch(member, {KEY_PHASE: str(KeyPhase.PREPARING)}, annotations)


def enter_key_phase(member: Member, phase: KeyPhase, operation: str) -> Patch:
    """Enter a phase of the rotation, as the run that `operation` names."""
    return _patch(member, {KEY_PHASE: str(phase)}, {KEY_OPERATION: operation, KEY_REASON: None})


def swap_key(
    member: Member, operation: str, key_id: str, replaced: str, data: Keys, *, cleaning: str | None = None
) -> Patch:
    """Put the new key in use. `replaced`: digest of the data before the first rotation.

    `cleaning`: token of the cleaning run that requires the new key.
    """
    changed = {KEY_CHANGED: cleaning} if cleaning else _without(member, KEY_CHANGED)
    annotations = {
        KEY_OPERATION: operation,
        KEY_ID: key_id,
        KEY_REASON: None,
        KEY_REPLACED: replaced,
        **changed,
    }
    return _patch(member, {KEY_PHASE: str(KeyPhase.DELIVERED)}, annotations, data)


def note_key_reason(member: Member, reason: str) -> Patch:
    """Record why a rotation stopped; its phase stays."""
    return _patch(member, {}, {KEY_REASON: reason})


def end_rotation(member: Member) -> Patch:
    """Record that the account has one key again."""
    return _patch(member, {KEY_PHASE: None}, {KEY_OPERATION: None, KEY_REASON: None})
