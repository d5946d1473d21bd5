"""What a stack declares that other rooms refer to: namespaces, and accounts by tenant and slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pulumi

from components.account_pool.component import ClaimedAccount
from components.projection.provider import SecretProjection
from components.projection.settings import CredentialSource
from components.projection.sources import Source

Account: TypeAlias = str
"""A claim by the names of the configuration, `tenant/slot`."""

Digests: TypeAlias = Mapping[str, str]
"""Key of a Secret → digest of its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the tenants of a stack got.

    namespaces: name → the namespace as the stack declares it. accounts: where the Secret of a claim is, and
    the account's id. skipped: why a claim is skipped, empty for one that is not. ready: the claim, and the
    rights on its account. deliveries: what copies the Secret of a claim into the namespace of its tenant.
    data, copied: in a preview, the digests of what the Secret of an account, and its copy, will hold by key;
    None, or absent, where this stack does not declare it.
    """

    namespaces: Mapping[str, pulumi.Output[str]]
    accounts: Mapping[Account, ClaimedAccount]
    owners: Mapping[Account, Mapping[str, str]]
    skipped: Mapping[Account, pulumi.Output[str]]
    ready: Mapping[Account, pulumi.Output[Sequence[pulumi.Resource]]]
    deliveries: Mapping[Account, pulumi.Output[SecretProjection | None]]
    data: Mapping[Account, pulumi.Output[Digests | None]]
    copied: Mapping[Account, pulumi.Output[Digests | None]]

    def waits(self, account: Account) -> pulumi.Output[str]:
        """Return for what it waits that hangs on a claim; nothing once that has its account."""
        return self.skipped[account].apply(lambda why: why and f"waits for claim {account}")

    def namespace(self, name: str) -> pulumi.Input[str]:
        """Return a namespace as the stack declares it, or its name when it is there already."""
        return self.namespaces.get(name, name)

    def source(self, given: CredentialSource, place: str) -> tuple[Source, pulumi.Input[str]]:
        """Return where a credential is that no entry holds, and for what it waits; place: of its name."""
        if (account := given.account) is None:
            return given.source(place), ""
        claimed, labels = self.accounts[account], self.owners[account]
        source = Source(claimed["namespace"], claimed["secretName"], place, given.key, labels)
        return source, self.waits(account)
