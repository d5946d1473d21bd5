"""Who may make which step of the records of a pool's claims (docs/design/claim-protocol.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from components.account_pool.admission.conditions import (
    BY_CLAIMS,
    CEL_NAME,
    CLAIM,
    COLLECTING,
    COMPARED,
    HANGING,
    NAMESPACE_GOES,
    OPERATE,
    OTHER_BYTES,
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
)
from components.account_pool.admission.state_machine import (
    ABSENT,
    ANYTHING,
    DATA,
    LABELS,
    PRESENT,
    Among,
    Field,
    Relation,
    Step,
    Table,
    Verb,
    Write,
    one_of,
)
from components.account_pool.core.keys import POOL_RECORD
from components.account_pool.core.model import Phase
from components.labels import HYPERSCALER_TYPE, SHARED

_HOLDER: Final = rf"{TEXT}: [0-9]{{1,18}}"
_HOLDERS: Final = Entries(DATA, "holders", _HOLDER)


_IS_CLAIM: Final = Relation(
    f"{CEL_NAME}.startsWith('claim-')", lambda write: name_of(write).startswith("claim-")
)
_IS_DIGEST: Final = Relation(
    f"{CEL_NAME}.matches('^claim-[0-9a-f]{{40}}$')",
    lambda write: re.fullmatch("claim-[0-9a-f]{40}", name_of(write)) is not None,
)
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
    AGREED: POLICIES,
    LIMIT: _COUNT_OR_NONE,
    RETIRED: _COUNT_OR_NONE,
    HOLDERS: Among(form=json_form(_HOLDER)),
}


def _is_unreadable(write: Write) -> bool:
    data: Mapping[str, str] = DATA.of(write.before) or {}
    return not all(among.holds(data.get(f.shown)) for f, among in _READABLE.items())


_UNREADABLE: Final = Relation(
    "!(" + " && ".join(among.cel(f"variables.oldData[?'{f.key}']") for f, among in _READABLE.items()) + ")",
    _is_unreadable,
)


def _is_next_attempt(write: Write) -> bool:
    old, new = (number_in(text_in(DATA, "attempt", body)) for body in (write.before, write.after))
    return new == old + 1


_OLD_ATTEMPT, _NEW_ATTEMPT, _OLD_RETIRED, _NEW_RETIRED = (
    cel_number(f"variables.{age}Data[?'{key}'].orValue('')")
    for key in ("attempt", "retired")
    for age in ("old", "new")
)
_NEXT_ATTEMPT: Final = Relation(f"{_NEW_ATTEMPT} == {_OLD_ATTEMPT} + 1", _is_next_attempt)


def _keeps_its_numbers(write: Write) -> bool:
    """Whether nobody came, or one with the next number; nobody left, or one whose number is remembered."""
    old, new = _HOLDERS.of(write.before), _HOLDERS.of(write.after)
    before, after = (number_in(text_in(DATA, "retired", body)) for body in (write.before, write.after))
    _, more, less = _HOLDERS.steps(write)
    if max(len(old), len(new)) > COMPARED:
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
    limit = text_in(DATA, "limit", write.after)
    is_as_before = limit == text_in(DATA, "limit", write.before) and more <= less
    return not limit or is_as_before or count <= number_in(limit)


_WITHIN_LIMIT: Final = Relation(
    "!variables.newData[?'limit'].hasValue() || (variables.moreHolders <= variables.lessHolders"
    " && variables.newData[?'limit'] == variables.oldData[?'limit'])"
    " || variables.newHolders.size() <= " + cel_number("variables.newData[?'limit'].orValue('')"),
    _is_within_limit,
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
                HOLDERS: Among(form=f"[{{]{TEXT}: 1[}}]"),
                MEMBER_UID: PRESENT,
                RETIRED: ABSENT,
                MARK: one_of("true"),
                TYPE: PRESENT,
                OWNER: PRESENT,
            },
            when=(_IS_DIGEST, owner_is(DATA, WHOSE.shown)),
            on="CREATE",
        ),
        Step("restore a record", (OPERATE,), new=touching(*fields), on="CREATE"),
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
            {HOLDERS: _SOMEBODY, RETIRED: _COUNT_OR_NONE, AGREED: POLICIES, LIMIT: _COUNT_OR_NONE},
            _NUMBERED,
            _WITHIN_LIMIT,
        ),
        written(
            "R1: a holder leaves a claim that has no account yet",
            _PENDING,
            {HOLDERS: _SOMEBODY, RETIRED: _COUNT_OR_NONE},
            _NUMBERED,
            by=RELEASERS,
        ),
        written(
            "R2: the last holder leaves",
            Among((Phase.PENDING, Phase.BOUND)),
            {PHASE: _RELEASING, HOLDERS: one_of("{}"), RETIRED: _COUNT_OR_NONE},
            _NUMBERED,
            by=RELEASERS,
        ),
        written(
            "S3: end a claim that nobody pursues",
            _PENDING,
            {PHASE: _RELEASING, HOLDERS: one_of("{}")},
            by=RELEASERS,
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
            new={**touching(*dropped), MARK: one_of("true"), TYPE: ANYTHING, OWNER: ANYTHING},
        ),
        Step("restore a record that cannot be read", (OPERATE,), new=touching(*fields), when=(_UNREADABLE,)),
        Step("write annotations that mean nothing to the pool", new=touching(OTHER_NOTES)),
        COLLECTING,
        *(
            Step(does, by, {PHASE: Among((Phase.BOUND,), negated=True)}, when=when, on="DELETE")
            for does, by, when in (
                ("C6, X3: end a claim that is not bound", RELEASERS, ()),
                ("delete it with its namespace", (), (NAMESPACE_GOES,)),
            )
        ),
        Step("delete what cannot be read", (OPERATE,), when=(_UNREADABLE,), on="DELETE"),
    )
    belongs = any_of(_IS_CLAIM, either(LABELS, (POOL_RECORD,)))
    return Table(
        "records", "claim", "configmaps", BY_CLAIMS, belongs, fields, steps, _HOLDERS.lists("Holders")
    )
