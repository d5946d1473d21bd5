"""What a change of inputs does to a live object: nothing, an update, or a replacement, and in which order."""

from __future__ import annotations

from pulumi_sandbox.protocol import paths
from pulumi_sandbox.protocol.differences import Kind, differences
from pulumi_sandbox.protocol.paths import Path
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.contract import Change, Verdict
from pulumi_sandbox.providers.kubernetes import immutable, naming, objects
from pulumi_sandbox.providers.kubernetes.drift import declared_part, in_live_form


def judge(
    live: Properties,
    old_inputs: Properties,
    inputs: Properties,
    *,
    unchangeable: tuple[Path, ...],
    ignored: tuple[Path, ...],
) -> Verdict:
    """Compare the new inputs with what is live of the old ones; both sides folded, without secrets.

    An object whose name is fixed has to go before its successor of the same name and namespace can come.
    """
    before = in_live_form(declared_part(live, old_inputs), live)
    found = tuple(
        Change(
            difference.path,
            difference.kind,
            _replaces(difference.path, difference.kind, inputs, unchangeable),
        )
        for difference in differences(before, in_live_form(inputs, live))
        if not any(paths.covers(pattern, difference.path) for pattern in ignored)
    )
    same_place = objects.object_id(inputs) == objects.object_id(live)
    return Verdict(found, delete_first=naming.is_fixed(inputs) and same_place)


def _replaces(path: Path, kind: Kind, inputs: Properties, unchangeable: tuple[Path, ...]) -> bool:
    if kind == "delete" and path == ("metadata",):
        return True
    _, value = paths.get(inputs, path)
    return any(immutable.touched(path, value, pattern) for pattern in unchangeable)
