"""Policies for secret stores that serve several namespaces: those of External Secrets Operator, and direct.

The direct back end has no store object: each read and push declares its store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pulumi_policy import EnforcementLevel
from rule import UNKNOWN, Resource, resource_rule, stack_rule

from components.secret_stores.eso_providers import facts_of

_DIRECT: Final = (
    "pulumi-python:dynamic/credfleet:SecretRead",
    "pulumi-python:dynamic/credfleet:SecretPush",
)
_PARTS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_NAMES: Final = ("q", "7", "zj-0kx-9")
"""Namespace names with nothing in common; a pattern that matches all of them matches every name."""

_OF_ESO: Final = "kubernetes:external-secrets.io/*:"
_STORES: Final = (f"{_OF_ESO}ClusterSecretStore", *_DIRECT)
_OWN_STORES: Final = (f"{_OF_ESO}SecretStore", f"{_OF_ESO}ClusterSecretStore")
_UNFIT: Final = {
    f"{_OF_ESO}ExternalSecret": ("spec", "WriteOnly"),
    f"{_OF_ESO}ClusterExternalSecret": ("spec.externalSecretSpec", "WriteOnly"),
    f"{_OF_ESO}PushSecret": ("spec", "ReadOnly"),
    f"{_OF_ESO}ClusterPushSecret": ("spec.pushSecretSpec", "ReadOnly"),
}
"""Type that uses stores → path of its spec, and the capability of stores that it cannot use."""


@resource_rule(
    types=_STORES,
    level=EnforcementLevel.ADVISORY,
    description="A cluster store must name the namespaces that can use it.",
    fix="list them under spec.conditions",
)
def stores_cluster_store_conditions(store: Resource) -> Iterator[str]:
    """Report a store that every namespace can use, including future ones."""
    path = _spec(store)
    if not path or not store.is_known(*path, "conditions"):
        return
    where = ".".join(path)
    if not store.mapping(*path).get("conditions"):
        yield f"{where}.conditions is empty, so every namespace may use the store"
    for index, condition in store.objects(*path, "conditions"):
        if _selects_all(condition):
            yield f"{where}.conditions[{index}].namespaceSelector is empty, so it selects every namespace"
        for place, regex in enumerate(condition.items("namespaceRegexes")):
            if isinstance(regex, str) and _matches_all(regex):
                yield f"{where}.conditions[{index}].namespaceRegexes[{place}] selects every namespace"


@resource_rule(
    types=_STORES,
    level=EnforcementLevel.ADVISORY,
    description="A regular expression for namespaces must be anchored at both ends.",
    fix="write ^ in front and $ behind",
)
def stores_regex_anchored(store: Resource) -> Iterator[str]:
    """Report expressions that also match inside a name: `prod` matches `not-prod-at-all`."""
    path = _spec(store)
    for index, condition in store.objects(*path, "conditions") if path else ():
        for place, regex in enumerate(condition.items("namespaceRegexes")):
            if isinstance(regex, str) and not _is_anchored(regex):
                yield f"{'.'.join(path)}.conditions[{index}].namespaceRegexes[{place}] is not anchored"


@stack_rule(
    types=[*_OWN_STORES, *_UNFIT],
    description="A store must be read and written only as its kind allows.",
    fix="name a store of another kind",
)
def stores_used_as_they_can(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Reject reads from write-only stores of External Secrets Operator, and pushes to read-only ones."""
    kinds = {
        (one.type.rpartition(":")[2], *(one.text("metadata", each) for each in ("namespace", "name"))): key
        for one in resources
        if one.is_a(*_OWN_STORES)
        for key in one.mapping("spec", "provider")
    }
    for one in resources:
        for where, unfit in (said for type_, said in _UNFIT.items() if one.is_a(type_)):
            for path, ref in _refs(one, where.split(".")):
                kind, name = ref.text("kind") or "SecretStore", ref.text("name")
                home = one.text("metadata", "namespace") if kind == "SecretStore" else None
                key = kinds.get((kind, home, name), "") if name and (home or kind != "SecretStore") else ""
                if facts_of(key).get("can") == unfit:
                    yield one.urn, f"{path} names a {kind} of kind {key}, which is {unfit}"


def _refs(one: Resource, path: Sequence[str]) -> Iterator[tuple[str, Resource]]:
    """Yield path and content of each reference to a store in a read or push."""
    where = ".".join(path)
    yield f"{where}.secretStoreRef", replace(one, inputs=one.mapping(*path, "secretStoreRef"))
    for index, ref in one.objects(*path, "secretStoreRefs"):
        yield f"{where}.secretStoreRefs[{index}]", ref
    for part in ("data", "dataFrom"):
        for index, each in one.objects(*path, part):
            ref = replace(each, inputs=each.mapping("sourceRef", "storeRef"))
            yield f"{where}.{part}[{index}].sourceRef.storeRef", ref


def _selects_all(condition: Resource) -> bool:
    """Return whether a condition is known to have an empty selector."""
    selector = condition.inputs.get("namespaceSelector")
    asked = [condition.mapping("namespaceSelector").get(key) for key in ("matchLabels", "matchExpressions")]
    return isinstance(selector, dict) and all(one is not UNKNOWN and not one for one in asked)


def _matches_all(regex: str) -> bool:
    try:
        return all(re.search(regex, name) for name in _NAMES)
    except (re.error, OverflowError, RecursionError):
        return False


def _is_anchored(regex: str) -> bool:
    """Return whether each alternative is anchored at both ends."""
    alternatives: list[list[str]] = [[]]
    depth = 0
    for part in _PARTS.findall(regex):
        depth += (part == "(") - (part == ")")
        if part == "|" and depth == 0:
            alternatives.append([])
        else:
            alternatives[-1].append(part)
    return all(parts[:1] == ["^"] and parts[-1:] == ["$"] for parts in alternatives)


def _spec(store: Resource) -> tuple[str, ...]:
    """Return the path of the store's spec; empty for a store of one namespace, which no other uses."""
    if not store.is_a(*_DIRECT):
        return ("spec",)
    return ("store", "spec") if store.mapping("store").get("namespace") is None else ()
