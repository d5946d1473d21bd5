"""Stores of the External Secrets Operator that serve more than one namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pulumi_policy import EnforcementLevel
from rule import UNKNOWN, Resource, resource_rule

_CLUSTER_STORES: Final = ("kubernetes:external-secrets.io/*:ClusterSecretStore",)


@resource_rule(
    types=_CLUSTER_STORES,
    level=EnforcementLevel.ADVISORY,
    description="A cluster store says which namespaces may use it.",
    mend="list them under spec.conditions",
)
def stores_cluster_store_conditions(store: Resource) -> Iterator[str]:
    """Point out a store that every namespace may use, those made tomorrow too."""
    conditions = store.mapping("spec").get("conditions")
    if store.inputs.get("spec") is UNKNOWN or conditions is UNKNOWN:
        return
    if not conditions:
        yield "spec.conditions is empty, so every namespace may use the store"
    for index, condition in store.objects("spec", "conditions"):
        if condition.inputs.get("namespaceSelector") == {}:
            yield f"spec.conditions[{index}].namespaceSelector is empty, so it selects every namespace"


@resource_rule(
    types=_CLUSTER_STORES,
    level=EnforcementLevel.ADVISORY,
    description="A regular expression for namespaces says where a name begins and ends.",
    mend="write ^ in front and $ behind",
)
def stores_regex_anchored(store: Resource) -> Iterator[str]:
    """Point out expressions that also match inside a name: `prod` serves `not-prod-at-all`."""
    for index, condition in store.objects("spec", "conditions"):
        for place, regex in enumerate(condition.items("namespaceRegexes")):
            if isinstance(regex, str) and not (regex.startswith("^") and regex.endswith("$")):
                yield f"spec.conditions[{index}].namespaceRegexes[{place}] is not anchored"
