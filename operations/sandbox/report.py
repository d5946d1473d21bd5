"""The report of an update: one HTML file without anything external, for a browser or a mail.

Pure but for `write`. Nothing here meets a secret: the engine masks values before they become a report.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from pulumi_sandbox import files

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_SCRIPT = Path(__file__).with_name("report_search.js")
"""The one script a page may run, by its digest: it hides what does not hold the words that are looked for."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """An account that a tenant has, under the tenant's name for it, its slot.

    reused: the tenant had it already when the stack claimed it. is_new: claimed by this very update. since:
    when it was claimed, empty where the pool could not be asked.
    """

    tenant: str
    slot: str
    type: str
    secret_name: str
    namespace: str
    phase: str
    reused: bool
    is_new: bool
    since: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something the configuration asks for that was not declared, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource of the stack, and what was done to it, or would be.

    depth: how many components it lies in. part: the type of the one right below the root component.
    namespace: the one its object is in, if it is in one. since: when it was made.
    """

    urn: str
    kind: str
    name: str
    id: str
    action: str
    depth: int
    part: str
    namespace: str = ""
    since: str = ""


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
class Tenant:
    """A tenant: its accounts, what lies in its namespace, what was skipped, what an update would change."""

    name: str
    namespace: str
    claimed: tuple[Claimed, ...] = ()
    objects: tuple[Declared, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    pending: tuple[Declared, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """All that the page tells. `headline` is one sentence; `next` holds commands with what each is for.

    namespaces: tenant → namespace. pending: what an update would change now.
    """

    project: str
    stack: str
    ok: bool
    headline: str
    finished: datetime
    seconds: float
    server: str
    namespaces: Mapping[str, str]
    declared: tuple[Declared, ...]
    claimed: tuple[Claimed, ...]
    skipped: tuple[Skipped, ...]
    shares: tuple[Share, ...]
    violations: tuple[Violation, ...]
    outputs: tuple[tuple[str, str], ...]
    services: tuple[tuple[str, str], ...]
    next: tuple[tuple[str, str], ...]
    pending: tuple[Declared, ...] = ()

    def tenants(self) -> Iterator[Tenant]:
        """Return each tenant with what is its own, in order of name."""
        for name, namespace in sorted(self.namespaces.items()):
            yield Tenant(
                name,
                namespace,
                tuple(sorted((c for c in self.claimed if c.tenant == name), key=lambda claim: claim.slot)),
                tuple(each for each in self.declared if each.id and each.namespace == namespace),
                tuple(each for each in self.skipped if _is_of(name, each)),
                tuple(each for each in self.pending if each.namespace == namespace),
            )

    def of_no_tenant(self) -> Tenant:
        """Return what was skipped, and what would change, that is no tenant's own."""
        skipped = (each for each in self.skipped if not any(_is_of(name, each) for name in self.namespaces))
        own = set(self.namespaces.values())
        pending = (each for each in self.pending if each.namespace not in own)
        return Tenant("", "", skipped=tuple(skipped), pending=tuple(pending))

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


def _is_of(tenant: str, skipped: Skipped) -> bool:
    """Whether what was skipped is called after a tenant: `claim acme/aws`."""
    return tenant in re.split(r"[ /]", skipped.what)


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
    script = _SCRIPT.read_text(encoding="utf-8")
    seal = b64encode(sha256(script.encode()).digest()).decode()
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        report=report,
        actions_in=actions_in,
        script=script,
        seal=seal,
    )


def write(report: Report, path: Path) -> Path:
    """Write the page in place of the former one and return its absolute path."""
    files.replace(path, render(report))
    return path.resolve()
