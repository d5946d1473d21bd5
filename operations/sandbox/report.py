"""The report of an update: one self-contained HTML file for a browser or an email.

Pure except for `write`. No secrets get here: the engine masks values before they become part of a report.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from pulumi_sandbox import files

from components.errors import how_many

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_SCRIPT = Path(__file__).with_name("report_search.js")
"""The only script that the page can run, allowed by its digest: it filters and sorts rows."""
_OWN_CLAIM: Final = re.compile(r"(?:.*: waits for )?claim ([^/ ]+)/.*")
_IN_NAMESPACE: Final = re.compile(r".* ([^/ ]+)/[^ ]+: .*")


@dataclass(frozen=True, slots=True)
class Claimed:
    """An account of a tenant, in the slot by which the tenant names it.

    reused: the tenant already had it when the stack claimed it. is_new: claimed by this update. since: time
    of the claim, empty if the pool could not be read.
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
    """Something configured that was not declared, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource of the stack, and what was done to it, or would be.

    depth: number of enclosing components. part: the type of the one directly below the root component.
    namespace: of its object, if any. since: time of its creation.
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
    """The result of a policy for a resource. `level` is `mandatory` or `advisory`."""

    rule: str
    level: str
    message: str
    resource: str


@dataclass(frozen=True, slots=True)
class Share:
    """The number of members of one type and partition by state."""

    type: str
    partition: str
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: its accounts, the objects in its namespace, what was skipped, and pending changes."""

    name: str
    namespace: str
    claimed: tuple[Claimed, ...] = ()
    objects: tuple[Declared, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    pending: tuple[Declared, ...] = ()

    @property
    def without(self) -> list[str]:
        """The slots for which it has no account."""
        claims = (each.what for each in self.skipped if each.what.startswith("claim "))
        return sorted(claim.rpartition("/")[2] for claim in claims)


@dataclass(frozen=True, slots=True)
class Report:
    """The content of the page. `headline` is one sentence; `next` has commands and their purposes.

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
        """Yield each tenant with its content: first those with something skipped, then by name."""
        skipped: dict[str, list[Skipped]] = {}
        for each in self.skipped:
            skipped.setdefault(self.owner(each), []).append(each)
        for name, namespace in sorted(
            self.namespaces.items(), key=lambda each: (each[0] not in skipped, each)
        ):
            yield Tenant(
                name,
                namespace,
                tuple(sorted((c for c in self.claimed if c.tenant == name), key=lambda claim: claim.slot)),
                tuple(each for each in self.declared if each.id and each.namespace == namespace),
                tuple(skipped.get(name, ())),
                tuple(each for each in self.pending if each.namespace == namespace),
            )

    @property
    def badge(self) -> tuple[str, str]:
        """The stack's status, after its colour; green only if everything configured exists."""
        without = {self.owner(each) for each in self.skipped if each.what.startswith("claim ")}
        if not self.ok:
            return "bad", "not finished"
        if without:
            return "pending", f"{how_many(len(without), 'tenant')} without an account"
        if self.skipped:
            return "pending", f"{len(self.skipped)} skipped"
        return ("pending", "changes ahead") if self.pending else ("good", "up to date")

    def owner(self, skipped: Skipped) -> str:
        """Return the tenant that lacks it: that of the claim, or of the namespace it would be in."""
        text = f"{skipped.what}: {skipped.reason}"
        if claim := _OWN_CLAIM.fullmatch(text):
            return claim[1]
        named = _IN_NAMESPACE.fullmatch(text)
        return next((name for name, each in self.namespaces.items() if named and each == named[1]), "")

    def lacking(self) -> list[tuple[str, list[tuple[str, Skipped]]]]:
        """Return each reason with what it skipped and for which tenant; what waits for a claim is last."""
        grouped: dict[str, list[tuple[str, Skipped]]] = {}
        for each in sorted(self.skipped, key=lambda one: (_waits(one), not one.what.startswith("claim "))):
            reason = "They wait for claims that are skipped." if _waits(each) else each.reason
            grouped.setdefault(reason, []).append((self.owner(each), each))
        return [*grouped.items()]

    @property
    def changes_of_no_tenant(self) -> tuple[Declared, ...]:
        """Pending changes outside tenants' namespaces."""
        own = set(self.namespaces.values())
        return tuple(each for each in self.pending if each.namespace not in own)

    def parts(self) -> list[tuple[str, list[Declared]]]:
        """Return the parts of the stack by name, each with its resources as a tree."""
        by_part: dict[str, list[Declared]] = {}
        for resource in self.declared:
            by_part.setdefault(resource.part, []).append(resource)
        return sorted(by_part.items())

    @property
    def changed(self) -> int:
        """The number of resources that the update changed."""
        return sum(resource.action not in ("unchanged", "read") for resource in self.declared)


def _waits(skipped: Skipped) -> bool:
    return skipped.reason.startswith("waits for claim ")


def actions_in(resources: Iterable[Declared]) -> str:
    """Return a summary of the actions: `2 created, 5 unchanged`."""
    actions = Counter(each.action for each in resources)
    return ", ".join(f"{count} {action}" for action, count in sorted(actions.items()))


def kinds_in(rows: Iterable[tuple[str, Skipped]]) -> str:
    """Return a summary of what is skipped: `2 claims, 1 service`."""
    kinds = Counter(each.what.rpartition(" ")[0] for _, each in rows)
    return ", ".join(how_many(count, kind) for kind, count in sorted(kinds.items()))


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
        kinds_in=kinds_in,
        how_many=how_many,
        script=script,
        seal=seal,
    )


def write(report: Report, path: Path) -> Path:
    """Write the page, replacing the former one, and return its absolute path."""
    files.replace(path, render(report))
    return path.resolve()
