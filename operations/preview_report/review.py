"""What people must know about a preview: losses, changes by tenant, results of policies.

A review contains only names from the preview: of resources, types, tenants, top-level properties, rules, and
of claimed accounts' Secrets. It contains no free text but the pool's own forecast; the log has it.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from pulumi_sandbox.protocol import urns

from components.account_pool.forecast.forecast import Claim, Forecast, parse
from components.config.field_types import named_in
from components.documents import json_within
from components.labels import TENANT
from components.naming import TENANT_NAMESPACE, TENANT_NAMESPACE_END
from components.seals import COULD_NOT
from components.skipped_lines import skipped_in
from operations.preview_report.digest import Diagnostic, Digest, PolicyEvent, State, Step
from operations.stack.state import short_type

POOL: Final = "account pool"
STACK: Final = "stack"

_LONGEST: Final = 120
"""Maximum length of a displayed name."""
_LONGEST_OUTLOOK: Final = 400
"""Maximum length of a claim's forecast."""
_CLAIM_TYPE: Final = "pulumi-python:dynamic/credfleet:AccountClaim"
_SAY_WHAT_IS_SKIPPED: Final = ("credfleet:index:Fleet", "credfleet:index:PullSecret")
_TENANTS_OWN: Final = re.compile(r"credfleet:index:Tenant[A-Za-z]*")
_TENANTS: Final = "credfleet:tenants"
_PLACES: Final = ("namespace", "targetNamespace")
"""Inputs with the target namespace of a resource that is not a Kubernetes object."""
_ACCOUNT_READER: Final = "-account-reader"
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_POOL_TYPE: Final = re.compile(r"[a-z]+(_[a-z0-9-]+)*")
_PROPERTY: Final = re.compile(r"(?:\[\")?([A-Za-z_$][A-Za-z0-9_$:-]{0,63})")
_QUOTABLE: Final = re.compile(r"[A-Za-z0-9 ,()./:_-]{1,160}")
"""Reasons that are shown. Others quote the configuration, so the comment refers to the log."""
_HIDDEN: Final = "__"
"""Prefix of internal properties."""


class Action(StrEnum):
    """What happens to a resource, most serious first."""

    REPLACE = "replace"
    DELETE = "delete"
    CREATE = "create"
    UPDATE = "update"
    IMPORT = "import"
    OTHER = "other"


UNDECIDED: Final = "could not decide"
"""Level of a rule that could neither pass nor fail a resource."""

_UNCHANGED: Final = ("same", "read", "refresh")
_GRAVITY: Final = {action: rank for rank, action in enumerate(Action)}


@dataclass(frozen=True, slots=True)
class Change:
    """A resource that changes. owner: `POOL` or `STACK` if it is not a tenant's.

    properties: names of those that differ; forcing: those among them that force a replacement.
    """

    owner: str
    action: Action
    tenant: str | None
    type: str
    name: str
    properties: tuple[str, ...]
    forcing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimChange:
    """A claim that is made, changed or released.

    account: the Secret of a released or changed claim. expected: the account forecast for the claim; doomed:
    the forecast is that it gets none.
    """

    action: Action
    tenant: str
    slot: str
    type: str
    account: str | None
    doomed: bool
    expected: str | None

    @property
    def is_made(self) -> bool:
        """Whether an account must be found for it."""
        return self.action in (Action.CREATE, Action.REPLACE)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A resource other than a claim that is not declared yet, as kind and name, and the reasons."""

    what: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Objection:
    """A rule's result for a resource or the stack; its text is in the log. level: can be UNDECIDED."""

    level: str
    rule: str
    resource: str


@dataclass(frozen=True, slots=True)
class Remark:
    """How often messages were about a resource, or about none; their texts are in the log."""

    severity: str
    resource: str
    times: int


@dataclass(frozen=True)
class Review:
    """A preview for people; independent of the order of its steps.

    policies: what rules object to; None if the preview does not tell whether any were evaluated.
    """

    project: str
    stack: str
    failed: bool
    unchanged: int
    changes: tuple[Change, ...]
    claims: tuple[ClaimChange, ...]
    forecast: Forecast
    skipped: tuple[Skipped, ...]
    policies: tuple[Objection, ...] | None
    remarks: tuple[Remark, ...]

    @cached_property
    def skipped_claims(self) -> Sequence[Mapping[str, str]]:
        """The claims that the update would skip; a digest omits those that do not change."""
        return [
            {"tenant": shorten(tenant), "slot": shorten(slot), "reason": shorten(why, _LONGEST_OUTLOOK)}
            for (tenant, slot), why in sorted(self.forecast.skipped.items())
        ]

    @cached_property
    def losses(self) -> tuple[Change, ...]:
        """Resources that are replaced or deleted."""
        return tuple(each for each in self.changes if each.action in (Action.REPLACE, Action.DELETE))

    @cached_property
    def undecided(self) -> Mapping[str, Sequence[str]]:
        """The rules that could not decide, with the resources concerned."""
        found: dict[str, list[str]] = {}
        for each in self.policies or ():
            if each.level == UNDECIDED:
                found.setdefault(each.rule, []).append(each.resource or "the stack")
        return found

    @cached_property
    def doomed(self) -> int:
        """The number of claims that are forecast to get no account."""
        return sum(each.doomed for each in self.claims)

    @cached_property
    def counts(self) -> Mapping[Action, int]:
        """The number of changes by action, most serious first."""
        counted = Counter(each.action for each in self.changes)
        return {action: counted[action] for action in Action if counted[action]}

    def by_owner(self) -> Iterator[Sequence[Change]]:
        """Yield the changes of each owner: tenants first, by name."""
        for _, changes in groupby(self.changes, key=lambda each: (each.tenant, each.owner)):
            yield [*changes]

    def document(self) -> dict[str, Any]:
        """Return the complete review as a JSON document."""
        told = {
            name: [asdict(each) for each in getattr(self, name)]
            for name in ("changes", "claims", "skipped", "remarks")
        }
        for change in told["changes"]:
            del change["owner"]
        return {
            **{name: getattr(self, name) for name in ("project", "stack", "failed", "counts", "unchanged")},
            "poolSeen": not self.forecast.unseen,
            "freeAccounts": [
                {"accounts": each.accounts, "now": each.before, "expected": each.after}
                for each in self.forecast.vacancies
            ],
            "skippedClaims": self.skipped_claims,
            "policies": None if self.policies is None else [asdict(each) for each in self.policies],
            **told,
        }


def review(digest: Digest) -> Review:
    """Return the review of a preview."""
    project, stack = _whose(digest)
    errors = any(each.severity == "error" for each in digest.diagnostics)
    policies = (
        None if digest.policies is None else tuple(sorted({*map(_objection, digest.policies)}, key=_rank))
    )
    claims = [step for step in digest.steps if urns.parse(step.urn).type == _CLAIM_TYPE]
    lines = [line for each in digest.diagnostics for line in each.message.splitlines()]
    forecast = parse(lines, [_claim(step) for step in claims])
    return Review(
        project=project,
        stack=stack,
        failed=errors or bool(digest.failed) or any(each.level == "mandatory" for each in policies or ()),
        unchanged=digest.changes.get("same", 0),
        changes=tuple(sorted(_changes(digest.steps, _namespaces(digest)), key=_order)),
        claims=tuple(
            sorted(_claims(claims, forecast), key=lambda each: (each.tenant, each.slot, each.action))
        ),
        forecast=forecast,
        skipped=tuple(sorted(_skipped(digest.diagnostics), key=lambda each: each.what)),
        policies=policies,
        remarks=tuple(_remarks(digest.diagnostics)),
    )


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Return a text for display: shortened, with invisible characters replaced."""
    kept = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return "".join(
        one if one == " " or unicodedata.category(one)[0] not in "CZ" else "\ufffd" for one in kept
    )


def _whose(digest: Digest) -> tuple[str, str]:
    for step in digest.steps:
        urn = urns.parse(step.urn)
        return shorten(urn.project), shorten(urn.stack)
    return "", ""


def _namespaces(digest: Digest) -> Mapping[str, str]:
    """Return the tenants of namespaces, from the stack's file and from the declared ones.

    A digest omits namespaces that do not change, but contains the configuration.
    """
    owners = dict(_configured(digest.config.get(_TENANTS)))
    for step in digest.steps:
        for state in step.states[::-1]:
            named = urns.parse(step.urn)
            if named.type == TENANT_NAMESPACE and _is_labelled(state):
                name = _below(state.inputs, "metadata").get("name")
                owners[str(name)] = named.name.removesuffix(TENANT_NAMESPACE_END)
    return owners


def _configured(tenants: Any) -> Iterator[tuple[str, str]]:
    known = json_within(tenants) if isinstance(tenants, str) else None
    if isinstance(known, dict):
        for name in filter(named_in, known):
            yield str(_below(known, name).get("namespace")), name


def _below(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = holder.get(key)
    return inner if isinstance(inner, dict) else {}


def _changes(steps: Iterable[Step], namespaces: Mapping[str, str]) -> Iterator[Change]:
    """Combine all steps of a resource into one change."""
    of: dict[str, list[tuple[Action, Step]]] = {}
    for step in steps:
        action = _action(step)
        if step.op not in _UNCHANGED and not urns.is_default_provider(step.urn):
            of.setdefault(step.urn, []).append((action, step))
    for urn, each in of.items():
        tenant, owner = _owner(urn, [step for _, step in each], namespaces)
        named = urns.parse(urn)
        forcing = {name for _, step in each for name in _properties(step, step.keys)}
        properties = {name for action, step in each for name in _differing(action, step)}
        yield Change(
            owner=owner,
            action=min((action for action, _ in each), key=_GRAVITY.__getitem__),
            tenant=tenant,
            type=shorten(short_type(named.type)),
            name=shorten(named.name),
            properties=tuple(sorted(properties | forcing)),
            forcing=tuple(sorted(forcing)),
        )


def _action(step: Step) -> Action:
    """Return the action of a step; several steps make a replacement, or remove the rest of one."""
    if "replace" in step.op:
        return Action.REPLACE
    if "discard" in step.op:
        return Action.DELETE
    return Action(step.op) if step.op in _GRAVITY else Action.OTHER


def _differing(action: Action, step: Step) -> Iterator[str]:
    """Yield names of properties that differ; without a diff, old and new inputs are compared."""
    if action not in (Action.UPDATE, Action.REPLACE):
        return
    told = [*step.diffs, *step.detailed_diff]
    if told:
        yield from _properties(step, told)
    elif step.old and step.new:
        old, new = step.old.inputs, step.new.inputs
        yield from _properties(step, [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)])


def _properties(step: Step, paths: Iterable[str]) -> Iterator[str]:
    """Yield the existing top-level properties of paths; keys further down are user data."""
    known = {key for state in step.states for key in (*state.inputs, *state.outputs)}
    for path in paths:
        match = _PROPERTY.match(path)
        if match and match[1] in known and not match[1].startswith(_HIDDEN):
            yield match[1]


def _owner(urn: str, steps: Sequence[Step], namespaces: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the tenant of a resource, if any, otherwise whether it is the pool's or the stack's."""
    states = [state for step in steps for state in step.states]
    for each in (urn, *(state.parent for state in states if state.parent)):
        if _TENANTS_OWN.fullmatch((own := urns.parse(each)).type):
            return shorten(own.name), ""
    named = urns.parse(urn)
    if "credfleet:index:AccountPool" in named.qualified_type.split("$"):
        return None, POOL
    if named.type == TENANT_NAMESPACE and any(_is_labelled(state) for state in states):
        return shorten(named.name.removesuffix(TENANT_NAMESPACE_END)), ""
    if named.type == "kubernetes:core/v1:ServiceAccount" and named.name.endswith(_ACCOUNT_READER):
        return shorten(named.name.removesuffix(_ACCOUNT_READER)), ""
    for state in states:
        metadata = _below(state.inputs, "metadata")
        for place in (metadata.get("namespace"), *(state.inputs.get(key) for key in _PLACES)):
            if isinstance(place, str) and place in namespaces:
                return shorten(namespaces[place]), ""
    return None, STACK


def _is_labelled(state: State) -> bool:
    return TENANT in _below(_below(state.inputs, "metadata"), "labels")


def _order(change: Change) -> tuple[Any, ...]:
    return (
        change.tenant is None,
        change.owner != POOL,
        change.tenant or "",
        _GRAVITY[change.action],
        change.type,
        change.name,
    )


def _claim(step: Step) -> Claim:
    """Return the claim of a resource from its name: tenant, slash, slot."""
    tenant, _, slot = urns.parse(step.urn).name.rpartition("/")
    return tenant, slot


def _claims(steps: Iterable[Step], forecast: Forecast) -> Iterator[ClaimChange]:
    of = {step.urn: step for step in steps if step.op not in _UNCHANGED}
    for step in of.values():
        told = forecast.expected.get(_claim(step))
        tenant, slot = _claim(step)
        inputs = (step.new or step.old or State()).inputs
        yield ClaimChange(
            action=_action(step),
            tenant=shorten(tenant),
            slot=shorten(slot),
            type=_matching(_POOL_TYPE, inputs.get("type")),
            account=_matching(_OBJECT_NAME, step.old.outputs.get("secretName") if step.old else None) or None,
            doomed=told is not None and told.is_bad,
            expected=told and shorten(told.text or "nothing: the log says why", _LONGEST_OUTLOOK),
        )


def _skipped(diagnostics: Iterable[Diagnostic]) -> Iterator[Skipped]:
    said = (
        each.message for each in diagnostics if each.urn and urns.parse(each.urn).type in _SAY_WHAT_IS_SKIPPED
    )
    told = skipped_in(line for message in said for line in message.splitlines())
    for what, why in told.items():
        reasons = tuple(each for each in why.split("; ") if _QUOTABLE.fullmatch(each))
        yield Skipped(shorten(what), reasons or ("the log says why",))


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    return value if isinstance(value, str) and pattern.fullmatch(value) else ""


def _objection(event: PolicyEvent) -> Objection:
    level = event.level if event.level in ("mandatory", "remediate") else "advisory"
    return Objection(
        UNDECIDED if COULD_NOT in event.message else level, shorten(event.policy), _named(event.urn)
    )


def _rank(objection: Objection) -> tuple[Any, ...]:
    level, rule, resource = objection.level, objection.rule, objection.resource
    return level == UNDECIDED, level != "mandatory", rule, resource


def _named(urn: str) -> str:
    return shorten(urns.parse(urn).name) if urn else ""


def _remarks(diagnostics: Iterable[Diagnostic]) -> Iterator[Remark]:
    """Count errors and warnings by resource."""
    said = Counter(
        (each.severity, _named(each.urn)) for each in diagnostics if each.severity in ("error", "warning")
    )
    for (severity, resource), times in sorted(said.items()):
        yield Remark(severity, resource, times)
