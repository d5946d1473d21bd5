"""Declare `count` Secrets in one namespace."""

import pulumi
import pulumi_kubernetes as kubernetes

provider = kubernetes.Provider("cluster", enable_server_side_apply=True, enable_secret_mutable=True)
explicit = pulumi.ResourceOptions(provider=provider)
name = f"bench-{pulumi.get_stack()}"
namespace = kubernetes.core.v1.Namespace("home", metadata={"name": name}, opts=explicit)
for number in range(pulumi.Config().require_int("count")):
    kubernetes.core.v1.Secret(
        f"secret-{number}",
        metadata={"name": f"secret-{number}", "namespace": namespace.metadata.name},
        data={"key": pulumi.Output.secret("dmFsdWU=")},
        opts=explicit,
    )
