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
from typing import Final

from pulumi_sandbox import files

from components.errors import how_many

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_SCRIPT = Path(__file__).with_name("report_search.js")
"""The one script a page may run, by its digest: it hides what lacks the words looked for, and sorts."""
_OWN_CLAIM: Final = re.compile(r"(?:.*: waits for )?claim ([^/ ]+)/.*")
_IN_NAMESPACE: Final = re.compile(r".* ([^/ ]+)/[^ ]+: .*")


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


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: its accounts, what lies in its namespace, what was skipped, what an update would change."""

    name: str
    namespace: str
    claimed: tuple[Claimed, ...] = ()
    objects: tuple[Declared, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    pending: tuple[Declared, ...] = ()

    @property
    def without(self) -> list[str]:
        """The slots that it has no account for."""
        claims = (each.what for each in self.skipped if each.what.startswith("claim "))
        return sorted(claim.rpartition("/")[2] for claim in claims)


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
        """Return each tenant with what is its own: those without something first, then in order of name."""
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
        """How the stack stands, after its colour; green is only where it has all that it asks for."""
        without = {self.owner(each) for each in self.skipped if each.what.startswith("claim ")}
        if not self.ok:
            return "bad", "not finished"
        if without:
            return "pending", f"{how_many(len(without), 'tenant')} without an account"
        if self.skipped:
            return "pending", f"{len(self.skipped)} skipped"
        return ("pending", "changes ahead") if self.pending else ("good", "up to date")

    def owner(self, skipped: Skipped) -> str:
        """Return the tenant that goes without it: its claim's, or the one whose namespace it would be in."""
        text = f"{skipped.what}: {skipped.reason}"
        if claim := _OWN_CLAIM.fullmatch(text):
            return claim[1]
        named = _IN_NAMESPACE.fullmatch(text)
        return next((name for name, each in self.namespaces.items() if named and each == named[1]), "")

    def lacking(self) -> list[tuple[str, list[tuple[str, Skipped]]]]:
        """Return each reason with what is skipped for it and whose that is; last, what waits for a claim."""
        grouped: dict[str, list[tuple[str, Skipped]]] = {}
        for each in sorted(self.skipped, key=lambda one: (_waits(one), not one.what.startswith("claim "))):
            reason = "They wait for claims that are skipped." if _waits(each) else each.reason
            grouped.setdefault(reason, []).append((self.owner(each), each))
        return [*grouped.items()]

    @property
    def changes_of_no_tenant(self) -> tuple[Declared, ...]:
        """What an update would change that is not a tenant's own."""
        own = set(self.namespaces.values())
        return tuple(each for each in self.pending if each.namespace not in own)

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


def _waits(skipped: Skipped) -> bool:
    return skipped.reason.startswith("waits for claim ")


def actions_in(resources: Iterable[Declared]) -> str:
    """Sum up what was done to them: `2 created, 5 unchanged`."""
    actions = Counter(each.action for each in resources)
    return ", ".join(f"{count} {action}" for action, count in sorted(actions.items()))


def kinds_in(rows: Iterable[tuple[str, Skipped]]) -> str:
    """Sum up what is skipped: `2 claims, 1 service`."""
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
    """Write the page in place of the former one and return its absolute path."""
    files.replace(path, render(report))
    return path.resolve()
