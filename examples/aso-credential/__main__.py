"""The credential of Azure Service Operator's resources in a namespace, from an account of a pool."""

import pulumi
import pulumi_kubernetes as k8s

from credfleet import AccountClaim, AccountClaimArgs, SecretProjection, SecretProjectionArgs, current_holder

HOLDER = current_holder("globex")

namespace = k8s.core.v1.Namespace("globex", metadata={"name": "globex"})
account = AccountClaim(
    "globex",
    AccountClaimArgs(namespace="accounts", tenant="globex", type="azure", holder=HOLDER, required=True),
)
credential = SecretProjection(  # inside the cluster: no value of it passes this program or its state
    "globex-credential",
    SecretProjectionArgs(
        source_namespace=account.namespace,
        source_name=account.secret_name,
        target_namespace=namespace.metadata.name,
        target_name="aso-credential",
        owner=HOLDER,
        aso_credential="servicePrincipalSecret",
    ),
)
pulumi.export("credential", credential.reference)
