"""What a stack's resources are in: a provider that remembers what it made, and fails as it is told to.

It stands where the engine expects the process of a plugin. A resource is its own by the name that was chosen
for it: creating it again under that name finds it, as every provider does that can be asked twice.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from pulumi_sandbox.engine.model.diff import Diff
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.provider import (
    AnswerLostError,
    Checked,
    InitializationError,
    Live,
    ProviderError,
)
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret, reveal

from tests.fire.engine.state_reader import State

READ: Final = "ext-"
"""How ids begin of what is somebody else's: it is always there."""

Fault: TypeAlias = Literal["refused", "partial", "lost", "cancelled"]


@dataclass
class Thing:
    """What was made: its id, the URN it was made for, the inputs it has; not ready what was made by half.

    since: whose turn it was when it was last asked to be made, which binds it to the hosts of that time.
    """

    id: str
    urn: str
    inputs: dict[str, Any]
    since: int
    is_ready: bool = True

    @property
    def number(self) -> int:
        """Whose turn it was to be made."""
        return _number(self.id)


def _number(id_: str) -> int:
    return int(id_.removeprefix("id-"))


@dataclass
class World:
    """All things, and the calls that were made; `faults` by method and logical name, each for every call.

    disk: reads the state as it would be found after a kill at this moment. seen: the last record of each id.
    freed: what the program protects no more: that may be replaced in the same update. answered: the ids that
    the engine was told, and lived on.
    """

    disk: Callable[[], State]
    things: dict[str, Thing] = field(default_factory=dict[str, Thing])
    faults: dict[tuple[str, str], Fault] = field(default_factory=dict[tuple[str, str], Fault])
    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    wrongs: list[str] = field(default_factory=list[str])
    seen: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    is_dead: Callable[[], bool] = lambda: False
    cancel: Callable[[], None] = lambda: None
    keeps_order: bool = False
    freed: frozenset[str] = frozenset()
    answered: set[str] = field(default_factory=set[str])
    _made: int = 0

    # What the engine does with the process

    def warm_up(self, package: str) -> None:
        """Begin early: there is nothing to begin."""

    async def start(self, package: str) -> World:
        """Return the provider of a package."""
        del package
        return self

    async def stop(self) -> None:
        """End: there is nothing to end."""

    def kill(self) -> None:
        """End at once."""

    async def check_config(self, urn: str, olds: Properties | None, news: Properties) -> Checked:
        """Take any configuration."""
        del urn, olds
        return Checked(news)

    async def diff_config(self, urn: str, old: Resource, news: Properties) -> Diff:
        """Compare what cannot change: another one is another provider."""
        del urn
        is_same = old.inputs.get("fixed") == news.get("fixed")
        return Diff("none") if is_same else Diff("some", ("fixed",), ("fixed",))

    async def configure(self, urn: str, id: str, inputs: Properties) -> None:
        """Take any configuration."""

    # What it does with resources

    async def check(self, urn: str, olds: Properties | None, news: Properties, *, preview: bool) -> Checked:
        """Choose a name where none was chosen yet."""
        await self._breathe()
        chosen = (olds or {}).get("name")
        if not chosen:
            self._made += not preview
            chosen = f"{urns.parse(urn).name}-{self._made}"
        return Checked({**news, "name": chosen})

    async def diff(self, old: Resource, new: Resource, *, preview: bool) -> Diff:
        """Compare inputs; what begins with `fixed` cannot change in place."""
        del preview
        await self._breathe()
        olds, news = old.inputs, new.inputs
        changed = tuple(
            sorted(key for key in olds.keys() | news.keys() if reveal(olds.get(key)) != reveal(news.get(key)))
        )
        replaces = tuple(key for key in changed if key.startswith("fixed"))
        return Diff(
            "some" if changed else "none", replaces, changed, delete_before_replace="exclusive" in news
        )

    async def create(self, new: Resource, *, preview: bool) -> Live:
        """Make a thing, or find the one of this name that an answer never told of."""
        if preview:
            return Live("", {**new.inputs, "made": UNKNOWN})
        fault = await self._begin("create", "creating", new)
        inputs = cast("dict[str, Any]", reveal(new.inputs))
        known = self.disk().by_id
        same = [each for each in self.things.values() if each.inputs["name"] == inputs["name"]]
        if any(each.id in known for each in same):
            self.wrongs.append(f"{new.urn} is made again though the state has it")
        self._made += 1
        thing = same[0] if same else Thing(f"id-{self._made}", new.urn, inputs, self._made)
        thing.urn, thing.inputs, thing.since = new.urn, inputs, self._made
        self.things[thing.id] = thing
        return await self._end(fault, thing, new)

    async def update(self, old: Resource, new: Resource, *, preview: bool) -> Live:
        """Change a thing in place."""
        if preview:
            return Live(old.id, {**new.inputs, "made": old.outputs.get("made", UNKNOWN)})
        fault = await self._begin("update", "updating", new)
        thing = self.things.get(old.id)
        if thing is None:
            raise ProviderError(f"there is no {old.id}")
        thing.urn, thing.inputs = new.urn, cast("dict[str, Any]", reveal(new.inputs))
        return await self._end(fault, thing, new)

    async def delete(self, old: Resource) -> None:
        """Unmake a thing, and those whose records say that they go with it; one that is gone is no error."""
        fault = await self._begin("delete", "deleting", old)
        state = self.disk()
        known = state.by_id
        is_kept = known[old.id].get("protect") and not known[old.id].get("delete")
        is_kept = is_kept and urns.parse(old.urn).name not in self.freed
        if is_kept or known[old.id].get("retainOnDelete"):
            self.wrongs.append(f"{old.urn} is deleted though it is to stay")
        gone = self.things.pop(old.id, None)
        if gone and self.keeps_order:
            for each in known.values():
                depends = old.urn in (*each.get("dependencies", ()), each.get("parent"))
                if depends and each["id"] in self.things and not _is_spared(each, old.urn):
                    self.wrongs.append(f"{old.urn} is deleted before {each['urn']}, which depends on it")
        self._take_along(old.urn, old.id)
        await self._breathe()
        if fault == "lost":
            raise AnswerLostError("the provider's process is gone")

    def _take_along(self, host: str, id_: str) -> None:
        """Unmake what goes with a host that is gone, and what goes with that; a newer host has its own."""
        newer = [
            thing.number
            for thing in self.things.values()
            if thing.urn == host and thing.number > _number(id_)
        ]
        for each in self.seen.values():
            guest = self.things.get(each["id"])
            if guest and each.get("deletedWith") == host and guest.since < min(newer, default=math.inf):
                del self.things[guest.id]
                self._take_along(guest.urn, guest.id)

    async def read(self, known: Resource) -> Live:
        """Report a thing as it is."""
        fault = self.faults.get(("read", urns.parse(known.urn).name))
        await self._breathe()
        if fault == "refused":
            raise ProviderError("not now")
        if known.id.startswith(READ):
            return Live(known.id, {"made": f"by {known.id}"})
        thing = self.things.get(known.id)
        if thing is None:
            return Live("", {})
        inputs = _concealed(thing.inputs)
        live = Live(thing.id, {**inputs, "made": f"by {thing.id}"}, inputs)
        if not thing.is_ready:
            raise InitializationError(("not ready",), live)
        return live

    async def _begin(self, method: str, kind: str, record: Resource) -> Fault | None:
        """Take a call: what is on disk must tell of it already."""
        await self._breathe()
        name = urns.parse(record.urn).name
        self.calls.append((method, name))
        if self.disk().began(kind, record.urn) is None:
            self.wrongs.append(f"{method} of {record.urn} is not on disk when it is made")
        await self._breathe()
        fault = self.faults.get((method, name))
        if fault == "refused":
            raise ProviderError("not now")
        if fault == "cancelled":
            self.cancel()
        return fault

    async def _end(self, fault: Fault | None, thing: Thing, new: Resource) -> Live:
        """Answer that a thing was made or changed, or fail to."""
        await self._breathe()
        live = Live(thing.id, {**cast("Properties", reveal(new.inputs)), "made": f"by {thing.id}"})
        thing.is_ready = fault != "partial"
        if fault == "partial":
            self.answered.add(thing.id)
            raise InitializationError(("not ready",), live)
        if fault == "lost":
            raise AnswerLostError("the provider's process is gone")
        self.answered.add(thing.id)
        return live

    async def _breathe(self) -> None:
        """Let others go on; a call of a run that was killed never comes back."""
        await asyncio.sleep(0)
        if self.is_dead():
            raise asyncio.CancelledError


def _is_spared(record: dict[str, Any], urn: str) -> bool:
    """Whether a record may outlive what it depends on."""
    return bool(record.get("retainOnDelete") or record.get("deletedWith") or record["urn"] == urn)


def _concealed(inputs: dict[str, Any]) -> Properties:
    return {key: Secret(value) if key == "password" else value for key, value in inputs.items()}
