"""Checks across sections: the cluster, and the owners of namespaces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from components.cluster_target import in_pod
from components.config.section import Problems, Section
from components.errors import Problem
from components.naming import config_path
from components.projection.settings import CredentialSource
from components.stack_config.models import Cluster, Tenant


def review_cluster(cluster: Cluster, *, writes: bool) -> Problems:
    """Require a context if anything is written, except in a pod, which uses its own cluster."""
    if cluster.context is None and writes and not in_pod():
        yield Problem(
            config_path("cluster", "context"),
            "it is missing, so who runs this would decide by accident which cluster is written to",
            "add the name of a kubeconfig context",
        )


def review_namespaces(tenants: Mapping[str, Tenant], taken: Mapping[str, str]) -> Problems:
    """Require a separate namespace for each tenant, declared by the stack. `taken`: namespace → owner."""
    owners = {**taken}
    for name, tenant in tenants.items():
        owner = owners.setdefault(tenant.namespace, f"tenant {name}")
        if owner != f"tenant {name}":
            yield Problem(
                config_path("tenants", name, "namespace"),
                f"{tenant.namespace} is the namespace of {owner}, and one could read the other's credentials",
                "give the tenant a namespace of its own",
            )


def review_names(tenants: Mapping[str, Tenant], sections: Iterable[Section]) -> Problems:
    """Reject names and former names that two entries of one map share."""
    yield from _review_names(("tenants",), {name: tenant.previously for name, tenant in tenants.items()})
    for name, tenant in tenants.items():
        slots = {slot: account.previously for slot, account in tenant.accounts.items()}
        yield from _review_names(("tenants", name, "accounts"), slots)
    for section in sections:
        for field, info in type(section).model_fields.items():
            entries: Any = getattr(section, field)
            if isinstance(entries, Mapping):
                named = cast("Mapping[str, Any]", entries).items()
                former = {name: getattr(entry, "previously", ()) for name, entry in named}
                yield from _review_names((section.KEY, info.alias or field), former)


def review_ranges(tenants: Mapping[str, Tenant], is_ours: Callable[[str], bool]) -> Problems:
    """Reject a former name in the range of another stack, whose state has the tenant's objects."""
    for name, tenant in tenants.items():
        for index, former in enumerate(tenant.previously):
            if is_ours(name) and not is_ours(former):
                yield Problem(
                    config_path("tenants", name, "previously", index),
                    f"tenant {former} was another stack's, whose next update would delete what it had",
                    "choose a name of that stack's range in stacks.yaml",
                )


def _review_names(place: Sequence[str], former: Mapping[str, Sequence[str]]) -> Problems:
    taken = {*former}
    for name, names in former.items():
        for index, each in enumerate(names):
            if each in taken:
                yield Problem(
                    config_path(place[0], *place[1:], name, "previously", index),
                    f"{each} is another's name, or former name, so it is not clear whose that was",
                    "name each former name once, and do not use it again",
                )
            taken.add(each)


def review_far_accounts(sources: Iterable[tuple[str, CredentialSource]]) -> Problems:
    """Reject reads of an account in place if the pool is in another cluster; `sources`: with places."""
    for place, source in sources:
        if source.account is not None:
            yield Problem(
                place,
                f"account {source.account} is in the cluster of the pool, and only its copy comes here",
                "give the account deliverTo, and name that copy here",
            )


def usable_namespaces(tenants: Mapping[str, Tenant], cluster: Cluster) -> Collection[str]:
    """Return the namespaces that components can write to: those of tenants, and existing ones."""
    return {tenant.namespace for tenant in tenants.values()} | {*cluster.existing_namespaces}
