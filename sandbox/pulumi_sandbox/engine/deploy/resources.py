"""Which registration has which name and which old record, and how far each has come: goal, plan, result."""

from collections.abc import Iterable, Mapping
from typing import Final

from pulumi_sandbox.engine.deploy.control import Control
from pulumi_sandbox.engine.model.goal import Goal
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.project.identity import Identity
from pulumi_sandbox.engine.state.journal import Journal
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.stubs import alias_pb2


class Resources:
    """The bookkeeping of one run: every name is given once, every old record found by one resource only.

    `planned` holds the URNs whose fate is decided, `replaced` those being replaced, and `recreated_later` old
    ones that were deleted with what they depend on and await their own registration. `unfulfilled` are those
    that stay as they were, because their step failed or one that they depend on did. What this run
    does not mean is `left_alone`, by the URNs of the state, or `not_made`;
    it is `brought_forward` to stand before what is new.
    """

    def __init__(self, control: Control, journal: Journal, identity: Identity) -> None:
        self._control = control
        self._identity = identity
        self._claimed: set[str] = set()
        self._former: dict[str, str] = {}
        self._found_under: dict[str, str] = {}
        self._before = {each.urn: each for each in journal.old if not each.delete}
        self.goals: Final[dict[str, Goal]] = {}
        self.done: Final[dict[str, Resource]] = {}
        self.planned: Final[set[str]] = set()
        self.replaced: Final[set[str]] = set()
        self.recreated_later: Final[set[str]] = set()
        self.unfulfilled: Final[set[str]] = set()
        self.left_alone: Final[set[str]] = set()
        self.brought_forward: Final[dict[str, Resource]] = {}
        self.not_made: Final[set[str]] = set()

    def before(self, urn: str) -> Resource | None:
        """Return the record the state began with, by the present or the former URN of the resource."""
        return self._before.get(self._former.get(urn, urn))

    @property
    def left_as_they_were(self) -> set[str]:
        """The URNs, as the state has them, of what is unfulfilled, or not meant."""
        return self.left_alone.union(self._former.get(urn, urn) for urn in self.unfulfilled)

    def claim(self, parent: str, type_: str, name: str) -> str:
        """Name a resource, once.

        Raises Stopped when the name is taken or the parent is not registered.
        """
        urn = urns.make(self._identity.stack, self._identity.project, parent, type_, name)
        if parent and parent not in self.goals:
            raise self._control.fail(f"its parent {parent} is not registered", urn)
        if urn in self._claimed:
            raise self._control.fail(
                "duplicate resource: the program registers this type and name twice", urn
            )
        self._claimed.add(urn)
        return urn

    def find_old(self, urn: str, goal: Goal) -> str:
        """Return the URN under which the state has the resource: its own first, then its aliases in order.

        Raises Stopped when two resources claim the same record.
        """
        if urn in self._found_under:
            other = self._found_under[urn]
            raise self._control.fail(
                f"{other} was found under this URN by an alias; only one can have it", urn
            )
        aliases = former_urns(urn, goal.parent, goal.aliases, self._former)
        former = next((each for each in (urn, *aliases) if each in self._before), urn)
        if former == urn:
            return urn
        other = former if former in self._claimed else self._found_under.get(former)
        if other:
            raise self._control.fail(f"its alias {former} belongs to {other}, too; only one can have it", urn)
        self._former[urn] = former
        self._found_under[former] = urn
        return former


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
