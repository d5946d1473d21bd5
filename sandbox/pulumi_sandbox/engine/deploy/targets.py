"""Which resources an operation is about: those it is told to take up, or to leave alone.

The rules are the genuine engine's: sandbox/docs/engine-facts.md, targets.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pulumi_sandbox.engine.deploy import order
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns


@dataclass(frozen=True, slots=True)
class Selection:
    """URNs to take up or to leave alone, not both; in them `*` stands for all but colons, `**` for anything.

    dependents: along with what depends on them. excludes_protected: what is protected is left alone as well,
    and what that depends on. replaces: what is to be made anew, whatever is meant else.
    Raises SandboxError `targets-contradict`.
    """

    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    dependents: bool = False
    excludes_protected: bool = False
    replaces: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything is meant, unless something is protected."""
        return not (self.targets or self.excludes or self.excludes_protected)

    def __post_init__(self) -> None:
        """Refuse what says two things."""
        leaves_alone = self.excludes or self.excludes_protected
        if (self.targets and leaves_alone) or (self.dependents and not (self.targets or self.excludes)):
            raise SandboxError(
                code="targets-contradict",
                place="targets",
                cause="both what to take up and what to leave alone are named"
                if self.targets
                else "dependents of nothing are meant",
                mend="give --target (with --target-dependents), or --exclude (with --exclude-dependents)",
            )


class Targets:
    """One operation's answers; what is included because of what it depends on is found as it comes by."""

    def __init__(self, selection: Selection, base: Sequence[Resource]) -> None:
        """Take the resources that the state began with."""
        if selection.excludes_protected:
            protected = {each.urn for each in base if each.protect}
            spared = sorted(order.with_all_below(protected, base))
            selection = replace(selection, excludes=(*selection.excludes, *spared))
        self._selection = selection
        self._base = base
        named = selection.targets or selection.excludes
        self._matches: Final = _matching(named)
        self._is_replaced: Final = _matching(selection.replaces)
        self._reached: set[str] = set()

    @property
    def are_all(self) -> bool:
        """Whether everything is meant."""
        return not (self._selection.targets or self._selection.excludes)

    def replaces(self, urn: str) -> bool:
        """Whether a resource is to be made anew."""
        return bool(self._selection.replaces) and self._is_replaced(urn) is not None

    def includes(self, resource: Resource) -> bool:
        """Whether a registration is acted on; of a stack and of providers each is."""
        is_implied = resource.is_provider or resource.type == urns.ROOT_STACK_TYPE
        return self._takes(resource, order.depends_on(resource)) or is_implied

    def refreshes(self, resource: Resource) -> bool:
        """Whether a resource of the state is read; they come by in its order."""
        return self._takes(resource, resource.references)

    def _takes(self, resource: Resource, references: Iterable[str]) -> bool:
        is_hit = self._is_named(resource.urn)
        if not is_hit and self._selection.dependents:
            is_hit = any(self._is_named(urn) or urn in self._reached for urn in references)
        if is_hit:
            self._reached.add(resource.urn)
        return self.are_all or is_hit == bool(self._selection.targets)

    def unknown(self, registered: Collection[str], *, excludes_too: bool) -> list[str]:
        """List the whole URNs among those named that neither the state nor the program has."""
        selection = self._selection
        named = selection.targets + selection.replaces + (selection.excludes if excludes_too else ())
        there = {each.urn for each in self._base}.union(registered)
        return [urn for urn in named if "*" not in urn and urn not in there]

    def spared(self) -> set[str]:
        """Return the URNs of the state that nothing may be deleted of, whatever the program says.

        A deletion takes along what depends on it, and leaving alone means that of all it depends on.
        """
        if self.are_all:
            return set()
        named = {each.urn for each in self._base if self._is_named(each.urn)}
        if self._selection.targets:
            return {each.urn for each in self._base} - order.with_all_above(named, self._base)
        while True:
            more = order.with_all_below(named, self._base)
            if self._selection.dependents:
                more = order.with_all_above(more, self._base)
            if more == named:
                return named
            named = more

    def asks_for(self, urn: str) -> bool:
        """Whether a resource may be deleted: it was named, or dependents are meant."""
        return not self._selection.targets or self._selection.dependents or self._is_named(urn)

    def _is_named(self, urn: str) -> bool:
        return not self.are_all and self._matches(urn) is not None


def _matching(named: Iterable[str]) -> Callable[[str], object]:
    return re.compile("|".join(map(_pattern, named))).fullmatch


def _pattern(named: str) -> str:
    parts = (map(re.escape, each.split("*")) for each in named.split("**"))
    return ".*".join("[^:]*".join(each) for each in parts)
