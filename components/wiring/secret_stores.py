"""The stack's secret stores, and what is read and pushed through them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pulumi

from components.credentials import Credentials
from components.errors import Problem
from components.naming import stack_holder
from components.secret_stores.component import (
    ConsumerArgs,
    CredentialArgs,
    SecretStores,
    SecretStoresArgs,
    StoreArgs,
)
from components.secret_stores.kinds import KINDS
from components.secret_stores.login import login_data, secret_name
from components.secret_stores.model import AnyProvider
from components.settings import secret_stores as nouns
from components.settings.nouns import Tenant
from components.settings.store_models import (
    namespace_labels,
    provider_model,
    push_document,
    read_document,
    served_by_eso,
    store_model,
)
from components.wiring.declared import Declared


def declare_secret_stores(
    section: nouns.SecretStores,
    tenants: Mapping[str, Tenant],
    credentials: Credentials,
    declared: Declared,
    opts: pulumi.ResourceOptions,
) -> tuple[Mapping[str, Any], pulumi.Output[Mapping[str, str]]]:
    """Declare the stores, and whatever reads and pushes through them.

    Returns {reads: name → Secret (namespace/name), pushes: name → places} of the direct back end, and what of
    ESO is skipped → why.
    """
    wiring = _Wiring(section, tenants, credentials, declared)
    stores = SecretStores("stores", wiring.args(), opts)
    wiring.tell_warnings(stores)
    return {"reads": stores.reads, "pushes": stores.pushes}, stores.skipped


class _Wiring:
    """Turns the nouns of a section into what its component takes."""

    def __init__(
        self,
        section: nouns.SecretStores,
        tenants: Mapping[str, Tenant],
        credentials: Credentials,
        declared: Declared,
    ) -> None:
        self._section = section
        self._tenants = tenants
        self._credentials = credentials
        self._declared = declared
        self._labels = namespace_labels(tenants)
        self._providers = {name: _sound(provider_model(section, name)) for name in section.providers}

    def args(self) -> SecretStoresArgs:
        """Give all of it."""
        section, by_eso = self._section, served_by_eso(self._section)
        return SecretStoresArgs(
            credentials={
                name: self._credential(name, given.namespace, given.credentials_from)
                for name, given in section.providers.items()
                if given.credentials_from is not None and given.namespace is not None
            },
            stores={name: self._store(name, by_eso=name in by_eso) for name in section.stores},
            reads={
                name: self._consumer(
                    f"reads/{name}", given, read_document(section, name, self._claimed_secret)
                )
                for name, given in section.reads.items()
            },
            pushes={
                name: self._consumer(
                    f"pushes/{name}", given, push_document(section, name, self._delivered_secret)
                )
                for name, given in section.pushes.items()
            },
        )

    def tell_warnings(self, stores: SecretStores) -> None:
        """Say which kinds of provider nobody maintains."""
        for name, provider in self._providers.items():
            warning = KINDS.kind_of(provider).warning
            if warning is not None:
                pulumi.log.warn(f"{name}: {warning}", stores)

    def _credential(self, name: str, namespace: str, credential: str) -> CredentialArgs:
        kind = KINDS.kind_of(self._providers[name])
        return CredentialArgs(
            namespace=self._declared.namespace(namespace),
            name=secret_name(name),
            data=self._credentials.secret(credential, partial(login_data, kind)),
        )

    def _store(self, name: str, *, by_eso: bool) -> StoreArgs:
        given = self._section.stores[name]
        reference = given.provider_ref
        own = reference is not None and self._section.providers[reference].credentials_from is not None
        return StoreArgs(
            store=store_model(self._section, name),
            by_eso=by_eso,
            namespace=None if given.namespace is None else self._declared.namespace(given.namespace),
            provider=None if reference is None else self._providers[reference],
            credential=reference if own else None,
        )

    def _consumer(
        self, key: str, given: nouns.Read | nouns.Push, document: Mapping[str, Any]
    ) -> ConsumerArgs:
        stack = (pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack())
        return ConsumerArgs(
            caller=given.namespace,
            namespace=self._declared.namespace(given.namespace),
            store=given.store,
            backend=given.backend,
            document=document,
            owner=stack_holder(*stack, nouns.KEY, key),
            labels=self._labels.get(given.namespace, {}),
        )

    def _claimed_secret(self, account: str) -> pulumi.Output[str]:
        return self._declared.accounts[account]["secretName"]

    def _delivered_secret(self, account: str) -> pulumi.Output[str]:
        """Name the copy of an account once it is written."""
        tenant, _, slot = account.partition("/")
        copy = self._tenants[tenant].accounts[slot].deliver_to
        if copy is None:
            raise TypeError(f"settings let a push of {account} through, which has no copy")
        target = copy.target
        return self._declared.deliveries[account].urn.apply(lambda _: target)


def _sound(model: AnyProvider | Problem) -> AnyProvider:
    if isinstance(model, Problem):
        raise TypeError(f"settings let a provider through that is none: {model.cause}")
    return model
