"""What a rule is: a function from what is declared to what is wrong with it, made a policy with a level.

A policy has its function's name, with dashes: `aso_secret_one_method` is `aso-secret-one-method`. What a
preview does not know becomes UNKNOWN and is judged at the update; it does not silence the rest of its rule.
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
    """A resource as a rule sees it: its type, and its properties by their names on the wire, in plaintext.

    inputs: for a rule over the stack these are the outputs. They repeat the inputs, but for those of
    azure-native that form an id. config: what the environment's file says to this rule. sources: for a rule
    over the stack, property → URNs of the resources whose outputs it is made of.
    """

    type: str
    inputs: Mapping[str, Any]
    urn: str = ""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def mapping(self, *path: str) -> Mapping[str, Any]:
        """Look up an object in the inputs; absent, unknown and of another kind all count as empty."""
        value: Any = self.inputs
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def items(self, *path: str) -> Sequence[Any]:
        """Look up a list in the inputs, with the same leniency."""
        value = self.mapping(*path[:-1]).get(path[-1])
        return value if isinstance(value, list) else []

    def objects(self, *path: str) -> Iterator[tuple[int, Resource]]:
        """Yield place and content of each object in a list of the inputs."""
        for index, value in enumerate(self.items(*path)):
            if isinstance(value, dict):
                yield index, replace(self, inputs=cast("dict[str, Any]", value))

    def text(self, *path: str) -> str | None:
        """Look up a text in the inputs; None when it is absent, unknown or no text."""
        value = self.mapping(*path[:-1]).get(path[-1])
        return value if isinstance(value, str) else None

    def is_known(self, *path: str) -> bool:
        """Whether a preview knows what is there, or that nothing is; asked before anything is missed."""
        value: Any = self.inputs
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
            if value is UNKNOWN:
                return False
        return True

    def is_a(self, *types: str) -> bool:
        """Whether the resource is of one of these types; a `*` in one stands for anything."""
        return is_one_of(self.type, types)


Check: TypeAlias = Callable[[Resource], Iterator[str]]
"""Yields one sentence per violation: the path of the property and what is wrong, never a value."""

StackCheck: TypeAlias = Callable[[Sequence[Resource]], Iterator[tuple[str, str]]]
"""Takes all resources; yields the URN at fault and a sentence like a Check's."""

Remedy: TypeAlias = Callable[[Resource], Mapping[str, Any] | None]
"""Returns the fixed inputs, or None. Inputs have secrets inside `Secret`, and unknowns as they travel."""


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
    """Make a policy of a check.

    types: of the resources it judges; a `*` stands for anything.
    fix: what to do about a violation, said with each.
    config: JSON schema of what an environment may say to the rule, by property.
    remedy: fixes before the check judges; it runs at level REMEDIATE alone.
    marks: the check gets inputs as a remedy does, with secrets inside `Secret`.
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
            # the host takes the inputs themselves; its type asks for an awaitable of them only
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
    """Make a policy of a check over the whole stack, which is judged at the end: of a preview, too.

    The check gets the resources in one order, by their URNs, so that of two that clash every run names the
    same one: the order in which they come differs from run to run, and from engine to engine.

    types: of the resources whose properties it reads; all others it gets without.
    components: it reads what components and the stack itself put out as well, with secrets inside `Secret`.
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
            for one in resources:  # providers are given the whole configuration, which is not judged
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
    """Return properties that are read late.

    Raises TypeError where the host was not made to: then it shows no marks.
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
    """Take the marks of secrets off a value."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, dict):
        return {key: reveal(item) for key, item in value.items()}
    return [reveal(item) for item in value] if isinstance(value, list) else value
