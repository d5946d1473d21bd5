"""What an update sends for the properties that its resource ignores the changes of."""

from __future__ import annotations

from pulumi_sandbox.protocol import paths
from pulumi_sandbox.protocol.paths import Path
from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.kubernetes import ownership


def without_ignored(
    inputs: Properties, live: Properties, manager: str, ignored: tuple[Path, ...]
) -> Properties:
    """Return the inputs to apply: an ignored field keeps its live value; others' own is left out.

    So ignoring a field neither takes it from its manager nor sets it back (as pulumi-kubernetes does it, for
    paths of plain keys).
    """
    for path in ignored:
        keys = tuple(key for key in path if isinstance(key, str))
        if len(keys) != len(path) or "*" in keys:
            continue
        if ownership.is_others_alone(live, manager, keys):
            inputs = _without(inputs, keys)
        else:
            found, value = paths.get(live, keys)
            inputs = _with(inputs, keys, value) if found else inputs
    return inputs


def _with(inputs: Properties, keys: tuple[str, ...], value: Value) -> Properties:
    key, rest = keys[0], keys[1:]
    under = inputs.get(key)
    return {**inputs, key: _with(under if isinstance(under, dict) else {}, rest, value) if rest else value}


def _without(inputs: Properties, keys: tuple[str, ...]) -> Properties:
    key, rest = keys[0], keys[1:]
    under = inputs.get(key)
    if rest:
        return {**inputs, key: _without(under, rest)} if isinstance(under, dict) else inputs
    return {name: value for name, value in inputs.items() if name != key}
