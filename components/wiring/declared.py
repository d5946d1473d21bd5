"""What a stack declares that other rooms refer to: namespaces, and accounts by tenant and slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class Declared:
    """What the tenants of a stack got.

    namespaces: name → the namespace as the stack declares it. accounts: where the Secret of a claim is, and
    the account's id. skipped: why a claim is skipped, empty for one that is not. ready: the claim, and the
    rights on its account. deliveries: what copies the Secret of a claim into the namespace of its tenant.
    data, copied: in a preview, the digests of what the Secret of an account, and its copy, will hold by key;
    None, or absent, where this stack does not declare it.
    """

    def __init__(self) -> None:
        self.namespaces: dict[str, pulumi.Output[str]] = {}
        self.accounts: dict[Account, ClaimedAccount] = {}
        self.owners: dict[Account, Mapping[str, str]] = {}
        self.skipped: dict[Account, pulumi.Output[str]] = {}
        self.ready: dict[Account, pulumi.Output[Sequence[pulumi.Resource]]] = {}
        self.deliveries: dict[Account, pulumi.Output[SecretProjection | None]] = {}
        self.data: dict[Account, pulumi.Output[Digests | None]] = {}
        self.copied: dict[Account, pulumi.Output[Digests | None]] = {}

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
