"""RBAC rights in the pool's namespace for each kind of work on a pool."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from components.account_pool.admission.state_machine import VIRTUAL_GROUP, VIRTUAL_RESOURCE, Verb
from components.account_pool.core.config_map import CONFIG_MAP
from components.account_pool.core.model import tenant_label


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource of an API group, as in RBAC; `names`: only on these objects."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


_MEMBERS: Final = ("get", "list", "patch")
_EVENTS: Final = Right("", "events", ("create",))


RIGHTS: Final[Mapping[str, tuple[Right, ...]]] = MappingProxyType(
    {
        work: (
            Right("", "secrets", (*_MEMBERS, *(("create", "delete") if work is Verb.OPERATE else ()))),
            Right("", "configmaps", on_records),
            _EVENTS,
            Right(VIRTUAL_GROUP, VIRTUAL_RESOURCE, (work,)),
        )
        for work, on_records in (
            (Verb.CLAIM, ("get", "list", "create", "update", "delete")),
            (Verb.CLEAN, ("get", "list")),
            (Verb.OPERATE, ("get", "list", "create", "update", "delete")),
        )
    }
)
"""Rights by virtual verb: to claim, read, release and sweep; to clean; to make an operator's decisions."""


def rights_to_clean(new_keys: Collection[str]) -> tuple[Right, ...]:
    """Return the rights of cleaners. `new_keys`: types whose keys they change, which requires a Secret."""
    both = Right("", "secrets", ("create", "delete"))
    return (*((both,) if new_keys else ()), *RIGHTS[Verb.CLEAN])


def rights_to_bring(tenant: str) -> tuple[Right, ...]:
    """Return the rights that a user needs to bring accounts for one tenant, and no more.

    A Role cannot restrict the name of a new Secret: the admission policy decides which can be created.
    """
    return (
        Right("", "configmaps", ("get",), (CONFIG_MAP,)),
        Right("", "secrets", ("create",)),
        Right(VIRTUAL_GROUP, VIRTUAL_RESOURCE, (Verb.BRING,), (tenant_label(tenant),)),
    )
