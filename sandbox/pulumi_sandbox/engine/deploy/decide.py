"""Which steps lead from the state to the goal: pure rules, no I/O (sandbox/docs/engine-facts.md, steps)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pulumi_sandbox.engine.model.diff import Diff, PropertyDiff
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.protocol import paths
from pulumi_sandbox.protocol.differences import differences
from pulumi_sandbox.protocol.values import Properties, Value, contains_unknown, equal

Verdict: TypeAlias = Literal["same", "update", "replace"]


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


def forced_by(old: Resource, new: Resource, replaced: Iterable[str]) -> Diff | None:
    """Return the replacement that is demanded whatever a provider says of the inputs, if any.

    By targets of replaceWith or deletedWith that are replaced, or a replacementTrigger that changed.
    """
    gone = frozenset(replaced)
    if gone.intersection(new.replace_with):
        return Diff("some", replaces=("replaceWith",))
    if new.deleted_with in gone:
        return Diff("some", replaces=("deletedWith",))
    if _pulled(old.replacement_trigger, new.replacement_trigger):
        return Diff("some", replaces=("replacementTrigger",))
    return None


def _pulled(old: Value, new: Value) -> bool:
    """Whether a trigger changed: one that was not there before, or no longer is, demands nothing."""
    return old is not None and new is not None and (contains_unknown(new) or not equal(old, new))


def plan(old: Resource, diff: Diff, *, replace_on_changes: Iterable[str], delete_first: bool | None) -> Plan:
    """Decide between keeping, updating and replacing; `delete_first` is the option, None when not said.

    A resource whose initialization failed is updated even if nothing changed, so that it is awaited
    again; one whose deletion already happened is replaced.
    """
    diff = force_replacements(diff, replace_on_changes)
    if old.pending_replacement or (diff.changes == "some" and diff.demands_replacement):
        return Plan("replace", diff, diff.delete_before_replace if delete_first is None else delete_first)
    if diff.changes == "some" or old.init_errors:
        return Plan("update", diff)
    return Plan("same", diff)
