"""Provider resources: which configured provider stands behind a reference `urn::id`."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pulumi_sandbox.engine.model.diff import NO_DIFFERENCE, Diff
from pulumi_sandbox.engine.model.goal import INTERNAL, package_of
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.plugin_provider import PluginProvider
from pulumi_sandbox.engine.plugins.provider import (
    Checked,
    CheckFailure,
    Live,
    Provider,
    ProviderError,
)
from pulumi_sandbox.engine.plugins.provider_processes import Plugins
from pulumi_sandbox.protocol import signatures, urns
from pulumi_sandbox.protocol.values import Properties, Value, equal

UNKNOWN_ID: Final = signatures.UNKNOWN
"""The id of a provider that a preview would make, in references only."""


class ProviderResources:
    """Manages provider resources as other providers manage theirs, and hands out the configured ones.

    The instance that answers CheckConfig is the one that gets configured.
    """

    def __init__(self, plugins: Plugins, builtin: Provider, warn: Callable[[str, str], None]) -> None:
        self._plugins = plugins
        self._warn = warn
        self._builtin = builtin
        self._checked: dict[str, PluginProvider] = {}
        self._configured: dict[str, PluginProvider] = {}
        self._keeping: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def get(self, reference: str) -> Provider:
        """Return the provider behind a reference.

        Raises ProviderError when nobody registered it in this run.
        """
        urn = urns.of_provider(reference)
        if package_of(urns.parse(urn).type) == "pulumi":
            return self._builtin
        provider = self._configured.get(reference)
        if provider is None:
            raise ProviderError(f"unknown provider {reference}")
        return provider

    def knows(self, reference: str) -> bool:
        """Whether the provider behind a reference is ready."""
        return reference in self._configured

    async def keep(self, record: Resource) -> None:
        """Configure an unchanged provider as the state has it.

        One that nobody checked in this run is started.
        """
        reference = f"{record.urn}::{record.id}"
        async with self._keeping[reference]:
            if reference not in self._configured:
                await self._configure(record.urn, record.id, record.inputs)

    async def diff_config(self, reference: str, old: Resource, news: Properties) -> Diff:
        """Ask a configured provider what moving to it from another, or another configuration, means."""
        provider = self._configured.get(reference)
        if provider is None:
            raise ProviderError(f"unknown provider {reference}")
        return await provider.diff_config(urns.of_provider(reference), _visible_record(old), visible(news))

    async def check(self, urn: str, olds: Properties | None, news: Properties, *, preview: bool) -> Checked:
        """Start a provider and let it validate its configuration; see `Provider`."""
        del preview
        package = package_of(urns.parse(urn).type)
        if package == "pulumi":
            return Checked(news)
        provider = await self._plugins.start(package)
        answer = await provider.check_config(urn, None if olds is None else visible(olds), visible(news))
        self._checked[urn] = provider
        await self._warn_of_another_release(urn, news.get("version"), provider)
        engines_own = {key: news[key] for key in ("version", INTERNAL) if key in news}
        if not equal(answer.inputs.get("version", news.get("version")), news.get("version")):
            return Checked(news, (CheckFailure("version", "the provider changed its own version"),))
        return Checked({**answer.inputs, **engines_own}, answer.failures)

    async def diff(self, old: Resource, new: Resource, *, preview: bool) -> Diff:
        """Compare configurations; where the provider cannot, any difference is a change. See `Provider`."""
        del preview
        provider = self._checked.get(new.urn) or self._configured.get(f"{new.urn}::{old.id}")
        news = visible(new.inputs)
        if provider:
            found = await provider.diff_config(new.urn, _visible_record(old), news)
            if found.changes != "unknown":
                return found
        return NO_DIFFERENCE if equal(old.outputs, news) else Diff("some")

    async def create(self, new: Resource, *, preview: bool) -> Live:
        """Configure the provider that was checked; see `Provider`."""
        id_ = "" if preview else str(uuid.uuid4())
        await self._configure(new.urn, id_ or UNKNOWN_ID, new.inputs)
        return Live(id_, visible(new.inputs))

    async def update(self, old: Resource, new: Resource, *, preview: bool) -> Live:
        """Put the newly checked provider in place of the old one; see `Provider`."""
        del preview
        await self._configure(new.urn, old.id, new.inputs)
        return Live(old.id, visible(new.inputs))

    async def delete(self, old: Resource) -> None:
        """Forget a provider; its process ends with the deployment. See `Provider`."""
        self._configured.pop(f"{old.urn}::{old.id}", None)

    async def read(self, known: Resource) -> Live:
        """Return what is known: there is nothing outside to look at. See `Provider`."""
        return Live(known.id, known.outputs, known.inputs)

    async def invoke(self, token: str, args: Properties, *, preview: bool) -> Checked:
        """Refuse: provider resources have no functions."""
        del args, preview
        raise ProviderError(f"provider resources have no function {token}")

    async def _warn_of_another_release(self, urn: str, asked: Value, provider: PluginProvider) -> None:
        """Warn where a stand-in has the ways of another major version than the one that is asked for."""
        package = package_of(urns.parse(urn).type)
        if not isinstance(asked, str) or not self._plugins.stands_in(package):
            return
        release = await provider.release()
        if asked.removeprefix("v").partition(".")[0] != release.partition(".")[0]:
            self._warn(
                urn,
                f"version {asked} of {package} is asked for, and what stands in for it here acts as {release}"
                "\n→ run that plugin and name it in PULUMI_DEBUG_PROVIDERS where the difference matters",
            )

    async def _configure(self, urn: str, id_: str, inputs: Properties) -> None:
        package = package_of(urns.parse(urn).type)
        if package == "pulumi":
            return
        provider = self._checked.pop(urn, None) or await self._plugins.start(package)
        await provider.configure(urn, id_, visible(inputs))
        self._configured[f"{urn}::{id_}"] = provider


def visible(inputs: Properties) -> Properties:
    """Return a provider's inputs without what only the engine may see."""
    return {key: value for key, value in inputs.items() if key != INTERNAL}


def _visible_record(old: Resource) -> Resource:
    return replace(old, inputs=visible(old.inputs))
