"""The calls that change the world, each with its record before and after."""

from collections.abc import Callable
from dataclasses import replace

from pulumi_sandbox.engine.deploy.callbacks import CallbackError, Hooks
from pulumi_sandbox.engine.deploy.control import Control
from pulumi_sandbox.engine.model.resource import Resource, now, with_secret_outputs
from pulumi_sandbox.engine.plugins.provider import InitializationError, Live, Provider, ProviderError
from pulumi_sandbox.engine.state.journal import Journal


class Applier:
    """Creates, updates and deletes; what a provider answered is recorded before anything else happens."""

    def __init__(self, control: Control, journal: Journal, hooks: Hooks) -> None:
        self._control = control
        self._journal = journal
        self._hooks = hooks
        self.deleted: set[str] = set()
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
            await self._created(self._unready(new, failed), failed.live, old)
            raise
        except ProviderError:
            await self._ended(new)
            raise
        record = await self._created(new, live, old)
        await self._after("AfterCreate", None, record)
        return record

    async def _created(self, new: Resource, live: Live, old: Resource | None) -> Resource:
        time = now()
        record = with_secret_outputs(
            replace(new, id=live.id, outputs=live.outputs, created=time, modified=time)
        )
        self._journal.end(new)
        if old is None or old.pending_replacement:
            self._journal.put(record, replaces=old.urn if old else "")
        else:
            self._journal.put(record)
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
            await self._updated(old, self._unready(new, failed), failed.live)
            raise
        except ProviderError:
            await self._ended(new)
            raise
        record = await self._updated(old, new, live)
        await self._after("AfterUpdate", old, record)
        return record

    async def _updated(self, old: Resource, new: Resource, live: Live | None) -> Resource:
        record = with_secret_outputs(replace(new, outputs=live.outputs, modified=now()) if live else new)
        self._journal.end(new)
        self._journal.put(record, replaces=old.urn)
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
        that vanish with another one deleted in this run.
        """
        await self._hooks.run("BeforeDelete", old, None)
        vanishes = old.deleted_with in self.deleted
        if self._control.preview or provider is None or old.external or old.retain_on_delete or vanishes:
            done()
        else:
            await self._journal.begin("deleting", old)
            try:
                await provider.delete(old)
            except ProviderError:
                await self._ended(old)
                raise
            self._journal.end(old)
            done()
        await self._journal.settled()
        await self._after("AfterDelete", old, None)

    def _unready(self, new: Resource, failed: InitializationError) -> Resource:
        """Note why a resource did not become what was asked for; reasons are recorded in clear."""
        return replace(new, init_errors=tuple(map(self._control.redacted, failed.reasons)))

    async def _ended(self, record: Resource) -> None:
        """Forget a call that the provider refused."""
        self._journal.end(record)
        await self._journal.settled()

    async def _after(self, moment: str, old: Resource | None, new: Resource | None) -> None:
        """Run hooks on what is done and recorded: their error fails the deployment, not the step."""
        urn = new.urn if new else old.urn if old else ""
        try:
            await self._hooks.run(moment, old, new)
        except CallbackError as error:
            self._control.fail_unless_stopping(str(error), urn)
