"""ServiceAccounts of strict mode, with which the credentials of their namespace are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pulumi
from pulumi_kubernetes.core.v1 import ServiceAccount
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import PolicyRuleArgs, Role, RoleBinding, RoleRefArgs, SubjectArgs

from components.aso_credentials import keys

_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoServiceAccountArgs:
    """ServiceAccount for credentials of its namespace, and the operator's own."""

    namespace: pulumi.Input[str]
    account: str
    operator_namespace: str
    operator_account: str = keys.OPERATOR_ACCOUNT


class AsoServiceAccount(pulumi.ComponentResource):
    """ServiceAccount of strict mode, and the operator's right to its tokens. `trusted`: all resources.

    Outputs: account, its name. The operator's chart grants that right only if Helm knows of strict mode, and
    only for `aso-workload`.
    """

    TYPE: ClassVar = "credfleet:index:AsoServiceAccount"
    account: pulumi.Output[str]
    trusted: Sequence[pulumi.Resource]

    def __init__(
        self, name: str, args: AsoServiceAccountArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(self.TYPE, name, {"namespace": args.namespace, "account": args.account}, opts)
        account = ServiceAccount(
            f"{name}-account",
            metadata=ObjectMetaArgs(name=args.account, namespace=args.namespace),
            automount_service_account_token=False,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.account = account.metadata.name
        self.trusted = [account, *self._let_the_operator_ask(name, args)]
        self.register_outputs({"account": self.account})

    def _let_the_operator_ask(self, name: str, args: AsoServiceAccountArgs) -> Sequence[pulumi.Resource]:
        child = pulumi.ResourceOptions(parent=self)
        metadata = ObjectMetaArgs(name=f"{args.account}-tokens", namespace=args.namespace)
        role = Role(
            f"{name}-tokens-role",
            metadata=metadata,
            rules=[
                PolicyRuleArgs(
                    api_groups=[""],
                    resources=["serviceaccounts/token"],
                    verbs=["create"],
                    resource_names=[args.account],
                )
            ],
            opts=child,
        )
        binding = RoleBinding(
            f"{name}-tokens-binding",
            metadata=metadata,
            role_ref=RoleRefArgs(api_group=_RBAC, kind="Role", name=role.metadata.name),
            subjects=[
                SubjectArgs(
                    kind="ServiceAccount", name=args.operator_account, namespace=args.operator_namespace
                )
            ],
            opts=child,
        )
        return [role, binding]
