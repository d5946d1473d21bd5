"""Rule of references: the namespace from which a provider's selectors are read.

A selector without a namespace uses the *base*: the provider's namespace; for a ClusterProvider the store's
namespace; if that has none either, the namespace of the *caller*, whose consumer uses the store. Only a
ClusterSecretStore with a ClusterProvider can name another namespace. Nothing is read from another namespace
than the stated one; anything else is rejected. *Admission* checks the objects alone; *resolution* checks a
use of them, and rejects what admission does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from pydantic import BaseModel

from components.errors import Problem
from components.secret_stores.conditions import condition_objections
from components.secret_stores.convert import convert
from components.secret_stores.eso_providers import Scope
from components.secret_stores.model import (
    AnyProvider,
    AnyStore,
    CaSelector,
    ClusterSecretStore,
    Provider,
    ProviderKey,
    ProviderRef,
    SecretStore,
    Selector,
)
from components.secret_stores.registry import RefRegister, is_clusterwide

Part = TypeVar("Part", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Resolution:
    """Namespaces of a provider's selectors for a caller.

    `namespaces`: path in the provider's spec → namespace. `referent`: another caller reads other namespaces.
    `deferred`: there is no caller yet, and a selector without entry requires one.
    """

    namespaces: Mapping[str, str]
    referent: bool
    deferred: bool


def selectors(part: object, path: str = "") -> Iterator[tuple[str, Selector]]:
    """Yield every selector of a spec, of any kind, with its path as in a document."""
    match part:
        case Selector():
            yield path, part
        case BaseModel():
            for name, field in type(part).model_fields.items():
                yield from selectors(getattr(part, name), _step(path, field.alias or name))
        case tuple() | list():
            for index, item in enumerate(cast("tuple[object, ...]", part)):
                yield from selectors(item, f"{path}[{index}]")
        case Mapping():
            for key, item in cast("Mapping[str, object]", part).items():
                yield from selectors(item, _step(path, key))
        case _:
            pass


def store_objections(store: AnyStore, kinds: RefRegister) -> Iterator[Problem]:
    """Admission of a store: yield what makes it invalid for every caller."""
    spec = store.spec
    if isinstance(store, ClusterSecretStore):
        yield from condition_objections(store.spec.conditions)
    if (spec.provider is None) == (spec.provider_ref is None):
        both = "both are given, and one would be ignored" if spec.provider_ref else "neither is given"
        yield Problem(
            store.title,
            f"a store has spec.provider or spec.providerRef; {both}",
            "give exactly one of the two",
        )
    elif spec.provider is not None:
        converted = convert(store, spec.provider, kinds)
        if isinstance(converted, Problem):
            yield converted
    elif spec.provider_ref is not None:
        yield from _reference_objections(store, spec.provider_ref, kinds)


def _reference_objections(store: AnyStore, ref: ProviderRef, kinds: RefRegister) -> Iterator[Problem]:
    kind = kinds.referred(ref.api_version, ref.kind)
    if isinstance(kind, Problem):
        yield kind
    elif ref.namespace is None:
        return
    elif is_clusterwide(ref.api_version):
        yield Problem(
            store.title,
            f"spec.providerRef.namespace is {ref.namespace}, but a {ref.kind} of {ref.api_version} has none",
            "leave the namespace out",
        )
    elif isinstance(store, SecretStore) and ref.namespace != store.namespace:
        yield _foreign_provider(store, ref.namespace)


def _foreign_provider(store: SecretStore, namespace: str) -> Problem:
    return Problem(
        store.title,
        f"spec.providerRef.namespace is {namespace}, and a SecretStore uses providers of its own namespace"
        f" {store.namespace} only",
        "refer to a provider of that namespace, or to one of the whole cluster",
    )


def provider_of(
    store: AnyStore, caller: str, kinds: RefRegister
) -> AnyProvider | ProviderKey | Problem | None:
    """Resolution of a store: return its provider for a caller, or the key to look it up by.

    None: it is the caller's own provider, and there is no caller.
    """
    spec = store.spec
    if spec.provider is not None and spec.provider_ref is None:
        return convert(store, spec.provider, kinds)
    if spec.provider is not None or spec.provider_ref is None:
        return next(store_objections(store, kinds))
    ref = spec.provider_ref
    kind = kinds.referred(ref.api_version, ref.kind)
    if isinstance(kind, Problem):
        return kind
    if is_clusterwide(ref.api_version):
        namespace = None
    elif isinstance(store, SecretStore):
        namespace = ref.namespace or store.namespace
        if namespace != store.namespace:
            return _foreign_provider(store, namespace)
    else:
        namespace = ref.namespace or caller
        if not namespace:
            return None
    return ProviderKey(ref.api_version, ref.kind, namespace, ref.name)


def selector_objections(store: AnyStore, provider: AnyProvider, kinds: RefRegister) -> Iterator[Problem]:
    """Admission of a provider in a store: yield every selector that fails for any caller."""
    home, title = _home(store, provider), provider.key.title
    strict = kinds.kind_of(provider).strict
    for path, selector in selectors(provider.spec):
        named, place = selector.namespace, f"{title}: {path}"
        if named is None and isinstance(store, ClusterSecretStore) and isinstance(selector, CaSelector):
            problem = f"{place} has no namespace; certificates are the server's, never the caller's"
            yield Problem(title, problem, "add the namespace they are in")
        elif named is None and strict and home is None:
            problem = f"{place} has no namespace, and providers of kind {provider.kind} are not read"
            yield Problem(title, f"{problem} wherever a caller comes from", "add the namespace it is in")
        elif named is not None and home is not None and named != home:
            yield Problem(
                title,
                f"{place} names namespace {named}, but through this store it may be read in {home} only",
                f"leave the namespace out or write {home}; only a ClusterSecretStore with a provider of the"
                " whole cluster reads elsewhere",
            )


def spec_objections(provider: AnyProvider, kinds: RefRegister) -> Iterator[Problem]:
    """Admission of a provider: yield what no back end supports in its spec."""
    for fault in kinds.kind_of(provider).faults(provider.spec):
        yield provider.objection(fault.problem, fault.fix)


def missed_by_eso(store: AnyStore, provider: AnyProvider, kinds: RefRegister) -> Iterator[Problem]:
    """Yield what ESO lacks in the unmodified embedded block of a store."""
    if store.spec.provider is not None:
        for miss in kinds.kind_of(provider).missed(provider.spec):
            yield provider.objection(miss.problem, miss.fix)
        yield from eso_objections(store, provider, kinds, Scope.EMBEDDED, Scope.OWN_EMBEDDED)


def eso_objections(
    store: AnyStore, provider: AnyProvider, kinds: RefRegister, *scopes: Scope
) -> Iterator[Problem]:
    """Yield unmet requirements of ESO's code for a provider in a store; `scopes`: when they apply."""
    title, own = provider.key.title, isinstance(store, SecretStore)
    asked = [each for each in scopes if own or each not in (Scope.OWN, Scope.OWN_EMBEDDED)]
    for each in kinds.kind_of(provider).unmet(provider.spec, *asked):
        where = f"{title}: {each.place}" if each.place else title
        yield Problem(title, f"{where}: {each.problem}", each.fix)


def resolve(store: AnyStore, provider: AnyProvider, caller: str, kinds: RefRegister) -> Resolution | Problem:
    """Resolution of a provider in a store: return the namespace of each selector for a caller.

    `caller`: namespace of the consumer; empty while the store itself is validated.
    """
    for refusal in selector_objections(store, provider, kinds):
        return refusal
    home, named = _home(store, provider), {path: one.namespace for path, one in selectors(provider.spec)}
    is_open = home is None and None in named.values()
    base = caller if home is None else home
    ref = store.spec.provider_ref if isinstance(store, ClusterSecretStore) else None
    follows = ref is not None and ref.namespace is None and not is_clusterwide(ref.api_version)
    return Resolution(
        {path: where for path, namespace in named.items() if (where := namespace or base)},
        referent=is_open or follows,
        deferred=is_open and not caller,
    )


def pin(spec: Part, namespaces: Mapping[str, str | None]) -> Part:
    """Return a copy of a spec with the namespaces of its selectors set, or removed where None.

    A selector without an entry stays unchanged.
    """
    return cast("Part", _pinned(spec, namespaces, ""))


def _pinned(part: object, namespaces: Mapping[str, str | None], path: str) -> object:
    match part:
        case Selector():
            return part.model_copy(update={"namespace": namespaces.get(path, part.namespace)})
        case BaseModel():
            fields = type(part).model_fields.items()
            steps = {name: _step(path, field.alias or name) for name, field in fields}
            return part.model_copy(
                update={name: _pinned(getattr(part, name), namespaces, step) for name, step in steps.items()}
            )
        case tuple() | list():
            items = enumerate(cast("tuple[object, ...]", part))
            return type(cast("tuple[object, ...]", part))(
                _pinned(item, namespaces, f"{path}[{index}]") for index, item in items
            )
        case Mapping():
            entries = cast("Mapping[str, object]", part).items()
            return {key: _pinned(item, namespaces, _step(path, key)) for key, item in entries}
        case _:
            return part


def _step(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _home(store: AnyStore, provider: AnyProvider) -> str | None:
    """Return the only namespace that selectors can use; None if it depends on the caller."""
    if isinstance(provider, Provider):
        return provider.namespace
    return store.namespace if isinstance(store, SecretStore) else None
