"""Who may use a store directly: from a consumer, its store and its provider to a use, or to why not.

Every refusal of the rule of references comes before the first call to anybody, and names the store, the path
of the selector and the namespace it would be read in.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ValidationError

from components.config.document import problems_of
from components.errors import Problem, StoreError
from components.secret_stores.clients.client import Capability
from components.secret_stores.conditions import NAME_LABEL
from components.secret_stores.consumers import ExternalSecret, PushSecret
from components.secret_stores.explain import Explanation, KnownObjects, Ready, explain
from components.secret_stores.gathering import gathering_objections
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import (
    AnyProvider,
    AnyStore,
    ClusterProvider,
    ClusterSecretStore,
    Provider,
    SecretStore,
)
from components.secret_stores.referent import pin, provider_of
from components.secret_stores.registry import ProviderKind, RefRegister

Model = TypeVar("Model", bound=BaseModel)

CONTROLLER: Final = "credfleet"
"""The class of stores that the direct back end serves, besides those without a class."""


class Purpose(StrEnum):
    """What a client is wanted for."""

    READ = "read"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class Use:
    """A consumer's way to where secrets are kept: all selectors of the provider say their namespace.

    edition: digest of the provider's spec as it is written.
    """

    store: AnyStore
    provider: AnyProvider
    kind: ProviderKind
    caller: str
    edition: str


def parse(model: type[Model], title: str, document: Mapping[str, Any]) -> Model:
    """Read what a dynamic resource carries. Raises StoreError; settings let nothing through that is unfit."""
    with _explained(model, title):
        return model.model_validate(_whole(document))


def store_from(document: Mapping[str, Any]) -> AnyStore:
    """Read a store: {namespace?, name, spec}; without a namespace it is the whole cluster's.

    Raises StoreError.
    """
    model = SecretStore if document.get("namespace") else ClusterSecretStore
    return parse(model, f"store {document['name']}", document)


def provider_from(document: Mapping[str, Any], kinds: RefRegister = KINDS) -> AnyProvider:
    """Read a provider: {apiVersion, kind, namespace?, name, spec, module}. Raises StoreError.

    module: where the kind is registered; in this process a stack's own may not be yet.
    """
    importlib.import_module(document["module"])
    kind, title = kinds.referred(document["apiVersion"], document["kind"]), f"provider {document['name']}"
    if isinstance(kind, Problem):
        raise _error("refused", title, kind.problem, kind.fix)
    with _explained(kind.spec, title):
        return kind.provider(document.get("namespace"), document["name"], _whole(document["spec"]))


def _whole(value: Any) -> Any:
    """Return what a dynamic resource carries with its whole numbers whole: Pulumi makes floats of them."""
    match value:
        case Mapping():
            return {key: _whole(each) for key, each in cast("Mapping[str, Any]", value).items()}
        case list():
            return [_whole(each) for each in cast("list[Any]", value)]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


@contextmanager
def _explained(model: type[BaseModel], title: str) -> Generator[None]:
    try:
        yield
    except ValidationError as error:
        problem = next(problems_of(error, model))
        place = f"{title}: {problem.place}"
        raise StoreError(
            code="misconfigured", place=place, problem=problem.problem, fix=problem.fix
        ) from None


def document_of(thing: AnyStore | AnyProvider, kinds: RefRegister = KINDS) -> dict[str, Any]:
    """Write a store or provider so that it can be read again in another process."""
    document: dict[str, Any] = thing.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(thing, Provider | ClusterProvider):
        spec = thing.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {**document, "spec": spec, "module": kinds.kind_of(thing).module}
    return document


@dataclass(frozen=True, slots=True)
class StoreUse:
    """Who wants to use a store for what.

    labels: of the namespace of the caller. provider: what the store refers to; None when it has one embedded.
    """

    store: AnyStore
    provider: AnyProvider | None
    caller: str
    labels: Mapping[str, str]
    purpose: Purpose


def admit(asked: StoreUse, kinds: RefRegister = KINDS) -> Use:
    """Find the way of a caller through a store.

    Raises StoreError `refused` or `no-client`; nothing was asked then.
    """
    store, provider, caller = asked.store, asked.provider, asked.caller
    if store.spec.controller not in ("", CONTROLLER):
        raise _refused(
            store,
            f"it is of class {store.spec.controller}, and the direct back end serves class {CONTROLLER} only",
            "leave controller out, or choose backend: eso",
        )
    known = {provider.key: provider} if provider is not None else {}
    around = KnownObjects(kinds, known, {caller: {NAME_LABEL: caller, **asked.labels}})
    found = explain(store, caller, around)
    if found.ready is not Ready.READY:
        raise _denied(store, found)
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
    limits = [*kind.limits(served.spec)]
    if limits:
        raise _error("no-client", f"{store.title}: {meant.key.title}", *_joined(limits))
    unfit = Capability.WRITE_ONLY if asked.purpose is Purpose.READ else Capability.READ_ONLY
    if kind.capabilities is unfit:
        raise _refused(
            store,
            f"providers of kind {kind.name} are {kind.capabilities}, so no {asked.purpose} goes through it",
            "choose a provider of another kind",
        )
    return Use(store, served, kind, caller, edition=meant.spec.digest)


def read_objections(read: ExternalSecret, kind: ProviderKind) -> Iterator[Problem]:
    """Find values that providers of a kind do not have."""
    for key, remote in read.data.items():
        if remote.version is not None and not kind.has_versions:
            yield Problem(
                read.title,
                f"data.{key} asks for version {remote.version} of {remote.key}, and in a provider of kind"
                f" {kind.name} a value has no versions",
                "leave version out",
            )
        for problem, fix in kind.names(remote.key, remote.property_name, remote.version):
            yield Problem(read.title, f"data.{key}: {problem}", fix)
    yield from gathering_objections(read, kind)


def push_objections(push: PushSecret, kind: ProviderKind) -> Iterator[Problem]:
    """Find entries that go to no place as providers of a kind have them, by either back end."""
    for each in push.data:
        if kind.has_properties and each.property_name is None:
            yield Problem(
                push.title,
                f"{each.remote_key} of a provider of kind {kind.name} has keys, and none is named to push to",
                "add property",
            )
        elif not kind.has_properties and each.property_name is not None:
            yield Problem(
                push.title,
                f"{each.remote_key} of a provider of kind {kind.name} is one value, so nothing is pushed to"
                f" a property {each.property_name} of it",
                "leave property out",
            )
    yield from place_objections(push, kind)


def place_objections(push: PushSecret, kind: ProviderKind) -> Iterator[Problem]:
    """Find entries that go to a place which neither back end writes to."""
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


def _denied(store: AnyStore, found: Explanation) -> StoreError:
    causes, fixes = _joined(
        found.refusals or [Problem(store.title, str(found.deferred), "name a namespace that uses it")]
    )
    return _refused(store, f"namespace {found.caller} may not use it: {causes}", fixes)


def _joined(refusals: Sequence[Problem]) -> tuple[str, str]:
    return "; ".join(each.problem for each in refusals), "; ".join(each.fix for each in refusals)


def _refused(store: AnyStore, problem: str, fix: str) -> StoreError:
    return _error("refused", store.title, problem, fix)


def _error(code: str, place: str, problem: str, fix: str) -> StoreError:
    return StoreError(code=code, place=place, problem=problem, fix=fix)
