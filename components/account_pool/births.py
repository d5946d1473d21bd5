"""Labels and annotations with which the members of a pool are declared, including those of lost Secrets.

The stack's own state remembers what the cluster lost about an account. It is read only if a member that was
declared before has no Secret: for a stack without state, the CLI has nothing to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pulumi
from pulumi.runtime import invoke_async

from components.account_pool.claim_forecast import ClaimForecasts
from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import Member
from components.account_pool.core.rebirth import Marks, birth_lines, kept_marks, marks_of_lost
from components.account_pool.roster import PoolRoster
from components.recalled import READ, resources_in, this_stack
from components.waiting import apply_to_unknowns

Texts: TypeAlias = pulumi.Input[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Remembered:
    """`made`: members that had Secrets, None if the state does not tell. `owners`: Secret → tenant."""

    made: frozenset[str] | None = None
    owners: Mapping[str, str] = field(default_factory=dict[str, str])

    def was_made(self, member: str) -> bool:
        """Return whether a member had its Secret; True if unknown."""
        return self.made is None or member in self.made or member in self.owners


async def recall(namespace: str, noted: Sequence[str]) -> Remembered:
    """Read the state of the running stack. `noted`: members whose Secrets an earlier update saw."""
    try:
        answer = await invoke_async(READ, {"stackName": this_stack()})
    except Exception:  # reviews and tests have no backend: treat all members as created
        return Remembered()
    of_type: dict[str, list[Mapping[str, Any]]] = {}
    for one in resources_in(answer).values():
        outputs = one.get("outputs") or {}
        if outputs.get("namespace") == namespace:
            of_type.setdefault(str(one.get("type")).rpartition(":")[2], []).append(outputs)
    claims = [
        one for one in of_type.get("AccountClaim", []) if one.get("secretName") and not one.get("shared")
    ]
    made = [name for pool in of_type.get("AccountPool", ()) for name in pool.get("members") or ()]
    is_unknown = not made and not noted and "PoolSeal" in of_type
    return Remembered(
        None if is_unknown else frozenset({*made, *noted}),
        {str(one["secretName"]): str(one["tenant"]) for one in claims},
    )


class Births:
    """Members of a pool as they are declared, with what is known about their accounts."""

    def __init__(
        self,
        namespace: str,
        members: Mapping[str, DeclaredMember],
        scheme: LabelScheme,
        roster: PoolRoster,
        forecasts: ClaimForecasts,
    ) -> None:
        self._namespace, self._members, self._scheme = namespace, members, scheme
        self._roster, self._forecasts = roster, forecasts
        seen = forecasts.seen
        self._present = {} if seen is None else {member.name: member for member in seen.members}
        self._lost: pulumi.Output[Mapping[str, Marks]] | None = None
        if forecasts.missing:
            self._lost = apply_to_unknowns(self._recall, roster.lost, roster.made)

    def metadata(self, shown: Member) -> tuple[Texts, Texts]:
        """Return the labels and annotations of a member, which include the declared ones."""
        if self._lost is not None and shown.name in self._forecasts.missing:
            marked = self._lost.apply(lambda lost: lost.get(shown.name, Marks()).as_declared(shown).on(shown))
            labels = marked.apply(lambda member: self._scheme.labels(member.labels))
            return labels, marked.apply(lambda member: dict(member.annotations))
        marks = self._forecasts.born.get(shown.name)
        if shown.name in self._present:
            marks = kept_marks(self._present[shown.name], self._scheme)
        marked = (marks or Marks()).as_declared(shown).on(shown)
        declared = {**marked.labels, **shown.labels}
        return self._scheme.labels(declared), {**marked.annotations, **shown.annotations}

    def options(self, *paths: str) -> pulumi.ResourceOptions:
        """Ignore changes of these properties in an update that could not read the pool."""
        is_seen = self._forecasts.seen is not None or pulumi.runtime.is_dry_run()
        return pulumi.ResourceOptions(ignore_changes=None if is_seen else [*paths])

    def report(self) -> None:
        """Warn about recreated accounts."""

        def tell(lost: Mapping[str, Marks]) -> None:
            for line in birth_lines(self._namespace, {**self._forecasts.born, **lost}):
                pulumi.log.warn(line, self._roster)

        if self._lost is None:
            tell({})
        else:
            self._lost.apply(tell)

    async def _recall(self, lost: Any, made: Any) -> Mapping[str, Marks]:
        if not self._forecasts.names_lost(lost):
            return {}
        noted = made if isinstance(made, list) else []
        remembered = await recall(self._namespace, noted)
        names = sorted(self._forecasts.missing & lost.keys())
        return {
            name: marks_of_lost(remembered.owners.get(lost[name]), self._members[name])
            for name in names
            if remembered.was_made(lost[name])
        }
