"""Stores, reads and pushes compiled to objects of External Secrets Operator (ESO).

ESO has no provider objects, so a store's provider is embedded in it, with selectors pinned to the namespaces
that the rule of references gives them. A selector for the caller's namespace stays without one, which ESO
resolves the same way. What ESO cannot express, and would read elsewhere, lose or ignore, is rejected.
Manifests refer to credentials and contain none, except the values in the spec of a Fake provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from components.durations import as_go_writes
from components.errors import EsoError, Problem
from components.labels import PREFIX
from components.secret_stores.admission import CONTROLLER, place_objections, push_objections
from components.secret_stores.clients.client import Capability
from components.secret_stores.clients.kubernetes import PUSHED_BY
from components.secret_stores.consumers import (
    DeletionPolicy,
    ExternalSecret,
    PushSecret,
    RemoteRef,
    UpdatePolicy,
)
from components.secret_stores.convert import embed
from components.secret_stores.eso_namespaces import list_unfollowed, list_unused
from components.secret_stores.eso_providers import WRITTEN
from components.secret_stores.gathering import read_objections
from components.secret_stores.json_fields import as_path
from components.secret_stores.kubernetes_server import is_own
from components.secret_stores.model import (
    AnyProvider,
    AnyStore,
    CaSelector,
    ClusterProvider,
    ClusterSecretStore,
    SecretSelector,
    SecretStore,
    as_document,
)
from components.secret_stores.referent import (
    Resolution,
    eso_objections,
    pin,
    resolve,
    selector_objections,
    selectors,
    spec_objections,
    store_objections,
)
from components.secret_stores.registry import ProviderKind, RefRegister
from components.secret_stores.specs import KubernetesSpec

Manifest: TypeAlias = dict[str, Any]

V1: Final = "external-secrets.io/v1"
V1ALPHA1: Final = "external-secrets.io/v1alpha1"

PROVIDER: Final = f"{PREFIX}provider"
"""Annotation of a store: the provider object whose spec it contains, as `Kind/namespace/name`."""

_OPAQUE: Final = {"engineVersion": "v2", "mergePolicy": "Replace", "type": "Opaque"}
"""Template of a push that copies only the value of the source Secret, not its type."""


def compile_store(store: AnyStore, provider: AnyProvider, kinds: RefRegister) -> Manifest:
    """Compile a store with its provider, referenced or embedded.

    Raises EsoError with all problems.
    """
    refusals = [*store_objections(store, kinds), *selector_objections(store, provider, kinds)]
    refusals.extend(spec_objections(provider, kinds))
    served = kinds.served(provider)
    refusals.extend(spec_objections(served, kinds))
    refusals.extend(eso_objections(store, served, kinds, *WRITTEN))
    refusals.extend(store_limits(store, served, kinds.kind_of(served)))
    resolution = resolve(store, provider, "", kinds)
    if refusals or isinstance(resolution, Problem):
        raise EsoError(store.title, [*dict.fromkeys(refusals)])
    own = isinstance(store, SecretStore)
    metadata: Manifest = {"name": store.name, **({"namespace": store.namespace} if own else {})}
    if store.spec.provider_ref is not None:
        metadata["annotations"] = {PROVIDER: provider.key.title}
    said = store.spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"provider", "provider_ref"}
    )
    spec = pin(provider.spec, _namespaces(store, provider, resolution))
    served = kinds.served(provider.model_copy(update={"spec": spec}))
    spec = kinds.kind_of(served).for_eso(served.spec, not own)
    return {
        "apiVersion": V1,
        "kind": "SecretStore" if own else "ClusterSecretStore",
        "metadata": metadata,
        "spec": {**said, "provider": embed(served.model_copy(update={"spec": spec}), kinds)},
    }


def compile_read(read: ExternalSecret, provider: AnyProvider, kinds: RefRegister) -> Manifest:
    """Compile a read; `provider` is its store's. ESO will own the target and delete it with the read.

    Raises EsoError with all problems.
    """
    kind = kinds.serving(provider)
    refusals = [*read_objections(read, kind)]
    if kind.capabilities is Capability.WRITE_ONLY:
        problem = f"providers of kind {kind.name} are only written"
        refusals.append(Problem(read.title, problem, "read from a store of another kind"))
    if getattr(provider.spec, "location", None) and any(each.way == "tags" for each in read.data_from):
        problem = "ESO looks for labels among the secrets of no location, and reads those of one"
        refusals.append(Problem(read.title, problem, "find them by name"))
    if lies_in(provider, read.namespace) and read.takes(read.target):
        problem = (
            f"dataFrom or data means {read.target}, the Secret of this read, and ESO would put it into itself"
        )
        refusals.append(
            Problem(read.title, problem, "give target a name that is not meant, or choose backend: direct")
        )
    if refusals:
        raise EsoError(read.title, refusals)
    target: Manifest = {"name": read.target, "creationPolicy": "Owner", "deletionPolicy": "Retain"}
    marks = {"labels": {**read.labels}, "annotations": {**read.annotations}}
    metadata = {part: its for part, its in marks.items() if its}
    parts: Manifest = {"type": read.type, "metadata": metadata, "data": {**read.template}}
    if said := {part: its for part, its in parts.items() if its}:
        policy = "Replace" if read.template else "Merge"
        target["template"] = {"engineVersion": "v2", "mergePolicy": policy, **said}
    data = [{"secretKey": key, "remoteRef": _remote(each, kind)} for key, each in read.data.items()]
    gathered = [
        {"extract": _remote(each.extract, kind)} if each.extract else as_document(each)
        for each in read.data_from
    ]
    return {
        "apiVersion": V1,
        "kind": "ExternalSecret",
        "metadata": {"name": read.name, "namespace": read.namespace},
        "spec": {
            "refreshInterval": as_go_writes(read.refresh_interval),
            "secretStoreRef": as_document(read.store),
            "target": target,
            **({"data": data} if data else {}),
            **({"dataFrom": gathered} if gathered else {}),
        },
    }


def lies_in(provider: AnyProvider, namespace: str) -> bool:
    """Return whether a provider reads the Secrets of a namespace of the stack's own cluster."""
    spec = provider.spec
    return isinstance(spec, KubernetesSpec) and is_own(spec.server) and spec.remote_namespace == namespace


def _remote(ref: RemoteRef, kind: ProviderKind) -> Manifest:
    return as_document(ref.model_copy(update={"property_name": property_of(kind, ref.property_name)}))


def compile_push(push: PushSecret, provider: AnyProvider, kinds: RefRegister, owner: str = "") -> Manifest:
    """Compile a push; `provider` is its store's. `owner`: written to the Secrets it creates in a cluster.

    Raises EsoError with all problems.
    """
    kind = kinds.serving(provider)
    if refusals := [*push_limits(push, kind)]:
        raise EsoError(push.title, refusals)
    data: list[Manifest] = []
    for each in push.data:
        remote = {"remoteKey": each.remote_key}
        if (name := property_of(kind, each.property_name)) is not None:
            remote["property"] = name
        alone = {"metadata": _metadata(each.remote_namespace, owner)} if kind.has_namespaces else {}
        match = {**({} if each.key is None else {"secretKey": each.key}), "remoteRef": remote}
        data.append({"conversionStrategy": "None", "match": match, **alone})
    return {
        "apiVersion": V1ALPHA1,
        "kind": "PushSecret",
        "metadata": {"name": push.name, "namespace": push.namespace},
        "spec": {
            "refreshInterval": as_go_writes(push.refresh_interval),
            "secretStoreRefs": [as_document(push.store)],
            "selector": {"secret": {"name": push.data[0].secret}},
            "updatePolicy": push.update_policy.value,
            "deletionPolicy": push.deletion_policy.value,
            **({"template": {**_OPAQUE}} if kind.has_namespaces else {}),
            "data": data,
        },
    }


def _metadata(namespace: str | None, owner: str) -> Manifest:
    """Return PushSecretMetadata that keeps labels and annotations, and sets owner and namespace."""
    named = {"apiVersion": "kubernetes.external-secrets.io/v1alpha1", "kind": "PushSecretMetadata"}
    elsewhere = {} if namespace is None else {"remoteNamespace": namespace}
    mark = {"annotations": {PUSHED_BY: owner}} if owner else {}
    return {**named, "spec": {"sourceMergePolicy": "Replace", **mark, **elsewhere}}


def _namespaces(store: AnyStore, provider: AnyProvider, resolution: Resolution) -> dict[str, str | None]:
    """Return the namespace of each selector; None where ESO accepts none: a SecretStore's certificates."""
    if not isinstance(store, SecretStore):
        return {**resolution.namespaces}
    certificates = (path for path, each in selectors(provider.spec) if isinstance(each, CaSelector))
    return {**resolution.namespaces, **dict.fromkeys(certificates)}


def store_limits(store: AnyStore, provider: AnyProvider, kind: ProviderKind) -> Iterator[Problem]:
    """Yield what ESO cannot express of an admissible store and its provider."""
    if store.spec.controller == CONTROLLER:
        yield Problem(
            store.title,
            f"it is of class {CONTROLLER}, which the direct back end serves, so ESO would leave it alone",
            "leave controller out, or name the class of the ESO that is meant",
        )
    whole_cluster, ref = isinstance(store, ClusterSecretStore), store.spec.provider_ref
    if (
        whole_cluster
        and not isinstance(provider, ClusterProvider)
        and ref is not None
        and ref.namespace is None
    ):
        yield Problem(
            store.title,
            "spec.providerRef means another provider for each caller, and a store of ESO holds one",
            "add the namespace of the provider, or refer to one of the whole cluster",
        )
    for path, _, problem in list_unfollowed(provider, kind.embedded) if whole_cluster else ():
        yield provider.objection(
            f"{path} has no namespace, and {problem}",
            "add the namespace it is in, or give every caller a SecretStore",
        )
    for path, selector in selectors(provider.spec):
        if isinstance(selector, SecretSelector | CaSelector) and selector.key is None:
            yield provider.objection(f"{path} names no key, and ESO reads one", "add the key")
    for path in list_unused(provider, kind.embedded):
        problem = f"ESO does not look at {path}, and logs in as its own pod"
        yield provider.objection(problem, "log in by another part of the spec")


def property_of(kind: ProviderKind, name: str | None) -> str | None:
    """Return the property name escaped for ESO, so that it selects one field and is not a path."""
    return as_path(name) if name is not None and kind.facts.get("propertyIsPath") else name


def push_limits(push: PushSecret, kind: ProviderKind) -> Iterator[Problem]:
    """Yield what ESO would ignore or fail on in a push."""
    if kind.capabilities is Capability.READ_ONLY:
        yield Problem(
            push.title, f"providers of kind {kind.name} are only read", "push to a store of another kind"
        )
    yield from (place_objections if kind.client is None else push_objections)(push, kind)
    for index, each in enumerate(push.data):
        if each.property_name is not None and kind.facts.get("pushesWhole"):
            problem = f"data[{index}] has a property, and ESO would write the whole secret"
            yield Problem(push.title, problem, "leave property out")
        if each.remote_namespace is not None and (harm := _namespace_harm(push)) is not None:
            problem = f"data[{index}] has a remoteNamespace, and ESO {harm}"
            yield Problem(push.title, problem, "leave remoteNamespace out, or choose backend: direct")


def _namespace_harm(push: PushSecret) -> str | None:
    """Return the harm of ESO reading and deleting in the provider's namespace but writing elsewhere."""
    if push.deletion_policy is DeletionPolicy.DELETE:
        return "would delete the Secret of that name in the provider's namespace"
    if push.update_policy is UpdatePolicy.IF_NOT_EXISTS:
        return "would look in the provider's namespace whether it exists"
    return None
