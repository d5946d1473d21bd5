"""The Secrets that Azure Service Operator reads: its own settings, credentials of namespaces and resources.

Owns the Secrets and the pins of their subscriptions. A Secret keeps its name and its place in the state
whatever its method becomes, so a rotation or another method changes it where it is: a Secret that is deleted,
if only for a moment, lets its resources fall to another credential or to none (cases L6 and L7).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.aso_credentials import keys
from components.aso_credentials.controller import ControllerSettings
from components.aso_credentials.model import Credential
from components.aso_credentials.provider import SubscriptionPin, SubscriptionPinArgs

_OPAQUE: Final = "Opaque"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedCredential:
    """The content of a Secret.

    content: secret. subscription: the same as in the content, in plain; None for settings without a
    credential. place: in the configuration, for messages. after: what Azure must know before ASO uses it.
    """

    content: pulumi.Input[Credential | ControllerSettings]
    subscription: str | None
    place: str
    allow_subscription_change: bool = False
    after: Sequence[pulumi.Resource] = ()


class _AsoSecret(pulumi.ComponentResource):
    """A Secret behind its pin and all that Azure must know first."""

    TYPE: ClassVar[str]
    reference: pulumi.Output[str]
    served: Sequence[pulumi.Resource]

    def __init__(
        self,
        name: str,
        namespace: pulumi.Input[str],
        secret_name: str,
        credential: PinnedCredential,
        opts: pulumi.ResourceOptions | None,
    ) -> None:
        super().__init__(self.TYPE, name, {"namespace": namespace, "secretName": secret_name}, opts)
        self.reference = pulumi.Output.from_input(namespace).apply(lambda known: f"{known}/{secret_name}")
        first = [*credential.after, *self._pin(name, credential)]
        secret = Secret(
            f"{name}-secret",
            metadata=ObjectMetaArgs(name=secret_name, namespace=namespace),
            type=_OPAQUE,
            data=pulumi.Output.secret(credential.content).apply(_encoded),
            opts=pulumi.ResourceOptions(parent=self, depends_on=first),
        )
        self.served = [*first, secret]
        self.register_outputs({"reference": self.reference})

    def _pin(self, name: str, credential: PinnedCredential) -> Sequence[pulumi.Resource]:
        if credential.subscription is None:
            return ()
        args = SubscriptionPinArgs(
            secret=self.reference,
            subscription_id=credential.subscription,
            allow_change=credential.allow_subscription_change,
            place=credential.place,
        )
        return [SubscriptionPin(f"{name}-subscription", args, pulumi.ResourceOptions(parent=self))]


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoGlobalSettingsArgs:
    """The operator's namespace, which is there already, and its settings."""

    namespace: pulumi.Input[str]
    settings: PinnedCredential


class AsoGlobalSettings(_AsoSecret):
    """`aso-controller-settings`, which the operator reads when it starts.

    Outputs: reference, namespace/name. served: what a resource that uses its credential has to outlive.
    """

    TYPE: ClassVar = "credfleet:index:AsoGlobalSettings"

    def __init__(
        self, name: str, args: AsoGlobalSettingsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, args.namespace, keys.GLOBAL_SETTINGS, args.settings, opts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoNamespaceCredentialArgs:
    """A namespace, and the credential of every resource in it that names no other."""

    namespace: pulumi.Input[str]
    credential: PinnedCredential


class AsoNamespaceCredential(_AsoSecret):
    """`aso-credential` of a namespace.

    Outputs: reference, namespace/name. served: what a resource that uses it has to outlive.
    """

    TYPE: ClassVar = "credfleet:index:AsoNamespaceCredential"

    def __init__(
        self, name: str, args: AsoNamespaceCredentialArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, args.namespace, keys.NAMESPACE_SECRET, args.credential, opts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoResourceCredentialArgs:
    """A credential for the resources of a namespace that name it, by the name of its Secret."""

    namespace: pulumi.Input[str]
    secret_name: str
    credential: PinnedCredential


class AsoResourceCredential(_AsoSecret):
    """A Secret that resources name in an annotation. Raises ValueError for a name that ASO reads by itself.

    Outputs: reference, namespace/name. served: what a resource that uses it has to outlive.
    """

    TYPE: ClassVar = "credfleet:index:AsoResourceCredential"

    def __init__(
        self, name: str, args: AsoResourceCredentialArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        if args.secret_name in keys.RESERVED:
            raise ValueError(f"{args.secret_name} is a name that ASO reads by itself")
        super().__init__(name, args.namespace, args.secret_name, args.credential, opts)


def _encoded(content: Credential | ControllerSettings) -> Mapping[str, str]:
    return {key: base64.b64encode(value).decode() for key, value in content.emit().items()}
