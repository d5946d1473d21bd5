"""What `credfleet:secretStores` holds, the models it stands for, and what no entry of it can know alone."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from pydantic import Field, ValidationError

from components.config.document import nearest, problems_of
from components.config.field_types import Duration, ObjectName
from components.config.section import Problems, ReviewContext, Section, Written
from components.errors import CredfleetError, Problem
from components.labels import TENANT
from components.naming import config_path, tenant_label
from components.projection.settings import CredentialSource
from components.secret_stores.admission import Purpose, StoreUse, admit, push_objections, read_objections
from components.secret_stores.conditions import condition_objections, requirement_faults
from components.secret_stores.consumers import Backend, ExternalSecret, PushSecret
from components.secret_stores.entries import (
    ExtractEntry,
    FindEntry,
    ProviderEntry,
    PushEntry,
    PushValue,
    ReadEntry,
    ReadValue,
    SourceEntry,
    StoreEntry,
)
from components.secret_stores.eso import compile_push, compile_read, compile_store, lies_in
from components.secret_stores.eso_providers import Scope
from components.secret_stores.explain import KnownObjects, Ready, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.login import login_of, login_problem, secret_name, with_login
from components.secret_stores.model import (
    AS_ESO,
    AnyProvider,
    AnyStore,
    ClusterSecretStore,
    Condition,
    SecretStore,
)
from components.secret_stores.referent import (
    provider_of,
    selector_objections,
    spec_objections,
    store_objections,
)
from components.secret_stores.registry import ProviderKind
from components.secret_stores.specs import KubernetesSpec

Named: TypeAlias = Callable[[str], Any]
"""Returns the name of the Secret of an account, tenant/slot: a text, or an output."""


class SecretStoresSection(Section):
    """Stores of secrets, and what goes through them. Its methods make models of sound entries."""

    KEY: ClassVar = "secretStores"
    providers: Mapping[ObjectName, ProviderEntry] = Field(default={}, description="Name → provider.")
    stores: Mapping[ObjectName, StoreEntry] = Field(default={}, description="Name → store.")
    reads: Mapping[ObjectName, ReadEntry] = Field(default={}, description="Name → read.")
    pushes: Mapping[ObjectName, PushEntry] = Field(default={}, description="Name → push.")
    ready_within: Duration = Field(
        default="30s",
        description="How long an update waits until External Secrets Operator has done what it changed.",
    )

    def provider(self, name: str) -> AnyProvider | Problem:
        """Return a provider. Raises pydantic.ValidationError for a spec its kind does not know."""
        given = self.providers[name]
        kind = KINDS.referred(given.api_version, given.kind)
        if isinstance(kind, Problem):
            return kind
        its = given.name or name
        spec = given.spec if given.credentials_from is None else with_login(kind, given.spec, its)
        return spec if isinstance(spec, Problem) else kind.provider(given.namespace, its, spec)

    def store(self, name: str) -> AnyStore:
        """Return a store whose provider is known."""
        given = self.stores[name]
        spec: dict[str, Any] = {
            "controller": given.controller or "",
            "provider": given.provider,
            "providerRef": self._reference(given),
            "retrySettings": given.retry_settings,
            "refreshInterval": given.refresh_interval,
        }
        its = given.name or name
        if given.cluster:
            whole = {**spec, "conditions": given.conditions}
            return ClusterSecretStore.model_validate({"name": its, "spec": whole})
        return SecretStore.model_validate({"namespace": given.namespace, "name": its, "spec": spec})

    def reference(self, store: str, caller: str) -> str | Problem | None:
        """Return which entry of providers a store means for a caller; None for an embedded one."""
        given = self.stores[store]
        if (wanted := given.callers_provider) is None:
            return given.provider_ref
        sought = (caller, wanted.kind, wanted.version, wanted.name)
        for key, one in self.providers.items():
            if (one.namespace, one.kind, one.version, one.name or key) == sought:
                return key
        return Problem(
            store,
            f"namespace {caller} has no provider {wanted.name} of kind {wanted.kind}, which the store means",
            f"add it to providers, with namespace: {caller}",
        )

    def provider_of(self, store: str, caller: str = "") -> AnyProvider | Problem:
        """Return the provider of a store for a caller, referred to or embedded.

        Raises pydantic.ValidationError.
        """
        reference = self.reference(store, caller)
        if isinstance(reference, Problem):
            return reference
        if reference is not None:
            return self.provider(reference)
        found = provider_of(self.store(store), "", KINDS)
        if found is None or isinstance(found, tuple):
            raise TypeError(f"store {store} has no embedded provider")
        return found

    def read_document(self, name: str, named: Named) -> Mapping[str, Any]:
        """Return a read as ExternalSecret has it, without namespace and backend."""
        read = self.reads[name]
        data = {
            key: {"key": named(value.account), "property": value.key, **_decoding(value)}
            if value.account is not None
            else _remote(value.key, value)
            for key, value in read.data.items()
        }
        document = {**self._consumer(name, read), "target": self.target(name), "data": data}
        document |= _given(type=read.type, labels=dict(read.labels) or None)
        sources = [_source(each, named) for each in read.data_from]
        return {**document, **({"dataFrom": sources} if sources else {})}

    def target(self, read: str) -> str:
        """Return the name of the Secret that a read makes."""
        return self.reads[read].target or self.reads[read].name or read

    def parts(self, name: str) -> Iterator[tuple[str, PushEntry]]:
        """Yield a push as its back end has it, each part under `NAME`, `NAME/SECRET` or `NAME/STORE…`.

        Each store has one, and of ESO's each Secret; the first keeps the name of the push.
        """
        push = self.pushes[name]
        secrets: dict[str, dict[str, PushValue]] = {}
        for key, value in push.data.items():
            whole = "" if push.backend is Backend.DIRECT else str(value.secret or value.account)
            secrets.setdefault(whole, {})[key] = value
        for index, (each, (secret, data)) in enumerate(product(push.to_each(), secrets.items())):
            further = "" if each.store == push.targets[0] else each.store
            end = "/".join(filter(None, (further, secret)))
            own = f"{push.name or name}-{end.replace('/', '-')}" if index else push.name
            part = each.model_copy(update={"data": data, "name": own})
            yield f"{name}/{end}" if index else name, part

    def push_document(self, name: str, push: PushEntry, named: Named) -> Mapping[str, Any]:
        """Return a push, or a part of it, as PushSecret has it, without namespace and backend."""
        data = [
            {
                "secret": value.secret if value.account is None else named(value.account),
                **_given(key=value.key),
                "remoteKey": value.remote_key or key,
                **_given(property=value.property_name, remoteNamespace=value.remote_namespace),
            }
            for key, value in push.data.items()
        ]
        policies = {"updatePolicy": str(push.update_policy), "deletionPolicy": str(push.deletion_policy)}
        return {**self._consumer(name, push), **policies, "data": data}

    @property
    def served_by_eso(self) -> Collection[str]:
        """The stores that become ESO's objects: all but those that only this program uses, or can use."""
        pushes = chain.from_iterable(each.to_each() for each in self.pushes.values())
        consumers = (*self.reads.values(), *pushes)
        directly, by_eso = (
            {each.store for each in consumers if each.backend is backend} for backend in Backend
        )
        of_callers = {name for name, store in self.stores.items() if store.callers_provider is not None}
        return self.stores.keys() - (directly - by_eso) - of_callers

    def sources(self) -> Iterator[tuple[str, CredentialSource]]:
        """Yield where what providers log in with is."""
        for name, provider in self.providers.items():
            if provider.credentials_from is not None:
                yield self.place("providers", name, "credentialsFrom"), provider.credentials_from

    def written(self) -> Iterator[Written]:
        """Yield every Secret that is drawn for a provider or made by a read."""
        for name, provider in self.providers.items():
            if provider.credentials_from is not None and provider.namespace is not None:
                yield provider.namespace, secret_name(provider.name or name), self.place("providers", name)
        for name, read in self.reads.items():
            yield read.namespace, self.target(name), self.place("reads", name)

    def review(self, context: ReviewContext) -> Problems:
        """Check references, specs, who may use which store, what each back end can do, and clashes."""
        yield from self._twice()
        review = _Review(self, context)
        for name in self.providers:
            yield from review.provider(name)
        for name in self.stores:
            yield from review.store(name)
        if review.whole:
            for name, read in self.reads.items():
                yield from review.read(name, read)
            yield from review.circles()
            for name, push in self.pushes.items():
                yield from review.push(name, push)

    def _consumer(self, name: str, given: ReadEntry | PushEntry) -> dict[str, Any]:
        kind = "ClusterSecretStore" if self.stores[given.store].cluster else "SecretStore"
        store = {"kind": kind, "name": self.stores[given.store].name or given.store}
        return {"name": given.name or name, "store": store, **_given(refreshInterval=given.refresh_interval)}

    def _twice(self) -> Problems:
        """Find objects of one kind, namespace and name that two entries declare."""
        first: dict[tuple[str | None, ...], tuple[str, str]] = {}
        for role in ("providers", "stores", "reads", "pushes"):
            entries: Mapping[str, Any] = getattr(self, role)
            parts = map(self.parts, entries) if role == "pushes" else (entries.items(),)
            for key, given in chain.from_iterable(parts):
                kind = getattr(given, "kind", role)
                place = self.place(role, key.partition("/")[0])
                taken = first.setdefault((role, kind, given.namespace, given.name or key), (place, key))
                if taken != (place, key):
                    problem = f"{taken[0]} has this name in the same place, {given.name or key}"
                    yield Problem(f"{place}.name", problem, "give the two different names, or namespaces")

    def _reference(self, given: StoreEntry) -> Mapping[str, Any] | None:
        if (own := given.callers_provider) is not None:
            return {"apiVersion": own.api_version, "kind": own.kind, "name": own.name}
        if given.provider_ref is None:
            return None
        provider = self.providers[given.provider_ref]
        return _given(
            apiVersion=provider.api_version,
            kind=provider.kind,
            name=provider.name or given.provider_ref,
            namespace=provider.namespace,
        )


def namespace_labels(tenants: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Return the labels that the stack gives to namespaces, by their names. tenants: name → namespace."""
    return {namespace: {TENANT: tenant_label(name)} for name, namespace in tenants.items()}


class _Review:
    """Goes through a section; what is built on a part with a fault is not judged.

    whole: no part of the section or of the tenants was left out for a fault; else references may miss it.
    """

    def __init__(self, section: SecretStoresSection, context: ReviewContext) -> None:
        self._section = section
        self._context = context
        self.whole = context.whole(section.KEY, "tenants")
        self._labels = namespace_labels(context.tenants)
        self._sound: set[str] = set()
        self._ways: dict[str, tuple[AnyStore, AnyProvider | None]] = {}
        self._places: dict[tuple[str, str, str | None], tuple[str, str]] = {}
        self._reads: dict[str, tuple[ExternalSecret, AnyProvider]] = {}

    def provider(self, name: str) -> Problems:
        """Judge a provider, and what it logs in with."""
        given, place = self._section.providers[name], self._section.place("providers", name)
        kind = KINDS.referred(given.api_version, given.kind)
        if isinstance(kind, Problem):
            yield kind.within(f"{place}.kind")
            return
        problems: list[Problem] = []
        if given.namespace is not None:
            problems += self._context.review_namespace(f"{place}.namespace", given.namespace)
        if (source := given.credentials_from) is not None:
            problems += self._login(f"{place}.credentialsFrom", source, name, kind)
        try:
            model = self._section.provider(name)
            if isinstance(model, Problem):
                problems.append(model.within(f"{place}.credentialsFrom"))
            else:
                faults = [*kind.faults(model.spec), *kind.unmet(model.spec, Scope.ANY)]
                problems += [each.within(f"{place}.spec.{each.place}".rstrip(".")) for each in faults]
        except ValidationError as error:
            problems += problems_of(error, kind.spec, f"{place}.spec", otherwise=AS_ESO)
        if not problems:
            self._sound.add(name)
        yield from problems

    def _login(self, where: str, source: CredentialSource, name: str, kind: ProviderKind) -> Problems:
        if source.account is not None:
            problem = "a provider logs in before any account is claimed"
            yield Problem(where, problem, "name an entry of credentials, a Secret, or a gcpSecret")
            return
        given = self._section.providers[name]
        yield from self._context.review_source(where, source, given.namespace or "")
        judge = partial(login_problem, login_of(kind, given.spec))
        if source.entry is not None and (unfit := self._context.credentials.judged(source.entry, judge)):
            yield unfit.within(f"{where} ({source.entry})")

    def store(self, name: str) -> Problems:
        """Judge a store with its provider, and whether ESO could have it where it is to."""
        section = self._section
        given, place = section.stores[name], section.place("stores", name)
        if given.namespace is not None and given.namespace not in self._context.namespaces:
            yield from self._context.review_namespace(f"{place}.namespace", given.namespace)
            return
        reference = given.provider_ref
        if reference is not None and reference not in self._sound:
            if self.whole and reference not in section.providers:
                problem = f"{reference} is not an entry of providers"
                yield Problem(f"{place}.providerRef", problem, nearest(reference, section.providers))
            return
        store = section.store(name)
        yield from self._misspelt(f"{place}.conditions", given.conditions)
        if faults := [*condition_objections(given.conditions), *requirement_faults(given.conditions)]:
            yield from (each.within(f"{place}.{each.place.removeprefix('spec.')}") for each in faults)
            return
        if given.callers_provider is not None:
            objections = [*store_objections(store, KINDS)]
            yield from (objection.within(f"{place}.callersProvider") for objection in objections)
            if not objections:
                self._ways[name] = store, None
            return
        try:
            provider = section.provider_of(name)
        except ValidationError as error:
            [key] = given.provider or {}
            kind = KINDS.embedded(key)
            if not isinstance(kind, Problem):
                yield from problems_of(error, kind.spec, f"{place}.provider.{key}", otherwise=AS_ESO)
            return
        if isinstance(provider, Problem):
            yield provider.within(f"{place}.provider")
            return
        objections = [
            *store_objections(store, KINDS),
            *selector_objections(store, provider, KINDS),
            *spec_objections(provider, KINDS),
        ]
        yield from (objection.within(place) for objection in dict.fromkeys(objections))
        if not objections:
            self._ways[name] = store, provider
            if name in section.served_by_eso:
                yield from _refused(place, partial(compile_store, store, provider, KINDS))

    def _misspelt(self, place: str, conditions: Iterable[Condition]) -> Problems:
        """Find namespaces that are none of the stack's, and nearly one that is not named besides."""
        named = [each for condition in conditions for each in condition.namespaces]
        for each in named:
            if self._context.slip_of(each) not in (None, *named):
                yield from self._context.review_namespace(place, each)

    def read(self, name: str, read: ReadEntry) -> Problems:
        """Judge a read by its back end."""
        place = self._section.place("reads", name)
        problems = [*self._consumer(place, read, Purpose.READ)]
        for where, account in read.accounts if read.namespace in self._context.namespaces else ():
            problems += self._claimed(f"{place}.{where}.account", account, read)
        yield from problems
        way = self._way(read)
        if problems or way is None:
            return
        provider = way[1]
        model = ExternalSecret.model_validate(_as_model(self._section.read_document(name, _some), read))
        self._reads[name] = model, provider
        if read.backend is Backend.ESO:
            yield from _refused(place, partial(compile_read, model, provider, KINDS))
        else:
            for objection in read_objections(model, KINDS.serving(provider)):
                yield objection.within(place)

    def circles(self) -> Problems:
        """Find reads whose Secrets get into each other, and grow at every update."""
        takes = {
            name: {
                other
                for other, (its, _) in self._reads.items()
                if other != name and lies_in(provider, its.namespace) and read.takes(its.target)
            }
            for name, (read, provider) in self._reads.items()
        }
        for name, others in takes.items():
            met = {*others}
            while more := {each for one in met for each in takes[one]} - met:
                met |= more
            if name in met:
                problem = (
                    f"{', '.join(sorted(met - {name}))} and it take each other's Secrets, which keep growing"
                )
                fix = "give the targets names that are not meant"
                yield Problem(self._section.place("reads", name), problem, fix)

    def push(self, name: str, push: PushEntry) -> Problems:
        """Judge a push by its back end, and that no other goes where it does."""
        place = self._section.place("pushes", name)
        problems: list[Problem] = []
        for each in push.to_each():
            role = "store" if each.store == push.store else "stores"
            problems += self._consumer(place, each, Purpose.PUSH, role)
        for key, value in push.data.items():
            if value.account is not None and push.namespace in self._context.namespaces:
                problems += self._delivered(f"{place}.data.{key}.account", value.account, push)
        yield from dict.fromkeys(problems)
        ways = {each.store: way for each in push.to_each() if (way := self._way(each)) is not None}
        if problems:
            return
        for store, (_, provider) in ways.items():
            yield from self._goes_alone(place, store, push, provider)
        for key, part in self._section.parts(name):
            if part.store in ways:
                document = self._section.push_document(key, part, _some)
                yield from self._part(place, document, part, ways[part.store][1])

    def _goes_alone(self, place: str, store: str, push: PushEntry, provider: AnyProvider) -> Problems:
        """Find what another push, or the same through another store, writes already."""
        own = getattr(provider.spec, "remote_namespace", None)
        for key, each in push.data.items():
            if each.remote_namespace is not None and each.remote_namespace == own:
                where = f"{place}.data.{key}.remoteNamespace"
                yield Problem(where, f"providers say {own} themselves", "leave remoteNamespace out")
        places = {(each.remote_key or key, each.remote_namespace): None for key, each in push.data.items()}
        for remote, namespace in places:
            first = self._places.setdefault((provider.key.title, remote, namespace), (place, store))
            if first[0] != place:
                problem = f"{first[0]} writes {remote} of provider {provider.key.title} already"
                yield Problem(place, problem, "push to another key, or make one push of the two")
            elif first[1] != store:
                problem = f"{first[1]} and {store} have one provider, {provider.key.title}"
                yield Problem(f"{place}.stores", problem, f"leave {store} out")

    def _part(
        self, place: str, document: Mapping[str, Any], push: PushEntry, provider: AnyProvider
    ) -> Problems:
        """Judge what a push becomes in its back end."""
        try:
            model = PushSecret.model_validate(_as_model(document, push))
        except ValidationError as error:
            for problem in problems_of(error, PushSecret, place):
                yield problem.within(f"{place}.data")
            return
        if push.backend is Backend.ESO:
            yield from _refused(place, partial(compile_push, model, provider, KINDS))
        else:
            for objection in push_objections(model, KINDS.serving(provider)):
                yield objection.within(f"{place}.data")

    def _consumer(
        self, place: str, given: ReadEntry | PushEntry, purpose: Purpose, role: str = "store"
    ) -> Problems:
        yield from self._context.review_namespace(f"{place}.namespace", given.namespace)
        if given.store not in self._section.stores:
            problem = f"{given.store} is not an entry of stores"
            yield Problem(f"{place}.{role}", problem, nearest(given.store, self._section.stores))
            return
        if given.namespace not in self._context.namespaces or given.store not in self._ways:
            return
        if self._section.stores[given.store].callers_provider is not None:
            yield from self._callers(place, given, role)
        way = self._way(given)
        if way is None:
            return
        store, provider = way
        labels = self._labels.get(given.namespace, {})
        known = KnownObjects(
            KINDS, {provider.key: provider}, {given.namespace: labels}, labels_are_whole=False
        )
        found = explain(store, given.namespace, known)
        if found.undecided:  # its maker may have labelled the namespace: the update asks the cluster
            open_to_all = store.spec.model_copy(update={"conditions": ()})
            store = store.model_copy(update={"spec": open_to_all})
        if found.ready is not Ready.READY or given.backend is Backend.DIRECT:
            asked = StoreUse(store, provider, given.namespace, labels, purpose)
            yield from _refused(f"{place}.{role}", partial(admit, asked))

    def _way(self, given: ReadEntry | PushEntry) -> tuple[AnyStore, AnyProvider] | None:
        """Return the store of a consumer and what it means for it; None where either has a fault."""
        store, provider = self._ways.get(given.store, (None, None))
        if store is None:
            return None
        if provider is None:
            reference = self._section.reference(given.store, given.namespace)
            if not isinstance(reference, str) or reference not in self._sound:
                return None
            own = self._section.provider(reference)
            provider = None if isinstance(own, Problem) else own
        return None if provider is None else (store, provider)

    def _callers(self, place: str, given: ReadEntry | PushEntry, role: str) -> Problems:
        """Judge a consumer of a store that means the provider of each caller."""
        if given.backend is Backend.ESO:
            problem = (
                "the store means each caller's own provider, and External Secrets Operator knows one for all"
            )
            yield Problem(f"{place}.backend", problem, "choose backend: direct, or a store of this namespace")
        reference = self._section.reference(given.store, given.namespace)
        if isinstance(reference, Problem) and self.whole:
            yield reference.within(f"{place}.{role}")

    def _claimed(self, place: str, account: str, read: ReadEntry) -> Problems:
        """Judge a read of an account where the pool keeps it."""
        problems = [*self._account(place, account, read)]
        yield from problems
        way, pool = self._way(read), self._context.pool
        if problems or way is None or pool is None:
            return
        spec = way[1].spec
        if not isinstance(spec, KubernetesSpec) or spec.remote_namespace != pool:
            yield Problem(
                place,
                f"store {read.store} does not lead to namespace {pool}, where accounts are",
                f"use a provider of kind Kubernetes with remoteNamespace: {pool}",
            )

    def _delivered(self, place: str, account: str, push: PushEntry) -> Problems:
        """Judge a push of an account: of the copy that its tenant has."""
        problems = [*self._account(place, account, push)]
        yield from problems
        known = self._context.accounts.get(account)
        if not problems and known is not None and known.delivery is None:
            yield Problem(
                place,
                f"{account} has no copy in the namespace of its tenant, and pushes are of Secrets there",
                "add deliverTo to the account",
            )

    def _account(self, place: str, account: str, consumer: ReadEntry | PushEntry) -> Problems:
        known = self._context.accounts.get(account)
        if known is None:
            problem = f"{account} is not an account of a tenant"
            yield Problem(place, problem, nearest(account, self._context.accounts))
        elif known.namespace != consumer.namespace:
            yield Problem(
                place,
                f"{account} is an account of namespace {known.namespace}, and no other namespace gets at it",
                "name an account of this namespace's tenant",
            )


def _source(given: SourceEntry, named: Named) -> Mapping[str, Any]:
    if (one := given.extract) is not None:
        key = one.key if one.account is None else named(one.account)
        return {"extract": _remote(key, one)}
    if (wanted := given.find) is None:
        raise TypeError("settings let a source through that is none")
    way = {"tags": dict(wanted.tags)} if wanted.name is None else {"name": {"regexp": wanted.name}}
    return {"find": {**way, **_given(path=wanted.path), **_decoding(wanted)}}


def _remote(key: Any, given: ReadValue | ExtractEntry) -> Mapping[str, Any]:
    return _given(key=key, property=given.property_name, version=given.version, **_decoding(given))


def _decoding(given: ReadValue | ExtractEntry | FindEntry) -> Mapping[str, str]:
    strategy = given.decoding_strategy
    return {} if strategy is None else {"decodingStrategy": str(strategy)}


def _as_model(document: Mapping[str, Any], given: ReadEntry | PushEntry) -> Mapping[str, Any]:
    return {**document, "namespace": given.namespace, "backend": given.backend}


def _some(_account: str) -> str:
    """Stand in for the Secret of an account, which is known once it is claimed."""
    return "claimed-account"


def _refused(place: str, made: Callable[[], object]) -> Problems:
    try:
        made()
    except CredfleetError as error:
        yield Problem(place, error.problem, error.fix)


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


_FIELD: Final = "caBundle"
_SECTION: Final = "secretStores"


def read_certificates(document: dict[str, Any], root: Path) -> Iterator[Problem]:
    """Put the certificates of files where a configuration names them, and yield those that cannot be read.

    root: what paths are relative to. A part with a problem is taken out, so that the rest can be judged.
    """
    yield from _read_in(document.get(_SECTION), (), root)


def _read_in(part: Any, path: tuple[str | int, ...], root: Path) -> Iterator[Problem]:
    if isinstance(part, list):
        for index, each in enumerate(part):
            yield from _read_in(each, (*path, index), root)
    elif isinstance(part, dict):
        for name, each in [*part.items()]:
            if name == _FIELD and isinstance(each, dict):
                yield from _read_at(part, (*path, name), root)
            else:
                yield from _read_in(each, (*path, name), root)


def _read_at(around: dict[str, Any], path: tuple[str | int, ...], root: Path) -> Iterator[Problem]:
    try:
        around[_FIELD] = base64.b64encode((root / _file_of(around.pop(_FIELD))).read_bytes()).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        yield Problem(
            config_path(_SECTION, *path),
            f"its certificates cannot be read ({reason})",
            "write {file: PATH} of a file in PEM, relative to Pulumi.yaml, or their base64",
        )


def _file_of(given: dict[str, Any]) -> str:
    match given:
        case {"file": str(path), **others} if not others:
            return path
        case _:
            raise ValueError("it names no file")
