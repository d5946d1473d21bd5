"""Pull secrets of a stack's clusters: in Secret Manager, and in the clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pulumi

from components.holding import current_holder
from components.providers import gcp_provider
from components.pull_secret.component import PullSecret, PullSecretArgs
from components.pull_secret.model import Cluster
from components.pull_secret.preconditions import decide
from components.pull_secret.provider import PullSecretStartArgs
from components.pull_secret.resources import PullSecretStart
from components.pull_secret.settings import ClusterEntry, PullSecretsSection
from components.stack_config.stack import Settings
from components.waiting import once_made, pending
from components.wiring.tenants import Declared


def declare_pull_secrets(
    settings: Settings, section: PullSecretsSection, declared: Declared, opts: pulumi.ResourceOptions
) -> tuple[Mapping[str, pulumi.Output[Any]], pulumi.Output[Mapping[str, str]]]:
    """Declare the pull secret of every cluster that is ready for it.

    Returns cluster → {generation, conditions, skipped} and, unless skipped, {secretId, project, version,
    namespace, secretName, verifiedAt}; and what is skipped → why.
    """
    known = {*settings.cluster.existing_namespaces, *declared.namespaces}
    observed = section.observed(Path.cwd())
    parent = pulumi.ResourceOptions(parent=opts.parent)
    google = cache(lambda: gcp_provider(parent))  # required only by a stack with a ready cluster
    made: dict[str, PullSecret] = {}
    for id_, given in section.clusters.items():
        cluster, of_cluster = section.cluster(id_, observed), opts
        project = _project(given, declared)
        start, begun = declare_start(section, cluster, project, parent)
        if begun is not None:
            of_cluster = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=[google()]))
        namespace = section.place_of(id_)[0]
        args = PullSecretArgs(
            section=section,
            cluster=cluster,
            credentials=settings.credentials,
            owner=current_holder(section.KEY, id_),
            project=project,
            waits=declared.waits(account) if (account := given.project and given.project.account) else None,
            namespace=declared.namespace(namespace),
            declares_namespace=section.namespaces.is_of_one_cluster and namespace not in known,
            start=start,
            begun=begun,
        )
        made[id_] = PullSecret(id_, args, of_cluster)
    waits = {f"pull secret {id_}": one.skipped.apply("; ".join) for id_, one in made.items()}
    return {id_: one.status for id_, one in made.items()}, pending(waits)


def declare_start(
    section: PullSecretsSection,
    cluster: Cluster,
    project: pulumi.Input[str] | None,
    opts: pulumi.ResourceOptions,
) -> tuple[PullSecretStart | None, pulumi.Output[bool] | None]:
    """Declare the start record of a cluster's pull secret; return it, and whether it was ready before.

    Returns None for both if nothing is declared for the cluster.
    """
    decision, (namespace, secret_name) = decide(cluster), section.place_of(cluster.id)
    if cluster.deleted_time is not None or not (decision.may_have_one or section.reports_deletions):
        return None, None
    ready = PullSecretStartArgs(
        cluster=cluster.id,
        ready=decision.proceeds,
        project=project,
        secret_id=cluster.secret_id,
        namespace=namespace,
        secret_name=secret_name,
    )
    start = PullSecretStart(f"{cluster.id}-start", ready, opts)
    return start, start.begun if decision.may_have_one else None


def _project(given: ClusterEntry, declared: Declared) -> pulumi.Input[str] | None:
    if given.project is None or given.project.account is None:
        return given.project and given.project.name
    account = given.project.account

    def named(known: Sequence[Any]) -> str | None:
        account_id, secret, waits = known
        if waits:
            return ""
        if account_id is None and secret is not None:
            raise pulumi.RunError(
                f"account {account}: it does not say its id, so the project is unknown\n"
                "→ give accountId to the member that was claimed, or name the project itself"
            )
        return account_id

    claimed = declared.accounts[account]
    known = pulumi.Output.all(claimed["accountId"], claimed["secretName"], declared.waits(account))
    return once_made(known.apply(named))
