"""Where two sets of properties differ."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pulumi_sandbox.protocol.paths import Path
from pulumi_sandbox.protocol.values import Properties, Secret, Value, equal

Kind: TypeAlias = Literal["add", "delete", "update"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where old and new differ."""

    path: Path
    kind: Kind


def differences(old: Properties, new: Properties) -> list[Difference]:
    """List where the properties differ, in the order of their paths.

    Objects and lists are followed as deep as both sides have them; secrets are compared by what they hold, so
    a value that merely became secret is no difference; a null is as good as an absent property.
    """
    return [] if old is new else _objects((), old, new)


def _objects(path: Path, old: Properties, new: Properties) -> list[Difference]:
    found: list[Difference] = []
    for key in sorted(old.keys() | new.keys()):
        found += _values((*path, key), old.get(key), new.get(key))
    return found


def _values(path: Path, old: Value, new: Value) -> list[Difference]:
    while isinstance(old, Secret):
        old = old.value
    while isinstance(new, Secret):
        new = new.value
    if isinstance(old, dict) and isinstance(new, dict):
        return _objects(path, old, new)
    if isinstance(old, list) and isinstance(new, list):
        return _lists(path, old, new)
    if equal(old, new):
        return []
    return [Difference(path, "add" if old is None else "delete" if new is None else "update")]


def _lists(path: Path, old: list[Value], new: list[Value]) -> list[Difference]:
    found: list[Difference] = []
    for index in range(max(len(old), len(new))):
        if index >= len(old):
            found.append(Difference((*path, index), "add"))
        elif index >= len(new):
            found.append(Difference((*path, index), "delete"))
        else:
            found += _values((*path, index), old[index], new[index])
    return found
