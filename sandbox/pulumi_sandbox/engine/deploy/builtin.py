"""The package `pulumi`, which the engine serves itself: lookups in the stack that is being deployed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from pulumi_sandbox.engine.model.diff import Diff
from pulumi_sandbox.engine.model.goal import unsupported
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.provider import Checked, Live, ProviderError
from pulumi_sandbox.protocol.urns import parse
from pulumi_sandbox.protocol.values import UNKNOWN, Properties

GET_RESOURCE = "pulumi:pulumi:getResource"


class Builtin:
    """Serves `pulumi:pulumi:getResource`; StackReference and Stash are refused by name. See `Provider`."""

    def __init__(self, find: Callable[[str], Resource | None]) -> None:
        """Take the function that finds a resource of this run by its URN."""
        self._find = find

    async def invoke(self, token: str, args: Properties, *, preview: bool) -> Checked:
        """Return `urn`, `id` and `state` of a resource the program has registered already."""
        if token != GET_RESOURCE:
            raise unsupported(f"the function {token}", "the builtin package pulumi")
        resource = self._find(str(args.get("urn")))
        if resource is None:
            raise ProviderError(f"unknown resource {args.get('urn')}")
        id_ = resource.id or (UNKNOWN if preview and resource.custom else "")
        return Checked({"urn": resource.urn, "id": id_, "state": resource.outputs})

    async def check(self, urn: str, olds: Properties | None, news: Properties, *, preview: bool) -> Checked:
        """Refuse the resource by name."""
        del olds, news, preview
        _refuse(urn)

    async def diff(self, old: Resource, new: Resource, *, preview: bool) -> Diff:
        """Refuse the resource by name."""
        del old, preview
        _refuse(new.urn)

    async def create(self, new: Resource, *, preview: bool) -> Live:
        """Refuse the resource by name."""
        del preview
        _refuse(new.urn)

    async def update(self, old: Resource, new: Resource, *, preview: bool) -> Live:
        """Refuse the resource by name."""
        del old, preview
        _refuse(new.urn)

    async def read(self, known: Resource) -> Live:
        """Refuse the resource by name."""
        _refuse(known.urn)

    async def delete(self, old: Resource) -> None:
        """Forget the resource: nothing stands behind it outside the state."""


def _refuse(urn: str) -> NoReturn:
    raise unsupported(f"the resource type {parse(urn).type}", urn)
