"""A Namespace, and a Secret in it."""

import pulumi
from pulumi_kubernetes.core.v1 import Namespace, Secret

name = pulumi.Config().require("name")
namespace = Namespace("greetings", metadata={"name": "greetings"})
secret = Secret(
    "greeting",
    metadata={"name": "greeting", "namespace": namespace.metadata["name"]},
    string_data={"text": pulumi.Output.secret(f"hello, {name}")},
)
pulumi.export("secret", secret.metadata["name"])
