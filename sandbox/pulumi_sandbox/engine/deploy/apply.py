"""The calls that change the world, each with its record before and after."""

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from pulumi_sandbox.engine.deploy import order
from pulumi_sandbox.engine.deploy.callbacks import CallbackError, Hooks
from pulumi_sandbox.engine.deploy.control import Control
from pulumi_sandbox.engine.model.resource import Resource, now, with_secret_outputs
from pulumi_sandbox.engine.plugins.provider import (
    AnswerLostError,
    InitializationError,
    Live,
    Provider,
    ProviderError,
    read_live,
)
from pulumi_sandbox.engine.state.journal import Journal


class Applier:
    """Creates, updates and deletes; what a provider answered is recorded before anything else happens."""

    def __init__(self, control: Control, journal: Journal, hooks: Hooks) -> None:
        self._control = control
        self._journal = journal
        self._hooks = hooks
        self._unmade: dict[tuple[str, str], Resource] = {}
        self._going: defaultdict[tuple[str, str], list[Callable[[], None]]] = defaultdict(list)
        self._incomplete: dict[str, tuple[str, Resource | None]] = {}

    async def create(
        self, new: Resource, provider: Provider | None, *, old: Resource | None = None
    ) -> Resource:
        """Make a resource and record it; `old` is the one it replaces.

        An old record whose deletion has happened already gives its place, any other is condemned.
        """
        await self._hooks.run("BeforeCreate", None, new)
        if provider is None:
            self._incomplete[new.urn] = ("AfterCreate", None)
            return await self._created(new, Live("", {}), old)
        await self._journal.begin("creating", new)
        try:
            live = await provider.create(new, preview=self._control.preview)
        except InitializationError as failed:
            await self._created(new, failed.live, old, failed)
            raise
        except ProviderError as error:
            await self._ended(new, error)
            raise
        record = await self._created(new, live, old)
        await self._after("AfterCreate", None, record)
        return record

    async def _created(
        self, new: Resource, live: Live, old: Resource | None, failed: InitializationError | None = None
    ) -> Resource:
        time = now()
        record = self._marked(
            replace(new, id=live.id, outputs=live.outputs, created=time, modified=time), failed
        )
        self._journal.end(new)
        if old is None or old.pending_replacement:
            record = self._journal.put(record, replaces=old.urn if old else "")
        else:
            record = self._journal.put(record)
            self._journal.condemn(old.urn)
        await self._journal.settled()
        return record

    async def update(self, old: Resource, new: Resource, provider: Provider | None) -> Resource:
        """Change a resource in place and record it."""
        new = replace(new, id=old.id)
        await self._hooks.run("BeforeUpdate", old, new)
        if provider is None:
            self._incomplete[new.urn] = ("AfterUpdate", old)
            return await self._updated(old, replace(new, outputs=old.outputs), None)
        await self._journal.begin("updating", new)
        try:
            live = await provider.update(old, new, preview=self._control.preview)
        except InitializationError as failed:
            await self._updated(old, new, failed.live, failed)
            raise
        except ProviderError as error:
            await self._ended(new, error)
            raise
        record = await self._updated(old, new, live)
        await self._after("AfterUpdate", old, record)
        return record

    async def _updated(
        self, old: Resource, new: Resource, live: Live | None, failed: InitializationError | None = None
    ) -> Resource:
        record = self._marked(replace(new, outputs=live.outputs, modified=now()) if live else new, failed)
        if failed:  # it is not what was asked for: the next update finds that it still differs
            record = replace(record, inputs=old.inputs)
        self._journal.end(new)
        record = self._journal.put(record, replaces=old.urn)
        await self._journal.settled()
        return record

    async def complete(self, component: Resource) -> None:
        """Run the after-hooks of a component: it is complete when its outputs are known."""
        if component.urn in self._incomplete:
            moment, old = self._incomplete.pop(component.urn)
            await self._after(moment, old, component)

    async def delete(self, old: Resource, provider: Provider | None, done: Callable[[], None]) -> None:
        """Unmake a resource and record that with `done`.

        The provider is not called for previews, resources that are only read, those to be retained, and those
        that vanish with another one unmade in this run: their records go when that one is gone, or at once
        where they refer to what goes before it.
        """
        await self._hooks.run("BeforeDelete", old, None)
        host = self._unmade_host(old)
        is_left = self._control.preview or old.external or old.retain_on_delete
        if provider is None or is_left or (host and not self._can_stand_until_its_host_is_gone(old, host)):
            self.gone(old, done)
        elif host:
            self._going[_key(host)].append(partial(self.gone, old, done))
        else:
            await self._journal.begin("deleting", old)
            try:
                await provider.delete(old)
            except ProviderError as error:
                await self._ended(old, error)
                raise
            self._journal.end(old)
            self.gone(old, done)
        await self._journal.settled()
        await self._after("AfterDelete", old, None)

    def _marked(self, record: Resource, failed: InitializationError | None) -> Resource:
        """Conceal what is secret; note why it did not become what was asked for: reasons stand in clear."""
        reasons = tuple(map(self._control.redacted, failed.reasons)) if failed else ()
        return with_secret_outputs(replace(record, init_errors=reasons))

    def announce(self, condemned: Collection[Resource]) -> None:
        """Take notice of what is about to be deleted: whatever goes with one of them is left to that one."""
        self._unmade |= {_key(each): each for each in condemned if not _stays(each)}

    def gone(self, old: Resource, done: Callable[[], None]) -> None:
        """Record that a resource is gone, and before that what went with it."""
        for each in self._going.pop(_key(old), ()):
            each()
        done()

    def _unmade_host(self, guest: Resource) -> Resource | None:
        """Return what a resource goes with, if that is unmade in this run."""
        if not guest.deleted_with:
            return None
        host = order.host_of(guest, (*self._unmade.values(), *self._journal.old, *self._journal.new))
        return host and self._unmade.get(_key(host))

    def _can_stand_until_its_host_is_gone(self, guest: Resource, host: Resource) -> bool:
        needed = order.with_all_below((guest.deleted_with,), self._journal.old)
        urn, _, id_ = guest.provider.rpartition("::")
        is_served = guest.provider == host.provider or (urn, id_) not in self._unmade
        return is_served and order.depends_on(guest) <= needed

    async def _ended(self, record: Resource, error: ProviderError) -> None:
        """Forget a call that the provider refused; one without an answer stays recorded as begun."""
        if isinstance(error, AnswerLostError):
            return
        self._journal.end(record, refused=True)
        await self._journal.settled()

    async def _after(self, moment: str, old: Resource | None, new: Resource | None) -> None:
        """Run hooks on what is done and recorded: their error fails the deployment, not the step."""
        urn = new.urn if new else old.urn if old else ""
        try:
            await self._hooks.run(moment, old, new)
        except CallbackError as error:
            self._control.fail_unless_stopping(str(error), urn)


async def as_it_exists(new: Resource, provider: Provider, control: Control) -> Resource:
    """Return the record of a resource with the inputs and outputs of the object of its `import_id`.

    Raises ProviderError where there is none, or its provider does not tell what was asked for.
    """
    live, reasons = await read_live(replace(new, id=new.import_id, inputs={}), provider)
    if not live.id:
        raise ProviderError(f"resource {new.import_id!r} does not exist")
    if live.inputs is None:
        raise ProviderError("its provider does not support importing resources")
    time = now()
    return with_secret_outputs(
        replace(
            new,
            id=live.id,
            inputs=live.inputs,
            outputs=live.outputs,
            init_errors=tuple(map(control.redacted, reasons)),
            created=time,
            modified=time,
        )
    )


def _key(resource: Resource) -> tuple[str, str]:
    return resource.urn, resource.id


def _stays(resource: Resource) -> bool:
    """Whether deleting a resource unmakes nothing that others could go with."""
    is_kept = resource.retain_on_delete or (resource.protect and not resource.delete)
    return is_kept or resource.external or not resource.custom
