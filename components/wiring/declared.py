"""What a stack declares that other rooms refer to: namespaces, and accounts by tenant and slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pulumi

from components.account_pool.component import ClaimedAccount

Account: TypeAlias = str
"""A claim by the names of the configuration, `tenant/slot`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the tenants of a stack got.

    namespaces: name → the namespace as the stack declares it. accounts: where the Secret of a claim is, and
    the account's id. deliveries: what copies the Secret of a claim into the namespace of its tenant.
    """

    namespaces: Mapping[str, pulumi.Output[str]]
    accounts: Mapping[Account, ClaimedAccount]
    deliveries: Mapping[Account, pulumi.Resource]

    def namespace(self, name: str) -> pulumi.Input[str]:
        """Return a namespace as the stack declares it, or its name when it is there already."""
        return self.namespaces.get(name, name)
