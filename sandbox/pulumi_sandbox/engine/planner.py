"""Which steps lead from the state to the goal: pure rules, no I/O (engine facts 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pulumi_sandbox.engine import paths
from pulumi_sandbox.engine.differences import differences
from pulumi_sandbox.engine.events import PropertyDiff
from pulumi_sandbox.engine.state import Resource
from pulumi_sandbox.engine.values import Properties, Secret, conceal_keys

Changes: TypeAlias = Literal["none", "some", "unknown"]
Verdict: TypeAlias = Literal["same", "update", "replace"]


@dataclass(frozen=True, slots=True)
class Diff:
    """A provider's answer to what separates old and new; paths are as the provider wrote them."""

    changes: Changes
    replaces: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    detailed: dict[str, PropertyDiff] | None = None
    delete_before_replace: bool = False

    @property
    def demands_replacement(self) -> bool:
        """Tell whether the resource cannot be changed in place."""
        return bool(self.replaces) or any(
            diff.kind.endswith("-replace") for diff in (self.detailed or {}).values()
        )


NO_DIFFERENCE = Diff("none")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done to a resource that exists; `delete_first` concerns replacements only."""

    verdict: Verdict
    diff: Diff
    delete_first: bool = False


def ignore_changes(
    old: Properties, new: Properties, patterns: Iterable[str]
) -> tuple[Properties, tuple[str, ...]]:
    """Put old inputs back at the ignored paths; also return the paths where an element came or went."""
    refused: list[str] = []
    for pattern in patterns:
        kept = paths.reset(old, new, paths.parse(pattern))
        if kept is None:
            refused.append(pattern)
        else:
            new = kept
    return new, tuple(refused)


def settle(diff: Diff, old: Properties, new: Properties, ignored: Iterable[str]) -> Diff:
    """Turn the answer `unknown` into a comparison of old and new inputs, secrets unwrapped."""
    if diff.changes != "unknown":
        return diff
    kept, _ = ignore_changes(old, new, ignored)
    found = differences(old, kept)
    return replace(
        diff,
        changes="some" if found else "none",
        changed=tuple(dict.fromkeys(str(each.path[0]) for each in found)),
        detailed={paths.render(each.path): PropertyDiff(each.kind, input_diff=True) for each in found}
        or None,
    )


def force_replacements(diff: Diff, patterns: Iterable[str]) -> Diff:
    """Apply replaceOnChanges: a changed key or path that a pattern covers demands replacement."""
    wanted = [paths.parse(pattern) for pattern in patterns]
    if diff.changes != "some" or not wanted:
        return diff

    def covered(path: str) -> bool:
        return any(paths.covers(pattern, paths.parse(path)) for pattern in wanted)

    keys = (*diff.replaces, *(key for key in diff.changed if covered(key)))
    detailed = diff.detailed and {
        path: replace(each, kind=f"{each.kind.removesuffix('-replace')}-replace") if covered(path) else each
        for path, each in diff.detailed.items()
    }
    return replace(diff, replaces=tuple(dict.fromkeys(keys)), detailed=detailed)


def forced_by(new: Resource, replaced: Iterable[str]) -> Diff | None:
    """Return the replacement that replaceWith or deletedWith targets demand by being replaced, if any."""
    gone = frozenset(replaced)
    if gone.intersection(new.replace_with):
        return Diff("some", replaces=("replaceWith",))
    if new.deleted_with in gone:
        return Diff("some", replaces=("deletedWith",))
    return None


def plan(old: Resource, diff: Diff, *, replace_on_changes: Iterable[str], delete_first: bool | None) -> Plan:
    """Decide between keeping, updating and replacing; `delete_first` is the option, None when not said.

    A resource whose initialization failed is updated even if nothing changed, so that it is awaited
    again; one whose deletion already happened is replaced.
    """
    if old.taint:
        diff = Diff("some", replaces=("id",), delete_before_replace=diff.delete_before_replace)
    diff = force_replacements(diff, replace_on_changes)
    if old.pending_replacement or (diff.changes == "some" and diff.demands_replacement):
        return Plan("replace", diff, diff.delete_before_replace if delete_first is None else delete_first)
    if diff.changes == "some" or old.init_errors:
        return Plan("update", diff)
    return Plan("same", diff)


def with_secret_outputs(resource: Resource) -> Resource:
    """Conceal outputs named additionalSecretOutputs, or like a secret input: the rule of every step."""
    like_inputs = (key for key, value in resource.inputs.items() if isinstance(value, Secret))
    keys = {*resource.additional_secret_outputs, *like_inputs} - {"id"}
    leaking = [
        key for key in keys if key in resource.outputs and not isinstance(resource.outputs[key], Secret)
    ]
    return replace(resource, outputs=conceal_keys(resource.outputs, leaking)) if leaking else resource


def provider_urn(resource: Resource) -> str:
    """Return the URN of the provider that manages a resource, empty when there is none."""
    return resource.provider.rpartition("::")[0]


def depends_on(resource: Resource) -> frozenset[str]:
    """Return the URNs that must outlive a resource.

    Its provider, parent, dependencies, deletedWith, replaceWith.
    """
    return frozenset(urn for urn in (*resource.references, provider_urn(resource)) if urn)


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

    A ring holds whatever no remaining resource depends on (engine facts 4, delete order). Two condemned
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
