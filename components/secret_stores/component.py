"""The secret stores of a stack: what is read and pushed through them, directly or by ESO.

Owns the Secrets that providers log in with where their credential is declared, the Secrets the direct back
end makes, the values it pushes, and ESO's objects. Providers are plain data: the cluster has no object for
one. The order keeps a destroy safe: consumer, then store, then the credential of its provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.secret_stores.consumers import Backend, ExternalSecret, PushSecret
from components.secret_stores.direct import document_of
from components.secret_stores.eso import V1, V1ALPHA1, compile_push, compile_read, compile_store
from components.secret_stores.eso_objects import EsoObject, declare
from components.secret_stores.kinds import KINDS
from components.secret_stores.lookout import EsoLookout, EsoLookoutArgs
from components.secret_stores.model import AnyProvider, AnyStore, ClusterProvider, Provider, SecretStore
from components.secret_stores.provider import SecretPush, SecretPushArgs, SecretRead, SecretReadArgs
from components.secret_stores.referent import provider_of

Document: TypeAlias = Mapping[str, Any]

EXTERNAL_SECRET: Final = (V1, "ExternalSecret")
PUSH_SECRET: Final = (V1ALPHA1, "PushSecret")


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialArgs:
    """The Secret a provider logs in with. data: base64, marked secret."""

    namespace: pulumi.Input[str]
    name: str
    data: pulumi.Input[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreArgs:
    """A store, and what it keeps secrets in.

    namespace: of a SecretStore, as the stack declares it. provider: what the store refers to; None when it
    has one embedded. credential: the provider's name in SecretStoresArgs.credentials. by_eso: whether ESO has
    the store, too.
    """

    store: AnyStore
    by_eso: bool
    namespace: pulumi.Input[str] | None = None
    provider: AnyProvider | None = None
    credential: str | None = None

    @property
    def meant(self) -> AnyProvider:
        """The provider, referred to or embedded."""
        found = self.provider or provider_of(self.store, "", KINDS)
        if not isinstance(found, Provider | ClusterProvider):
            raise TypeError(f"settings let {self.store.title} through without a provider")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerArgs:
    """A read or push of a namespace.

    caller: the namespace's name; namespace: as the stack declares it. store: its name in
    SecretStoresArgs.stores. document: as ExternalSecret or PushSecret has it, without namespace and backend;
    names in it may be outputs. owner: the same text whenever the program runs. labels: of the namespace, as
    far as the stack declares them.
    """

    caller: str
    namespace: pulumi.Input[str]
    store: str
    backend: Backend
    document: Document
    owner: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretStoresArgs:
    """All of it by logical name; credentials by the names of their providers."""

    credentials: Mapping[str, CredentialArgs]
    stores: Mapping[str, StoreArgs]
    reads: Mapping[str, ConsumerArgs]
    pushes: Mapping[str, ConsumerArgs]


class SecretStores(pulumi.ComponentResource):
    """The stores of a stack.

    Outputs: reads, name → Secret (namespace/name), and pushes, name → places, of the direct back end;
    skipped, object of ESO → why it is not declared.
    """

    TYPE: ClassVar = "credfleet:index:SecretStores"
    reads: Mapping[str, pulumi.Output[str]]
    pushes: Mapping[str, pulumi.Output[list[str]]]
    skipped: pulumi.Output[Mapping[str, str]]

    def __init__(self, name: str, args: SecretStoresArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {"stores": {key: each.store.title for key, each in args.stores.items()}}
        super().__init__(self.TYPE, name, props, opts)
        self._name = name
        self._args = args
        self._credentials = {key: self._credential(key, each) for key, each in args.credentials.items()}
        self.reads = {
            key: self._read(key, each).reference
            for key, each in args.reads.items()
            if each.backend is Backend.DIRECT
        }
        self.pushes = {
            key: self._push(key, each).places
            for key, each in args.pushes.items()
            if each.backend is Backend.DIRECT
        }
        self.skipped = self._declare_eso()
        self.register_outputs({"reads": self.reads, "pushes": self.pushes, "skipped": self.skipped})

    def _credential(self, key: str, args: CredentialArgs) -> Secret:
        return Secret(
            f"{self._name}/{key}-credential",
            metadata=ObjectMetaArgs(name=args.name, namespace=args.namespace),
            type="Opaque",
            data=pulumi.Output.secret(args.data),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _read(self, key: str, args: ConsumerArgs) -> SecretRead:
        return SecretRead(
            f"{self._name}/{key}-read",
            SecretReadArgs(
                namespace=args.namespace,
                target=args.document["target"],
                owner=args.owner,
                read={part: each for part, each in args.document.items() if part != "target"},
                **self._way(args),
            ),
            self._after_credential(args.store),
        )

    def _push(self, key: str, args: ConsumerArgs) -> SecretPush:
        return SecretPush(
            f"{self._name}/{key}-push",
            SecretPushArgs(namespace=args.namespace, owner=args.owner, push=args.document, **self._way(args)),
            self._after_credential(args.store),
        )

    def _way(self, args: ConsumerArgs) -> Any:
        through = self._args.stores[args.store]
        return {
            "store": document_of(through.store),
            "provider": None if through.provider is None else document_of(through.provider),
            "labels": args.labels,
        }

    def _declare_eso(self) -> pulumi.Output[Mapping[str, str]]:
        """Declare what ESO is to do once it is known to be there, and tell what is left out."""
        wanted = [*self._eso_stores(), *self._eso_consumers()]
        if not wanted:
            return pulumi.Output.from_input({})
        lookout = EsoLookout(f"{self._name}-eso", EsoLookoutArgs(), pulumi.ResourceOptions(parent=self))
        return lookout.kinds.apply(lambda served: declare(wanted, served, self))

    def _eso_stores(self) -> Iterator[EsoObject]:
        for key, each in self._args.stores.items():
            if not each.by_eso:
                continue
            manifest = compile_store(each.store, each.meant, KINDS)
            yield EsoObject(
                role=f"{self._name}/{key}-store",
                api_version=manifest["apiVersion"],
                kind=manifest["kind"],
                name=each.store.name,
                namespace=each.namespace if isinstance(each.store, SecretStore) else None,
                spec=manifest["spec"],
                annotations=manifest["metadata"].get("annotations", {}),
                after=self._credential_of(key),
            )

    def _eso_consumers(self) -> Iterator[EsoObject]:
        for key, each in self._args.reads.items():
            if each.backend is Backend.ESO:
                yield self._eso_consumer(f"{self._name}/{key}-read", each, _compiled_read, EXTERNAL_SECRET)
        for key, each in self._args.pushes.items():
            if each.backend is Backend.ESO:
                yield self._eso_consumer(f"{self._name}/{key}-push", each, _compiled_push, PUSH_SECRET)

    def _eso_consumer(
        self, role: str, args: ConsumerArgs, compiled: _Compiler, kind: tuple[str, str]
    ) -> EsoObject:
        provider = self._args.stores[args.store].meant
        spec = pulumi.Output.from_input(args.document).apply(
            lambda document: compiled(args.caller, document, provider)["spec"]
        )
        return EsoObject(
            role=role,
            api_version=kind[0],
            kind=kind[1],
            name=args.document["name"],
            namespace=args.namespace,
            spec=spec,
            needs=[f"{self._name}/{args.store}-store"],
        )

    def _credential_of(self, store: str) -> Sequence[pulumi.Resource]:
        credential = self._args.stores[store].credential
        return [] if credential is None else [self._credentials[credential]]

    def _after_credential(self, store: str) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=[*self._credential_of(store)])


_Compiler: TypeAlias = Callable[[str, Document, AnyProvider], Mapping[str, Any]]


def _compiled_read(caller: str, document: Document, provider: AnyProvider) -> Mapping[str, Any]:
    given = {**document, "namespace": caller, "backend": Backend.ESO}
    return compile_read(ExternalSecret.model_validate(given), provider, KINDS)


def _compiled_push(caller: str, document: Document, provider: AnyProvider) -> Mapping[str, Any]:
    given = {**document, "namespace": caller, "backend": Backend.ESO}
    return compile_push(PushSecret.model_validate(given), provider, KINDS)
