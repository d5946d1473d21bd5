"""A policy pack of one policy of each kind."""

from typing import Any

import pulumi
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)


def no_red(args: ResourceValidationArgs, report: ReportViolation) -> None:
    if args.resource_type == "fake:index:Thing" and args.props.get("colour") == "red":
        report(f"{args.name} is red", None)


def no_grey(args: ResourceValidationArgs, report: ReportViolation) -> None:
    if args.resource_type == "fake:index:Thing" and args.props.get("colour") == "grey":
        report(f"{args.name} is dull", None)


def tidy(args: ResourceValidationArgs) -> Any:
    if args.resource_type != "fake:index:Thing" or "tidied" in args.props:
        return None
    return {**dict(args.props.items()), "tidied": f"by {pulumi.get_stack()}"}


def broken(args: ResourceValidationArgs, report: ReportViolation) -> None:
    del report
    if args.name == "breaks-a-policy":
        raise RuntimeError("a mistake in a policy")


def few(args: StackValidationArgs, report: ReportViolation) -> None:
    if any(each.name == "breaks-the-last-policy" for each in args.resources):
        raise RuntimeError("a mistake at the end")
    things = [each for each in args.resources if each.resource_type == "fake:index:Thing"]
    if len(things) > int(args.get_config().get("most", 0)):
        report(f"{len(things)} things, made {sorted(each.props['made'] for each in things)}", None)


POLICIES: list[Policy] = [
    ResourceValidationPolicy("no-red", "nothing is red", no_red),
    ResourceValidationPolicy("no-grey", "nothing is grey", no_grey, EnforcementLevel.ADVISORY),
    ResourceValidationPolicy(
        "tidy", "all is tidied", enforcement_level=EnforcementLevel.REMEDIATE, remediate=tidy
    ),
    ResourceValidationPolicy("broken", "has a mistake", broken),
    StackValidationPolicy(
        "few",
        "few things",
        few,
        EnforcementLevel.ADVISORY,
        PolicyConfigSchema({"most": {"type": "integer"}, "of": {"enum": ["things"]}}),
    ),
]

PolicyPack(
    "house",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=POLICIES,
    initial_config={"few": {"most": 1}},
)
