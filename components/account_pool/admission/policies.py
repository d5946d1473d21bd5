"""Admission policies of a pool: the state machines of `transitions.py` as CEL, in manifests.

They protect the protocol's invariants from every other writer: kubectl, other controllers, faulty programs.
They take effect about one second after they are written. A write is accepted if one transition allows all of
its changes, so a denial names the changed field and the transitions that can change it. An object is judged
by its old and new content, so it cannot leave the policies' scope. RBAC decides who can do what, by virtual
verbs on `accounts` in group `credfleet.io`.

Each transition is a CEL variable of its name, with one condition per line; `kubectl get
validatingadmissionpolicy -o yaml` shows them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from components.account_pool.admission.conditions import join_and, join_or
from components.account_pool.admission.state_machine import (
    ABSENT,
    ANYTHING,
    DATA,
    LABELS,
    VIRTUAL_GROUP,
    VIRTUAL_RESOURCE,
    AllowedValues,
    Field,
    Operation,
    StateMachine,
    Transition,
    Verb,
)
from components.account_pool.admission.transitions import list_state_machines
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import UNSEALED
from components.account_pool.core.model import JsonObject
from components.labels import TENANT_NAME

API_VERSION: Final = "admissionregistration.k8s.io/v1"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"

_OPERATIONS: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")


def admission_manifests(
    namespace: str, settings: PoolConfigMap, *, allow_destroy: bool = False
) -> tuple[JsonObject, ...]:
    """Render the policies of the pool in a namespace, each followed by its binding.

    `allow_destroy`: the pool is disposable, so deletions are not restricted.
    """
    operations = _OPERATIONS[:2] if allow_destroy else _OPERATIONS
    manifests: list[JsonObject] = []
    quotas = any(consumer.quotas for consumer in settings.consumers)
    for machine in list_state_machines(settings.partition_keys, settings.new_keys, quotas=quotas):
        spec = _render_spec(machine, operations)
        if machine.resource == "secrets":
            spec = settings.scheme.expressions(spec)
        manifests += _render_pair(machine.name, namespace, spec)
    return tuple(manifests)


def namespace_manifests(namespace: str) -> tuple[JsonObject, JsonObject]:
    """Render the policy that protects the namespace until the seal unlocks it, followed by its binding.

    It does not use records as parameters: an API server that once had no such binding never sees another
    record, and allows the deletion (kubernetes/kubernetes#130887).
    """
    validation = {
        "expression": f"oldObject.metadata.?annotations[?'{UNSEALED}'].hasValue()",
        "message": (
            "namespace-deleted: it goes with its pool, by `pulumi destroy`, when every claim is released;"
            f" see `credfleet pool status -n {namespace}`"
        ),
        "reason": "Forbidden",
    }
    spec = {**_render_reach("namespaces", ["DELETE"]), "validations": [validation]}
    return _render_pair("namespace", namespace, spec)


def _render_reach(resource: str, operations: Sequence[Operation]) -> JsonObject:
    """Return the scope of a policy; a write that cannot be evaluated is denied."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": sorted(operations),
        "resources": [resource],
    }
    return {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}}


def _render_spec(machine: StateMachine, operations: Sequence[Operation]) -> JsonObject:
    validations = [rule for operation in operations for rule in _render_validations(machine, operation)]
    return {
        **_render_reach(machine.resource, operations),
        "matchConditions": [{"name": "belongs-to-the-pool", "expression": machine.belongs}],
        "variables": _pick_used(_render_variables(machine), validations),
        "validations": validations,
    }


def _render_variables(machine: StateMachine) -> dict[str, str]:
    """Return the CEL of all variables by name."""
    parts = dict.fromkeys((*(each.part for each in machine.fields), LABELS, DATA))
    ages = ("old", "new")
    conditions = [each for transition in machine.transitions.values() for each in transition.when]
    return {
        **{f"{age}{part.name}": part.cel(age) for part in parts for age in ages},
        **{
            f"{age}Other{part.name}": f"variables.{age}{part.name}.filter(key, !(key in {keys}))"
            for part in parts
            if (keys := machine.keys(part))
            for age in ages
        },
        **{
            each.cel(age).removeprefix("variables."): f"variables.{age}{each.part.name}[?'{each.key}']"
            for each in machine.fields
            if each.key is not None
            for age in ages
        },
        **{f"may{verb.capitalize()}": _ask_authorizer(verb) for verb in Verb},
        **machine.variables,
        **{each.name: each.cel for each in conditions},
        "differs": "{\n" + ",\n".join(_differs(each, machine) for each in machine.fields) + "\n}",
        "changed": "variables.differs.filter(field, variables.differs[field])",
        **{name: _render_transition(each, machine) for name, each in machine.transitions.items()},
    }


def _pick_used(variables: Mapping[str, str], validations: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the variables used by the validations, each after its own dependencies."""
    picked: dict[str, JsonObject] = {}

    def pick(expression: str) -> None:
        for name in re.findall(r"variables\.(\w+)", expression):
            if name not in picked:
                pick(variables[name])
                picked[name] = {"name": name, "expression": variables[name]}

    for rule in validations:
        pick(rule["expression"])
    return list(picked.values())


def _render_validations(machine: StateMachine, operation: Operation) -> Iterator[JsonObject]:
    noun = machine.noun
    ways = {name: each for name, each in machine.transitions.items() if each.on == operation}
    if operation != "UPDATE" or not machine.fields:
        done = {"CREATE": "made", "UPDATE": "changed", "DELETE": "deleted"}[operation]
        message = f"{noun}-{done}: this {noun} is not {done} like this{_say_who(ways)}; {machine.fix}"
        yield _render_validation(operation, ways, message)
        return
    for one in machine.fields:
        touching = {name: each for name, each in ways.items() if one in each.new or one in each.drops}
        says = f"{one.shown} does not change like this{_say_who(touching)}; {one.fix}"
        unchanged = f"!('{one.name}' in variables.changed)"
        yield _render_validation(operation, touching, f"{noun}-{one.name}: {says}", unchanged)


def _say_who(ways: Mapping[str, Transition]) -> str:
    verbs = sorted({verb for transition in ways.values() for verb in transition.by})
    return f", and only by those who may {' or '.join(verbs)}" if verbs else ""


def _render_validation(operation: Operation, ways: Iterable[str], message: str, *unless: str) -> JsonObject:
    passes = [f"request.operation != '{operation}'", *unless, *(f"variables.{name}" for name in ways)]
    return {"expression": join_or(passes), "message": message, "reason": "Forbidden"}


def _render_pair(machine: str, namespace: str, spec: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Render a policy and its binding.

    The name contains a hash of the policy, so each version is a new object. A preview of an update in place
    would mix the variables of both versions, and the API server rejects that.
    """
    name = f"credfleet-{machine}.{namespace}"
    version = f"{name}.{hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:8]}"
    policy = {"apiVersion": API_VERSION, "kind": POLICY, "metadata": {"name": version}, "spec": spec}
    binding = {
        "apiVersion": API_VERSION,
        "kind": BINDING,
        "metadata": {"name": name},
        "spec": {
            "policyName": version,
            "validationActions": ["Deny"],
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            },
        },
    }
    return policy, binding


def _render_transition(transition: Transition, machine: StateMachine) -> str:
    """Return CEL for whether a write is this transition, with its description as a comment."""
    touched = [each.name for each in machine.fields if each in transition.new or each in transition.drops]
    freezes = len(touched) < len(machine.fields) and transition.on != "DELETE"
    who = " || ".join(f"variables.may{verb.capitalize()}" for verb in transition.by)
    conditions = [
        *([f"({who})" if len(transition.by) > 1 else who] if who else []),
        *([f"variables.changed.all(field, field in {touched})"] if freezes else []),
        *(
            _holds(one, age, values, machine)
            for age, those in (("old", transition.old), ("new", transition.new))
            for one, values in those.items()
            if values != ANYTHING
        ),
        *(f"(!('{one.name}' in variables.changed) || {_is_empty(one, machine)})" for one in transition.drops),
        *(f"variables.{condition.name}" for condition in transition.when),
    ]
    return f"// {transition.does}\n{join_and(conditions) or 'true'}"


def _ask_authorizer(verb: Verb) -> str:
    tenant = f".name(variables.newLabels[?'{TENANT_NAME}'].orValue(''))" if verb is Verb.BRING else ""
    return (
        f"authorizer.group('{VIRTUAL_GROUP}').resource('{VIRTUAL_RESOURCE}')"
        f".namespace(request.namespace){tenant}.check('{verb}').allowed()"
    )


def _holds(one: Field, age: str, values: AllowedValues, machine: StateMachine) -> str:
    """Return CEL for whether a field has an allowed value; one without a key can only be absent."""
    if one.key is not None:
        return values.cel(one.cel(age))
    if values != ABSENT:
        raise ValueError(f"{one.name} has no text: it may hold anything or be absent")
    return _is_empty(one, machine)


def _is_empty(one: Field, machine: StateMachine) -> str:
    """Return CEL for whether the rest of a part, without its own fields, is empty after the write."""
    if one.part.empty == "false":
        return f"!variables.new{one.part.name}"
    return f"variables.new{'Other' if machine.keys(one.part) else ''}{one.part.name}.size() == 0"


def _differs(one: Field, machine: StateMachine) -> str:
    """Return a CEL map entry: the name of a field, and whether it changed."""
    if one.key is not None:
        return f"'{one.name}': {one.cel('old')} != {one.cel('new')}"
    old, new = (f"variables.{age}{one.part.name}" for age in ("old", "new"))
    if not machine.keys(one.part):
        return f"'{one.name}': {old} != {new}"
    others = f"variables.oldOther{one.part.name}", f"variables.newOther{one.part.name}"
    stay = f"{others[0]}.all(key, {old}[?key] == {new}[?key])"
    return f"'{one.name}': !({stay} && {others[1]}.all(key, key in {old}))"
