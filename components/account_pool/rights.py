"""What each kind of work on a pool needs the API server to allow, in the pool's namespace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from components.account_pool.admission import CLAIM, CLEAN, OPERATE, VIRTUAL_GROUP, VIRTUAL_RESOURCE


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource of an API group, as RBAC has them."""

    group: str
    resource: str
    verbs: tuple[str, ...]


_MEMBERS: Final = Right("", "secrets", ("get", "list", "patch"))
_EVENTS: Final = Right("", "events", ("create",))


def _on_records(*verbs: str) -> Right:
    return Right("", "configmaps", verbs)


def _virtual(verb: str) -> Right:
    return Right(VIRTUAL_GROUP, VIRTUAL_RESOURCE, (verb,))


RIGHTS: Final[Mapping[str, tuple[Right, ...]]] = MappingProxyType(
    {
        CLAIM: (_MEMBERS, _on_records("get", "list", "create", "update", "delete"), _EVENTS, _virtual(CLAIM)),
        CLEAN: (_MEMBERS, _on_records("get", "list"), _EVENTS, _virtual(CLEAN)),
        OPERATE: (_MEMBERS, _on_records("get", "list", "update", "delete"), _EVENTS, _virtual(OPERATE)),
    }
)
"""Claiming, reading, releasing and sweeping; cleaning; what operators decide. By their virtual verbs."""
