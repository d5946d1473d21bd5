"""Secret stores of a stack: reads and pushes through them, by the direct back end or ESO.

Owns the login Secrets of providers whose credential is declared, the Secrets that the direct back end writes,
the values it pushes, and ESO's objects. Providers are plain data without a Kubernetes object. Dependencies
keep a destroy safe: consumer first, then store, then the credential of its provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.config.field_types import first_name
from components.credentials import Credentials
from components.errors import Problem
from components.holding import current_holder, known_as
from components.projection.model import SecretRef
from components.projection.provider import CompositionArgs, source_inputs
from components.projection.settings import CredentialSource
from components.secret_stores.admission import document_of
from components.secret_stores.conditions import namespace_labels
from components.secret_stores.consumers import Backend, DecodingStrategy, ExternalSecret, PushSecret
from components.secret_stores.entries import PushEntry, ReadEntry
from components.secret_stores.eso import V1, V1ALPHA1, compile_push, compile_read, compile_store
from components.secret_stores.eso_objects import EsoObject, declare
from components.secret_stores.kinds import KINDS
from components.secret_stores.kubernetes_server import ROOT_CA
from components.secret_stores.login import login_data, login_of, secret_name
from components.secret_stores.lookout import EsoLookout, EsoLookoutArgs
from components.secret_stores.model import AnyProvider, ProviderKey, SecretStore, goes_by_labels
from components.secret_stores.provider import (
    LoginSecret,
    SecretPush,
    SecretPushArgs,
    SecretRead,
    SecretReadArgs,
)
from components.secret_stores.referent import provider_of
from components.secret_stores.registry import ProviderKind
from components.secret_stores.settings import SecretStoresSection
from components.waiting import apply_to_unknowns, declare_unless, join_reasons, once_made, pending

Document: TypeAlias = Mapping[str, Any]
_Foreseen: TypeAlias = Mapping[str, pulumi.Output[Mapping[str, str] | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretStoresArgs:
    """A section of the configuration, with inputs from the rest of the program.

    `tenants`: name → namespace. `namespace`: returns a namespace by its name, as the stack declares it. By
    tenant/slot: `claimed`, `delivered`: return the names of an account's Secret and of its copy, once they
    exist; `ready`: resources that a read must wait for; `waits`: why its consumers are skipped, empty if they
    are not; `foreseen`, `copied`: in a preview, known digests of the future content of the Secret and its
    copy. `copies`: copies of accounts that the stack makes in tenants' namespaces.
    """

    section: SecretStoresSection
    credentials: Credentials
    tenants: Mapping[str, str]
    namespace: Callable[[str], pulumi.Input[str]]
    claimed: Callable[[str], pulumi.Input[str]]
    delivered: Callable[[str], pulumi.Input[str]]
    ready: Callable[[str], pulumi.Input[Sequence[pulumi.Resource]]] = lambda _account: ()
    waits: Callable[[str], pulumi.Input[str]] = lambda _account: ""
    foreseen: _Foreseen = field(default_factory=dict[str, pulumi.Output[Mapping[str, str] | None]])
    copied: _Foreseen = field(default_factory=dict[str, pulumi.Output[Mapping[str, str] | None]])
    copies: Mapping[SecretRef, pulumi.Output[Any]] = field(
        default_factory=dict[SecretRef, pulumi.Output[Any]]
    )


@dataclass(frozen=True, slots=True)
class _Consumer:
    """A read or push, or part of one. `role`: reads or pushes. `document`: might contain outputs."""

    role: str
    key: str
    entry: ReadEntry | PushEntry
    document: Document
    waits: pulumi.Output[str]

    @property
    def whole(self) -> str:
        """Configuration entry that it is, or is part of."""
        return self.key.partition("/")[0]

    @property
    def verb(self) -> str:
        """Verb for messages: read or push."""
        return "read" if self.role == "reads" else "push"


class SecretStores(pulumi.ComponentResource):
    """Secret stores of a stack.

    Outputs of the direct back end: `reads`, name → Secret (namespace/name), and `pushes`, name → places.
    `skipped`: name → why it is not declared, or why ESO has not done it.
    """

    TYPE: ClassVar = "credfleet:index:SecretStores"
    reads: Mapping[str, pulumi.Output[str | None]]
    pushes: Mapping[str, pulumi.Output[list[str] | None]]
    skipped: pulumi.Output[Mapping[str, str]]

    def __init__(self, name: str, args: SecretStoresArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        section = args.section
        self._stores = {key: section.store(key) for key in section.stores}
        props = {"stores": {key: store.title for key, store in self._stores.items()}}
        for entries in (section.providers, section.stores, section.reads, section.pushes):
            for key, entry in entries.items():
                named = known_as(f"{name}/{key}", [f"{name}/{each}" for each in entry.previously])
                opts = pulumi.ResourceOptions.merge(opts, named)
        for key, push in section.pushes.items():
            for store in push.targets[1:]:
                former = section.stores[store].previously
                named = known_as(f"{name}/{key}/{store}", [f"{name}/{key}/{each}" for each in former])
                opts = pulumi.ResourceOptions.merge(opts, named)
        super().__init__(self.TYPE, name, props, opts)
        self._name, self._args, self._section = name, args, section
        self._labels = namespace_labels(args.tenants)
        self._credentials = dict(self._declare_credentials())
        named = {"reads": args.claimed, "pushes": args.delivered}
        self._consumers = [
            _Consumer(role, key, entry, section.document(key, entry, named[role]), self._waits(entry))
            for role, key, entry in section.consumers()
        ]
        direct = [each for each in self._consumers if each.entry.backend is Backend.DIRECT]
        self.reads = {
            each.key: declare_unless(each.waits, partial(self._read, each))
            for each in direct
            if each.role == "reads"
        }
        self.pushes = {
            each.key: declare_unless(each.waits, partial(self._push, each))
            for each in direct
            if each.role == "pushes"
        }
        waiting = pending({f"{each.verb} {each.key}": each.waits for each in direct})
        eso = self._declare_eso([*self._eso_stores()])
        self.skipped = pulumi.Output.all(waiting, eso).apply(lambda both: {**both[0], **both[1]})
        for key in section.providers:
            if warning := self._kind(key).warning:
                pulumi.log.warn(f"{key}: {warning}", self)
        self.register_outputs({"reads": self.reads, "pushes": self.pushes, "skipped": self.skipped})

    def _kind(self, provider: str) -> ProviderKind:
        return KINDS.kind_of(self._section.models[self._section.key_of(provider)])

    def _declare_credentials(self) -> Iterator[tuple[ProviderKey, pulumi.Resource]]:
        for key, given in self._section.providers.items():
            if (source := given.credentials_from) is not None and given.namespace is not None:
                kind = self._kind(key)
                keys = login_of(kind, given.spec)
                namespace, name = self._args.namespace(given.namespace), secret_name(given.name or key)
                yield (
                    self._section.key_of(key),
                    self._elsewhere(key, source, namespace, name, [*keys])
                    if source.entry is None
                    else Secret(
                        f"{self._name}/{key}-credential",
                        metadata=ObjectMetaArgs(
                            name=name, namespace=namespace, labels=kind.facts.get("labels")
                        ),
                        type="Opaque",
                        data=self._args.credentials.secret(source.entry, partial(login_data, keys)),
                        opts=pulumi.ResourceOptions(parent=self),
                    ),
                )

    def _elsewhere(
        self, key: str, source: CredentialSource, namespace: pulumi.Input[str], name: str, keys: Sequence[str]
    ) -> LoginSecret:
        """Declare the login Secret of an external reference, which is not read before the update."""
        origin = source.source(self._section.place("providers", key, "credentialsFrom"))
        args = CompositionArgs(
            namespace=namespace,
            target_name=name,
            owner=self._owner("providers", key),
            sources=source_inputs([origin]),
            recipe={"keys": keys},
            labels=self._kind(key).facts.get("labels") or {},
        )
        return LoginSecret(f"{self._name}/{key}-login", args, pulumi.ResourceOptions(parent=self))

    def _waits(self, entry: ReadEntry | PushEntry) -> pulumi.Output[str]:
        return join_reasons(self._args.waits(account) for _, account in entry.accounts)

    def _ready(self, entry: ReadEntry | PushEntry) -> pulumi.Output[Sequence[pulumi.Resource]]:
        """Return what a consumer depends on: its provider's credential, and the accounts it reads."""
        of_accounts = [self._args.ready(account) for _, account in entry.accounts]
        first = self._credential_of(entry.store, entry.namespace)
        return pulumi.Output.all(*of_accounts).apply(lambda each: [*first, *chain(*each)])

    def _read(self, read: _Consumer) -> pulumi.Output[str]:
        args = SecretReadArgs(
            target=read.document["target"],
            read={part: each for part, each in read.document.items() if part != "target"},
            foreseen=self._foreseen(
                self._args.foreseen, read.entry, lambda key, _: (read.document["target"], key)
            ),
            **self._way(read),
        )
        opts = pulumi.ResourceOptions(parent=self, depends_on=self._ready(read.entry))
        return SecretRead(f"{self._name}/{read.key}-read", args, opts).reference

    def _push(self, push: _Consumer) -> pulumi.Output[list[str]]:
        args = SecretPushArgs(
            push=push.document,
            foreseen=self._foreseen(
                self._args.copied,
                push.entry,
                lambda _, value: (self._args.delivered(value.account), value.key),
            ),
            **self._way(push),
        )
        namespace, copies = push.entry.namespace, self._args.copies
        secrets = {str(getattr(each, "secret", None)) for each in push.entry.data.values()}
        pushed = [copies.get(SecretRef(namespace, each)) for each in sorted(secrets)]
        first = self._credential_of(push.entry.store, namespace)
        after = pulumi.Output.all(*pushed).apply(lambda made: [*first, *filter(None, made)])
        opts = pulumi.ResourceOptions(parent=self, depends_on=after)
        return SecretPush(f"{self._name}/{push.key}-push", args, opts).places

    def _foreseen(
        self, known: _Foreseen, entry: ReadEntry | PushEntry, place: Callable[[str, Any], tuple[Any, str]]
    ) -> pulumi.Output[Mapping[str, Mapping[str, str]] | None] | None:
        """Return the digests known in a preview: Secret → key → digest. `place`: returns the first two."""
        as_it_is = (None, DecodingStrategy.NONE)  # any other decoding would change the value
        values = {
            key: value
            for key, value in (entry.unchanged if isinstance(entry, ReadEntry) else entry.data).items()
            if value.account in known and getattr(value, "decoding_strategy", None) in as_it_is
        }
        places = {key: place(key, value) for key, value in values.items()}

        def gathered(told: Sequence[Any]) -> Mapping[str, Mapping[str, str]] | None:
            found: dict[str, dict[str, str]] = {}
            for key, (digests, secret) in zip(values, told, strict=True):
                if digests and secret and values[key].key is None:
                    found.setdefault(secret, {}).update(digests)
                elif digests and secret and values[key].key in digests:
                    found.setdefault(secret, {})[places[key][1]] = digests[values[key].key]
            return found or None

        told = [pulumi.Output.all(known[str(values[key].account)], places[key][0]) for key in values]
        return pulumi.Output.all(*told).apply(gathered) if told else None

    def _way(self, consumer: _Consumer) -> Any:
        namespace = consumer.entry.namespace
        store = self._stores[consumer.entry.store]
        meant = provider_of(store, namespace, KINDS)
        return {
            "namespace": self._args.namespace(namespace),
            "owner": self._owner(consumer.role, consumer.whole, consumer.entry.store),
            "store": document_of(store),
            "provider": document_of(self._section.models[meant]) if isinstance(meant, ProviderKey) else None,
            "labels": self._labels.get(namespace, {}),
        }

    def _declare_eso(self, stores: Sequence[EsoObject]) -> pulumi.Output[Mapping[str, str]]:
        """Declare ESO's objects once its CRDs are known to exist, and report what is skipped."""
        wanted = [*stores, *map(self._eso_consumer, self._by_eso("reads", "pushes"))]
        if not wanted:
            return pulumi.Output.from_input({})
        args = EsoLookoutArgs(
            reads=[*self._eso_reads()],
            callers=[*self._eso_callers().values()],
            pushes=[*self._eso_pushes()],
            servers=[*_servers(stores)] or None,
        )
        lookout = EsoLookout(f"{self._name}-eso", args, pulumi.ResourceOptions(parent=self))
        waits = pending({each.role: each.waits for each in wanted})
        refused = apply_to_unknowns(_refused, lookout.refused)
        return pulumi.Output.all(once_made(lookout.kinds), waits, refused).apply(
            lambda known: declare(
                self._name,
                wanted,
                known[0],
                self._section.ready_within,
                self,
                waits=known[1],
                refused=known[2],
            )
        )

    def _by_eso(self, *roles: str) -> Iterator[_Consumer]:
        for each in self._consumers:
            if each.entry.backend is Backend.ESO and each.role in roles:
                yield each

    def _place(self, consumer: _Consumer) -> str:
        return self._section.place(consumer.role, consumer.whole)

    def _eso_reads(self) -> Iterator[Mapping[str, str]]:
        """Yield the Secrets that ESO will create, as inputs of the lookout."""
        for each in self._by_eso("reads"):
            yield {
                "place": self._place(each),
                "namespace": each.entry.namespace,
                "name": each.entry.name or each.key,
                "target": each.document["target"],
                "owner": self._owner("reads", each.key),
            }

    def _eso_pushes(self) -> Iterator[Mapping[str, Any]]:
        """Yield the pushes by ESO, as inputs of the lookout, which ignores the names of their Secrets."""
        for each in self._by_eso("pushes"):
            yield {
                **self._way(each),
                "place": self._place(each),
                "namespace": each.entry.namespace,
                "push": self._section.document(each.key, each.entry, str),
            }

    def _eso_callers(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """Return each use of a store whose conditions select by labels, which only the cluster knows."""
        return {
            (place, store.title): {
                "place": place,
                "namespace": each.entry.namespace,
                "store": store.title,
                "conditions": document_of(store)["spec"]["conditions"],
                "labels": self._labels.get(each.entry.namespace, {}),
            }
            for each in self._by_eso("reads", "pushes")
            for place, store in [(self._place(each), self._stores[each.entry.store])]
            if goes_by_labels(store)
        }

    def _owner(self, role: str, key: str, store: str = "") -> str:
        """Return the owner of what an entry creates; each further store of a push has its own owner."""
        entries: Mapping[str, Any] = getattr(self._section, role)
        owner = f"{role}/{first_name(key, entries[key].previously)}"
        if role == "pushes" and store in self._section.pushes[key].targets[1:]:
            owner += f"/{first_name(store, self._section.stores[store].previously)}"
        return current_holder(self._section.KEY, owner)

    def _eso_stores(self) -> Iterator[EsoObject]:
        for key, store in self._stores.items():
            if key not in self._section.served_by_eso:
                continue
            manifest = compile_store(store, _sound(self._section.provider_of(key)), KINDS)
            own = isinstance(store, SecretStore)
            yield EsoObject(
                role=f"{self._name}/{key}-store",
                place=self._section.place("stores", key),
                api_version=manifest["apiVersion"],
                kind=manifest["kind"],
                name=store.name,
                namespace=self._args.namespace(store.namespace) if own else None,
                home=store.namespace if own else None,
                spec=manifest["spec"],
                annotations=manifest["metadata"].get("annotations", {}),
                after=self._credential_of(key),
            )

    def _eso_consumer(self, each: _Consumer) -> EsoObject:
        is_read = each.role == "reads"
        return EsoObject(
            role=f"{self._name}/{each.key}-{each.verb}",
            place=self._place(each),
            api_version=V1 if is_read else V1ALPHA1,
            kind="ExternalSecret" if is_read else "PushSecret",
            name=each.entry.name or each.key,
            namespace=self._args.namespace(each.entry.namespace),
            home=each.entry.namespace,
            spec=pulumi.Output.from_input(each.document).apply(partial(self._compiled, each)),
            needs=[f"{self._name}/{each.entry.store}-store"],
            waits=each.waits,
            type=each.document.get("type"),
        )

    def _compiled(self, consumer: _Consumer, document: Document) -> Document:
        entry = consumer.entry
        given = {**document, "namespace": entry.namespace}
        provider = _sound(self._section.provider_of(entry.store))
        if isinstance(entry, ReadEntry):
            return compile_read(ExternalSecret.model_validate(given), provider, KINDS)["spec"]
        owner = self._owner("pushes", consumer.whole, entry.store)
        return compile_push(PushSecret.model_validate(given), provider, KINDS, owner)["spec"]

    def _credential_of(self, store: str, caller: str = "") -> list[pulumi.Resource]:
        meant = provider_of(self._stores[store], caller, KINDS)
        found = self._credentials.get(meant) if isinstance(meant, ProviderKey) else None
        return [] if found is None else [found]


def _refused(found: Any) -> Mapping[str, str]:
    """Return the rejected entries; None, which is unknown in a preview, counts as empty."""
    return found if isinstance(found, dict) else {}


def _servers(stores: Iterable[EsoObject]) -> Iterator[Mapping[str, Any]]:
    """Yield each API server that has its own CA, with the namespace of those certificates."""
    for one in stores:
        spec: Any = one.spec
        server = spec["provider"].get("kubernetes", {}).get("server") or {}
        given = server.get("caProvider")
        if given is not None and given["name"] != ROOT_CA.name:
            yield {"place": one.place, "server": {**server, "caProvider": {"namespace": one.home, **given}}}
        elif "caBundle" in server:
            yield {"place": one.place, "server": server}


def _sound(model: AnyProvider | Problem) -> AnyProvider:
    if isinstance(model, Problem):
        raise TypeError(f"settings accepted an invalid provider: {model.problem}")
    return model
