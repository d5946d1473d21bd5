"""Rules: functions from declared properties to violations, which are turned into policies with a level.

A policy is named after its function, with dashes: `aso_secret_one_method` is `aso-secret-one-method`. Values
unknown during a preview are UNKNOWN and judged in the update; the rest of the rule still applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, cast

from late_reading import UNKNOWN, Late, TypedPolicy, is_one_of, known_text, resource_type, with_secrets
from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceRemediation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Secret,
    StackValidationArgs,
    StackValidationPolicy,
)

from components.seals import COULD_NOT

UNDECIDED: Final = f"{COULD_NOT}\n→ preview with the keys to decide it"

SECRETS: Final = ("kubernetes:core/v1:Secret", "kubernetes:core/v1:SecretPatch")


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as a rule sees it: its type and its properties, named as on the wire, in plaintext.

    inputs: in a stack rule these are the outputs, which repeat the inputs except those of azure-native that
    form an ID. config: the environment's configuration of this rule. sources: in a stack rule, the URNs of
    the resources from whose outputs each property is made.
    """

    type: str
    inputs: Mapping[str, Any]
    urn: str = ""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def mapping(self, *path: str) -> Mapping[str, Any]:
        """Return the object at a path of the inputs; empty if absent, unknown or not an object."""
        value: Any = self.inputs
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def items(self, *path: str) -> Sequence[Any]:
        """Return the list at a path of the inputs; empty if absent, unknown or not a list."""
        value = self.mapping(*path[:-1]).get(path[-1])
        return value if isinstance(value, list) else []

    def objects(self, *path: str) -> Iterator[tuple[int, Resource]]:
        """Yield index and content of each object in a list of the inputs."""
        for index, value in enumerate(self.items(*path)):
            if isinstance(value, dict):
                yield index, replace(self, inputs=cast("dict[str, Any]", value))

    def text(self, *path: str) -> str | None:
        """Return the text at a path of the inputs; None if absent, unknown or not a text."""
        value = self.mapping(*path[:-1]).get(path[-1])
        return value if isinstance(value, str) else None

    def is_known(self, *path: str) -> bool:
        """Return whether the value at a path, or its absence, is known; check before reporting it missing."""
        value: Any = self.inputs
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
            if value is UNKNOWN:
                return False
        return True

    def is_a(self, *types: str) -> bool:
        """Return whether the resource's type matches one of these, in which `*` stands for anything."""
        return is_one_of(self.type, types)


Check: TypeAlias = Callable[[Resource], Iterator[str]]
"""Yields one sentence per violation: the path of the property and the problem, never a value."""

StackCheck: TypeAlias = Callable[[Sequence[Resource]], Iterator[tuple[str, str]]]
"""Takes all resources; yields a resource's URN and a sentence as in Check."""

Remedy: TypeAlias = Callable[[Resource], Mapping[str, Any] | None]
"""Returns the fixed inputs, or None. Secrets are wrapped in `Secret`; unknowns have their wire format."""


def resource_rule(
    *,
    types: Sequence[str],
    description: str,
    fix: str,
    level: EnforcementLevel = EnforcementLevel.MANDATORY,
    config: Mapping[str, Mapping[str, Any]] | None = None,
    remedy: Remedy | None = None,
    marks: bool = False,
) -> Callable[[Check], ResourceValidationPolicy]:
    """Return a decorator that turns a check into a policy.

    types: of the resources it judges; `*` stands for anything. fix: how to fix a violation, printed with each
    one. config: JSON schema of the rule's configuration by environments, by property. remedy: fixes inputs
    before the check; runs only at level REMEDIATE. marks: pass inputs to the check with secrets inside
    `Secret`, as to a remedy.
    """
    asked = tuple(types)

    def make(check: Check) -> ResourceValidationPolicy:
        def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
            late = _late(args.props)
            type_ = resource_type(args.resource_type, *late.kind)
            if not is_one_of(type_, asked):
                args.not_applicable()
            late.touched.clear()
            inputs = late.marked if marks else late.plain
            for violation in check(Resource(type_, inputs, args.urn, args.get_config())):
                report_violation(f"{violation}\n→ {fix}", None)
            if late.touched:
                report_violation(UNDECIDED, None)

        def remediate(args: ResourceValidationArgs) -> Mapping[str, Any] | None:
            inputs = with_secrets(args.props)
            said = (known_text(inputs.get(key)) for key in ("apiVersion", "kind"))
            type_ = resource_type(args.resource_type, *said)
            if not is_one_of(type_, asked):
                args.not_applicable()
            return remedy and remedy(Resource(type_, inputs, args.urn, args.get_config()))

        return TypedPolicy(
            types,
            _name(check),
            description,
            validate=validate,
            # the host accepts the inputs themselves; its type only allows an awaitable
            remediate=cast("ResourceRemediation", remediate) if remedy else None,
            enforcement_level=level,
            remediation_steps=fix,
            config_schema=_schema(config),
        )

    return make


def stack_rule(
    *,
    types: Sequence[str],
    description: str,
    fix: str,
    config: Mapping[str, Mapping[str, Any]] | None = None,
    components: bool = False,
) -> Callable[[StackCheck], StackValidationPolicy]:
    """Return a decorator that turns a check of the whole stack, run at the end, into a policy.

    The check gets the resources sorted by URN, so that of two in conflict every run reports the same one:
    their original order varies between runs and engines. It also runs at the end of a preview. types: of the
    resources whose properties it reads; the others are passed without theirs. components: pass outputs of
    components and of the stack as well, with secrets inside `Secret`.
    """
    asked = tuple(types)

    def make(check: StackCheck) -> StackValidationPolicy:
        def validate(args: StackValidationArgs, report_violation: ReportViolation) -> None:
            config = args.get_config()
            lates = {one.urn: _late(one.props) for one in args.resources}

            def read(each: PolicyResource) -> Resource:
                late = lates[each.urn]
                one = Resource(
                    resource_type(each.resource_type, *late.kind), {}, each.urn, config, _sources(each)
                )
                if is_one_of(one.type, asked):
                    return replace(one, inputs=late.plain)
                is_read = components and each.provider is None and not one.is_a("pulumi:providers:*")
                return replace(one, inputs=late.marked) if is_read else one

            resources = [
                read(each) for each in sorted(args.resources, key=lambda each: (len(each.urn), each.urn))
            ]
            for urn, violation in check(resources):
                report_violation(f"{violation}\n→ {fix}", urn)
            for one in resources:  # providers get the whole configuration, which is not judged
                if lates[one.urn].touched and not one.is_a("pulumi:providers:*"):
                    report_violation(UNDECIDED, one.urn)

        return StackValidationPolicy(
            _name(check),
            description,
            validate=validate,
            enforcement_level=EnforcementLevel.MANDATORY,
            remediation_steps=fix,
            config_schema=_schema(config),
        )

    return make


def _name(rule: Callable[..., Any]) -> str:
    return rule.__name__.replace("_", "-")


def _late(props: Any) -> Late:
    """Return properties that are read lazily.

    Raises TypeError if the host reads them itself, as it then hides which are secret.
    """
    if not isinstance(props, Late):
        raise TypeError("the host shows no marks: `pack` is to be imported before it judges")
    return props


def _sources(resource: PolicyResource) -> Mapping[str, Sequence[str]]:
    made = resource.property_dependencies.items()
    return {key: [source.urn for source in sources] for key, sources in made}


def _schema(config: Mapping[str, Mapping[str, Any]] | None) -> PolicyConfigSchema | None:
    if config is None:
        return None
    return PolicyConfigSchema({name: dict(schema) for name, schema in config.items()})


def reveal(value: Any) -> Any:
    """Return a value without the marks of its secrets."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, dict):
        return {key: reveal(item) for key, item in value.items()}
    return [reveal(item) for item in value] if isinstance(value, list) else value
