"""An account of a pool that another stack declares, and a resource of another provider in it."""

import pulumi
import pulumi_gcp as gcp

from credfleet import AccountClaim, AccountClaimArgs, current_holder

account = AccountClaim(
    "acme",
    AccountClaimArgs(
        namespace="accounts", tenant="acme", type="gcp", holder=current_holder("acme"), required=True
    ),
)
entry = gcp.secretmanager.Secret(
    "api-key",
    secret_id="api-key",
    project=account.account_id,  # the project of the account that was claimed
    replication={"auto": {}},
)
pulumi.export("account", account.secret_name)
pulumi.export("entry", entry.name)
