"""In what order resources may go: what depends on what, and which deletions may happen at once."""

from collections.abc import Collection, Sequence

from pulumi_sandbox.engine.model.resource import Resource


def depends_on(resource: Resource) -> frozenset[str]:
    """Return the URNs that must outlive a resource.

    Its provider, parent, dependencies, deletedWith, replaceWith.
    """
    return frozenset(urn for urn in (*resource.references, resource.provider_urn) if urn)


def with_all_below(urns: Collection[str], resources: Sequence[Resource]) -> set[str]:
    """Return these URNs, and those of all that the resources of these names depend on, directly or not."""
    found = set(urns)
    for resource in reversed(resources):
        if resource.urn in found:
            found |= depends_on(resource)
    return found


def with_all_above(urns: Collection[str], resources: Sequence[Resource]) -> set[str]:
    """Return these URNs, and those of all resources that depend on them, directly or not."""
    found = set(urns)
    for resource in resources:
        if not found.isdisjoint(depends_on(resource)):
            found.add(resource.urn)
    return found


def dependents(root: str, resources: Sequence[Resource]) -> list[Resource]:
    """List what depends on `root`, directly or not, in the order of the state."""
    reached = {root}
    found: list[Resource] = []
    for resource in resources:
        if resource.urn not in reached and not resource.delete and depends_on(resource) & reached:
            reached.add(resource.urn)
            found.append(resource)
    return found


def deletion_rings(condemned: Sequence[Resource]) -> list[list[Resource]]:
    """Group deletions: all of a ring may go at once, when the ring before is done.

    A ring holds whatever no remaining resource depends on. Two condemned
    records may share a URN: the old halves of replacements.
    """
    depth: dict[str, int] = {}
    for resource in condemned:
        below = max((depth.get(urn, -1) for urn in depends_on(resource) - {resource.urn}), default=-1)
        depth[resource.urn] = max(depth.get(resource.urn, 0), below + 1)
    rings: list[list[Resource]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for resource in condemned:
        rings[depth[resource.urn]].append(resource)
    return list(reversed(rings))
