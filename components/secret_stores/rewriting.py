"""Conversion of store documents between embedded and referenced providers.

Providers are moved unchanged and everything else stays, so a round trip changes nothing. Nothing is fixed:
the provider lacks what the block lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from components.errors import Problem
from components.secret_stores.convert import embed
from components.secret_stores.model import ProviderKey
from components.secret_stores.referent import pin, selectors
from components.secret_stores.registry import CLUSTER_GROUP, GROUP, ProviderKind, RefRegister, is_clusterwide

Manifest: TypeAlias = Mapping[str, Any]

ESO: Final = "external-secrets.io/v1"
_STORES: Final = frozenset({(ESO, "SecretStore"), (ESO, "ClusterSecretStore")})
_NAMES: Final = frozenset({"name", "namespace"})
_SAID_BY_A_STORE: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})


def with_references(documents: Sequence[Manifest], kinds: RefRegister) -> Iterator[Manifest | Problem]:
    """Yield the documents with each embedded provider moved to its own document after the store.

    The provider has the store's name, and the store's namespace or cluster scope.
    """
    taken = {_key(each) for each in documents if not _is_store(each)}
    for document in documents:
        block = _part(document, "spec").get("provider")
        if not _is_store(document) or not isinstance(block, dict):
            yield document
            continue
        title = _title(document)
        if len(block) != 1:
            yield Problem(title, "spec.provider has exactly one key, the kind of provider", "keep one")
            continue
        [(embedded, spec)] = block.items()
        kind = kinds.embedded(embedded)
        if isinstance(kind, Problem):
            yield kind.within(title)
            continue
        provider = _provider(kind, document["metadata"], spec)
        if _key(provider) in taken:
            yield Problem(title, f"there is a provider {_title(provider)} already", "rename one of the two")
            continue
        reference = {key: provider[key] for key in ("apiVersion", "kind")}
        yield _with(document, "provider", "providerRef", {**reference, "name": provider["metadata"]["name"]})
        yield provider


def with_blocks(documents: Sequence[Manifest], kinds: RefRegister) -> Iterator[Manifest | Problem]:
    """Yield the documents with each referenced provider embedded in its store, as ESO requires.

    The provider document is dropped, unless no store refers to it, or it has fields that stores lack.
    """
    providers = {_key(each): each for each in documents if not _is_store(each)}
    used = {key for each in documents if (key := _referred(each)) is not None}
    for document in documents:
        if not _is_store(document):
            says_more = document.keys() - _SAID_BY_A_STORE or _part(document, "metadata").keys() - _NAMES
            if says_more or _key(document) not in used:
                yield document
            continue
        key = _referred(document)
        if key is None:
            yield document
            continue
        yield _embedded(document, key, providers.get(key), kinds)


def _embedded(
    store: Manifest, key: ProviderKey, provider: Manifest | None, kinds: RefRegister
) -> Manifest | Problem:
    kind = kinds.referred(key.api_version, key.kind)
    if isinstance(kind, Problem):
        return kind.within(_title(store))
    whole_cluster = store["kind"] == "ClusterSecretStore"
    if whole_cluster and key.namespace is None and not is_clusterwide(key.api_version):
        return Problem(
            _title(store),
            f"it means the caller's own provider {key.name}, and an embedded one is the same for all",
            "make a SecretStore in each namespace, or name the provider's namespace",
        )
    if provider is None:
        return Problem(_title(store), f"there is no provider {key.title} in the files", "add its file")
    block = {kind.embedded: provider.get("spec", {})}
    follows = whole_cluster and key.namespace is not None
    if follows or kind.served_as is not None:
        model = kind.provider(key.namespace, key.name, block[kind.embedded])
        homes = {path: key.namespace for path, _ in selectors(model.spec)} if follows else {}
        block = embed(kinds.served(model.model_copy(update={"spec": pin(model.spec, homes)})), kinds)
    return _with(store, "providerRef", "provider", block)


def _provider(kind: ProviderKind, of: Mapping[str, Any], spec: Any) -> Manifest:
    where = {key: of[key] for key in ("name", "namespace") if key in of}
    group = GROUP if "namespace" in where else CLUSTER_GROUP
    return {"apiVersion": f"{group}/{kind.version}", "kind": kind.name, "metadata": where, "spec": spec}


def _with(document: Manifest, former: str, key: str, value: Any) -> Manifest:
    """Return a document in which one entry of its spec is replaced by another."""
    spec = {
        key if name == former else name: value if name == former else each
        for name, each in _part(document, "spec").items()
    }
    return {**document, "spec": spec}


def _referred(document: Manifest) -> ProviderKey | None:
    """Return the key of a store's referenced provider; without a namespace for the caller's."""
    reference = _part(document, "spec").get("providerRef")
    if not _is_store(document) or not isinstance(reference, dict):
        return None
    api_version, name = str(reference.get("apiVersion")), str(reference.get("name"))
    own = document["metadata"].get("namespace")
    namespace = None if is_clusterwide(api_version) else reference.get("namespace") or own
    return ProviderKey(api_version, str(reference.get("kind")), namespace, name)


def _key(document: Manifest) -> ProviderKey:
    metadata = _part(document, "metadata")
    namespace = metadata.get("namespace")
    return ProviderKey(
        str(document["apiVersion"]), str(document["kind"]), namespace, str(metadata.get("name"))
    )


def _is_store(document: Manifest) -> bool:
    return (document.get("apiVersion"), document.get("kind")) in _STORES


def _title(document: Manifest) -> str:
    return _key(document).title


def _part(document: Manifest, key: str) -> Mapping[str, Any]:
    """Return a map of a document; empty if it is missing, as in documents of other kinds."""
    part = document.get(key)
    return part if isinstance(part, dict) else {}
