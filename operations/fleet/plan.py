"""Pure decisions on which stack of a fleet gets which tenants, and on the tenant of a resource in a state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final

from pulumi_sandbox.protocol import urns

from components.config.shards import Shard, Shards
from components.naming import TENANT_NAMESPACE, TENANT_NAMESPACE_END
from components.stack_config.tenant_files import TenantFiles
from operations.sandbox.results import FLEET
from operations.stack.state import Resource

STORES: Final = "credfleet:index:SecretStores"
_START: Final = "pulumi-python:dynamic/credfleet:PullSecretStart"
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    TENANT_NAMESPACE: ("tenants",),
    "credfleet:index:TenantAccounts": ("tenants",),
    "credfleet:index:TenantDeliveries": ("tenants",),
    "credfleet:index:UserProvidedService": ("services", "instances"),
    "credfleet:index:ServiceBinding": ("services", "instances"),
    "credfleet:index:ServiceApp": ("services", "apps"),
    "credfleet:index:AsoNamespaceCredential": ("asoCredentials", "namespaces"),
    "credfleet:index:AsoResourceCredential": ("asoCredentials", "named"),
    "credfleet:index:AsoServiceAccount": ("asoCredentials", "namespaces"),
    "credfleet:index:AsoWorkloadIdentity": ("asoCredentials", "identities"),
    "credfleet:index:AsoResources": ("asoCredentials", "resources"),
    "credfleet:index:PullSecret": ("pullSecrets", "clusters"),
    _START: ("pullSecrets", "clusters"),
    "azure-native:resources:ResourceGroup": ("asoCredentials", "resourceGroups"),
}
"""Type of a resource directly below the fleet → section of the configuration whose entry names it."""

_ENDS: Final = {
    TENANT_NAMESPACE: TENANT_NAMESPACE_END,
    "azure-native:resources:ResourceGroup": "-group",
    _START: "-start",
}
_IN_STORES: Final = {"-credential": "providers", "-login": "providers", "-read": "reads", "-push": "pushes"}
"""Suffix of names below the stores → section of the stores whose entry names the resource."""


@dataclass(frozen=True)
class Split:
    """The stacks of a fleet before and after a split.

    before: according to stacks.yaml. had: tenant → the stacks whose states contain it, if any, which are two
    after an interrupted split. files: all tenants in the shared folder.
    """

    name: str
    before: Shards
    after: Shards
    files: TenantFiles
    had: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])

    @cached_property
    def homes(self) -> Mapping[str, str]:
        """Each tenant's stack after the split."""
        return {file.name: self.after.stack_of(file.name) for file in self.files.files}

    @cached_property
    def moves(self) -> Mapping[str, tuple[str, str]]:
        """Tenants that move → their stacks before and after."""
        moves: dict[str, tuple[str, str]] = {}
        for tenant, to in self.homes.items():
            was = self.had.get(tenant, (self.before.stack_of(tenant),))
            if others := [stack for stack in was if stack != to]:
                moves[tenant] = (others[0], to)
        return moves

    @property
    def changed(self) -> Sequence[str]:
        """The stacks that lose or gain a tenant."""
        return [*dict.fromkeys(chain.from_iterable(self.moves.values()))]

    @cached_property
    def _owners(self) -> Mapping[tuple[str, ...], str]:
        files, of_namespaces = self.files.files, _OWN["credfleet:index:AsoServiceAccount"]
        namespaces = {(*of_namespaces, str(each.data.get("namespace"))): each.name for each in files}
        return {**namespaces, **{entry.place: file.name for file in files for entry in file.entries}}

    def home(self, place: tuple[str, ...], otherwise: str) -> str:
        """Return the stack of a configuration entry; otherwise: for an entry in no tenant's file."""
        return self.homes[self._owners[place]] if place in self._owners else otherwise

    def home_of(self, resource: Resource) -> str | None:
        """Return the stack of a resource named after an entry of a tenant's file; None for all others."""
        named = urns.parse(resource.urn)
        parent = named.qualified_type.rpartition("$")[0]
        if parent.endswith(STORES):
            entry, _, end = named.name.partition("/")[2].rpartition("-")
            place: tuple[str, ...] = ("secretStores", _IN_STORES.get(f"-{end}", ""))
        elif parent.endswith(FLEET) and resource.type in _OWN:
            entry, place = named.name.removesuffix(_ENDS.get(resource.type, "")), _OWN[resource.type]
        else:
            return None
        return self.home((*place, entry.partition("/")[0]), "") or None


def propose(name: str, before: Shards, tenants: Sequence[str], most: int) -> Shards:
    """Return stacks with at most `most` tenants each, as even as possible; existing stacks stay.

    name: of the first stack, after which new ones are named.
    """
    stacks = [*before.stacks]
    count = max(-(-len(tenants) // most), len(stacks))
    if len(tenants) < count:
        return before
    further = (f"{name}-{number}" for number in range(2, count + 2 + len(stacks)))
    stacks += [each for each in further if each not in stacks][: count - len(stacks)]
    firsts = [tenants[len(tenants) * index // count] for index in range(count)]
    shards = {stack: Shard(since=first) for stack, first in zip(stacks, firsts, strict=True)}
    return before.model_copy(update={"stacks": {**shards, stacks[0]: Shard()}})
