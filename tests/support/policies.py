"""Judges resources by a policy, with the inputs wrapped as the genuine host wraps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn, cast

from pulumi_policy import PolicyResourceOptions, ResourceValidationArgs, ResourceValidationPolicy
from pulumi_policy.deserialize import deserialize_properties
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

UNKNOWN: Final = UNKNOWN_STRING_VALUE
"""How a value that only the update knows comes over the wire."""


def secret(value: Any) -> dict[str, Any]:
    """Mark a value as secret, as it comes over the wire."""
    return {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": value}


class NotApplicableError(Exception):
    """The policy has nothing to say about a resource of this type."""


class _Args(ResourceValidationArgs):
    def not_applicable(self, reason: str | None = None) -> NoReturn:
        raise NotApplicableError(reason)


def judge(policy: ResourceValidationPolicy, type_: str, inputs: Mapping[str, Any]) -> list[str]:
    """Tell the violations of a policy, each cut at its mend. Raises NotApplicableError."""
    found: list[str] = []
    props = unknown_checking_proxy(deserialize_properties(dict(inputs)))
    options = cast("PolicyResourceOptions", None)
    policy.validate(
        _Args(type_, props, "urn:x", "x", options, None), lambda message, _urn: found.append(message)
    )
    assert all("\n→ " in message for message in found), "every violation says how to mend it"
    return [message.partition("\n→ ")[0] for message in found]
