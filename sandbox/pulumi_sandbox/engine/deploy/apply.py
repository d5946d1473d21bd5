"""The calls that change the world, each with its record before and after (engine facts 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pulumi_sandbox.engine.deploy.callbacks import CallbackError, Hooks
from pulumi_sandbox.engine.deploy.control import Run
from pulumi_sandbox.engine.model.resource import Resource, now, with_secret_outputs
from pulumi_sandbox.engine.plugins.provider import InitializationError, Live, Provider, ProviderError
from pulumi_sandbox.engine.state.journal import Ledger


class Operations:
    """Creates, updates and deletes; what a provider answered is recorded before anything else happens."""

    def __init__(self, run: Run, ledger: Ledger, hooks: Hooks) -> None:
        """Work for one deployment."""
        self._run = run
        self._ledger = ledger
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
        await self._ledger.begin("creating", new)
        try:
            live = await provider.create(
                new.urn, new.inputs, timeout=new.custom_timeouts.create, preview=self._run.preview
            )
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
        self._ledger.end(new)
        if old is None or old.pending_replacement:
            self._ledger.put(record, replaces=old.urn if old else "")
        else:
            self._ledger.put(record)
            self._ledger.condemn(old.urn)
        await self._ledger.settled()
        return record

    async def update(self, old: Resource, new: Resource, provider: Provider | None) -> Resource:
        """Change a resource in place and record it."""
        new = replace(new, id=old.id)
        await self._hooks.run("BeforeUpdate", old, new)
        if provider is None:
            self._incomplete[new.urn] = ("AfterUpdate", old)
            return await self._updated(old, replace(new, outputs=old.outputs), None)
        await self._ledger.begin("updating", new)
        try:
            live = await provider.update(
                new.urn,
                old.id,
                old.inputs,
                old.outputs,
                new.inputs,
                timeout=new.custom_timeouts.update,
                ignored=new.ignore_changes,
                preview=self._run.preview,
            )
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
        self._ledger.end(new)
        self._ledger.put(record, replaces=old.urn)
        await self._ledger.settled()
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
        if self._run.preview or provider is None or old.external or old.retain_on_delete or vanishes:
            done()
        else:
            await self._ledger.begin("deleting", old)
            try:
                await provider.delete(
                    old.urn, old.id, old.inputs, old.outputs, timeout=old.custom_timeouts.delete
                )
            except ProviderError:
                await self._ended(old)
                raise
            self._ledger.end(old)
            done()
        await self._ledger.settled()
        await self._after("AfterDelete", old, None)

    def _unready(self, new: Resource, failed: InitializationError) -> Resource:
        """Note why a resource did not become what was asked for; reasons are recorded in clear."""
        return replace(new, init_errors=tuple(map(self._run.redacted, failed.reasons)))

    async def _ended(self, record: Resource) -> None:
        """Forget a call that the provider refused."""
        self._ledger.end(record)
        await self._ledger.settled()

    async def _after(self, moment: str, old: Resource | None, new: Resource | None) -> None:
        """Run hooks on what is done and recorded: their error fails the deployment, not the step."""
        urn = new.urn if new else old.urn if old else ""
        try:
            await self._hooks.run(moment, old, new)
        except CallbackError as error:
            self._run.fail_unless_stopping(str(error), urn)
