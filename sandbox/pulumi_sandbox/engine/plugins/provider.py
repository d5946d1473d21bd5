"""What the engine asks of whoever manages custom resources, and what it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pulumi_sandbox.engine.model.diff import Diff
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.protocol.values import Properties


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """A property a provider refuses; an empty name means the resource as a whole."""

    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """Inputs as the provider completes them, or why it refuses them."""

    inputs: Properties
    failures: tuple[CheckFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Live:
    """A resource as its provider reports it.

    `id` is empty when there is none, `inputs` None when not told.
    """

    id: str
    outputs: Properties
    inputs: Properties | None = None


class ProviderError(Exception):
    """A provider refused a call; the text is the provider's."""


class AnswerLostError(ProviderError):
    """A call may have done its work or not: its answer never came."""


class InitializationError(ProviderError):
    """The resource exists, but did not become what was asked for; `live` is what there is."""

    def __init__(self, reasons: tuple[str, ...], live: Live) -> None:
        super().__init__("\n".join(reasons) or "the resource was made but did not initialize")
        self.reasons = reasons
        self.live = live


class DiffUnavailableError(Exception):
    """The provider's own configuration is unknown as yet, so it cannot compare anything."""


class Provider(Protocol):
    """Whoever manages custom resources: a plugin, the engine itself, or the one for provider resources.

    Resources are handed over as records: the one the state has, and the one that is to be.
    """

    async def check(self, urn: str, olds: Properties | None, news: Properties, *, preview: bool) -> Checked:
        """Validate and complete inputs; `olds` are the old inputs, None for a new resource."""
        ...

    async def diff(self, old: Resource, new: Resource, *, preview: bool) -> Diff:
        """Compare; the answer may be `unknown`. Only in a preview new inputs may be unknown."""
        ...

    async def create(self, new: Resource, *, preview: bool) -> Live:
        """Make a resource; in a preview say what it would be, with an empty id."""
        ...

    async def update(self, old: Resource, new: Resource, *, preview: bool) -> Live:
        """Change a resource in place."""
        ...

    async def delete(self, old: Resource) -> None:
        """Unmake a resource."""
        ...

    async def read(self, known: Resource) -> Live:
        """Report a resource as it is; an empty id means it is gone."""
        ...

    async def invoke(self, token: str, args: Properties, *, preview: bool) -> Checked:
        """Call a function; its results stand where inputs do."""
        ...


async def read_live(known: Resource, provider: Provider) -> tuple[Live, tuple[str, ...]]:
    """Return what a resource is, and why it is not what was asked for, where it is not."""
    try:
        return await provider.read(known), ()
    except InitializationError as failed:
        return failed.live, failed.reasons
