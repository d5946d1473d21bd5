"""Receipt of a claim for a rotated key: all resources derived from the account use the current key.

It is declared once the account's key was rotated, and then stays. It depends on everything derived from the
account and checks each against its source, so it is correct in a targeted update too. The path of this module
and its class names are stored in the state of stacks and must not change. Import-pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from pulumi import Input

from components.account_pool.core.keys import KEY_OPERATION
from components.account_pool.core.model import KeyPhase
from components.account_pool.core.pool import Pool
from components.connection import ClusterTarget
from components.dynamic import (
    IDENTITY,
    WARNING,
    DynamicProvider,
    DynamicResource,
    FollowingProvider,
    Properties,
    is_unknown,
    log,
)
from components.errors import CredfleetError

_OURS = "components."


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountKeyArgs:
    """Claim, and the resources derived from its account.

    `claim`: tenant/slot. `record`, `account`: its record, and the Secret of its account. `operation`: the
    rotation that put the account's key in use, None if none is running. `consumers`: name, provider, props
    and digest of each derived resource.
    """

    namespace: Input[str] = field(metadata=IDENTITY)
    claim: str
    holder: str
    record: str
    account: str
    operation: str | None = field(default=None, compare=False)
    consumers: Input[Sequence[Properties]] = field(default_factory=list[Properties], compare=False)


class AccountKeyProvider(DynamicProvider):
    """Writes into a claim's record the rotation whose key all derived resources use."""

    args = AccountKeyArgs
    outputs = ("receipt",)
    named_by = ("namespace", "holder")

    def is_stale(self, olds: Properties, news: Properties) -> bool:
        """Return whether the last receipt is for another key."""
        operation = news.get("operation")
        return bool(operation) and operation != olds.get("receipt")

    def create_resource(self, props: Properties) -> Properties:
        """Write a receipt, unless a derived resource might have the former key."""
        if not props.get("operation"):
            return {}
        try:
            receipt = self._receipt(props)
        except CredfleetError as error:
            log(f"{WARNING}{props['claim']}: no receipt for the key of {props['account']}: {error}")
            return {}
        return {} if receipt is None else {"receipt": receipt}

    def _receipt(self, props: Properties) -> str | None:
        pool = Pool.open(ClusterTarget.parse(self.cluster_of_pool), props["namespace"])
        member = pool.member(props["account"])
        if member is None or member.key_phase != KeyPhase.DELIVERED:
            return None
        lagging = [*self._lagging(props["consumers"])]
        if lagging:
            log(
                f"{WARNING}{props['claim']}: may have the former key of {member.name}: {', '.join(lagging)}"
                "\n→ run `pulumi up` without --target"
            )
            return None
        # The operation read before the first check: if the key changed since then, the receipt is rejected.
        operation = member.annotations[KEY_OPERATION]
        return operation if pool.give_receipt(props["record"], props["holder"], operation) else None

    def _lagging(self, consumers: Sequence[Properties]) -> Iterator[str]:
        """Yield the consumers that differ from their sources, or cannot be checked."""
        for each in consumers:
            module, _, name = str(each["provider"]).partition(":")
            found = getattr(import_module(module), name) if module.startswith(_OURS) else None
            if not (isinstance(found, type) and issubclass(found, FollowingProvider)):
                raise TypeError(module)
            provider = self.beside(found)
            try:
                is_current = not is_unknown(each) and provider.is_current(each["props"], str(each["digest"]))
            except CredfleetError:
                is_current = False
            if not is_current:
                yield str(each["name"])


class AccountKey(DynamicResource[AccountKeyArgs]):
    """Receipt of a claim for the rotated key."""

    provider = AccountKeyProvider
