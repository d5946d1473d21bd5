"""In what order resources may go: what depends on what, and which deletions may happen at once."""

from collections.abc import Collection, Iterable, Sequence

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
    records may share a URN, the old halves of replacements: others refer to those that stand before them.
    """
    deepest: dict[str, int] = {}
    rings: list[list[Resource]] = []
    for resource in condemned:
        depth = 1 + max((deepest.get(urn, -1) for urn in depends_on(resource) - {resource.urn}), default=-1)
        deepest[resource.urn] = max(deepest.get(resource.urn, 0), depth)
        rings += [[] for _ in range(depth + 1 - len(rings))]
        rings[depth].append(resource)
    return list(reversed(rings))


def host_of(guest: Resource, known: Iterable[Resource]) -> Resource | None:
    """Return what a resource goes with, of these records; None where that is nobody's to delete.

    A name may be that of a replacement and of its old half: the guest goes with the last that was there
    when it was made.
    """
    named = (each for each in known if each.urn == guest.deleted_with and not each.external)
    hosts = sorted(named, key=lambda it: it.created)
    there = [each for each in hosts if each.created <= guest.created] or hosts[:1]
    return there[-1] if there else None
