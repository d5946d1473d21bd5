"""From a block embedded in a store to a provider object, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.errors import Problem
from components.secret_stores.model import AnyProvider, AnyStore, SecretStore, as_document
from components.secret_stores.registry import RefRegister


def convert(store: AnyStore, block: Mapping[str, Any], kinds: RefRegister) -> AnyProvider | Problem:
    """Make the provider that a store's embedded block stands for.

    It is named after the store, is of its namespace or of the whole cluster as the store is, and has ESO's
    defaults. Raises pydantic.ValidationError for a block its kind does not know.
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
    """Write a provider the way ESO embeds it; the inverse of `convert`, with the defaults in place."""
    return {kinds.kind_of(provider).embedded: as_document(provider.spec)}
