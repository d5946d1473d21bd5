"""The policy pack of which the events beside it were told."""

from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy


def no_green(args, report):
    if args.props.get("colour") == "green":
        report(f"{args.name} is green")


def no_tree(args, report):
    if args.props.get("kind") == "forbidden":
        report(f"{args.name} is forbidden")


PolicyPack(
    "house",
    [
        ResourceValidationPolicy("no-green", "nothing is green", no_green, EnforcementLevel.ADVISORY),
        ResourceValidationPolicy("no-forbidden", "nothing is forbidden", no_tree, EnforcementLevel.MANDATORY),
    ],
)
