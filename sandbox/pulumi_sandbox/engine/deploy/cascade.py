"""What falls with a resource that is deleted before its replacement exists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from pulumi_sandbox.engine.deploy import decide, order
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.provider import Provider
from pulumi_sandbox.protocol.values import UNKNOWN, equal

ProviderOf: TypeAlias = "Callable[[Resource], Awaitable[Provider | None]]"


async def falling_with(root: str, waiting: Sequence[Resource], provider_of: ProviderOf) -> list[Resource]:
    """List which of the old resources must be replaced because `root` is, each after what it depends on.

    `waiting` are those not registered yet in this run; only they can still depend on `root`.
    """
    gone = {root}
    falling: list[Resource] = []
    for each in order.dependents(root, waiting):
        if await _falls(each, gone, provider_of):
            gone.add(each.urn)
            falling.append(each)
    tied = (each for each in waiting if root in (*each.replace_with, each.deleted_with))
    return [*falling, *(each for each in tied if each.urn not in gone)]


async def _falls(resource: Resource, gone: Collection[str], provider_of: ProviderOf) -> bool:
    """Whether a resource must be replaced.

    Its provider says so when the inputs that hang on it are unknown.
    """
    if not resource.custom or resource.external or resource.pending_replacement:
        return False
    if resource.provider_urn in gone or resource.deleted_with in gone:
        return True
    lost = {key for key, urns in resource.property_dependencies.items() if not set(urns).isdisjoint(gone)}
    inputs = {key: UNKNOWN if key in lost else value for key, value in resource.inputs.items()}
    if equal(inputs, resource.inputs):
        return False
    provider = await provider_of(resource)
    if provider is None:
        return False
    diff = await provider.diff(resource, replace(resource, inputs=inputs), preview=True)
    diff = decide.settle(diff, resource.inputs, inputs, resource.ignore_changes)
    return decide.force_replacements(diff, resource.replace_on_changes).demands_replacement
