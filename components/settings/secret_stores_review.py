"""What no part of `credfleet:secretStores` can know alone: references, the rule of references, clashes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError

from components.credentials import Credentials
from components.errors import CredfleetError, Problem
from components.naming import config_path
from components.secret_stores.consumers import Backend, ExternalSecret, PushSecret
from components.secret_stores.direct import Asked, Purpose, admit
from components.secret_stores.eso import compile_push, compile_read, compile_store
from components.secret_stores.explain import Ready, Surroundings, explain
from components.secret_stores.faults import faults
from components.secret_stores.kinds import KINDS, KubernetesSpec
from components.secret_stores.login import login_fault
from components.secret_stores.model import AnyProvider, AnyStore, ClusterSecretStore
from components.secret_stores.pushing import push_objections
from components.secret_stores.reading import read_objections
from components.secret_stores.referent import selector_objections, store_objections
from components.secret_stores.registry import Kind
from components.settings.document import nearest
from components.settings.nouns import AccountPool, Cluster, Tenant
from components.settings.review import (
    unknown_credential,
    unusable_namespace,
    usable_namespaces,
)
from components.settings.secret_stores import KEY, Push, Read, SecretStores
from components.settings.store_models import (
    meant_provider,
    namespace_labels,
    provider_model,
    push_document,
    read_document,
    served_by_eso,
    store_model,
)

_Problems = Iterator[Problem]


def review_secret_stores(
    section: SecretStores,
    tenants: Mapping[str, Tenant],
    pool: AccountPool | None,
    cluster: Cluster,
    *,
    credentials: Credentials,
    whole: bool,
) -> _Problems:
    """Check references, specs, who may use which store, what each back end can do, and clashes.

    whole: no part of the section or of the tenants was left out for a fault; else references may miss it.
    """
    namespaces = usable_namespaces(tenants, cluster)
    review = _Review(section, tenants, pool, credentials, namespaces)
    for name in section.providers:
        yield from review.provider(name)
    for name in section.stores:
        yield from review.store(name, whole=whole)
    if whole:
        for name, read in section.reads.items():
            yield from review.read(name, read)
        for name, push in section.pushes.items():
            yield from review.push(name, push)


@dataclass(frozen=True, slots=True)
class _Way:
    """A store that is sound, with its provider."""

    store: AnyStore
    provider: AnyProvider


class _Review:
    """Goes through a section; what is built on a part with a fault is not judged."""

    def __init__(
        self,
        section: SecretStores,
        tenants: Mapping[str, Tenant],
        pool: AccountPool | None,
        credentials: Credentials,
        namespaces: Collection[str],
    ) -> None:
        self._section = section
        self._tenants = tenants
        self._pool = pool
        self._credentials = credentials
        self._labels = namespace_labels(tenants)
        self._namespaces = namespaces
        self._sound: set[str] = set()
        self._ways: dict[str, _Way] = {}
        self._places: dict[tuple[str, str], str] = {}

    def provider(self, name: str) -> _Problems:
        """Judge a provider, and what it logs in with."""
        given, place = self._section.providers[name], config_path(KEY, "providers", name)
        problems: list[Problem] = []
        kind = KINDS.referred(given.api_version, given.kind)
        if isinstance(kind, Problem):
            yield kind.within(f"{place}.kind")
            return
        if given.namespace is not None:
            problems += self._unknown_namespace(place, given.namespace)
        if given.credentials_from is not None:
            problems += self._credential(f"{place}.credentialsFrom", given.credentials_from, kind)
        try:
            model = provider_model(self._section, name)
            if isinstance(model, Problem):
                problems.append(model.within(f"{place}.credentialsFrom"))
        except ValidationError as error:
            problems += _faults(f"{place}.spec", error, kind)
        if not problems:
            self._sound.add(name)
        yield from problems

    def store(self, name: str, *, whole: bool) -> _Problems:
        """Judge a store with its provider, and whether ESO could have it where it is to."""
        given, place = self._section.stores[name], config_path(KEY, "stores", name)
        if given.namespace is not None and given.namespace not in self._namespaces:
            yield from self._unknown_namespace(place, given.namespace)
            return
        reference = given.provider_ref
        if reference is not None and reference not in self._sound:
            if whole and reference not in self._section.providers:
                cause = f"{reference} is no entry of providers"
                yield Problem(f"{place}.providerRef", cause, nearest(reference, self._section.providers))
            return
        store = store_model(self._section, name)
        try:
            provider = meant_provider(self._section, name)
        except ValidationError as error:
            [key] = given.provider or {}
            yield from _faults(f"{place}.provider.{key}", error, KINDS.embedded(key))
            return
        if isinstance(provider, Problem):
            yield provider.within(f"{place}.provider")
            return
        objections = [*store_objections(store, KINDS), *selector_objections(store, provider, KINDS)]
        for objection in dict.fromkeys(objections):
            yield objection.within(place)
        if objections:
            return
        self._ways[name] = _Way(store, provider)
        if name in served_by_eso(self._section):
            yield from _refused(place, partial(compile_store, store, provider, KINDS))

    def read(self, name: str, read: Read) -> _Problems:
        """Judge a read by its back end."""
        place = config_path(KEY, "reads", name)
        problems = [*self._consumer(place, read, Purpose.READ)]
        for key, value in read.data.items():
            if value.account is not None and read.namespace in self._namespaces:
                problems += self._claimed(f"{place}.data.{key}.account", value.account, read)
        yield from problems
        if problems or read.store not in self._ways:
            return
        provider = self._ways[read.store].provider
        model = ExternalSecret.model_validate(self._as_model(read_document(self._section, name, _some), read))
        if read.backend is Backend.ESO:
            yield from _refused(place, partial(compile_read, model, provider, KINDS))
            return
        for objection in read_objections(model, KINDS.kind_of(provider)):
            yield objection.within(place)

    def push(self, name: str, push: Push) -> _Problems:
        """Judge a push by its back end, and that no other goes where it does."""
        place = config_path(KEY, "pushes", name)
        problems = [*self._consumer(place, push, Purpose.PUSH)]
        for key, value in push.data.items():
            if value.account is not None and push.namespace in self._namespaces:
                problems += self._delivered(f"{place}.data.{key}.account", value.account, push)
        yield from problems
        if problems or push.store not in self._ways:
            return
        provider = self._ways[push.store].provider
        for remote in dict.fromkeys(each.remote_key or key for key, each in push.data.items()):
            first = self._places.setdefault((provider.key.title, remote), place)
            if first != place:
                cause = f"{first} writes {remote} of provider {provider.key.title} already"
                yield Problem(place, cause, "push to another key, or make one push of the two")
        try:
            model = PushSecret.model_validate(self._as_model(push_document(self._section, name, _some), push))
        except ValidationError as error:
            for _, cause, mend in faults(error, PushSecret):
                yield Problem(f"{place}.data", cause, mend)
            return
        if push.backend is Backend.ESO:
            yield from _refused(place, partial(compile_push, model, provider, KINDS))
            return
        for objection in push_objections(model, KINDS.kind_of(provider)):
            yield objection.within(f"{place}.data")

    def _consumer(self, place: str, given: Read | Push, purpose: Purpose) -> _Problems:
        unknown = [*self._unknown_namespace(place, given.namespace)]
        yield from unknown
        if given.store not in self._section.stores:
            cause = f"{given.store} is no entry of stores"
            yield Problem(f"{place}.store", cause, nearest(given.store, self._section.stores))
            return
        way = self._ways.get(given.store)
        if unknown or way is None:
            return
        labels = self._labels.get(given.namespace, {})
        around = Surroundings(KINDS, {way.provider.key: way.provider}, {given.namespace: labels})
        found = explain(way.store, given.namespace, around)
        if found.ready is Ready.DENIED and _goes_by_labels(way.store):
            return  # whoever made the namespace may have labelled it: the update asks the cluster
        if found.ready is not Ready.READY or given.backend is Backend.DIRECT:
            asked = Asked(way.store, way.provider, given.namespace, labels, purpose)
            yield from _refused(f"{place}.store", partial(admit, asked))

    def _claimed(self, place: str, account: str, read: Read) -> _Problems:
        """Judge a read of an account where the pool keeps it."""
        problems = [*self._account(place, account, read)]
        yield from problems
        way = self._ways.get(read.store)
        if problems or way is None or self._pool is None:
            return
        spec = way.provider.spec
        if not isinstance(spec, KubernetesSpec) or spec.remote_namespace != self._pool.namespace:
            yield Problem(
                place,
                f"store {read.store} does not lead to namespace {self._pool.namespace}, where accounts are",
                f"use a provider of kind Kubernetes with remoteNamespace: {self._pool.namespace}",
            )

    def _delivered(self, place: str, account: str, push: Push) -> _Problems:
        """Judge a push of an account: of the copy that its tenant has."""
        problems = [*self._account(place, account, push)]
        yield from problems
        tenant, _, slot = account.partition("/")
        if not problems and self._tenants[tenant].accounts[slot].deliver_to is None:
            yield Problem(
                place,
                f"{account} has no copy in the namespace of its tenant, and pushes are of Secrets there",
                "add deliverTo to the account",
            )

    def _account(self, place: str, account: str, consumer: Read | Push) -> _Problems:
        known = {
            f"{name}/{slot}": tenant for name, tenant in self._tenants.items() for slot in tenant.accounts
        }
        tenant = known.get(account)
        if tenant is None:
            cause = f"{account} is no account of a tenant"
            yield Problem(place, cause, nearest(account, known))
        elif tenant.namespace != consumer.namespace:
            yield Problem(
                place,
                f"{account} is an account of namespace {tenant.namespace}, and no other namespace gets at it",
                "name an account of this namespace's tenant",
            )

    def _unknown_namespace(self, place: str, namespace: str) -> _Problems:
        if namespace not in self._namespaces:
            yield unusable_namespace(f"{place}.namespace", namespace)

    def _credential(self, place: str, name: str, kind: Kind) -> _Problems:
        if name not in self._credentials.names:
            yield unknown_credential(place, name, self._credentials)
            return
        fault = self._credentials.judged(name, partial(login_fault, kind))
        if fault is not None:
            yield fault.within(f"{place} ({name})")

    def _as_model(self, document: Mapping[str, Any], given: Read | Push) -> Mapping[str, Any]:
        return {**document, "namespace": given.namespace, "backend": given.backend}


def _some(_account: str) -> str:
    """Stand in for the Secret of an account, which is known once it is claimed."""
    return "claimed-account"


def _goes_by_labels(store: AnyStore) -> bool:
    return isinstance(store, ClusterSecretStore) and any(
        each.namespace_selector is not None for each in store.spec.conditions
    )


def _refused(place: str, made: Callable[[], object]) -> _Problems:
    try:
        made()
    except CredfleetError as error:
        yield Problem(place, error.cause, error.mend)


def _faults(place: str, error: ValidationError, kind: Kind | Problem) -> _Problems:
    for path, cause, mend in faults(error, kind.spec if isinstance(kind, Kind) else None):
        yield Problem(f"{place}.{path}" if path else place, cause, mend)
