"""No sequence of allowed writes breaks a promise: all states that an account or a record can come to.

Explored without a bound on the number of writes, over all users at once, so four writes of each are among
them. What two objects say of each other is explored in `test_worlds.py`. What operators make or restore is
what they say it is.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pytest

from components.account_pool.member_steps import (
    BEFORE,
    BROUGHT,
    CLEANING,
    ORIGIN,
    POLICY,
    STATE,
    TENANT,
    TOKEN,
    member_table,
)
from components.account_pool.record_steps import (
    AGREED,
    ATTEMPT,
    HOLDERS,
    MEMBER,
    MEMBER_UID,
    PART,
    PHASE,
    RETIRED,
    SLOT,
    WHOSE,
    record_table,
)
from components.account_pool.relations import OWNER, TYPE
from components.account_pool.rows import ANYTHING, Among, Step, Table
from tests.support.proving import PROVES, tried
from tests.support.sequences import Domains, Texts, Turn, turns
from tests.support.sequences import account_after as judged
from tests.support.transitions import TOKENS

ACCOUNT: Final[Domains] = {
    TYPE: ("aws", None),
    OWNER: (None, "acme", "globex"),
    STATE: (None, "dirty", "cleaning", "quarantined"),
    TOKEN: (None, *TOKENS[: 2 if PROVES else 1]),
    ORIGIN: (None, "pool", "owner", "retained"),
    POLICY: (None, "release", "clean", *(("retain", "quarantine") if PROVES else ())),
    TENANT: (None, "acme", "globex"),
    CLEANING: (None, "janitor/1"),
    BEFORE: (None, "dirty", "decommissioned", "leaving"),
    BROUGHT: (None, "true"),
}
RECORD: Final[Domains] = {
    PHASE: ("Pending", "Bound", "Releasing"),
    WHOSE: ("acme", "globex"),
    PART: ("hyperscaler-type=aws", *(("hyperscaler-type=gcp",) if PROVES else ())),
    SLOT: ("0", "1"),
    MEMBER: ("aws-1", "aws-2"),
    MEMBER_UID: ("u-1",),
    ATTEMPT: ("1", "2", *(("3",) if PROVES else ())),
    AGREED: ("clean", "release"),
    HOLDERS: ('{"h": 1}', '{"h": 2}', '{"h": 1, "i": 1}', "{}"),
    RETIRED: (None, "1", "2"),
}


@dataclass(frozen=True)
class World:
    """One object as far as it matters, and what nobody can see of it.

    soiled: somebody used the account, and nobody cleaned it since. bound: the account that the record named
    when it became Bound.
    """

    texts: tuple[str | None, ...]
    soiled: bool = False
    bound: str | None = None


def account_after(world: World, turn: Turn) -> tuple[World, str | None]:
    """Return what became of an account, and which promise a write broke."""
    soiled, broken = judged(turn, was_soiled=world.soiled)
    return World(tuple(turn.new.values()), soiled), broken


def record_after(world: World, turn: Turn) -> tuple[World, str | None]:
    """Return what became of a record, and which promise a write broke."""
    new = turn.new
    bound = world.bound or (new[MEMBER] if new[PHASE] == "Bound" else None)
    broken = None
    if bound is not None and new[MEMBER] != bound:
        broken = "a slot has two accounts"
    if any(new[field] != turn.old[field] for field in (WHOSE, PART, SLOT)):
        broken = "a record is of another slot"
    return World(tuple(new.values()), bound=bound), broken


def explore(
    table: Table,
    domains: Domains,
    starts: Sequence[Texts],
    after: Callable[[World, Turn], tuple[World, str | None]],
) -> tuple[str | None, int]:
    """Return the shortest way to a broken promise, if there is one, and how many states were seen."""
    ways: dict[World, tuple[World | None, str]] = {}
    waiting: deque[World] = deque()
    for start in starts:
        world = World(tuple(start.get(field) for field in domains), soiled=start.get(OWNER) is not None)
        ways[world] = (None, "")
        waiting.append(world)
    while waiting:
        world = waiting.popleft()
        for turn in turns(table, domains, dict(zip(domains, world.texts, strict=True))):
            then, broken = after(world, turn)
            if broken is not None:
                steps, at = [str(turn), broken], world
                while (way := ways[at])[0] is not None:
                    steps.insert(0, way[1])
                    at = way[0] or at
                return "\n".join(steps), len(ways)
            if then not in ways:
                ways[then] = (world, str(turn))
                waiting.append(then)
    return None, len(ways)


FREE: Final[Texts] = {TYPE: "aws"}
STARTS: Final[Sequence[Texts]] = (
    {},
    FREE,
    {TYPE: "aws", OWNER: "acme", BROUGHT: "true"},
    {TYPE: "aws", OWNER: "acme", TOKEN: TOKENS[0], ORIGIN: "pool", POLICY: "clean", TENANT: "acme"},
)
BEGUN: Final[Texts] = {field: texts[0] for field, texts in RECORD.items()}


def test_no_sequence_of_writes_to_an_account_breaks_a_promise() -> None:
    broken, states = explore(member_table(()), ACCOUNT, STARTS, account_after)
    tried("states of an account that writes lead to", states)
    assert broken is None, broken
    assert states > 100


def test_no_sequence_of_writes_to_a_record_breaks_a_promise() -> None:
    broken, states = explore(record_table(()), RECORD, [BEGUN], record_after)
    tried("states of a record that writes lead to", states)
    assert broken is None, broken
    assert states > 20


def holed(table: Table, does: str, **changes: object) -> Table:
    """Return a table with one row as it ought not to be."""
    found = [step for step in table.steps if step.does.startswith(does)]
    assert len(found) == 1
    return replace(
        table,
        steps=tuple(replace(step, **changes) if step is found[0] else step for step in table.steps),  # pyright: ignore[reportArgumentType] - names of fields of a row
    )


HOLES: Final[Mapping[str, tuple[Table, str]]] = {
    "anybody takes a state off": (
        replace(
            member_table(()),
            steps=(*member_table(()).steps, Step("hole", new={STATE: Among(absent=True)})),
        ),
        "an uncleaned account is free",
    ),
    "an operator frees a retained account": (
        holed(member_table(()), "take an account from its tenant", new={OWNER: Among(absent=True)}),
        "an uncleaned account is free",
    ),
    "a release is free whatever was agreed": (
        holed(member_table(()), "X2: leave it free", old={TOKEN: Among(texts=TOKENS)}),
        "an uncleaned account is free",
    ),
    "quarantine forgets that an account was dirty": (
        holed(
            member_table(()),
            "quarantine an account that is not clean",
            new={STATE: Among(("quarantined",)), CLEANING: Among(absent=True), BEFORE: ANYTHING},
        ),
        "an uncleaned account is free",
    ),
    "a label put back is anybody's": (
        holed(member_table(()), "C4, C8", old={}, when=()),
        "an owner is forged",
    ),
    "a dirty account is cleaned although it is held": (
        holed(member_table(()), "K2: begin to clean", old={STATE: Among(("dirty",))}),
        "an account in use is cleaned",
    ),
    "an account is claimed although it has a token": (
        holed(
            member_table(()),
            "C3: take an account that its tenant had",
            old={OWNER: Among(("acme", "globex"))},
            new={TENANT: ANYTHING, OWNER: Among(("acme", "globex"))},
            when=(),
        ),
        "an account of one tenant is another's",
    ),
}


@pytest.mark.parametrize(("table", "promise"), HOLES.values(), ids=HOLES.keys())
def test_a_hole_in_the_table_of_accounts_is_found(table: Table, promise: str) -> None:
    broken, _ = explore(table, ACCOUNT, STARTS, account_after)
    assert broken is not None
    assert broken.endswith(promise)


def test_a_hole_in_the_table_of_records_is_found() -> None:
    table = record_table(())
    move = next(step for step in table.steps if step.does.startswith("C6"))
    hole = replace(
        table, steps=tuple(replace(each, old={}) if each is move else each for each in table.steps)
    )
    broken, _ = explore(hole, RECORD, [BEGUN], record_after)
    assert broken is not None
    assert broken.endswith("a slot has two accounts")
