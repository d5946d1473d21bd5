"""Under which former names a resource may stand in the state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.stubs import alias_pb2


def former_urns(
    urn: str, parent: str, aliases: Iterable[alias_pb2.Alias], renamed: Mapping[str, str]
) -> tuple[str, ...]:
    """List the URNs a resource may have had, the declared ones first, then those its renamed parent implies.

    An alias is a whole URN, or the parts of it that were different (empty: as now).
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


def _resolve(alias: alias_pb2.Alias, urn: str, parent: str, renamed: Mapping[str, str]) -> str:
    if alias.urn:
        return alias.urn
    now, former = urns.parse(urn), alias.spec
    above = renamed.get(former.parentUrn, former.parentUrn) if former.parentUrn else parent
    return urns.make(
        former.stack or now.stack,
        former.project or now.project,
        "" if former.noParent else above,
        former.type or now.type,
        former.name or now.name,
    )


def _under(former_parent: str, child: str, parent: str) -> str:
    name, parent_name = urns.parse(child).name, urns.parse(parent).name
    if name.startswith(parent_name):
        name = urns.parse(former_parent).name + name[len(parent_name) :]
    former = urns.parse(former_parent)
    return urns.make(former.stack, former.project, former_parent, urns.parse(child).type, name)
