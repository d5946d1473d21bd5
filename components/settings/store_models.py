"""From the nouns of `credfleet:secretStores` to the models of the room; references are names by then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from components.errors import Problem
from components.labels import TENANT
from components.naming import tenant_label
from components.secret_stores.consumers import Backend
from components.secret_stores.kinds import KINDS
from components.secret_stores.login import with_login
from components.secret_stores.model import AnyProvider, AnyStore, ClusterSecretStore, SecretStore
from components.secret_stores.referent import provider_of
from components.settings.nouns import Tenant
from components.settings.secret_stores import Push, Read, SecretStores, Store

Named = Callable[[str], Any]
"""Gives the name of the Secret of an account, tenant/slot: a text, or an output."""


def provider_model(section: SecretStores, name: str) -> AnyProvider | Problem:
    """Make a provider. Raises pydantic.ValidationError for a spec its kind does not know."""
    given = section.providers[name]
    kind = KINDS.referred(given.api_version, given.kind)
    if isinstance(kind, Problem):
        return kind
    spec = given.spec if given.credentials_from is None else with_login(kind, given.spec, name)
    return spec if isinstance(spec, Problem) else kind.provider(given.namespace, name, spec)


def store_model(section: SecretStores, name: str) -> AnyStore:
    """Make a store whose provider is known."""
    given = section.stores[name]
    spec: dict[str, Any] = {
        "controller": given.controller or "",
        "provider": given.provider,
        "providerRef": _reference(section, given),
        "retrySettings": given.retry_settings,
        "refreshInterval": given.refresh_interval,
    }
    if given.cluster:
        return ClusterSecretStore.model_validate(
            {"name": name, "spec": {**spec, "conditions": given.conditions}}
        )
    return SecretStore.model_validate({"namespace": given.namespace, "name": name, "spec": spec})


def meant_provider(section: SecretStores, name: str) -> AnyProvider | Problem:
    """Make the provider of a store, referred to or embedded. Raises pydantic.ValidationError."""
    reference = section.stores[name].provider_ref
    if reference is not None:
        return provider_model(section, reference)
    found = provider_of(store_model(section, name), "", KINDS)
    if found is None or isinstance(found, tuple):
        raise TypeError(f"store {name} has no embedded provider")
    return found


def read_document(section: SecretStores, name: str, named: Named) -> Mapping[str, Any]:
    """Write a read as ExternalSecret has it, without namespace and backend."""
    read = section.reads[name]
    data = {
        key: {"key": named(value.account), "property": value.key}
        if value.account is not None
        else _given(key=value.key, property=value.property_name, version=value.version)
        for key, value in read.data.items()
    }
    return {**_consumer(section, name, read), "target": read.target or name, "data": data}


def push_document(section: SecretStores, name: str, named: Named) -> Mapping[str, Any]:
    """Write a push as PushSecret has it, without namespace and backend."""
    push = section.pushes[name]
    data = [
        {
            "secret": value.secret if value.account is None else named(value.account),
            "key": value.key,
            "remoteKey": value.remote_key or key,
            **_given(property=value.property_name),
        }
        for key, value in push.data.items()
    ]
    return {
        **_consumer(section, name, push),
        "updatePolicy": str(push.update_policy),
        "deletionPolicy": str(push.deletion_policy),
        "data": data,
    }


def namespace_labels(tenants: Mapping[str, Tenant]) -> Mapping[str, Mapping[str, str]]:
    """Tell the labels that the stack gives to namespaces, by their names."""
    return {tenant.namespace: {TENANT: tenant_label(name)} for name, tenant in tenants.items()}


def served_by_eso(section: SecretStores) -> Collection[str]:
    """Name the stores that become ESO's objects: all but those that only this program uses."""
    consumers = (*section.reads.values(), *section.pushes.values())
    directly = {each.store for each in consumers if each.backend is Backend.DIRECT}
    return section.stores.keys() - (
        directly - {each.store for each in consumers if each.backend is Backend.ESO}
    )


def _consumer(section: SecretStores, name: str, given: Read | Push) -> dict[str, Any]:
    kind = "ClusterSecretStore" if section.stores[given.store].cluster else "SecretStore"
    return {
        "name": name,
        "store": {"kind": kind, "name": given.store},
        **_given(refreshInterval=given.refresh_interval),
    }


def _reference(section: SecretStores, given: Store) -> Mapping[str, Any] | None:
    if given.provider_ref is None:
        return None
    provider = section.providers[given.provider_ref]
    return _given(
        apiVersion=provider.api_version,
        kind=provider.kind,
        name=given.provider_ref,
        namespace=provider.namespace,
    )


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
