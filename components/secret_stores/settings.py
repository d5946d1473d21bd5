"""Section `credfleet:secretStores`, the models of its entries, and checks across entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

from pydantic import Field, ValidationError

from components.config.document import nearest, problems_of
from components.config.field_types import Duration, ObjectName
from components.config.section import Problems, ReviewContext, Section, Written
from components.errors import CredfleetError, Problem
from components.projection.settings import CredentialSource, Delivery
from components.secret_stores.admission import Purpose, admit, denied, push_objections
from components.secret_stores.conditions import condition_objections, namespace_labels, requirement_faults
from components.secret_stores.consumers import Backend, ExternalSecret, PushSecret
from components.secret_stores.entries import (
    CallersProvider,
    Named,
    ProviderEntry,
    PushEntry,
    ReadEntry,
    StoreEntry,
)
from components.secret_stores.eso import compile_push, compile_read, compile_store, lies_in
from components.secret_stores.eso_providers import Scope
from components.secret_stores.explain import KnownObjects, explain, provider_for
from components.secret_stores.gathering import read_objections
from components.secret_stores.kinds import KINDS
from components.secret_stores.login import login_of, login_problem, secret_name, with_login
from components.secret_stores.model import (
    AS_ESO,
    AnyProvider,
    AnyStore,
    ClusterSecretStore,
    ProviderKey,
    SecretStore,
)
from components.secret_stores.registry import ProviderKind
from components.secret_stores.templates import VALUE


class SecretStoresSection(Section):
    """Stores of secrets, and what goes through them. Its methods make models of sound entries."""

    KEY: ClassVar = "secretStores"
    providers: Mapping[ObjectName, ProviderEntry] = Field(default={}, description="Name → provider.")
    stores: Mapping[ObjectName, StoreEntry] = Field(default={}, description="Name → store.")
    reads: Mapping[ObjectName, ReadEntry] = Field(default={}, description="Name → read.")
    pushes: Mapping[ObjectName, PushEntry] = Field(default={}, description="Name → push.")
    ready_within: Duration = Field(
        default="30s", description="How long an update waits for External Secrets Operator."
    )

    def provider(self, name: str) -> AnyProvider | Problem:
        """Return the model of a provider. Raises pydantic.ValidationError for an invalid spec."""
        given = self.providers[name]
        kind = KINDS.referred(given.api_version, given.kind)
        if isinstance(kind, Problem):
            return kind
        its = given.name or name
        spec = given.spec if given.credentials_from is None else with_login(kind, given.spec, its)
        return spec if isinstance(spec, Problem) else kind.provider(given.namespace, its, spec)

    def store(self, name: str) -> AnyStore:
        """Return the model of a store with a known provider kind."""
        given = self.stores[name]
        said = {"controller", "provider", "retry_settings", "refresh_interval", "conditions"}
        spec = given.model_dump(by_alias=True, exclude_defaults=True, include=said)
        key = None if given.provider_ref is None else self.key_of(given.provider_ref)
        if (own := given.callers_provider) is not None:
            key = ProviderKey(own.api_version, own.kind, None, own.name)
        if key is not None:
            reference = {"apiVersion": key.api_version, "kind": key.kind, "name": key.name}
            spec["providerRef"] = {**reference, "namespace": key.namespace}
        document = {"name": given.name or name, "spec": spec}
        if given.cluster:
            return ClusterSecretStore.model_validate(document)
        return SecretStore.model_validate({**document, "namespace": given.namespace})

    @cached_property
    def models(self) -> Mapping[ProviderKey, AnyProvider]:
        """Models of the valid providers, by the key that stores refer to."""
        found = map(self.provider, self.providers)
        return {each.key: each for each in found if not isinstance(each, Problem)}

    def key_of(self, provider: str) -> ProviderKey:
        """Return the key of an entry of providers."""
        given = self.providers[provider]
        return ProviderKey(given.api_version, given.kind, given.namespace, given.name or provider)

    def provider_of(self, store: str, caller: str = "") -> AnyProvider | Problem:
        """Return the provider of a store for a caller, referenced or embedded."""
        found = provider_for(self.store(store), caller, KnownObjects(KINDS, self.models, {}))
        if found is None:
            raise TypeError(f"store {store} means the provider of its caller, and there is none")
        return found

    def consumers(self) -> Iterator[tuple[str, str, ReadEntry | PushEntry]]:
        """Yield each read, and each part of a push: role, key, entry."""
        for key, read in self.reads.items():
            yield "reads", key, read
        for name, push in self.pushes.items():
            yield from (("pushes", key, part) for key, part in push.parts(name))

    def document(self, key: str, entry: ReadEntry | PushEntry, named: Named) -> Mapping[str, Any]:
        """Return a consumer as an ExternalSecret or PushSecret, without namespace."""
        store = self.stores[entry.store]
        kind = "ClusterSecretStore" if store.cluster else "SecretStore"
        return entry.document(key, {"kind": kind, "name": store.name or entry.store}, named)

    @property
    def served_by_eso(self) -> Collection[str]:
        """Stores to declare as ESO objects: all but those that only the direct back end uses or can use."""
        used = [(entry.backend, entry.store) for _, _, entry in self.consumers()]
        directly, by_eso = ({store for by, store in used if by is backend} for backend in Backend)
        of_callers = {name for name, store in self.stores.items() if store.callers_provider is not None}
        return self.stores.keys() - (directly - by_eso) - of_callers

    def sources(self) -> Iterator[tuple[str, CredentialSource]]:
        """Yield the credential sources of providers."""
        for name, provider in self.providers.items():
            if provider.credentials_from is not None:
                yield self.place("providers", name, "credentialsFrom"), provider.credentials_from

    def written(self) -> Iterator[Written]:
        """Yield every Secret that is written for a provider or by a read."""
        for name, provider in self.providers.items():
            if provider.credentials_from is not None and provider.namespace is not None:
                yield provider.namespace, secret_name(provider.name or name), self.place("providers", name)
        for name, read in self.reads.items():
            yield read.namespace, read.secret(name), self.place("reads", name)

    def review(self, context: ReviewContext) -> Problems:
        """Check references, specs, admission, features of each back end, and conflicts."""
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

    def _twice(self) -> Problems:
        """Yield objects of the same kind, namespace and name that two entries declare."""
        first: dict[tuple[str | None, ...], tuple[str, str]] = {}
        entries: list[tuple[str, str, Any]] = [*self.consumers()]
        entries[:0] = [("stores", key, store) for key, store in self.stores.items()]
        entries[:0] = [("providers", key, provider) for key, provider in self.providers.items()]
        for role, key, given in entries:
            kind = getattr(given, "kind", role)
            place = self.place(role, key.partition("/")[0])
            taken = first.setdefault((role, kind, given.namespace, given.name or key), (place, key))
            if taken != (place, key):
                problem = f"{taken[0]} has this name in the same place, {given.name or key}"
                yield Problem(f"{place}.name", problem, "give the two different names, or namespaces")


class _Review:
    """Review of a section; parts that depend on an invalid part are skipped.

    `whole`: no part of the section or the tenants was dropped as invalid, so references can be checked.
    """

    def __init__(self, section: SecretStoresSection, context: ReviewContext) -> None:
        self._section = section
        self._context = context
        self.whole = context.whole(section.KEY, "tenants")
        self._labels = namespace_labels(context.tenants)
        self._models: dict[ProviderKey, AnyProvider] = {}
        self._known = KnownObjects(KINDS, self._models, self._labels, labels_are_whole=False)
        self._stores: dict[str, AnyStore] = {}
        self._places: dict[tuple[str, str, str | None], tuple[str, str]] = {}
        self._reads: dict[str, tuple[ExternalSecret, AnyProvider]] = {}

    def provider(self, name: str) -> Problems:
        """Check a provider and its login."""
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
                if not problems:
                    self._models[model.key] = model
        except ValidationError as error:
            problems += problems_of(error, kind.spec, f"{place}.spec", otherwise=AS_ESO)
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
        """Check a store with its provider, and whether ESO could have it where ESO must serve it."""
        section = self._section
        given, place = section.stores[name], section.place("stores", name)
        if given.namespace is not None and given.namespace not in self._context.namespaces:
            yield from self._context.review_namespace(f"{place}.namespace", given.namespace)
            return
        reference = given.provider_ref
        if reference is not None and reference not in section.providers:
            if self.whole:
                problem = f"{reference} is not an entry of providers"
                yield Problem(f"{place}.providerRef", problem, nearest(reference, section.providers))
            return
        if reference is not None and section.key_of(reference) not in self._models:
            return
        store = section.store(name)
        named = [each for condition in given.conditions for each in condition.namespaces]
        for each in named:
            if self._context.slip_of(each) not in (None, *named):
                yield from self._context.review_namespace(f"{place}.conditions", each)
        if faults := [*condition_objections(given.conditions), *requirement_faults(given.conditions)]:
            yield from (each.within(f"{place}.{each.place.removeprefix('spec.')}") for each in faults)
            return
        try:
            provider = provider_for(store, "", self._known)
        except ValidationError as error:
            [key] = given.provider or {}
            kind = KINDS.embedded(key)
            if not isinstance(kind, Problem):
                yield from problems_of(error, kind.spec, f"{place}.provider.{key}", otherwise=AS_ESO)
            return
        where = place if given.callers_provider is None else f"{place}.callersProvider"
        if isinstance(provider, Problem) and given.provider is not None:
            where = f"{place}.provider"
        refusals = explain(store, given.namespace or "", self._known).refusals
        yield from (refusal.within(where) for refusal in refusals)
        if not refusals:
            self._stores[name] = store
            if name in section.served_by_eso and provider and not isinstance(provider, Problem):
                yield from _refused(place, partial(compile_store, store, provider, KINDS))

    def read(self, name: str, read: ReadEntry) -> Problems:
        """Check a read for its back end."""
        place = self._section.place("reads", name)
        problems = [*self._consumer(place, read), *_lacking_values(place, read)]
        yield from problems
        way = self._way(read)
        if problems or way is None:
            return
        provider = way[1]
        document = self._section.document(name, read, _some)
        model = ExternalSecret.model_validate({**document, "namespace": read.namespace})
        self._reads[name] = model, provider
        if read.backend is Backend.ESO:
            yield from _refused(place, partial(compile_read, model, provider, KINDS))
            return
        for objection in read_objections(model, KINDS.serving(provider)):
            yield objection.within(place)

    def circles(self) -> Problems:
        """Yield reads whose Secrets include each other and would grow with every update."""
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
        """Check a push for its back end, and that no other push writes the same place."""
        place = self._section.place("pushes", name)
        problems = [*self._consumer(place, push), *self._lacking_keys(place, push)]
        yield from problems
        ways = {each.store: way for each in push.to_each() if (way := self._way(each)) is not None}
        if problems:
            return
        for store, (_, provider) in ways.items():
            yield from self._goes_alone(place, store, push, provider)
        for key, part in push.parts(name):
            if part.store in ways:
                document = self._section.document(key, part, _some)
                yield from self._part(place, document, part, ways[part.store][1])

    def _lacking_keys(self, place: str, push: PushEntry) -> Problems:
        """Yield pushed keys that the templates of reads do not produce."""
        made = {(read.namespace, read.secret(name)): read for name, read in self._section.reads.items()}
        for key, each in push.data.items():
            read = made.get((push.namespace, each.secret or ""))
            if read is not None and read.template and each.key not in (None, *read.template):
                problem = f"the template of the read that makes {each.secret} has no key {each.key}"
                yield Problem(f"{place}.data.{key}.key", problem, nearest(str(each.key), read.template))

    def _goes_alone(self, place: str, store: str, push: PushEntry, provider: AnyProvider) -> Problems:
        """Yield places that another push, or the same push through another store, already writes."""
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
        """Check what a push becomes in its back end."""
        try:
            model = PushSecret.model_validate({**document, "namespace": push.namespace})
        except ValidationError as error:
            for problem in problems_of(error, PushSecret, place):
                yield problem.within(f"{place}.data")
            return
        if push.backend is Backend.ESO:
            yield from _refused(place, partial(compile_push, model, provider, KINDS))
        else:
            for objection in push_objections(model, KINDS.serving(provider)):
                yield objection.within(f"{place}.data")

    def _consumer(self, place: str, given: ReadEntry | PushEntry) -> list[Problem]:
        """Check the references of a consumer."""
        problems: list[Problem] = []
        for each in [given] if isinstance(given, ReadEntry) else given.to_each():
            problems += self._use(place, each, "store" if each.store == given.store else "stores")
        for where, account in given.accounts if given.namespace in self._context.namespaces else ():
            problems += self._account(f"{place}.{where}.account", account, given)
        return [*dict.fromkeys(problems)]

    def _use(self, place: str, given: ReadEntry | PushEntry, role: str) -> Problems:
        """Check the use of one store; `role`: the key that names it."""
        yield from self._context.review_namespace(f"{place}.namespace", given.namespace)
        if given.store not in self._section.stores:
            problem = f"{given.store} is not an entry of stores"
            yield Problem(f"{place}.{role}", problem, nearest(given.store, self._section.stores))
            return
        if given.namespace not in self._context.namespaces or given.store not in self._stores:
            return
        if (wanted := self._section.stores[given.store].callers_provider) is not None:
            yield from self._callers(place, given, role, wanted)
        way = self._way(given)
        if way is None:
            return
        store, provider = way
        found = explain(store, given.namespace, self._known)
        if given.backend is Backend.ESO:
            if found.admitted is False:
                refusal = denied(store, found)
                yield Problem(f"{place}.{role}", refusal.problem, refusal.fix)
            return
        if found.undecided:  # its creator might label the namespace: the update checks
            open_to_all = store.spec.model_copy(update={"conditions": ()})
            store = store.model_copy(update={"spec": open_to_all})
        purpose = Purpose.READ if isinstance(given, ReadEntry) else Purpose.PUSH
        labels = self._labels.get(given.namespace, {})
        yield from _refused(
            f"{place}.{role}", partial(admit, store, provider, given.namespace, labels, purpose)
        )

    def _way(self, given: ReadEntry | PushEntry) -> tuple[AnyStore, AnyProvider] | None:
        """Return the store of a consumer and its provider; None if either is invalid."""
        store = self._stores.get(given.store)
        provider = store and provider_for(store, given.namespace, self._known)
        return None if not store or not provider or isinstance(provider, Problem) else (store, provider)

    def _callers(
        self, place: str, given: ReadEntry | PushEntry, role: str, wanted: CallersProvider
    ) -> Problems:
        """Check a consumer of a store that uses each caller's own provider."""
        if given.backend is Backend.ESO:
            problem = (
                "the store means each caller's own provider, and External Secrets Operator knows one for all"
            )
            yield Problem(f"{place}.backend", problem, "choose backend: direct, or a store of this namespace")
        key = ProviderKey(wanted.api_version, wanted.kind, given.namespace, wanted.name)
        if self.whole and key not in map(self._section.key_of, self._section.providers):
            yield Problem(
                f"{place}.{role}",
                f"namespace {given.namespace} has no provider {wanted.name} of kind {wanted.kind}, which the"
                " store means",
                f"add it to providers, with namespace: {given.namespace}",
            )

    def _account(self, place: str, account: str, consumer: ReadEntry | PushEntry) -> Problems:
        """Check a read of an account in the pool, or a push of the copy in its tenant's namespace."""
        known, pool, way = self._context.accounts.get(account), self._context.pool, self._way(consumer)
        leads_to = way and getattr(way[1].spec, "remote_namespace", None)
        if known is None:
            problem = f"{account} is not an account of a tenant"
            fix = nearest(account, self._context.accounts)
        elif known.namespace != consumer.namespace:
            problem = (
                f"{account} is an account of namespace {known.namespace}, and no other namespace gets at it"
            )
            fix = "name an account of this namespace's tenant"
        elif isinstance(consumer, PushEntry) and known.delivery is None:
            problem = f"{account} has no copy in the namespace of its tenant, and pushes are of Secrets there"
            fix = "add deliverTo to the account"
        elif isinstance(consumer, PushEntry) and (lacking := _lacking(consumer, account, known.delivery)):
            problem, fix = f"the copy of {account} has no key {lacking[0]}", nearest(*lacking)
        elif isinstance(consumer, ReadEntry) and way is not None and pool not in (None, leads_to):
            problem = f"store {consumer.store} does not lead to namespace {pool}, where accounts are"
            fix = f"use a provider of kind Kubernetes with remoteNamespace: {pool}"
        else:
            return
        yield Problem(place, problem, fix)


def _lacking(push: PushEntry, account: str, copy: Delivery | None) -> tuple[str, Collection[str]] | None:
    """Return a pushed key that the account's copy lacks, and the keys it has; otherwise None."""
    if copy is None or not copy.plan.keys:
        return None
    held = {*copy.plan.keys, *copy.plan.fixed}
    pushed = (each.key for each in push.data.values() if each.account == account and each.key)
    return next(((key, held) for key in pushed if key not in held), None)


def _lacking_values(place: str, read: ReadEntry) -> Problems:
    """Yield problems of template keys that only `data` could provide."""
    names = {key for key in read.data if key.isidentifier()}
    for key, text in read.template.items() if not read.data_from else ():
        for name in sorted({*VALUE.findall(text)} - names):
            yield Problem(f"{place}.template.{key}", f"data has no key {name}", nearest(name, names))


def _some(_account: str) -> str:
    """Return a placeholder for the Secret of an account, whose name is known once it is claimed."""
    return "claimed-account"


def _refused(place: str, made: Callable[[], object]) -> Problems:
    try:
        made()
    except CredfleetError as error:
        yield Problem(place, error.problem, error.fix)
