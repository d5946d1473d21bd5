"""Key rotation without downtime: create a second key, put it in use, revoke the former on request.

The key that is not in use is stored in a second Secret beside the account's. Each phase is entered by one
write at the resourceVersion that was read, so the next run continues one that died at any call. Only the run
whose token is on the account calls the operator's key program; another run takes over only from one seen to
be dead, because a slow `create` or `revoke` of an older run would delete a newer key. No timer revokes a key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, NoReturn

from components.account_pool.core import changes
from components.account_pool.core.calls import (
    AskProgram,
    KeyVerb,
    Kind,
    Patch,
    Pause,
    Said,
    Steps,
    Told,
)
from components.account_pool.core.cleaning import no_account
from components.account_pool.core.holders import Holder, Look
from components.account_pool.core.keys import CLEANING_TOKEN, KEY_ID, KEY_OPERATION, KEY_REPLACED
from components.account_pool.core.model import JsonObject, KeyPhase, Member, State, account_key
from components.account_pool.core.other_key import OTHER_KEY, OtherKey, find_stored, remove, store
from components.account_pool.core.receipts import Lagging, list_lagging
from components.account_pool.core.steps import change_member, get_member, read
from components.errors import NotAllowed
from components.projection.model import PROJECTED_BY

_TRIES: Final = 40
"""How often a key is tested until it works, or stops working: clouds apply such changes late."""


def key_digest(data: Mapping[str, str], uid: str) -> str:
    """Return a keyed digest that distinguishes credentials of a Secret. `data`: base64-encoded."""
    text = json.dumps(dict(data), sort_keys=True)
    return hmac.new(uid.encode(), text.encode(), hashlib.sha256).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command. `token`: of the run and its process; during cleaning, the cleaning token.

    `swapped`: id for the key that this run puts in use. `look`: whether a holder is alive. `take_over`:
    accounts, named by an operator, of runs that cannot be observed. `log`: output of the program.
    """

    namespace: str
    token: str
    swapped: str
    look: Look
    take_over: frozenset[str] = frozenset()
    log: str = ""


def rotate(run: Run, name: str) -> Steps[Member]:
    """Create a second key and put it in use; continues an earlier run up to `delivered`."""
    member = yield from _held(run, name, begins=True)
    if member.key_phase == KeyPhase.COMPLETING:
        raise _refused(run, member, "its other key is being revoked", "--complete")
    if member.key_phase == KeyPhase.PREPARING:
        member = yield from _prepare(run, member)
    if member.key_phase == KeyPhase.PREPARED:
        member = yield from _swap(run, member)
    return member


def roll_back(run: Run, name: str) -> Steps[Member]:
    """Put the former key back in use while it is valid; holders with the new key then lag behind."""
    member = yield from _known(run, name)
    if member.key_phase != KeyPhase.DELIVERED:
        raise _refused(run, member, f"it has no former key to go back to ({_phase(member)})")
    if member.annotations.get(KEY_OPERATION) == run.swapped:
        return member
    _, data = (yield from _both(member)).besides(_key_in_use(member))
    yield from _expect(run, member, data, Said.DONE, "its former key does not work any more")
    return (yield from _swap(run, member))


def complete(run: Run, name: str) -> Steps[Member]:
    """Revoke the former key once every holder uses the new one, and check that it is rejected."""
    for attempt in count():
        member = yield from _known(run, name)
        if member.key_phase == KeyPhase.COMPLETING:
            return (yield from _revoke(run, (yield from _held(run, name))))
        if member.key_phase != KeyPhase.DELIVERED:
            raise _refused(run, member, f"it has no former key to revoke ({_phase(member)})")
        lagging = yield from list_lagging(member)
        if lagging:
            raise _lags(run, member, lagging)
        # At the resourceVersion that was read: a later claim adds a holder that was not checked.
        entered = changes.enter_key_phase(member, KeyPhase.COMPLETING, run.token)
        if (changed := (yield from change_member(entered))) is not None:
            return (yield from _revoke(run, changed))
        yield Pause(attempt)
    raise AssertionError


def renew(run: Run, name: str) -> Steps[Member]:
    """Replace the key of an account that is being cleaned, and check that no former key works.

    An earlier rotation is completed first: the last tenant might have seen its new key.
    """
    member = yield from _known(run, name)
    if member.key_phase in (KeyPhase.DELIVERED, KeyPhase.COMPLETING):
        yield from complete(run, name)
    yield from rotate(run, name)
    return (yield from complete(run, name))


def abort(run: Run, name: str) -> Steps[Member]:
    """Revoke a second key that is not in use yet."""
    member = yield from _held(run, name)
    if member.key_phase == KeyPhase.DELIVERED:
        raise _refused(run, member, "its new key is in use already", "--roll-back")
    if member.key_phase is None:
        raise _refused(run, member, "its key is not being rotated")
    if member.key_phase != KeyPhase.COMPLETING:
        member = yield from _advance(run, member, KeyPhase.COMPLETING)
    return (yield from _revoke(run, member))


def _held(run: Run, name: str, *, begins: bool = False) -> Steps[Member]:
    """Take an account in a phase that runs the key program; return it as it is in another phase.

    `begins`: also start a rotation if none is running.
    """
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        member = yield from _known(run, name)
        if member.key_phase is None:
            if not begins:
                return member
            patch = yield from _begun(run, member)
        elif member.key_phase in (KeyPhase.PREPARING, KeyPhase.COMPLETING):
            if member.annotations.get(KEY_OPERATION) == run.token:
                return member
            _refuse_another_run(run, member)
            patch = changes.enter_key_phase(member, KeyPhase(member.key_phase), run.token)
        else:
            return member
        taken = yield from change_member(patch)
        if taken is not None:
            return taken
    raise AssertionError


def _begun(run: Run, member: Member) -> Steps[Patch]:
    if member.state in (State.DIRTY, State.CLEANING) and not _cleans(run, member):
        raise _refused(run, member, "it is not clean, and its cleaner may change its key")
    if PROJECTED_BY in member.annotations:
        raise _refused(run, member, "a reference writes its credential, so the key is changed where that is")
    told = yield from _identified(member, (yield from _credential(run, member)))
    if told.said is not Said.DONE:
        raise NotAllowed(
            place=f"account {member.name}",
            problem=f"which key it has is not known: {told.problem}",
            fix=f"{_look_at_log(run)}run `credfleet pool rotate {member.name} -n {run.namespace}`",
        )
    return changes.begin_rotation(member, run.token, told.key_id)


def _prepare(run: Run, member: Member) -> Steps[Member]:
    """Create the second key unless an earlier run stored it, and check that it works."""
    keep, kept = _key_in_use(member), (yield from _in_use(run, member))
    keys = yield from find_stored(member)
    if keys is not None and not (yield from _is_usable(member, keys, keep, kept)):
        yield from remove(member, keys)
        keys = None
    if keys is None:
        told = yield from _ask(AskProgram(KeyVerb.CREATE, member, keep, kept))
        if told.said is not Said.DONE:
            yield from _fail(run, member, f"no key was made: {told.problem}")
        if not told.key_id or told.key_id == keep or not told.data or told.data == kept:
            yield from _fail(run, member, "the program says that it made a key, and names the one in use")
        if lacking := sorted(kept.keys() - told.data.keys()):
            reason = f"the new credential has no {', '.join(lacking)}, which the one in use has"
            yield from _fail(run, member, reason)
        keys = yield from store(member, run.namespace, {keep: kept, told.key_id: told.data})
        if keys is None:
            raise _overtaken(run, member)
    _, data = keys.besides(keep)
    yield from _expect(run, member, data, Said.DONE, "the new key does not work")
    return (yield from _advance(run, member, KeyPhase.PREPARED))


def _is_usable(member: Member, keys: OtherKey, keep: str, kept: Mapping[str, str]) -> Steps[bool]:
    """Return whether stored keys belong to this rotation, and the second one is not revoked."""
    if keys.credentials.get(keep) != kept:
        return False
    _, data = keys.besides(keep)
    told = yield from _ask(AskProgram(KeyVerb.TEST, member, "", data))
    return told.said is not Said.REJECTED


def _swap(run: Run, member: Member) -> Steps[Member]:
    """Replace the key in use by the other one, in one write."""
    phase, key_id = member.key_phase, _key_in_use(member)
    keys = yield from _both(member)
    other, data = keys.besides(key_id)
    for attempt in count():
        if member.annotations.get(KEY_OPERATION) == run.swapped:
            return member
        if (member.key_phase, member.annotations.get(KEY_ID)) != (phase, key_id):
            raise _overtaken(run, member)
        now = yield from _credential(run, member)
        if now != keys.credentials[key_id]:
            raise is_not_its_key(member)
        replaced = member.annotations.get(KEY_REPLACED) or key_digest(now, member.uid)
        merged = {**dict.fromkeys(now.keys() - data.keys()), **data}
        cleaning = run.token if _cleans(run, member) else None
        patch = changes.swap_key(member, run.swapped, other, replaced, merged, cleaning=cleaning)
        swapped = yield from change_member(patch)
        if swapped is not None:
            return swapped
        yield Pause(attempt)
        member = yield from _known(run, member.name)
    raise AssertionError


def _revoke(run: Run, member: Member) -> Steps[Member]:
    """Revoke every key except the one in use, and check that the known former key is rejected."""
    kept = yield from _in_use(run, member)
    told = yield from _ask(AskProgram(KeyVerb.REVOKE, member, _key_in_use(member), kept))
    if told.said is not Said.DONE:
        yield from _fail(run, member, f"the other key may still work: {told.problem}")
    while (keys := (yield from find_stored(member))) is not None:
        _, data = keys.besides(_key_in_use(member))
        yield from _expect(run, member, data, Said.REJECTED, "the other key may still work")
        if (yield from _known(run, member.name)).uid != member.uid:
            raise _created_again(member)
        yield from remove(member, keys)
    return (yield from _advance(run, member, None))


def _advance(run: Run, member: Member, phase: KeyPhase | None) -> Steps[Member]:
    """Enter the next phase of an account that this run holds."""
    begun = member.key_phase
    for attempt in count():
        patch = (
            changes.end_rotation(member)
            if phase is None
            else changes.enter_key_phase(member, phase, run.token)
        )
        if (changed := (yield from change_member(patch))) is not None:
            return changed
        yield Pause(attempt)
        member = yield from _known(run, member.name)
        is_own = phase is None or member.annotations.get(KEY_OPERATION) == run.token
        if member.key_phase == phase and is_own:
            return member
        if member.key_phase != begun or (
            begun != KeyPhase.PREPARED and member.annotations.get(KEY_OPERATION) != run.token
        ):
            raise _overtaken(run, member)
    raise AssertionError


def _both(member: Member) -> Steps[OtherKey]:
    keys = yield from find_stored(member)
    if keys is None or _key_in_use(member) not in keys.credentials:
        raise is_not_its_key(member)
    return keys


def _in_use(run: Run, member: Member) -> Steps[Mapping[str, str]]:
    """Return the credential in use, after checking that it is the key that the rotation keeps."""
    data = yield from _credential(run, member)
    told = yield from _identified(member, data)
    if told.said is not Said.DONE:
        yield from _fail(run, member, f"which key it has is not known: {told.problem}")
    if told.key_id != _key_in_use(member):
        raise is_not_its_key(member)
    return data


def _identified(member: Member, data: Mapping[str, str]) -> Steps[Told]:
    told = yield from _ask(AskProgram(KeyVerb.IDENTIFY, member, "", data))
    if told.said is Said.DONE and not told.key_id:
        return Told(Said.UNKNOWN, "the program names no keyId")
    expected = member.account_id
    is_another = expected is not None and account_key(told.account_id) != account_key(expected)
    if told.said is Said.DONE and is_another:
        return Told(Said.UNKNOWN, f"its credential opens another account than {expected}")
    return told


def _credential(run: Run, member: Member) -> Steps[Mapping[str, str]]:
    body: JsonObject | None = yield from read(Kind.CREDENTIAL, member.name)
    if body is None:
        raise no_account(member.name, run.namespace)
    return dict(body.get("data") or {})


def _expect(run: Run, member: Member, data: Mapping[str, str], said: Said, else_: str) -> Steps[None]:
    """Test a key until the cloud returns the expected result; fail after too many attempts."""
    told = Told(Said.UNKNOWN)
    for tried in range(_TRIES):
        told = yield from _ask(AskProgram(KeyVerb.TEST, member, "", data))
        if told.said is said:
            return
        yield Pause(tried)
    why = told.problem if told.said is Said.UNKNOWN else f"the cloud says {told.said}"
    yield from _fail(run, member, f"{else_}: {why}")


def _ask(asked: AskProgram) -> Steps[Told]:
    answer = yield asked
    if not isinstance(answer, Told):
        raise TypeError(answer)
    return answer


def _fail(run: Run, member: Member, reason: str) -> Steps[NoReturn]:
    """Leave the account in its phase and record why; the next run starts there."""
    now = yield from _known(run, member.name)
    if now.annotations.get(KEY_OPERATION) == member.annotations.get(KEY_OPERATION):
        yield from change_member(changes.note_key_reason(now, reason))
    is_ending = member.key_phase == KeyPhase.COMPLETING
    option = " --complete" if is_ending else ""
    other = "" if is_ending else ", or with --abort, which revokes the second key"
    raise NotAllowed(
        place=f"account {member.name}",
        problem=f"{reason}; it stays {member.key_phase}, and the key in use is untouched",
        fix=f"{_look_at_log(run)}run `credfleet pool rotate {member.name}{option} -n {run.namespace}`{other}",
    )


def _look_at_log(run: Run) -> str:
    return f"look at {run.log}, then " if run.log else ""


def _known(run: Run, name: str) -> Steps[Member]:
    member = yield from get_member(name)
    if member is None:
        raise no_account(name, run.namespace)
    return member


def _cleans(run: Run, member: Member) -> bool:
    return member.annotations.get(CLEANING_TOKEN) == run.token


def _key_in_use(member: Member) -> str:
    return member.annotations.get(KEY_ID, "")


def _phase(member: Member) -> str:
    return member.key_phase or "its key is not being rotated"


def _refuse_another_run(run: Run, member: Member) -> None:
    holder = Holder.of_token(member.annotations.get(KEY_OPERATION, ""))
    alive = None if holder is None else run.look(holder)
    if alive:
        raise NotAllowed(
            place=f"account {member.name}",
            problem=f"another run rotates its key: {holder}",
            fix="wait for it, or end it there; then run this again",
        )
    if alive is None and member.name not in run.take_over:
        raise NotAllowed(
            place=f"account {member.name}",
            problem=f"a run rotates its key ({holder or 'unknown'}), and it is not known whether it is over",
            fix=f"run this there; if that is impossible, and it is over, add --take-over {member.name}",
        )


def _refused(run: Run, member: Member, problem: str, option: str = "") -> NotAllowed:
    command = f"credfleet pool rotate {member.name} {option or '--who'} -n {run.namespace}"
    return NotAllowed(place=f"account {member.name}", problem=problem, fix=f"run `{command}`")


def _lags(run: Run, member: Member, lagging: Sequence[Lagging]) -> NotAllowed:
    named = "; ".join(f"{each.holder} ({each.why})" for each in lagging)
    return NotAllowed(
        place=f"account {member.name}",
        problem=f"the former key stays, since it may still be used by {named}",
        fix="run `up` in each of these stacks, then this again; `credfleet pool rotate"
        f" {member.name} --who -n {run.namespace}` shows who lags",
    )


def is_not_its_key(member: Member) -> NotAllowed:
    """Return the error for a credential that is not the key that its rotation recorded."""
    return NotAllowed(
        place=f"account {member.name}",
        problem=f"its credential is not the key {_key_in_use(member)} that its rotation knows: another writer"
        " has replaced it since, or the program is another one",
        fix="put that credential back, or name by --stack whose program made the key",
    )


def _created_again(member: Member) -> NotAllowed:
    return NotAllowed(
        place=f"account {member.name}",
        problem="its Secret was created again with the configured credential, which is revoked by now;"
        f" the key in use is in Secret {member.name}{OTHER_KEY}, beside the revoked one",
        fix="take it from there, and set it as the configured credential",
    )


def _overtaken(run: Run, member: Member) -> NotAllowed:
    return _refused(run, member, "another run or person went on with it meanwhile")
