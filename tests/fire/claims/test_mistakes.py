"""Mistakes in the protocol are seen in histories: each of them alone, on a server in memory.

`docs/claim-model.md` has them by their numbers, `docs/reliability.md` those that no history shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from components.account_pool import changes, cleaning, protocol
from components.account_pool.calls import Kind, Patch, Steps
from components.account_pool.keys import CLAIM_TOKEN
from components.account_pool.model import Fence, JsonObject, Member, Policy, Record, Token
from components.account_pool.selection import MEMBERS, RECORDS
from components.account_pool.steps import change_member, list_all
from components.labels import TENANT_NAME
from tests.fire.claims.history import Operation
from tests.fire.claims.in_memory import Trouble, history
from tests.fire.claims.test_histories import judged
from tests.support.proving import PROVES, counted, tried
from tests.unit.account_pool import test_wrong_variants as wrong

CALLS: Final = 1_500
"""Of all together: short enough to be judged at once, long enough to meet."""
HISTORIES: Final = 300

USUAL: Final = Trouble()
CROWDED: Final = Trouble(accounts=1)
CLEANED: Final = Trouble(accounts=1, slots=1, keepers=4, takes_over=True, policies=(Policy.CLEAN,))
INTERRUPTED: Final = replace(CLEANED, longest_pause=40)
REPLACED: Final = Trouble(accounts=1, slots=1, keepers=0, policies=(Policy.RELEASE,))
RETAINED: Final = Trouble(share=0, accounts=1, slots=1, keepers=4, policies=(Policy.RETAIN,))
BROUGHT: Final = Trouble(brought=True, accounts=1, slots=3)
EDITED: Final = Trouble(edit="strip", keepers=0)
DIRTIED: Final = Trouble(edit="dirty", accounts=1)
FAULTY: Final = Trouble(share=0.15, keepers=0, policies=(Policy.RELEASE,))

right_remove, right_with_holder = changes.remove, Record.with_holder


def free_whatever_is_on_it(
    member: Member, token: Token, record: Record | None, policy: Policy | None = None
) -> Patch:
    """Take the owner off by the label alone, whosever token is there."""
    patch = right_remove(member, token, record, policy)
    metadata: JsonObject = patch.body["metadata"]
    metadata["annotations"][CLAIM_TOKEN] = None
    metadata["labels"] = {TENANT_NAME: None}
    metadata.pop("resourceVersion", None)
    return patch


def swept_by_label() -> Steps[Any]:
    """Free what has an owner and no Bound record of its name."""
    records = [Record.parse(body) for body in (yield from list_all(Kind.RECORD, RECORDS))]
    for body in (yield from list_all(Kind.MEMBER, MEMBERS)):
        member = Member.parse(body)
        if member.tenant and not any(record.tenant_label == member.tenant for record in records):
            metadata = {"resourceVersion": member.resource_version, "labels": {TENANT_NAME: None}}
            yield from change_member(Patch(Kind.MEMBER, member.name, {"metadata": metadata}))


def from_the_start(record: Record, holder: str) -> Record:
    """Number a holder that returns as one that comes first."""
    again = right_with_holder(record, holder)
    return again if holder in record.holders else replace(again, holders={**again.holders, holder: 1})


def without_the_uid(fence: Fence, record: Record, holder: str) -> bool:
    return record.holders.get(holder, 0) > fence.sequence


@dataclass(frozen=True)
class Mistake:
    """A mistake of the model by its number, where histories of it are drawn, what is put in whose place."""

    number: str
    trouble: Trouble
    places: tuple[tuple[Any, str, Callable[..., Any]], ...] = ()
    wrong: Trouble | None = None
    """What befalls the histories themselves, where that is the mistake."""


def everywhere(name: str, made: Callable[..., Any]) -> tuple[tuple[Any, str, Callable[..., Any]], ...]:
    rooms = (protocol, protocol_selection, protocol_judgement, changes, cleaning)
    return tuple((room, name, made) for room in rooms if hasattr(room, name))


protocol_selection, protocol_judgement = wrong.selection, wrong.judgement
BY_LABEL: Final = (
    *everywhere("judge", wrong.own_by_label),
    (Member, "carries", wrong.carried_by_label),
)

MISTAKES: Final = (
    Mistake("W1", USUAL, everywhere("_bind", wrong.wrong_bind)),
    Mistake("W2", USUAL, BY_LABEL),
    Mistake("W3", CROWDED, ((changes, "remove", free_whatever_is_on_it),)),
    Mistake("W4", BROUGHT, ((changes, "finish_cleaning", wrong.always_free),)),
    Mistake("W5", BROUGHT, wrong=replace(BROUGHT, sweep=swept_by_label)),
    Mistake("W6", BROUGHT, ((changes, "take", wrong.as_from_the_pool),)),
    Mistake("W7", CROWDED, wrong=replace(CROWDED, sweep=lambda: wrong.HastySweep().start({}))),
    Mistake("W8", CROWDED, everywhere("_set_right", wrong.judged_by_the_old_view)),
    Mistake("W10", INTERRUPTED, everywhere("_settle", wrong.read_again_before_freeing)),
    Mistake("W11", CLEANED, wrong=replace(CLEANED, rotates=False)),
    Mistake(
        "W12",
        DIRTIED,
        (*everywhere("_is_for", wrong.any_dirty), *everywhere("in_use", wrong.nobodys)),
    ),
    Mistake("W13", EDITED, everywhere("judge", wrong.free_by_label)),
    Mistake("W14", EDITED, (*everywhere("judge", wrong.free_by_label), *BY_LABEL[-1:])),
    Mistake("W16", FAULTY, everywhere("_join", wrong.unfenced)),
    Mistake("W19", REPLACED, ((Fence, "is_overtaken", lambda *_: False),)),
    Mistake("W20", REPLACED, ((Record, "with_holder", from_the_start),)),
    Mistake("W21", REPLACED, ((Fence, "is_overtaken", without_the_uid),)),
    Mistake("W35", RETAINED, ((changes, "take", wrong.as_from_the_pool),)),
)


def told_in(trouble: Trouble, seed: int) -> list[Operation]:
    """Return what was told in a history; who edits by hand may take an account from its holder."""
    told = [each for each in history(trouble, seed, CALLS) if each.end != "lost" or not trouble.edit]
    tried("operations on claims in memory, judged by porcupine", len(told))
    return told


@pytest.mark.skipif(not PROVES, reason="draws histories until one shows the mistake: make fire")
@pytest.mark.parametrize("mistake", MISTAKES, ids=[each.number for each in MISTAKES])
def test_a_mistake_is_seen_in_a_history(
    mistake: Mistake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for place, name, made in mistake.places:
        monkeypatch.setattr(place, name, made)
    trouble = mistake.wrong or mistake.trouble
    drawn = (judged(told_in(trouble, seed), tmp_path).wrong for seed in range(HISTORIES))
    assert any(part["result"] == "Illegal" for wrong in drawn for part in wrong)


RIGHT: Final = tuple(dict.fromkeys(each.trouble for each in MISTAKES))


@pytest.mark.parametrize("trouble", RIGHT)
def test_without_a_mistake_some_order_explains_every_history(trouble: Trouble, tmp_path: Path) -> None:
    for seed in range(counted(2, 50)):
        judgement = judged(told_in(trouble, seed), tmp_path)
        assert not judgement.wrong, judgement.text()
