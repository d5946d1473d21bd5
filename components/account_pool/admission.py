"""The admission policies of a pool as plain manifests: the API server itself keeps the rules of claims.

The protocol keeps its own promises; these keep everybody else from breaking them: kubectl, another
controller, a program with a fault. They are in force about a second after they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from components.account_pool.admission_rules import (
    IS_MEMBER,
    IS_RECORD,
    MEMBER_RULES,
    MEMBER_VARIABLES,
    RECORD_RULES,
    RECORD_VARIABLES,
    Rule,
)
from components.account_pool.model import JsonObject

API_VERSION: Final = "admissionregistration.k8s.io/v1"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"


def admission_manifests(namespace: str, *, allow_destroy: bool = False) -> tuple[JsonObject, ...]:
    """Draw the policies of the pool in a namespace, each before the binding that puts it into force.

    allow_destroy: the pool may be thrown away, so nothing is kept from being deleted.
    """
    drawn = (
        ("members", "secrets", IS_MEMBER, MEMBER_VARIABLES, MEMBER_RULES),
        ("records", "configmaps", IS_RECORD, RECORD_VARIABLES, RECORD_RULES),
    )
    manifests: list[JsonObject] = []
    for what, resource, condition, variables, rules in drawn:
        name = f"credfleet-{what}.{namespace}"
        kept = [rule for rule in rules if not (allow_destroy and rule.on == "DELETE")]
        manifests += _policy(name, resource, condition, variables, kept), _binding(name, namespace)
    return tuple(manifests)


def _policy(
    name: str, resource: str, condition: str, variables: Mapping[str, str], rules: Iterable[Rule]
) -> JsonObject:
    rules = tuple(rules)
    return {
        "apiVersion": API_VERSION,
        "kind": POLICY,
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": sorted({rule.on for rule in rules}),
                        "resources": [resource],
                    }
                ]
            },
            "matchConditions": [{"name": "belongs-to-the-pool", "expression": condition}],
            "variables": [{"name": key, "expression": value} for key, value in variables.items()],
            "validations": [_validation(rule) for rule in rules],
        },
    }


def _validation(rule: Rule) -> JsonObject:
    return {
        "expression": f"request.operation != '{rule.on}' || ({rule.allows})",
        "message": f"{rule.name}: {rule.message}",
        "reason": "Forbidden",
    }


def _binding(policy: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": BINDING,
        "metadata": {"name": policy},
        "spec": {
            "policyName": policy,
            "validationActions": ["Deny"],
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            },
        },
    }
