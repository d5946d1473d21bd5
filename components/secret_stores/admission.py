"""Admission to a store by the direct back end: resolve store and provider, or reject with a reason.

Every rejection by the rule of references happens before the first network call. It names the store, the path
of the selector, and the namespace that the selector would read.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from components.config.document import problems_of
from components.documents import change_leaves
from components.errors import Problem, StoreError
from components.secret_stores.clients.client import Capability
from components.secret_stores.conditions import NAME_LABEL
from components.secret_stores.consumers import PushSecret
from components.secret_stores.explain import Explanation, KnownObjects, Ready, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import (
    AnyProvider,
    AnyStore,
    ClusterProvider,
    ClusterSecretStore,
    Provider,
    SecretStore,
    as_document,
)
from components.secret_stores.referent import pin, provider_of
from components.secret_stores.registry import ProviderKind, RefRegister

Model = TypeVar("Model", bound=BaseModel)

CONTROLLER: Final = "credfleet"
"""Class of the stores that the direct back end serves; it also serves stores without a class."""


class Purpose(StrEnum):
    """Purpose of a client."""

    READ = "read"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class Use:
    """Resolved path from a consumer to its provider: every selector of the provider has a namespace.

    `edition`: digest of the provider's spec as written.
    """

    store: AnyStore
    provider: AnyProvider
    kind: ProviderKind
    caller: str
    edition: str


def parse(model: type[Model], title: str, document: Mapping[str, Any]) -> Model:
    """Parse the properties of a dynamic resource. Raises StoreError; settings have validated them before."""
    try:
        return model.model_validate(change_leaves({**document}, _whole))
    except ValidationError as error:
        problem = next(problems_of(error, model))
        raise StoreError.of(problem, "misconfigured", f"{title}: {problem.place}") from None


def store_from(document: Mapping[str, Any]) -> AnyStore:
    """Parse a store: {namespace?, name, spec}; without a namespace it is a ClusterSecretStore.

    Raises StoreError.
    """
    model = SecretStore if document.get("namespace") else ClusterSecretStore
    return parse(model, f"store {document['name']}", document)


def provider_from(document: Mapping[str, Any], kinds: RefRegister = KINDS) -> AnyProvider:
    """Parse a provider: {apiVersion, kind, namespace?, name, spec, module}. Raises StoreError.

    `module`: registers the kind when imported; a stack's own kind might not be registered here yet.
    """
    importlib.import_module(document["module"])
    kind, title = kinds.referred(document["apiVersion"], document["kind"]), f"provider {document['name']}"
    if isinstance(kind, Problem):
        raise StoreError.of(kind, "refused", title)
    return kind.provider(
        document.get("namespace"), document["name"], parse(kind.spec, title, document["spec"])
    )


def _whole(value: Any) -> Any:
    """Convert whole floats to int: Pulumi converts all numbers to float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def document_of(thing: AnyStore | AnyProvider, kinds: RefRegister = KINDS) -> dict[str, Any]:
    """Serialize a store or provider for another process."""
    if isinstance(thing, Provider | ClusterProvider):
        spec, module = as_document(thing.spec), kinds.kind_of(thing).module
        return {**as_document(thing), "spec": spec, "module": module}
    return as_document(thing)


def admit(
    store: AnyStore,
    provider: AnyProvider | None,
    caller: str,
    labels: Mapping[str, str],
    purpose: Purpose,
    *,
    kinds: RefRegister = KINDS,
) -> Use:
    """Resolve a caller's use of a store. `provider`: the provider it refers to; None for an embedded one.

    `labels`: of the caller's namespace. Raises StoreError `refused` or `no-client`, before any network call.
    """
    if store.spec.controller not in ("", CONTROLLER):
        raise _error(
            "refused",
            store.title,
            f"it is of class {store.spec.controller}, and the direct back end serves class {CONTROLLER} only",
            "leave controller out, or choose backend: eso",
        )
    known = {provider.key: provider} if provider is not None else {}
    around = KnownObjects(kinds, known, {caller: {NAME_LABEL: caller, **labels}})
    found = explain(store, caller, around)
    if found.ready is not Ready.READY:
        raise denied(store, found)
    meant = provider or provider_of(store, caller, kinds)
    if not isinstance(meant, Provider | ClusterProvider):
        raise TypeError(f"{store.title} was admitted without a provider")
    spec = pin(meant.spec, found.selectors)
    served = kinds.served(meant.model_copy(update={"spec": spec}))
    kind = kinds.kind_of(served)
    if kind.client is None:
        raise _error(
            "no-client",
            store.title,
            f"the direct back end has no client for providers of kind {kind.name}",
            "choose backend: eso, or a provider of another kind",
        )
    if limits := [*kind.limits(served.spec)]:
        raise _error("no-client", f"{store.title}: {meant.key.title}", *_joined(limits))
    unfit = Capability.WRITE_ONLY if purpose is Purpose.READ else Capability.READ_ONLY
    if kind.capabilities is unfit:
        raise _error(
            "refused",
            store.title,
            f"providers of kind {kind.name} are {kind.capabilities}, so no {purpose} goes through it",
            "choose a provider of another kind",
        )
    return Use(store, served, kind, caller, edition=meant.spec.digest)


def push_objections(push: PushSecret, kind: ProviderKind) -> Iterator[Problem]:
    """Yield problems of entries that are invalid for this kind of provider, with either back end."""
    for each in push.data:
        what, name = f"{each.remote_key} of a provider of kind {kind.name}", each.property_name
        if kind.has_properties and name is None:
            yield Problem(push.title, f"{what} has keys, and none is named to push to", "add property")
        elif not kind.has_properties and name is not None:
            problem = f"{what} is one value, so nothing is pushed to a property {name} of it"
            yield Problem(push.title, problem, "leave property out")
    yield from place_objections(push, kind)


def place_objections(push: PushSecret, kind: ProviderKind) -> Iterator[Problem]:
    """Yield problems of entries whose place neither back end can write."""
    for each in push.data:
        for problem, fix in kind.names(each.remote_key, each.property_name, None):
            yield Problem(push.title, problem, fix)
        if each.key is None and (otherwise := kind.facts.get("allKeys")):
            problem = (
                f"{each.remote_key} is to hold all keys as JSON, and External Secrets Operator {otherwise}"
            )
            yield Problem(push.title, problem, "add key")
        if each.remote_namespace is None:
            continue
        if not kind.has_namespaces:
            problem = (
                f"{each.remote_key} of a provider of kind {kind.name} is in no namespace, and one is named"
            )
            yield Problem(push.title, problem, "leave remoteNamespace out")
        elif push.store.kind == "SecretStore":
            yield Problem(
                push.title,
                f"{each.remote_key} is to go to namespace {each.remote_namespace}, and through a store of one"
                " namespace it goes where the provider says",
                "leave remoteNamespace out, or push to a store of the whole cluster",
            )


def denied(store: AnyStore, found: Explanation) -> StoreError:
    """Return the error that a caller is not admitted to a store."""
    causes, fixes = _joined(
        found.refusals or [Problem(store.title, str(found.deferred), "name a namespace that uses it")]
    )
    return _error("refused", store.title, f"namespace {found.caller} may not use it: {causes}", fixes)


def _joined(refusals: Sequence[Problem]) -> tuple[str, str]:
    return "; ".join(each.problem for each in refusals), "; ".join(each.fix for each in refusals)


def _error(code: str, place: str, problem: str, fix: str) -> StoreError:
    return StoreError(code=code, place=place, problem=problem, fix=fix)
