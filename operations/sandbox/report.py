"""The report of an update: one HTML file without anything external, for a browser or a mail.

Pure but for `write`. Nothing here meets a secret: the engine masks values before they become a report.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from pulumi_sandbox import files

_TEMPLATE = Path(__file__).with_name("report.html.j2")


@dataclass(frozen=True, slots=True)
class Claimed:
    """An account that a tenant has, under the tenant's name for it, its slot.

    reused: the tenant had it already when the stack claimed it. is_new: claimed by this very update.
    """

    tenant: str
    slot: str
    type: str
    secret_name: str
    namespace: str
    phase: str
    reused: bool
    is_new: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something the configuration asks for that was not declared, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource of the stack after the update.

    depth: how many components it lies in. part: the type of the one right below the root component.
    """

    urn: str
    kind: str
    name: str
    id: str
    action: str
    depth: int
    part: str


@dataclass(frozen=True, slots=True)
class Violation:
    """What a rule of the policy pack says about one resource. `level` is `mandatory` or `advisory`."""

    rule: str
    level: str
    message: str
    resource: str


@dataclass(frozen=True, slots=True)
class Share:
    """How the members of one type and partition are divided among the states they are in."""

    type: str
    partition: str
    counts: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """The number of members."""
        return sum(count for _, count in self.counts)


@dataclass(frozen=True, slots=True)
class Report:
    """All that the page tells. `headline` is one sentence; `next` holds commands with what each is for."""

    project: str
    stack: str
    ok: bool
    headline: str
    finished: datetime
    seconds: float
    server: str
    declared: tuple[Declared, ...]
    claimed: tuple[Claimed, ...]
    skipped: tuple[Skipped, ...]
    shares: tuple[Share, ...]
    violations: tuple[Violation, ...]
    outputs: tuple[tuple[str, str], ...]
    services: tuple[tuple[str, str], ...]
    next: tuple[tuple[str, str], ...]

    def tenants(self) -> Iterator[tuple[str, Sequence[Claimed]]]:
        """Return each tenant with its claims, in order of name."""
        ordered = sorted(self.claimed, key=lambda claim: (claim.tenant, claim.slot))
        for tenant, claims in groupby(ordered, key=lambda claim: claim.tenant):
            yield tenant, tuple(claims)

    def parts(self) -> list[tuple[str, list[Declared]]]:
        """Return the parts of the stack, in order of name, each with its resources as a tree."""
        by_part: dict[str, list[Declared]] = {}
        for resource in self.declared:
            by_part.setdefault(resource.part, []).append(resource)
        return sorted(by_part.items())

    @property
    def changed(self) -> int:
        """How many resources the update touched."""
        return sum(resource.action not in ("unchanged", "read") for resource in self.declared)


def actions_in(resources: Iterable[Declared]) -> str:
    """Sum up what was done to them: `2 created, 5 unchanged`."""
    actions = Counter(each.action for each in resources)
    return ", ".join(f"{count} {action}" for action, count in sorted(actions.items()))


def render(report: Report) -> str:
    """Return the page as HTML; every value is escaped."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        report=report, actions_in=actions_in
    )


def write(report: Report, path: Path) -> Path:
    """Write the page in place of the former one and return its absolute path."""
    files.replace(path, render(report))
    return path.resolve()
