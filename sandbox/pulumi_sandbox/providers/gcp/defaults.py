"""Inputs that the provider filled in itself, and the note it keeps of them."""

from __future__ import annotations

from typing import Final

from pulumi_sandbox.protocol.values import Properties

_NOTE: Final = "__defaults"
"""The genuine provider's own: a sorted list of names among the inputs."""


def with_defaults(inputs: Properties, defaults: Properties) -> Properties:
    """Return the inputs with what is missing of the defaults, and a note of what that was."""
    missing = {key: value for key, value in defaults.items() if inputs.get(key) is None}
    return {**inputs, **missing, _NOTE: [*sorted(missing.keys() | defaulted(inputs))]}


def defaulted(inputs: Properties) -> frozenset[str]:
    """Return the names of the inputs that were filled in."""
    noted = inputs.get(_NOTE)
    return frozenset(str(name) for name in noted) if isinstance(noted, list) else frozenset()
