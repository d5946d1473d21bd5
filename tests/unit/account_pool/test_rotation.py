"""A key is rotated without a gap, wherever runs die, and is revoked only once nobody has it.

A cloud in memory has the keys of one account. Stacks that hold the account copy its key, and say so at the
end of an update. In every order that is tried, no stack has a key that the cloud rejects.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from components.account_pool.core import cleaning, receipts, rotation
from components.account_pool.core.calls import (
    Answer,
    AskProgram,
    Found,
    KeyVerb,
    Kind,
    Parallel,
    Pause,
    Said,
    Steps,
    Told,
    Yielded,
)
from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.holders import Holder, cleaning_token
from components.account_pool.core.keys import (
    KEY_CHANGED,
    KEY_ID,
    KEY_OPERATION,
    KEY_REASON,
)
from components.account_pool.core.model import KeyPhase, Policy
from components.account_pool.core.other_key import OTHER_KEY
from components.account_pool.core.rotation import Run
from components.errors import NotAllowed
from tests.support.memory_pool import POOL, Claims, MemoryServer, Releases, decides, is_free, run

NAME = "m0"
STACKS = ("one", "two")


def encoded(key: str) -> dict[str, str]:
    return {"key": base64.b64encode(key.encode()).decode()}


def decoded(data: Mapping[str, str]) -> str:
    return base64.b64decode(data["key"]).decode()


@dataclass
class Cloud:
    """The keys of one account, and the program of its owner.

    fails: what the program does not manage now. makes_duds: keys that do not work. revokes: else it only says
    so.
    """

    alive: set[str] = field(default_factory=lambda: {"k0"})
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    fails: frozenset[KeyVerb] = frozenset()
    makes_duds: bool = False
    revokes: bool = True

    def ask(self, asked: AskProgram) -> Told:
        key = decoded(asked.data)
        if asked.verb in self.fails:
            return Told(Said.UNKNOWN, "the network is down")
        if key not in self.alive:
            return Told(Said.REJECTED, "rejected")
        if asked.verb is KeyVerb.CREATE or (asked.verb is KeyVerb.REVOKE and self.revokes):
            self.alive &= {asked.keep}
        if asked.verb is KeyVerb.CREATE:
            key = f"k{next(self.numbers)}"
            self.alive |= set() if self.makes_duds else {key}
        return Told(Said.DONE, key_id=key, account_id="1", data=encoded(key))


@dataclass
class World:
    """A pool with one account, its cloud, and stacks that hold it. has: stack → the key that it uses."""

    server: MemoryServer = field(default_factory=MemoryServer)
    cloud: Cloud = field(default_factory=Cloud)
    has: dict[str, str] = field(default_factory=dict[str, str])
    numbers: Iterator[int] = field(default_factory=count)
    dead: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, *stacks: str) -> World:
        """Have these stacks hold one claim on the account, and use its key."""
        world = cls()
        world.server.add_member(NAME)
        world.server.patch(Kind.MEMBER, NAME, {"metadata": {}, "data": {"credential": None, **encoded("k0")}})
        for stack in stacks:
            run(Claims("acme", stack).start({}), world.server)
            world.has[stack] = "k0"
        return world

    def new_run(self) -> Run:
        """Name a run that others see alive until it is dead."""
        number = str(next(self.numbers))
        token = cleaning_token("rotation", number, Holder("here", "boot", "spaces", number, "1"))
        return Run(POOL, token, f"swapped-{number}", lambda holder: holder.pid not in self.dead)

    @property
    def in_use(self) -> str:
        found: Any = self.server.get(Kind.CREDENTIAL, NAME)
        return decoded(found.body["data"])

    def update(self, stack: str) -> Steps[Any]:
        """Update a stack as the program does: look which rotation it is, copy, and say at the end so."""
        seen = self.server.member(NAME).annotations.get(KEY_OPERATION, "")
        yield Pause(0)
        self.has[stack] = self.in_use
        yield Pause(0)
        return (yield from receipts.give_receipt(self.record, stack, seen, POOL))

    @property
    def record(self) -> str:
        return Claims("acme", "any").wanted.record

    def carry_out(self, asked: Yielded) -> Answer:
        match asked:
            case Pause():
                return None
            case AskProgram():
                return self.cloud.ask(asked)
            case Parallel():
                raise AssertionError(asked)
            case _:
                return self.server(asked)

    def finish(self, steps: Steps[Any]) -> Any:
        """Run to the end, and check after each call."""
        answer: Answer = None
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = self.carry_out(asked)
            self.check()

    def check(self) -> None:
        """No stack has a key that the cloud rejects, nor would one that copied now get such a one."""
        for who, key in {**self.has, "whoever copies now": self.in_use}.items():
            assert key in self.cloud.alive, f"{who} has {key}, and alive are {sorted(self.cloud.alive)}"

    def settle(self) -> None:
        """End whatever was begun, as an operator would: deliver, have every stack updated, complete."""
        self.dead |= {str(number) for number in range(next(self.numbers) + 1)}
        if self.server.member(NAME).key_phase in (KeyPhase.PREPARING, KeyPhase.PREPARED):
            self.finish(rotation.rotate(self.new_run(), NAME))
        for stack in self.has:
            self.finish(self.update(stack))
        if self.server.member(NAME).key_phase is not None:
            self.finish(rotation.complete(self.new_run(), NAME))
        member = self.server.member(NAME)
        assert (member.key_phase, member.annotations.get(KEY_ID, "k0")) == (None, self.in_use)
        assert self.cloud.alive == {self.in_use}, "a key was left behind"
        assert [each.name for each in self.server.members] == [NAME]


def whole(world: World) -> Iterator[Steps[Any]]:
    """Rotate a key from its beginning to its end."""
    yield rotation.rotate(world.new_run(), NAME)
    yield from (world.update(stack) for stack in world.has)
    yield rotation.complete(world.new_run(), NAME)


def cleaned(world: World) -> Iterator[Steps[Any]]:
    """Clean the account as a run of the cleaner does, that is seen dead once it is over."""
    run, look = world.new_run(), world.new_run().look
    token = run.token.replace("rotation", "nightly")

    def steps() -> Steps[Any]:
        for listed in (yield from cleaning.survey("nightly", look=look))[0]:
            member = yield from cleaning.begin(listed, token)
            assert member is not None
            yield from rotation.renew(replace(run, token=token), NAME)
            yield from cleaning.succeed(member, token)

    yield steps()


def released(*before: Callable[[Run, str], Steps[Any]]) -> World:
    """Have its last tenant leave the account, which has to get a new key before the next."""
    world = World.of()
    world.server.objects[Kind.MEMBER, NAME]["metadata"] |= {"needsNewKey": True}
    run(replace(Claims("acme", "one"), policy=Policy.RELEASE).start({}), world.server)
    for steps in before:
        world.finish(steps(world.new_run(), NAME))
    run(Releases(Claims("acme", "one")).start({}), world.server)
    return world


@pytest.mark.parametrize("before", [(), (rotation.rotate,)], ids=["one key", "two keys"])
@pytest.mark.parametrize("lost", [False, True], ids=["not done", "done"])
def test_account_is_free_only_once_each_key_of_its_last_tenant_is_dead(lost: bool, before: Any) -> None:
    for number in count():
        world = released(*before)
        had = {*world.cloud.alive}
        assert world.server.member(NAME).state == "dirty"
        reached = die_at(world, cleaned(world), number, lost=lost)
        if world.server.member(NAME).state is not None:
            world.dead |= {str(each) for each in range(next(world.numbers))}
            for steps in cleaned(world):
                world.finish(steps)
        world.check()
        assert is_free(world.server.member(NAME))
        assert world.cloud.alive == {world.in_use}, "a key was left behind"
        assert not had & world.cloud.alive
        member = world.server.member(NAME)
        assert (member.key_phase, member.annotations.get(KEY_CHANGED)) == (None, None)
        if not reached:
            assert number > 20
            break


@pytest.mark.parametrize(("calls", "option"), [(9, "abort"), (12, "abort"), (99, "complete")])
def test_dirty_account_with_two_keys_is_cleaned_after_its_rotation_is_ended(calls: int, option: str) -> None:
    world = World.of()
    die_at(world, iter([rotation.rotate(world.new_run(), NAME)]), calls, lost=True)
    run(decides("mark_dirty", NAME, "why"), world.server)
    found, [(_, why, problem)] = run(cleaning.survey("nightly"), world.server)
    assert (found, why) == ([], Wiped.IN_USE)
    assert f"`credfleet pool rotate {NAME} --{option} -n " in problem.fix
    world.dead.add("0")
    world.finish(getattr(rotation, option)(world.new_run(), NAME))
    assert [each.name for each in run(cleaning.survey("nightly"), world.server)[0]] == [NAME]


def die_at(world: World, script: Iterator[Steps[Any]], number: int, *, lost: bool) -> bool:
    """Carry a script out up to a call, whose answer nobody gets; whether it came to it. lost: it was done."""
    calls = count()
    for steps in script:
        answer: Answer = None
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration:
                break
            if next(calls) == number:
                if lost:
                    world.carry_out(asked)
                world.check()
                steps.close()
                return True
            answer = world.carry_out(asked)
            world.check()
    return False


@pytest.mark.parametrize("lost", [False, True], ids=["not done", "done"])
def test_rotation_that_dies_at_any_call_is_ended_by_the_next(lost: bool) -> None:
    for first in count():
        world = World.of(*STACKS)
        reached = die_at(world, whole(world), first, lost=lost)
        world.settle()
        if not reached:
            assert first > 20
            break


def test_key_that_a_holder_may_have_is_not_revoked_and_who_lags_is_named() -> None:
    world = World.of(*STACKS)
    world.finish(rotation.rotate(world.new_run(), NAME))
    world.finish(world.update("one"))

    with pytest.raises(NotAllowed, match=r"two \(tenant acme, slot 0\)"):
        world.finish(rotation.complete(world.new_run(), NAME))

    assert world.cloud.alive == {"k0", "k1"}


def test_new_holder_of_an_account_under_rotation_has_the_key_in_use_and_one_of_before_lags() -> None:
    world = World.of("one")
    world.finish(rotation.rotate(world.new_run(), NAME))
    for claim in (Claims("acme", "one"), Claims("acme", "two")):
        run(claim.start({}), world.server)
        world.has[claim.holder] = world.in_use if claim.holder == "two" else "k0"
    lagging = run(receipts.list_lagging(world.server.member(NAME)), world.server)
    assert [each.holder for each in lagging] == ["one"]


@pytest.mark.parametrize("former", [None, NAME], ids=["new", "again"])
def test_key_is_revoked_without_an_update_of_a_new_claim_and_not_of_one_made_again(
    former: str | None,
) -> None:
    world = World.of()
    world.finish(rotation.rotate(world.new_run(), NAME))
    run(Claims("acme", "one", former=former).start({}), world.server)
    lagging = run(receipts.list_lagging(world.server.member(NAME)), world.server)
    assert [each.holder for each in lagging] == (["one"] if former else [])


def test_key_in_use_stays_beside_a_secret_that_is_created_again_while_the_former_one_is_revoked() -> None:
    world = World.of()
    world.finish(rotation.rotate(world.new_run(), NAME))
    steps = rotation.complete(world.new_run(), NAME)
    asked = next(steps)
    while not (isinstance(asked, AskProgram) and asked.verb is KeyVerb.REVOKE):
        asked = steps.send(world.carry_out(asked))
    asked = steps.send(world.carry_out(asked))
    world.server.remove_member(NAME)
    world.server.add_member(NAME)
    with pytest.raises(NotAllowed, match=f"the key in use is in Secret {NAME}{OTHER_KEY}"):
        _go_on(world, steps, asked)
    assert isinstance(world.server.get(Kind.CREDENTIAL, f"{NAME}{OTHER_KEY}"), Found)


def _go_on(world: World, steps: Steps[Any], asked: Yielded) -> None:
    while True:
        asked = steps.send(world.carry_out(asked))


def test_aborted_rotation_leaves_the_key_in_use_alone() -> None:
    for number in range(40):
        world = World.of(*STACKS)
        die_at(world, iter([rotation.rotate(world.new_run(), NAME)]), number, lost=True)
        world.dead.add("0")
        if world.server.member(NAME).key_phase in (KeyPhase.PREPARING, KeyPhase.PREPARED):
            world.finish(rotation.abort(world.new_run(), NAME))
            assert (world.cloud.alive, world.in_use) == ({"k0"}, "k0")


def test_rolled_back_key_is_in_use_again_and_the_new_one_is_revoked_after_the_stacks() -> None:
    world = World.of(*STACKS)
    world.finish(rotation.rotate(world.new_run(), NAME))
    world.finish(world.update("one"))
    world.finish(rotation.roll_back(world.new_run(), NAME))
    with pytest.raises(NotAllowed, match="one"):
        world.finish(rotation.complete(world.new_run(), NAME))
    world.settle()
    assert world.cloud.alive == {"k0"}


def test_key_that_does_not_work_is_never_in_use() -> None:
    world = World.of(*STACKS)
    world.cloud.makes_duds = True
    with pytest.raises(NotAllowed, match="the new key does not work"):
        world.finish(rotation.rotate(world.new_run(), NAME))
    assert "does not work" in world.server.member(NAME).annotations[KEY_REASON]
    world.cloud.makes_duds = False
    world.settle()
    assert world.in_use == "k2"


def test_rotation_is_over_only_once_the_former_key_is_rejected() -> None:
    world = World.of()
    world.finish(rotation.rotate(world.new_run(), NAME))
    world.cloud.revokes = False
    with pytest.raises(NotAllowed, match="the other key may still work"):
        world.finish(rotation.complete(world.new_run(), NAME))
    assert world.server.member(NAME).key_phase == KeyPhase.COMPLETING
    world.cloud.revokes = True
    world.settle()
