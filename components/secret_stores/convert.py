"""Conversion between a block embedded in a store and a provider object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.errors import Problem
from components.secret_stores.model import AnyProvider, AnyStore, SecretStore, as_document
from components.secret_stores.registry import RefRegister


def convert(store: AnyStore, block: Mapping[str, Any], kinds: RefRegister) -> AnyProvider | Problem:
    """Return the provider that is equivalent to a store's embedded block.

    It has the store's name, the store's namespace or cluster scope, and ESO's defaults. Raises
    pydantic.ValidationError for a block that is invalid for its kind.
    """
    if len(block) != 1:
        given, fix = (", ".join(block), "keep one") if block else ("none", "add one")
        return Problem(
            store.title, f"spec.provider has exactly one key, the kind of provider; given: {given}", fix
        )
    [(key, spec)] = block.items()
    kind = kinds.embedded(key)
    if isinstance(kind, Problem):
        return kind
    return kind.provider(store.namespace if isinstance(store, SecretStore) else None, store.name, spec)


def embed(provider: AnyProvider, kinds: RefRegister) -> dict[str, Any]:
    """Return a provider as a block that ESO embeds, with defaults; inverse of `convert`."""
    return {kinds.kind_of(provider).embedded: as_document(provider.spec)}
