"""The only module that creates explicit providers, each imported and created only if a stack uses it.

Explicit providers ignore a stack's keys except through this module: `gcp:` and `azure-native:` keys are
passed on, `kubernetes:` keys are rejected by the settings.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env, is_config_secret

from components.documents import read_json
from components.dynamic import camel_case
from components.kubernetes_plugin import refuse_older_plugin
from components.open_ports import VARIABLES, leaves_port_open
from components.stack_config.models import Cluster

if TYPE_CHECKING:
    import pulumi_azure_native
    import pulumi_gcp
    from pulumi_kubernetes import Provider


def gcp_provider(opts: pulumi.ResourceOptions) -> pulumi_gcp.Provider:
    """Create the provider of Google Cloud from the stack's `gcp:` keys; an unknown key fails the program."""
    from pulumi_gcp import Provider, ProviderArgs

    given = _configured("gcp", ProviderArgs)
    return Provider("gcp", ProviderArgs(**given), _without_environment(given, opts))


def azure_provider(
    opts: pulumi.ResourceOptions, subscription: str | None = None
) -> pulumi_azure_native.Provider:
    """Create a provider of Azure from the stack's `azure-native:` keys; an unknown key fails the program.

    `subscription`: if it differs from the keys; the provider is named after it.
    """
    from pulumi_azure_native import Provider, ProviderArgs

    given = _configured("azure-native", ProviderArgs)
    if subscription is None:
        return Provider("azure-native", ProviderArgs(**given), opts)
    given["subscription_id"] = subscription
    return Provider(f"azure-native-{subscription}", ProviderArgs(**given), opts)


def _configured(package: str, arguments: Callable[..., Any]) -> dict[str, Any]:
    """Return the keys of a package as arguments of its provider, secrets marked."""
    known = {camel_case(name): name for name in inspect.signature(arguments).parameters}
    given: dict[str, Any] = {}
    for key, text in {**get_config_env(), **CONFIG.get()}.items():
        namespace, _, name = key.partition(":")
        if namespace != package:
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            fix = f"did you mean {near[0]}?" if near else "remove it, or see the provider's configuration"
            raise pulumi.RunError(
                f"{key}: the provider has no such option, so it would be ignored without a word\n→ {fix}"
            )
        if key in VARIABLES and leaves_port_open(text):
            continue  # the provider reads the variable itself: ports of one machine do not belong in states
        value = read_json(text) if re.match(r"[\[{]|true$|false$", text) else text
        given[known[name]] = pulumi.Output.secret(value) if is_config_secret(key) else value
    return given


def kubernetes_provider(
    cluster: Cluster | None = None, opts: pulumi.ResourceOptions | None = None
) -> Provider:
    """Return the Kubernetes provider for the configured context, and for the cluster's uid if it is set.

    `cluster`: by default that of `credfleet:cluster`, in which claims are made. A changed Secret or ConfigMap
    is updated in place: replacing it would remove the claim, or the pool's own settings. Conflicts are never
    forced and existing objects never taken over. The cluster identifier is constant; otherwise an API server
    at a new address would count as another cluster, and every Secret would be replaced. The uid detects
    another cluster. A provider without these options is rejected.
    """
    refuse_older_plugin()
    if cluster is None:
        cluster = Cluster.model_validate(read_json(pulumi.Config("credfleet").get("cluster") or "{}"))
    opts = opts or pulumi.ResourceOptions()
    if cluster.uid is None:
        return _provider("kubernetes", cluster, cluster.context, opts)
    return _provider("kubernetes", cluster, _verified_context(cluster, cluster.uid, opts), opts)


def _provider(
    name: str, cluster: Cluster, context: pulumi.Input[str | None], opts: pulumi.ResourceOptions
) -> Provider:
    from pulumi_kubernetes import Provider, ProviderArgs

    given: dict[str, Any] = {
        "cluster_identifier": "credfleet",
        "context": context,
        "kubeconfig": cluster.kubeconfig,
        "enable_config_map_mutable": True,
        "enable_patch_force": False,
        "enable_secret_mutable": True,
        "enable_server_side_apply": True,
        "upsert_existing_objects": False,
    }
    return Provider(name, ProviderArgs(**given), _without_environment(given, opts))


def _without_environment(given: Mapping[str, Any], opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """Remove from a provider's inputs what its SDK reads from this machine's environment, such as KUBECONFIG.

    The provider reads the same variables at run time; the state would keep another machine's values.
    """

    def as_given(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        stated = {name: value for name, value in args.props.items() if given.get(name) is not None}
        return pulumi.ResourceTransformationResult(stated, args.opts)

    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(transformations=[as_given]))


def _verified_context(cluster: Cluster, uid: str, opts: pulumi.ResourceOptions) -> pulumi.Output[str | None]:
    """Return the context after the cluster's uid was verified, before anything can be written."""
    from pulumi_kubernetes.core.v1 import Namespace

    def with_kind(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
        said = {**args.props, "api_version": "v1", "kind": "Namespace"}
        return pulumi.ResourceTransformationResult(said, args.opts)

    lookout = _provider("kubernetes-lookout", cluster, cluster.context, opts)
    looking = pulumi.ResourceOptions(provider=lookout, transformations=[with_kind])  # as a refresh reads it
    looking = pulumi.ResourceOptions.merge(opts, looking)
    found = Namespace.get("kube-system", "kube-system", opts=looking).metadata.uid

    def verify(found: str) -> str | None:
        if found != uid:
            raise pulumi.RunError(
                f"credfleet:cluster.uid: context {cluster.context} leads to the cluster with uid {found};"
                " nothing was written\n→ point KUBECONFIG to the cluster this stack means, or correct the uid"
            )
        return cluster.context

    return found.apply(verify)
