"""What a rule is: a function from a resource to what is wrong with it, made a policy with its level stated.

Here alone are the proxies of the host turned into plain values. A value that is not known in a preview
becomes UNKNOWN and is judged at the update; it does not silence the rest of its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulumi_policy import (
    EnforcementLevel,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError


class _Unknown:
    """A value that only the update knows; it is no text, no number and empty."""

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as a rule sees it: its type, and its inputs under the names of the wire, as plain values."""

    type: str
    inputs: Mapping[str, Any]

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


Check = Callable[[Resource], Iterator[str]]
"""Yields one sentence per violation: the path of the property and what is wrong, never a value."""


def resource_rule(
    name: str, *, types: Sequence[str], level: EnforcementLevel, description: str, mend: str
) -> Callable[[Check], ResourceValidationPolicy]:
    """Make a policy of a check.

    types: of the resources it judges; one that ends in a colon or slash stands for all that begin so.
    mend: what to do about a violation, said with each.
    """

    def make(check: Check) -> ResourceValidationPolicy:
        def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
            if not any(
                args.resource_type == type_ or _is_family(type_, args.resource_type) for type_ in types
            ):
                args.not_applicable()
            for violation in check(Resource(args.resource_type, plain(args.props))):
                report_violation(f"{violation}\n→ {mend}", None)

        return ResourceValidationPolicy(
            name, description, validate=validate, enforcement_level=level, remediation_steps=mend
        )

    return make


def _is_family(type_: str, candidate: str) -> bool:
    return type_.endswith((":", "/")) and candidate.startswith(type_)


def plain(value: Any) -> Any:
    """Turn what the host passes into plain dicts and lists, unknowns into UNKNOWN."""
    if isinstance(value, Mapping):
        return {key: _item(value, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_item(value, index) for index in range(len(value))]
    return value


def _item(holder: Any, key: Any) -> Any:
    try:
        return plain(holder[key])
    except UnknownValueError:
        return UNKNOWN
