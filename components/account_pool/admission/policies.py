"""What the API server itself refuses in a pool: the tables of `transitions.py` as CEL, and their manifests.

The protocol keeps its own promises; these keep everybody else from breaking them: kubectl, another
controller, a program with a fault. They are in force about a second after they were written. A write passes
when one row of its table allows all that it changes, so a refusal names what was changed and by which row
nobody may. An object is judged by what it was and by what it becomes, so nobody takes one out of sight. Who
may do what is asked of RBAC, by virtual verbs on `accounts` in group `credfleet.io`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from components.account_pool.admission.state_machine import (
    ANYTHING,
    DATA,
    LABELS,
    NOTES,
    VIRTUAL_GROUP,
    VIRTUAL_RESOURCE,
    Field,
    Operation,
    Step,
    Table,
    Verb,
    Where,
)
from components.account_pool.admission.transitions import tables
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.model import JsonObject
from components.labels import TENANT_NAME

API_VERSION: Final = "admissionregistration.k8s.io/v1"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"

_OPERATIONS: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")


def admission_manifests(
    namespace: str, settings: PoolConfigMap, *, allow_destroy: bool = False
) -> tuple[JsonObject, ...]:
    """Draw the policies of the pool in a namespace, each before the binding that puts it into force.

    allow_destroy: the pool may be thrown away, so nothing is kept from being deleted.
    """
    operations = _OPERATIONS[:2] if allow_destroy else _OPERATIONS
    manifests: list[JsonObject] = []
    quotas = any(consumer.quotas for consumer in settings.consumers)
    for table in tables(settings.partition_keys, quotas=quotas):
        name = f"credfleet-{table.name}.{namespace}"
        policy = _policy(name, table, operations)
        if table.resource == "secrets":
            policy = settings.dialect.expressions(policy)
        manifests += policy, _binding(name, namespace)
    return tuple(manifests)


def _policy(name: str, table: Table, operations: Sequence[Operation]) -> JsonObject:
    variables = {
        **{f"{age}{where.name}": where.cel(age) for where in _parts(table) for age in ("old", "new")},
        **{f"may{verb.capitalize()}": _may(verb) for verb in Verb},
        **table.lists,
        "differs": _differences(table),
        "changed": "variables.differs.filter(name, variables.differs[name])",
        **{_variable(step, table): _cel(step, table) for step in table.steps if step.on in operations},
    }
    validations = [rule for operation in operations for rule in _validations(table, operation)]
    used = " ".join(rule["expression"] for rule in validations)
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
                        "operations": sorted(operations),
                        "resources": [table.resource],
                    }
                ]
            },
            "matchConditions": [{"name": "belongs-to-the-pool", "expression": table.belongs.cel}],
            "variables": _needed(variables, used),
            "validations": validations,
        },
    }


def _needed(variables: dict[str, str], used: str) -> list[JsonObject]:
    """Return the variables that are read by something, in their order."""
    kept: list[JsonObject] = []
    for name, expression in reversed(variables.items()):
        if re.search(rf"variables\.{name}\b", used):
            kept.insert(0, {"name": name, "expression": expression})
            used += expression
    return kept


def _validations(table: Table, operation: Operation) -> Iterable[JsonObject]:
    rows = [step for step in table.steps if step.on == operation]
    if operation != "UPDATE" or not table.fields:
        what = {"CREATE": "made", "UPDATE": "changed", "DELETE": "deleted"}[operation]
        yield _validation(
            operation,
            [_variable(row, table) for row in rows],
            f"{table.noun}-{what}: this {table.noun} is not {what} like this{_by(rows)}; {table.mend}",
        )
        return
    for one in table.fields:
        touching = [step for step in rows if one in step.new or one in step.drops]
        message = f"{table.noun}-{one.name}: {one.shown} does not change like this{_by(touching)}; {one.mend}"
        names = [_variable(row, table) for row in touching]
        yield _validation(operation, names, message, f"!('{one.name}' in variables.changed)")


def _by(rows: Iterable[Step]) -> str:
    verbs = sorted({verb for step in rows for verb in step.by})
    return f", and only by those who may {' or '.join(verbs)}" if verbs else ""


def _validation(operation: Operation, rows: Iterable[str], message: str, *unless: str) -> JsonObject:
    ways = [f"request.operation != '{operation}'", *unless, *(f"variables.{row}" for row in rows)]
    return {"expression": " || ".join(ways), "message": message, "reason": "Forbidden"}


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


def _variable(step: Step, table: Table) -> str:
    return f"step{table.steps.index(step) + 1}"


def _cel(step: Step, table: Table) -> str:
    """Return whether a write is this step."""
    untouched = [one for one in table.fields if one not in step.new and one not in step.drops]
    touched = [one.name for one in table.fields if one not in untouched]
    conditions = [
        *([" || ".join(f"variables.may{verb.capitalize()}" for verb in step.by)] if step.by else []),
        *([f"variables.changed.all(name, name in {touched})"] if untouched and step.on != "DELETE" else []),
        *(
            among.cel(_text(one, age, table))
            for age, those in (("old", step.old), ("new", step.new))
            for one, among in those.items()
            if among != ANYTHING
        ),
        *(f"!('{one.name}' in variables.changed) || {_is_empty(one, table)}" for one in step.drops),
        *(relation.cel for relation in step.when),
    ]
    return " && ".join(f"({condition})" for condition in conditions) or "true"


def _may(verb: Verb) -> str:
    tenant = f".name(variables.newLabels[?'{TENANT_NAME}'].orValue(''))" if verb is Verb.BRING else ""
    return (
        f"authorizer.group('{VIRTUAL_GROUP}').resource('{VIRTUAL_RESOURCE}')"
        f".namespace(request.namespace){tenant}.check('{verb}').allowed()"
    )


def _parts(table: Table) -> Sequence[Where]:
    return list(dict.fromkeys((*(one.where for one in table.fields), LABELS, NOTES, DATA)))


def _text(one: Field, age: str, table: Table) -> str:
    """Return the CEL of an optional that holds what a field does; of one without a key only whether it is."""
    if one.key is not None:
        return f"variables.{age}{one.where.name}[?'{one.key}']"
    return f"({_is_empty(one, table, age)} ? optional.none() : optional.of('…'))"


def _is_empty(one: Field, table: Table, age: str = "new") -> str:
    variable = f"variables.{age}{one.where.name}"
    match one.where.empty:
        case "{}":
            return f"{variable}.all(key, key in {table.keys(one.where)})"
        case "[]":
            return f"{variable}.size() == 0"
        case _:
            return f"!{variable}"


def _differences(table: Table) -> str:
    """Return by name whether each field is not as it was."""
    return "{" + ", ".join(f"'{one.name}': {_differs(one, table)}" for one in table.fields) + "}"


def _differs(one: Field, table: Table) -> str:
    old, new = (f"variables.{age}{one.where.name}" for age in ("old", "new"))
    if one.key is not None:
        return f"{old}[?'{one.key}'] != {new}[?'{one.key}']"
    if one.where.empty != "{}":
        return f"{old} != {new}"
    keys = table.keys(one.where)
    return (
        f"!({old}.all(key, key in {keys} || (key in {new} && {new}[key] == {old}[key]))"
        f" && {new}.all(key, key in {keys} || key in {old}))"
    )
