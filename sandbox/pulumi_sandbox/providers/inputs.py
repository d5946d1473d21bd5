"""Which inputs a resource takes, and which options a provider: which are required, which cannot change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pulumi_sandbox.protocol import values
from pulumi_sandbox.protocol.values import Path, Properties, differences
from pulumi_sandbox.providers.contract import Change, Problem


def missing_options(config: Properties, required: Mapping[str, str]) -> list[Problem]:
    """List the options that are not given; any other is taken. required: option → what to say then."""
    return [Problem(key, said) for key, said in required.items() if config.get(key) in (None, "")]


_NOTE: Final = "__defaults"
"""The genuine provider's own: a sorted list of names among the inputs."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input; `replaces` tells that no update can change it. Its type the SDK and the service judge."""

    required: bool = False
    replaces: bool = False


Schema: TypeAlias = Mapping[str, Input]


def declared(properties: Properties) -> Properties:
    """Return the properties without the provider's own notes (`__defaults`) and without nulls."""
    return {key: value for key, value in properties.items() if not key.startswith("__") and value is not None}


def changes(
    old: Properties, new: Properties, schema: Schema, ignored: tuple[Path, ...]
) -> tuple[Change, ...]:
    """List where two sets of properties differ; what lies within a replacing input replaces."""
    return tuple(
        Change(found.path, found.kind, _replaces(found.path, schema))
        for found in differences(old, new)
        if not any(values.covers(pattern, found.path) for pattern in ignored)
    )


def problems(inputs: Properties, schema: Schema, unserved: frozenset[str] = frozenset()) -> list[Problem]:
    """List what is wrong with the names of the inputs.

    unserved: what the genuine provider takes and this one does not.
    """
    given = declared(inputs)
    return [
        *(
            Problem(name, "the sandbox does not serve it; leave it out", unserved=True)
            for name in given
            if name in unserved
        ),
        *(Problem(name, "there is no such property") for name in given if name not in {*schema, *unserved}),
        *(
            Problem(name, f"missing required property '{name}'")
            for name, each in schema.items()
            if each.required and name not in given
        ),
    ]


def _replaces(path: Path, schema: Schema) -> bool:
    top = schema.get(str(path[0]))
    return top is not None and top.replaces


def with_defaults(inputs: Properties, defaults: Properties) -> Properties:
    """Return the inputs with what is missing of the defaults, and a note of what that was."""
    missing = {key: value for key, value in defaults.items() if inputs.get(key) is None}
    noted = inputs.get(_NOTE)
    filled = {str(name) for name in noted} if isinstance(noted, list) else set[str]()
    return {**inputs, **missing, _NOTE: [*sorted(missing.keys() | filled)]}
