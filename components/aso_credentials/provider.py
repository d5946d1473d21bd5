"""The pin of a credential to its subscription: a change is refused already in a preview.

ASO refuses every resource that was made in another subscription than its credential names, deletion included,
and never tries again (docs/design/aso-facts.md). Only a dynamic resource's check sees the former
subscription. The path of this module and the names of its classes are written into the state of stacks; they
never move. Import-pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pulumi import Input
from pulumi.dynamic import CheckFailure

from components.dynamic import IDENTITY, DynamicResource, Properties, Shell, is_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPinArgs:
    """A Secret, namespace/name, and the subscription it opens.

    allow_change: let this update change it. place: of the credential in the configuration, for messages.
    """

    secret: Input[str] = field(metadata=IDENTITY)
    subscription_id: str
    allow_change: bool = False
    place: str


class SubscriptionPinProvider(Shell):
    """Compares the subscription of before with that of now, and writes nothing."""

    args = SubscriptionPinArgs
    named_by = ("secret",)

    def failures(self, inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
        """Refuse another subscription for a Secret that is there, unless it is allowed."""
        before, now, secret = olds.get("subscriptionId"), inputs["subscriptionId"], inputs["secret"]
        if not before or is_unknown(inputs) or inputs["allowChange"] or olds.get("secret") != secret:
            return
        if str(before).lower() != str(now).lower():
            yield CheckFailure(
                "subscriptionId",
                f"{inputs['place']}: Secret {secret} opens subscription {before}; with {now} instead, ASO"
                " could neither change nor delete any more what it made in the former one\n→ keep the"
                " subscription, or remove its resources first and set allowSubscriptionChange: true",
            )


class SubscriptionPin(DynamicResource[SubscriptionPinArgs], module="credfleet", name="SubscriptionPin"):
    """The subscription of a credential. What writes its Secret depends on it."""

    provider = SubscriptionPinProvider
