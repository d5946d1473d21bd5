"""Under which former names a resource may stand in the state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.stubs import alias_pb2


@dataclass(frozen=True, slots=True)
class Alias:
    """A former name: a whole URN, or the parts of it that were different (empty: as now)."""

    urn: str = ""
    name: str = ""
    type: str = ""
    stack: str = ""
    project: str = ""
    parent: str = ""
    no_parent: bool = False

    @classmethod
    def of(cls, message: alias_pb2.Alias) -> Alias:
        """Read an alias from the wire."""
        if message.WhichOneof("alias") == "urn":
            return cls(urn=message.urn)
        spec = message.spec
        return cls(
            name=spec.name,
            type=spec.type,
            stack=spec.stack,
            project=spec.project,
            parent=spec.parentUrn,
            no_parent=spec.noParent,
        )


def former_urns(
    urn: str, parent: str, aliases: Iterable[Alias], renamed: Mapping[str, str]
) -> tuple[str, ...]:
    """List the URNs a resource may have had, the declared ones first, then those its renamed parent implies.

    `renamed` maps the URNs of resources seen so far to the old URN each was found under. A child whose
    name begins with its parent's follows the parent's renaming.
    """
    own = tuple(aliases)
    found = [_resolve(alias, urn, parent, renamed) for alias in own]
    former_parent = renamed.get(parent)
    if former_parent:
        found.append(_under(former_parent, urn, parent))
        found += [_under(former_parent, _resolve(alias, urn, parent, renamed), parent) for alias in own]
    return tuple(dict.fromkeys(found))


def _resolve(alias: Alias, urn: str, parent: str, renamed: Mapping[str, str]) -> str:
    if alias.urn:
        return alias.urn
    now = urns.parse(urn)
    above = parent
    if alias.parent:
        above = renamed.get(alias.parent, alias.parent)
    return urns.make(
        alias.stack or now.stack,
        alias.project or now.project,
        "" if alias.no_parent else above,
        alias.type or now.type,
        alias.name or now.name,
    )


def _under(former_parent: str, child: str, parent: str) -> str:
    name, parent_name = urns.parse(child).name, urns.parse(parent).name
    if name.startswith(parent_name):
        name = urns.parse(former_parent).name + name[len(parent_name) :]
    former = urns.parse(former_parent)
    return urns.make(former.stack, former.project, former_parent, urns.parse(child).type, name)
