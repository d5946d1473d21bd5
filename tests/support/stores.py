"""Stores, providers and namespaces as the tables of the reference rule have them."""

from typing import Any

from components.errors import Problem
from components.secret_stores.explain import Explanation, KnownObjects, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import AnyProvider, AnyStore, ClusterSecretStore, SecretStore
from components.secret_stores.registry import CLUSTER_GROUP, GROUP, ProviderKind, RefRegister

PROVIDERS = f"{GROUP}/v1alpha1"
CLUSTER_PROVIDERS = f"{CLUSTER_GROUP}/v1alpha1"


def store_in(namespace: str, **spec: Any) -> SecretStore:
    """S(namespace)."""
    return SecretStore.model_validate({"namespace": namespace, "name": "store", "spec": spec})


def cluster_store(**spec: Any) -> ClusterSecretStore:
    """C."""
    return ClusterSecretStore.model_validate({"name": "store", "spec": spec})


def kind(name: str, *, clusterwide: bool = False, kinds: RefRegister = KINDS) -> ProviderKind:
    """A kind by its name."""
    found = kinds.referred(CLUSTER_PROVIDERS if clusterwide else PROVIDERS, name)
    assert not isinstance(found, Problem)
    return found


def provider(
    name: str, spec: dict[str, Any], namespace: str | None = None, kinds: RefRegister = KINDS
) -> AnyProvider:
    """P(namespace), or CP without one; called `it`."""
    return kind(name, kinds=kinds).provider(namespace, "it", spec)


def ref(of: AnyProvider, *, namespace: str | None = None) -> dict[str, Any]:
    """A providerRef to a provider; without a namespace unless one is given."""
    body = {"apiVersion": of.api_version, "kind": of.kind, "name": of.name}
    return body if namespace is None else {**body, "namespace": namespace}


def selector(namespace: str | None, **more: Any) -> dict[str, Any]:
    """A selector; None is what the tables write as a dash."""
    return {"name": "login", **more, **({} if namespace is None else {"namespace": namespace})}


def token_spec(namespace: str | None) -> dict[str, Any]:
    """A GitLab spec with one selector, at auth.SecretRef.accessToken."""
    return {"projectID": "7", "auth": {"SecretRef": {"accessToken": selector(namespace, key="token")}}}


def told(
    store: AnyStore,
    caller: str,
    *providers: AnyProvider,
    namespaces: dict[str, dict[str, str]] | None = None,
    kinds: RefRegister = KINDS,
) -> Explanation:
    """What a use of the store comes to."""
    return explain(
        store, caller, KnownObjects(kinds, {each.key: each for each in providers}, namespaces or {})
    )
