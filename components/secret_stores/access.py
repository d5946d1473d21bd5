"""Access of a namespace to stores: where, with which identity, and which condition admits it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from components.errors import Problem
from components.secret_stores.clients.client import Capability
from components.secret_stores.conditions import allows
from components.secret_stores.explain import KnownObjects, explain, provider_for
from components.secret_stores.model import (
    AnyStore,
    ClusterSecretStore,
    as_document,
)
from components.secret_stores.referent import selectors
from components.secret_stores.registry import ProviderKind

_LONGEST: Final = 80
"""Longest field value that is shown, in characters; longer ones are certificates or documents."""


@dataclass(frozen=True, slots=True)
class Between:
    """Object that a provider's spec refers to. `path`: path of the selector in the spec."""

    path: str
    kind: str
    namespace: str
    name: str
    key: str | None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """Store that a namespace can use.

    `admitted_by`: conditions that admit the namespace; empty for a store of the namespace, or without
    conditions. `where`: path in the provider's spec → value, without credentials and certificates. `unknown`:
    why it is not known whether the namespace is admitted.
    """

    store: str
    provider: str
    reads: bool
    writes: bool
    admitted_by: tuple[str, ...]
    where: Mapping[str, str]
    between: tuple[Between, ...]
    unknown: str | None = None


def find_access(namespace: str, stores: Iterable[AnyStore], around: KnownObjects) -> Iterator[StoreAccess]:
    """Yield every store that a namespace can use, or might be able to; skip all others."""
    labels, whole = around.labels(namespace)
    for store in stores:
        conditions = store.spec.conditions if isinstance(store, ClusterSecretStore) else ()
        found = explain(store, namespace, around)
        provider = provider_for(store, namespace, around)
        if found.admitted is False or provider is None:
            continue
        known, ref = None if isinstance(provider, Problem) else provider, store.spec.provider_ref
        kind = (
            around.kinds.serving(known) if known else ref and around.kinds.referred(ref.api_version, ref.kind)
        )
        can = kind.capabilities if isinstance(kind, ProviderKind) else Capability.READ_WRITE
        spec = known and known.spec
        said = as_document(spec) if spec else {}
        yield StoreAccess(
            store.title,
            found.provider or (ref.kind if ref else ""),
            reads=can is not Capability.WRITE_ONLY,
            writes=can is not Capability.READ_ONLY,
            admitted_by=tuple(
                f"conditions[{index}]"
                for index, condition in enumerate(conditions)
                if allows([condition], namespace, labels, whole=whole) is True
            ),
            where=dict(_scalars(said, spec)),
            between=tuple(
                Between(
                    path,
                    getattr(each, "type", each.KIND),
                    found.selectors[path],
                    each.name,
                    getattr(each, "key", None),
                )
                for path, each in selectors(spec)
                if path in found.selectors
            ),
            unknown=found.deferred if found.undecided else None,
        )


def _scalars(part: Any, spec: object) -> Iterator[tuple[str, str]]:
    """Yield the scalars of a spec outside of selectors and lists; a Fake provider lists its secrets."""
    named = {path for path, _ in selectors(spec)}

    def walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
        if path in named:
            return
        if isinstance(value, dict):
            for key, each in cast("Mapping[str, Any]", value).items():
                yield from walk(each, f"{path}.{key}" if path else key)
        elif not isinstance(value, list) and len(text := str(value)) <= _LONGEST:
            yield path, text

    return walk(part, "")
