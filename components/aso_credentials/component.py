"""Secrets that Azure Service Operator reads: its settings, and credentials of namespaces and resources.

Owns the Secrets and the pins of their subscriptions. A Secret keeps its name and URN whatever its method is,
so a rotation or another method updates it in place: if a Secret were deleted, even briefly, its resources
would fall back to another credential or to none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.aso_credentials.model import Data
from components.aso_credentials.provider import (
    AsoProjection,
    AsoProjectionArgs,
    SubscriptionPin,
    SubscriptionPinArgs,
)
from components.dynamic import SECRET
from components.projection.model import encode
from components.waiting import declare_unless

_OPAQUE: Final = "Opaque"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoSecretArgs:
    """Arguments of the credential components: namespace, name, and content of a Secret.

    `data`: secret. `subscription`: the one in the data, in plaintext; None for settings without a credential.
    `place`: configuration path, for messages. `after`: Azure resources required before ASO uses it.
    `composed`: replaces `data` if its secret part is in the cluster. `waits`: why `composed` is skipped.
    """

    namespace: pulumi.Input[str]
    secret_name: str
    data: pulumi.Input[Data] = field(metadata=SECRET)
    subscription: str | None
    place: str
    allow_subscription_change: bool = False
    after: Sequence[pulumi.Resource] = ()
    composed: AsoProjectionArgs | None = None
    waits: pulumi.Input[str] = ""


class AsoSecret(pulumi.ComponentResource):
    """Secret with its subscription pin and the Azure resources that it requires.

    Outputs: reference, namespace/name. `served`: what must exist as long as a resource uses the credential.
    """

    TYPE: ClassVar[str]
    reference: pulumi.Output[str]
    served: pulumi.Input[Sequence[pulumi.Resource]]

    def __init__(self, name: str, args: AsoSecretArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {"namespace": args.namespace, "secretName": args.secret_name}
        super().__init__(self.TYPE, name, props, opts)
        self.reference = pulumi.Output.from_input(args.namespace).apply(
            lambda known: f"{known}/{args.secret_name}"
        )
        first = [*args.after]
        if args.subscription is not None:
            pin = SubscriptionPinArgs(
                secret=self.reference,
                subscription_id=args.subscription,
                allow_change=args.allow_subscription_change,
                place=args.place,
            )
            child = pulumi.ResourceOptions(parent=self)
            first.append(SubscriptionPin(f"{name}-subscription", pin, child))
        opts, composed = pulumi.ResourceOptions(parent=self, depends_on=first), args.composed
        if composed is None:
            secret = Secret(
                f"{name}-secret",
                metadata=ObjectMetaArgs(name=args.secret_name, namespace=args.namespace),
                type=_OPAQUE,
                data=pulumi.Output.secret(args.data).apply(encode),
                opts=opts,
            )
            self.served = [*first, secret]
        else:
            made = declare_unless(args.waits, lambda: AsoProjection(f"{name}-projection", composed, opts))
            self.served = made.apply(lambda one: [*first, *([one] if one else [])])
        self.register_outputs({"reference": self.reference})


class AsoGlobalSettings(AsoSecret):
    """Secret `aso-controller-settings`, which the operator reads at its start."""

    TYPE: ClassVar = "credfleet:index:AsoGlobalSettings"


class AsoNamespaceCredential(AsoSecret):
    """Secret `aso-credential` of a namespace, for all its resources that name no other."""

    TYPE: ClassVar = "credfleet:index:AsoNamespaceCredential"


class AsoResourceCredential(AsoSecret):
    """Credential Secret for the resources of a namespace that name it in an annotation."""

    TYPE: ClassVar = "credfleet:index:AsoResourceCredential"
