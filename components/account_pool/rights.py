"""What each kind of work on a pool needs the API server to allow, in the pool's namespace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from components.account_pool.rows import VIRTUAL_GROUP, VIRTUAL_RESOURCE, Verb


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource of an API group, as RBAC has them."""

    group: str
    resource: str
    verbs: tuple[str, ...]


_MEMBERS: Final = Right("", "secrets", ("get", "list", "patch"))
_EVENTS: Final = Right("", "events", ("create",))


RIGHTS: Final[Mapping[str, tuple[Right, ...]]] = MappingProxyType(
    {
        work: (
            _MEMBERS,
            Right("", "configmaps", on_records),
            _EVENTS,
            Right(VIRTUAL_GROUP, VIRTUAL_RESOURCE, (work,)),
        )
        for work, on_records in (
            (Verb.CLAIM, ("get", "list", "create", "update", "delete")),
            (Verb.CLEAN, ("get", "list")),
            (Verb.OPERATE, ("get", "list", "update", "delete")),
        )
    }
)
"""Claiming, reading, releasing and sweeping; cleaning; what operators decide. By their virtual verbs."""
