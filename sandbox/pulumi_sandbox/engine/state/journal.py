"""The state while a deployment runs: what is done, what is left of before, and which calls are under way."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from pulumi_sandbox.engine.model.resource import OperationType, PendingOperation, Resource, Snapshot


class Journal:
    """The mutable list of records behind the snapshots of one deployment.

    Records stand in order of completion, followed by old ones not yet touched; so each stands after what it
    refers to. Waiters for one write share it: calls that begin while a snapshot is being
    written are in the next one together.
    """

    def __init__(self, base: Snapshot, save: Callable[[Snapshot], None] | None) -> None:
        """Begin with the state as it is; without `save` (previews) nothing is ever written.

        `save` writes a snapshot in place of the one before, and returns once it would survive a crash.
        Of the calls that an earlier run left pending, a create stays until its resource is made, or a refresh
        forgets it, an update or a deletion until the resource is registered, deleted, or read by a refresh.
        """
        self._save = save
        self._old: dict[int, Resource] = dict(enumerate(base.resources))
        self._live = {each.urn: index for index, each in self._old.items() if not each.delete}
        self._new: dict[str, Resource] = {}
        self._pending: dict[int, PendingOperation] = {}
        self._former: dict[int, tuple[str, PendingOperation]] = {}
        self._interrupted = {each.resource.urn: each for each in base.pending if each.type == "creating"}
        self._uncertain = {
            urn: each
            for each in base.pending
            if each.type in ("updating", "deleting") and (urn := _named_in(self._live, each.resource))
        }
        self._wanted = 0 if len(self._interrupted) + len(self._uncertain) == len(base.pending) else 1
        self._written = 0
        self._writer: asyncio.Task[None] | None = None

    @property
    def old(self) -> tuple[Resource, ...]:
        """The records of before that no step has replaced or removed yet, in their order."""
        return tuple(self._old.values())

    @property
    def new(self) -> tuple[Resource, ...]:
        """The records of this deployment, in order of completion."""
        return tuple(self._new.values())

    def live(self, urn: str) -> Resource | None:
        """Return the old record of a resource, unless its deletion is due already or it was replaced."""
        index = self._live.get(urn)
        return None if index is None else self._old[index]

    def interrupted(self, urn: str) -> Resource | None:
        """Return what an earlier run began to create under this URN, if nobody recorded the end."""
        operation = self._interrupted.get(urn)
        return operation.resource if operation else None

    def uncertain(self, urn: str) -> OperationType | None:
        """Return what an earlier run began to do to the live record of this name, if nobody knows its end."""
        operation = self._uncertain.get(urn)
        return operation.type if operation else None

    @property
    def interruptions(self) -> tuple[str, ...]:
        """The URNs of all creates whose end nobody recorded."""
        return tuple(self._interrupted)

    def snapshot(self) -> Snapshot:
        """Return the state as of now."""
        return Snapshot(
            resources=(*self._new.values(), *self._old.values()),
            pending=(
                *self._interrupted.values(),
                *self._uncertain.values(),
                *self._pending.values(),
            ),
        )

    async def begin(self, type_: OperationType, resource: Resource) -> None:
        """Record that a call is about to be made, and return once that is on disk.

        It stands for what an earlier run began of its kind. A deletion stays in doubt until its replacement
        is made: its record is there until then.
        """
        if type_ == "creating":
            urn, calls = resource.urn, self._interrupted
        else:
            urn, calls = _named_in(self._uncertain, resource), self._uncertain
        if urn in calls:
            self._former[id(resource)] = urn, calls.pop(urn)
        self._pending[id(resource)] = PendingOperation(resource, type_)
        self._changed()
        await self.settled()

    def end(self, resource: Resource, *, refused: bool = False) -> None:
        """Forget the call begun for this very record; one that was refused ends no earlier one."""
        former = self._former.pop(id(resource), None)
        if self._pending.pop(id(resource), None):
            if former and refused:
                urn, call = former
                calls = self._interrupted if call.type == "creating" else self._uncertain
                calls[urn] = call
            self._changed()

    def put(self, new: Resource, *, replaces: str = "") -> Resource:
        """Add a record, in place of the live old one named; an equal one costs no write.

        If it was renamed, the remaining old records refer to it by its new URN from now on, and its former
        ones are forgotten.
        Returns the record that stands now.
        """
        for former in new.aliases:
            self._old = {index: _renamed(old, former, new.urn) for index, old in self._old.items()}
        new = replace(new, aliases=()) if new.aliases else new
        gone = self._old.pop(self._live.pop(replaces, -1), None)
        self._settle(replaces)
        if gone is not None and gone == new:
            new = gone
        else:
            self._changed()
        self._new[new.urn] = new
        return new

    def add(self, new: Resource) -> None:
        """Put a record that no program registers behind all that is there."""
        index = max(self._old, default=-1) + 1
        self._old[index] = new
        self._live[new.urn] = index
        self._changed()

    def amend(self, new: Resource) -> None:
        """Change a record of this deployment where it stands."""
        if self._new[new.urn] != new:
            self._new[new.urn] = new
            self._changed()

    def condemn(self, urn: str) -> None:
        """Mark a live old record for deletion: its replacement exists."""
        index = self._live.pop(urn)
        self._settle(urn)
        self._old[index] = replace(self._old[index], delete=True)
        self._changed()

    def await_replacement(self, urn: str) -> None:
        """Mark a live old record as deleted already, its replacement still to come."""
        index = self._live[urn]
        self._settle(urn)
        self._old[index] = replace(self._old[index], pending_replacement=True)
        self._changed()

    def drop(self, gone: Resource) -> None:
        """Remove an old record, or one of this deployment: the resource is gone."""
        index = self._live.get(gone.urn, -1)
        if self._old.get(index) is not gone:
            index = next((index for index, each in self._old.items() if each is gone), -1)
        if self._old.pop(index, None):
            self._settle(gone.urn)
            if self._live.get(gone.urn) == index:
                del self._live[gone.urn]
            self._changed()
            return
        if self._new.get(gone.urn) is gone:
            del self._new[gone.urn]
            self._changed()

    def reopen(self) -> None:
        """Take the records of this deployment for old ones, too: all of them may go."""
        self._old = dict(enumerate((*self._new.values(), *self._old.values())))
        self._live = {each.urn: index for index, each in self._old.items() if not each.delete}
        self._new.clear()

    def rebase(self, resources: Iterable[Resource], *, known: Collection[str], forgets: bool) -> None:
        """Replace all records by what a refresh found.

        The calls of before to what is `known` now are settled by that, but for creates; those are, where it
        `forgets` them.
        """
        resources = tuple(resources)
        settled = self._uncertain.keys() & known
        if resources != tuple(self._old.values()) or settled or (forgets and self._interrupted):
            self._changed()
        for urn in settled:
            del self._uncertain[urn]
        if forgets:
            self._interrupted.clear()
        self._old = dict(enumerate(resources))
        self._live = {each.urn: index for index, each in self._old.items() if not each.delete}

    async def settled(self) -> None:
        """Return once all that was changed so far is on disk.

        Raises what the store says, for example `disk-full`.
        """
        wanted = self._wanted
        while self._written < wanted:
            if self._writer is None or self._writer.done():
                self._writer = asyncio.create_task(self._write())
            await asyncio.shield(self._writer)

    async def _write(self) -> None:
        version = self._wanted
        if self._save is not None:
            await asyncio.to_thread(self._save, self.snapshot())
        self._written = version

    def _settle(self, urn: str) -> None:
        """Forget what an earlier run began to do to a resource: it is known again what it is."""
        if self._uncertain.pop(urn, None):
            self._changed()

    def _changed(self) -> None:
        self._wanted += 1


def _named_in(urns: Collection[str], resource: Resource) -> str:
    """Return the name of a resource among these, its own or a former one; an empty text if it has none."""
    return next((urn for urn in (resource.urn, *resource.aliases) if urn in urns), "")


def _renamed(resource: Resource, former: str, urn: str) -> Resource:
    """Replace a URN wherever a record refers to it; a record that does not stays the same object."""

    def name(each: str) -> str:
        return urn if each == former else each

    def names(all_: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(name, all_))

    provider, _, id_ = resource.provider.rpartition("::")
    if former != provider and former not in resource.references:
        return resource
    return replace(
        resource,
        provider=f"{name(provider)}::{id_}" if provider else "",
        parent=name(resource.parent),
        dependencies=names(resource.dependencies),
        property_dependencies={key: names(all_) for key, all_ in resource.property_dependencies.items()},
        deleted_with=name(resource.deleted_with),
        replace_with=names(resource.replace_with),
    )
