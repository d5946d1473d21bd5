"""Receipts of claims with a rotated key, each after all resources derived from the account."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi

from components.account_pool.account_key import AccountKey, AccountKeyArgs
from components.account_pool.claim_forecast import KeyInUse
from components.account_pool.provider import AccountClaim
from components.dynamic import INCARNATION, DynamicResource, FollowingProvider


@dataclass(frozen=True, slots=True)
class _Noted:
    """Resource that follows a source. `needs`: resources whose outputs are among its inputs."""

    resource: DynamicResource[Any]
    name: str
    given: Mapping[str, Any]
    needs: Set[pulumi.Resource] = frozenset()

    @property
    def described(self) -> Mapping[str, Any]:
        """What its provider requires to check it against its source."""
        provider = type(self.resource).provider  # for a read, `provider` is also an input
        return {
            "name": self.name,
            "provider": f"{provider.__module__}:{provider.__name__}",
            "props": {
                **{key: value for key, value in self.given.items() if key not in provider.outputs},
                INCARNATION: getattr(self.resource, INCARNATION, None),
            },
            "digest": getattr(self.resource, "digest", None),
        }


@dataclass(frozen=True, slots=True)
class Consumers:
    """Resources of a program that follow a source, recorded as they are declared."""

    noted: list[_Noted] = field(default_factory=list[_Noted])

    def noting(self) -> pulumi.ResourceOptions:
        """Return parent options that record such resources."""

        def note(args: pulumi.ResourceTransformationArgs) -> None:
            resource: Any = args.resource
            if isinstance(resource, DynamicResource) and issubclass(
                type(resource).provider, FollowingProvider
            ):
                given = {key: value for key, value in args.props.items() if not key.startswith("__")}
                self.noted.append(_Noted(resource, args.name, given))

        return pulumi.ResourceOptions(transformations=[note])

    async def settle(self, settled: pulumi.Output[Any]) -> Sequence[_Noted]:
        """Return them with their dependencies, once everything is declared."""
        await settled.future(with_unknowns=True)
        return [
            replace(each, needs=await pulumi.Output.from_input(each.given).resources()) for each in self.noted
        ]


async def _of(claim: AccountClaim, all_: asyncio.Future[Sequence[_Noted]]) -> Sequence[_Noted]:
    """Return the resources derived from a claim's account, also through copies."""
    known, following = await all_, {claim}
    while more := {each.resource for each in known if each.needs & following} - following:
        following |= more
    return [each for each in known if each.resource in following]


def declare_account_keys(
    keys: Mapping[str, KeyInUse],
    claims: Mapping[str, AccountClaim],
    consumers: Consumers,
    settled: pulumi.Output[Any],
    opts: pulumi.ResourceOptions,
) -> None:
    """Declare the receipts. `keys`, `claims`: by tenant/slot. `settled`: known once all is declared."""
    if not keys:
        return
    all_ = asyncio.ensure_future(consumers.settle(settled))

    async def described(name: str, key: KeyInUse) -> Any:
        found = await _of(claims[name], all_)
        if not key.is_received:
            follow = ", ".join(each.name for each in found) or "nothing here"
            complete = f"credfleet pool rotate {key.account} --complete --stack {pulumi.get_stack()}"
            pulumi.log.info(
                f"{name}: account {key.account} has key {key.key} now: {follow} will follow; the former one"
                f" is valid until `{complete}`",
                claims[name],
            )
        return [each.described for each in found]

    async def after(name: str) -> Any:
        return [claims[name], *(each.resource for each in await _of(claims[name], all_))]

    for name, key in keys.items():
        args = AccountKeyArgs(
            namespace=claims[name].namespace,
            claim=name,
            holder=key.holder,
            record=key.record,
            account=key.account,
            operation=key.operation,
            consumers=pulumi.Output.from_input(described(name, key)) if key.operation else [],
        )
        depends = pulumi.ResourceOptions(depends_on=pulumi.Output.from_input(after(name)))
        AccountKey(f"{name}-key", args, pulumi.ResourceOptions.merge(opts, depends))
