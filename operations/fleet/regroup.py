"""Pure functions that move resources between states and rename them accordingly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from pulumi_sandbox.protocol import urns

from components.errors import CredfleetError
from operations.stack.state import Resource, Snapshot

_FIX: Final = "move both, or neither"


def regroup(
    states: Mapping[str, Snapshot],
    place: Callable[[Resource], str | None],
    is_shared: Callable[[Resource], bool] = lambda _: False,
) -> dict[str, Snapshot]:
    """Return the states of stacks, with each resource in the stack where it belongs.

    states: by stack; empty for new stacks. place: the stack of a resource and of all its children; None for
    that of its parent. Resources that both moved and remaining ones refer to are copied if nothing outside
    the state stands for them: components, providers, and those for which is_shared is true. Raises
    CredfleetError `state-entangled` if resources of two stacks depend on each other, or an update was not
    finished.
    """
    homes: dict[str, str] = {}
    for stack, snapshot in states.items():
        if snapshot.pending or any(each.delete for each in snapshot.resources):
            problem = "an update of it was not finished, so what it has is not known"
            raise _entangled(f"stack {stack}", problem, "run refresh, then up")
        for each in snapshot.resources:
            homes[each.urn] = place(each) or homes.get(each.parent, stack)
    found = {
        stack: {each.urn: each for each in snapshot.resources if homes[each.urn] == stack}
        for stack, snapshot in states.items()
    }
    for stack, snapshot in states.items():
        known = {each.urn: each for each in snapshot.resources}

        def bring(resource: Resource, to: str, known: Mapping[str, Resource] = known) -> None:
            for urn in (*resource.references, resource.provider_urn):
                if urn and _within(urn, to) not in found[to]:
                    if (referred := known.get(urn)) is None:
                        fix = "run pulumi state repair"
                        raise _entangled(resource.urn, f"it refers to {urn}, which its state lacks", fix)
                    if referred.custom and not (referred.is_provider or is_shared(referred)):
                        raise _entangled(
                            resource.urn, f"it goes to stack {to} and refers to {urn}, which does not"
                        )
                    bring(referred, to)
            moved = _moved(resource, to)
            there = found[to].get(moved.urn)
            if there is not None and there.id == moved.id:
                return
            if there is not None:
                raise _entangled(resource.urn, f"stack {to} has one of that name already")
            provider = found[to].get(moved.provider_urn)
            reference = f"{provider.urn}::{provider.id}" if provider else ""
            found[to][moved.urn] = replace(moved, provider=reference)

        for each in snapshot.resources:
            if homes[each.urn] != stack:
                bring(each, homes[each.urn])
            elif gone := [urn for urn in each.references if homes.get(urn) != stack]:
                raise _entangled(
                    each.urn, f"it stays in stack {stack} and refers to {gone[0]}, which does not"
                )
    return {stack: Snapshot(tuple(resources.values())) for stack, resources in found.items()}


def _entangled(place: str, problem: str, fix: str = _FIX) -> CredfleetError:
    return CredfleetError(code="state-entangled", place=place, problem=problem, fix=fix)


def _moved(resource: Resource, to: str) -> Resource:
    def named(references: Iterable[str]) -> tuple[str, ...]:
        return tuple(_within(each, to) for each in references)

    return replace(
        resource,
        urn=_within(resource.urn, to),
        parent=_within(resource.parent, to),
        provider=_within(resource.provider, to),
        deleted_with=_within(resource.deleted_with, to),
        dependencies=named(resource.dependencies),
        replace_with=named(resource.replace_with),
        aliases=named(resource.aliases),
        property_dependencies={key: named(each) for key, each in resource.property_dependencies.items()},
    )


def _within(urn: str, stack: str) -> str:
    """Return the URN of a resource in another stack; the name of the stack resource ends in the stack's."""
    if not urn:
        return urn
    named = urns.parse(urn)
    own = f"{named.project}-{stack}" if named.qualified_type == urns.ROOT_STACK_TYPE else named.name
    return str(named._replace(stack=stack, name=own))
