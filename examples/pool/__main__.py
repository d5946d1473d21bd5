"""A pool of accounts, for the claims of other stacks."""

import base64

import pulumi

from credfleet import AccountPool, AccountPoolArgs, DeclaredMember, PoolConfigMap, kubernetes_provider

keys = pulumi.Config().require_secret_object("keys")


def data(account: str) -> pulumi.Output[dict[str, str]]:
    """Return what the Secret of an account holds, as Kubernetes writes it."""
    return keys.apply(
        lambda known: {
            field: base64.b64encode(text.encode()).decode() for field, text in known[account].items()
        }
    )


accounts = {
    "gcp-1": DeclaredMember(type="gcp", account_id="acme-prod-1"),
    "azure-1": DeclaredMember(type="azure", account_id="00000000-0000-4000-8000-000000000001"),
}
pool = AccountPool(
    "pool",
    AccountPoolArgs(
        namespace="accounts",
        settings=PoolConfigMap(),
        members=accounts,
        data={name: data(name) for name in accounts},
        admission_policy=True,  # the API server itself keeps the rules of claims
    ),
    pulumi.ResourceOptions(providers=[kubernetes_provider()]),
)
pulumi.export("namespace", pool.namespace)
