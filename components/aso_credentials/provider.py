"""The pin of a credential to its subscription: a change is refused already in a preview.

ASO refuses every resource that was made in another subscription than its credential names, deletion included,
and never tries again (ASO facts 3.4). Only a dynamic resource's check sees the former subscription (decision
13). The path of this module and the names of its classes are written into the state of stacks; they never
move. Import-pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pulumi import Input, ResourceOptions
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)

from components.dynamic import Properties, compared, is_unknown, kept

_INPUTS: Final = ("secret", "subscriptionId", "allowChange", "place")


class SubscriptionPinProvider(ResourceProvider):
    """Compares the subscription of before with that of now, and writes nothing."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse another subscription for a Secret that is there, unless it is allowed."""
        inputs = {**kept(news, _INPUTS), "allowChange": bool(news.get("allowChange"))}
        return CheckResult(inputs, [*_failures(_olds, inputs)])

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; another Secret is another pin."""
        return compared(_olds, _news, _INPUTS, identity=("secret",))

    def create(self, props: Properties) -> CreateResult:
        """Remember the subscription."""
        return CreateResult(str(props["secret"]), kept(props, _INPUTS))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what was remembered: nothing of it is in the cluster."""
        return ReadResult(id_, kept(props, _INPUTS), kept(props, _INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Remember the subscription of now; `check` let it through."""
        return UpdateResult(kept(_news, _INPUTS))

    def delete(self, _id: str, _props: Properties) -> None:
        """Nothing to delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPinArgs:
    """A Secret, namespace/name, and the subscription it opens.

    allow_change: let this update change it. place: of the credential in the configuration, for messages.
    """

    secret: Input[str]
    subscription_id: str
    allow_change: bool
    place: str


class SubscriptionPin(Resource, module="credfleet", name="SubscriptionPin"):
    """The subscription of a credential. What writes its Secret depends on it."""

    def __init__(self, name: str, args: SubscriptionPinArgs, opts: ResourceOptions | None = None) -> None:
        props: dict[str, Input[object]] = {
            "secret": args.secret,
            "subscriptionId": args.subscription_id,
            "allowChange": args.allow_change,
            "place": args.place,
        }
        super().__init__(SubscriptionPinProvider(), name, props, opts)


def _failures(olds: Properties, news: Properties) -> Iterator[CheckFailure]:
    before, now = olds.get("subscriptionId"), news["subscriptionId"]
    if not before or is_unknown(news) or news["allowChange"] or olds.get("secret") != news["secret"]:
        return
    if str(before).lower() != str(now).lower():
        yield CheckFailure(
            "subscriptionId",
            f"{news['place']}: Secret {news['secret']} opens subscription {before}; with {now} instead, ASO"
            " could neither change nor delete any more what it made in the former one\n"
            "→ keep the subscription, or remove its resources first and set allowSubscriptionChange: true",
        )
