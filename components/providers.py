"""The one place that makes providers, each imported and made only when a stack uses it.

Providers are explicit, so a stack's `kubernetes:` keys have no say in them (decision 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from components.settings.nouns import Cluster

if TYPE_CHECKING:
    from pulumi_kubernetes import Provider


def kubernetes_provider(cluster: Cluster, opts: pulumi.ResourceOptions) -> Provider:
    """Make the one Kubernetes provider, bound to the configured context and, if given, to the cluster's uid.

    A changed Secret or ConfigMap is updated where it is: replacing it would take the claim, or the pool's own
    settings, with it. Conflicts are never forced and existing objects never taken over (decision 8). The
    cluster's identifier never changes, or an API server behind a new address would count as another cluster,
    and every Secret would be replaced; another cluster is what the uid tells.
    """
    if cluster.uid is None:
        return _provider("kubernetes", cluster, cluster.context, opts)
    return _provider("kubernetes", cluster, _verified_context(cluster, cluster.uid, opts), opts)


def _provider(
    name: str, cluster: Cluster, context: pulumi.Input[str | None], opts: pulumi.ResourceOptions
) -> Provider:
    from pulumi_kubernetes import Provider

    return Provider(
        name,
        cluster_identifier="credfleet",
        context=context,
        kubeconfig=cluster.kubeconfig,
        enable_config_map_mutable=True,
        enable_patch_force=False,
        enable_secret_mutable=True,
        enable_server_side_apply=True,
        upsert_existing_objects=False,
        opts=opts,
    )


def _verified_context(cluster: Cluster, uid: str, opts: pulumi.ResourceOptions) -> pulumi.Output[str | None]:
    """Hand out the context once the cluster behind it has shown its uid, before anything can be written."""
    from pulumi_kubernetes.core.v1 import Namespace

    lookout = _provider("kubernetes-lookout", cluster, cluster.context, opts)
    looking = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(provider=lookout))
    found = Namespace.get("kube-system", "kube-system", opts=looking).metadata.uid

    def verify(found: str) -> str | None:
        if found != uid:
            raise pulumi.RunError(
                f"credfleet:cluster.uid: context {cluster.context} leads to the cluster with uid {found};"
                " nothing was written\n→ point KUBECONFIG to the cluster this stack means, or correct the uid"
            )
        return cluster.context

    return found.apply(verify)
