"""Rules that choose the pool of a plan: `gcp(PR=cf-sa30) -> PR, HR`; the most specific rule wins.

A rule has a plan, optional inputs that must match (`PR` platform region, `HR` hyperscaler region), and
optional outputs: `EU` (account with EU access), `S` (shared account), `PR` and `HR` (the region becomes a
suffix of the type). Whitespace is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

ANY: Final = "any"
"""Cloud of a plan that leaves the choice of the cloud to the request."""

PLANS: Final[Mapping[str, str]] = {
    "alicloud": "alicloud",
    "aws": "aws",
    "azure": "azure",
    "azure_lite": "azure",
    "build-runtime-alicloud": "alicloud",
    "build-runtime-aws": "aws",
    "build-runtime-azure": "azure",
    "build-runtime-gcp": "gcp",
    "free": ANY,
    "gcp": "gcp",
    "gdch": "gdch",
    "preview": "aws",
    "sap-converged-cloud": "openstack",
    "trial": ANY,
}
"""Plans of Kyma → their clouds (docs/compatibility.md)."""

_HEAD = re.compile(r"(?P<plan>[^()]*)(?:\((?P<inputs>[^()]*)\))?")
_REGION = re.compile(r"[a-z0-9][-a-z0-9]*")
_INPUTS: Final = ("PR", "HR")
_OUTPUTS: Final = ("EU", "S", "PR", "HR")


@dataclass(frozen=True, slots=True)
class Request:
    """What a slot requests: a plan, regions, and a cloud if the plan runs on any."""

    plan: str
    platform_region: str | None = None
    hyperscaler_region: str | None = None
    hyperscaler: str | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Pool that serves a request: the members' type, and whether with EU access or shared.

    `rule`: index of the rule that chose it, None if the type was requested.
    """

    type: str
    eu_access: bool
    shared: bool
    rule: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a rule is invalid, or a request has no pool. `rule`: its index, None for a request."""

    problem: str
    fix: str
    rule: int | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    position: int
    plan: str
    cloud: str
    inputs: Mapping[str, str]
    outputs: frozenset[str]

    def matches(self, request: Request) -> bool:
        asked = {"PR": request.platform_region, "HR": request.hyperscaler_region}
        return self.plan == request.plan and all(asked[key] == value for key, value in self.inputs.items())


class _RuleError(ValueError):
    """Rule that cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """Valid rules, of which no two match a request equally well."""

    rules: tuple[_Rule, ...]

    def choose(self, request: Request) -> Pool | Fault:
        """Return the pool for a request: of the matching rules, the one with most inputs."""
        rule = max((r for r in self.rules if r.matches(request)), key=lambda r: len(r.inputs), default=None)
        if rule is None:
            return Fault(
                f"no rule covers plan {request.plan!r} here, so no pool serves it",
                "add a rule for the plan under accountPool.rules, or name the account's type instead",
            )
        cloud = request.hyperscaler if rule.cloud == ANY else rule.cloud
        if cloud is None:
            return Fault(
                f"plan {request.plan!r} runs on any cloud, and none is chosen",
                "add hyperscaler: aws, or another cloud",
            )
        if request.hyperscaler not in (None, cloud):
            return Fault(
                f"plan {request.plan!r} runs on {cloud}, and {request.hyperscaler} is asked for",
                "leave hyperscaler out, or name a plan of that cloud",
            )
        suffixes: list[str] = []
        for key, region, name in (
            ("PR", request.platform_region, "region"),
            ("HR", request.hyperscaler_region, "hyperscalerRegion"),
        ):
            if key not in rule.outputs:
                continue
            if region is None:
                problem = f"the rule for plan {request.plan!r} has one pool per {name}"
                return Fault(problem, f"add {name} here")
            suffixes.append(region)
        return Pool("_".join((cloud, *suffixes)), "EU" in rule.outputs, "S" in rule.outputs, rule.position)


def read_rules(texts: Sequence[str], plans: Mapping[str, str] = PLANS) -> tuple[Ruleset, tuple[Fault, ...]]:
    """Parse rules; with any fault the set is empty, and all faults are listed. `plans`: plan → cloud."""
    rules: list[_Rule] = []
    unreadable: list[Fault] = []
    for position, text in enumerate(texts):
        try:
            rules.append(_read_rule(position, text, plans))
        except _RuleError as error:
            unreadable.append(Fault(str(error), "write it as: plan(PR=…, HR=…) -> EU, S, PR, HR", position))
    faults = (*unreadable, *_duplicates(rules), *(() if unreadable else _ambiguities(rules)))
    return Ruleset(() if faults else tuple(rules)), faults


def _read_rule(position: int, text: str, plans: Mapping[str, str]) -> _Rule:
    head, *tails = "".join(text.split()).split("->")
    if len(tails) > 1:
        raise _RuleError("a rule has one arrow")
    parts = _HEAD.fullmatch(head)
    if parts is None:
        raise _RuleError("its parentheses are nested or do not pair")
    plan, inputs = parts["plan"], parts["inputs"]
    if not plan:
        raise _RuleError("it names no plan")
    if plan not in plans:
        known = ", ".join(sorted(plans))
        raise _RuleError(f"{plan!r} is not a plan; accountPool.plans adds one to: {known}")
    return _Rule(
        position,
        plan,
        plans[plan],
        _read_inputs([] if inputs is None else inputs.split(",")),
        _read_outputs(tails[0].split(",") if tails else []),
    )


def _read_inputs(items: Sequence[str]) -> Mapping[str, str]:
    inputs: dict[str, str] = {}
    for item in items:
        key, _, value = item.partition("=")
        _expect_attribute(key, _INPUTS, inputs)
        if value == "*":
            raise _RuleError(f"{key}=* would mean a region named '*'; leave {key} out to match every region")
        if not _REGION.fullmatch(value):
            raise _RuleError(f"{key} needs one region as its value, such as {key}=cf-eu11")
        inputs[key] = value
    return inputs


def _read_outputs(items: Sequence[str]) -> frozenset[str]:
    for position, item in enumerate(items):
        _expect_attribute(item, _OUTPUTS, items[:position])
    return frozenset(items)


def _expect_attribute(key: str, known: Sequence[str], taken: Collection[str]) -> None:
    if not key:
        raise _RuleError("an attribute between its commas is empty")
    if key not in known:
        raise _RuleError(f"{key!r} is not one of {', '.join(known)}")
    if key in taken:
        raise _RuleError(f"{key} is given twice")


def _duplicates(rules: Sequence[_Rule]) -> Iterator[Fault]:
    """Yield each rule with the same plan and inputs as an earlier one; outputs do not distinguish rules."""
    first: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    for rule in rules:
        original = first.setdefault((rule.plan, frozenset(rule.inputs.items())), rule.position)
        if original != rule.position:
            problem = f"it is equal to rule {original}, so one of them would never be used"
            yield Fault(problem, "remove one of the two", rule.position)


def _ambiguities(rules: Sequence[_Rule]) -> Iterator[Fault]:
    """Yield pairs that match a request equally well: one has only PR, the other only HR."""
    stated = [(rule.plan, rule.inputs) for rule in rules]
    for one, other in combinations(rules, 2):
        both = {**one.inputs, **other.inputs}
        alike = one.plan == other.plan and len(one.inputs) == len(other.inputs) == 1 and len(both) == 2
        if alike and (one.plan, both) not in stated:
            tie = ", ".join(f"{key}={both[key]}" for key in _INPUTS)
            problem = f"for {tie} it fits as well as rule {one.position}, and nothing decides between them"
            fix = f"add the rule {one.plan}({tie}) with the outputs meant"
            yield Fault(problem, fix, other.position)
