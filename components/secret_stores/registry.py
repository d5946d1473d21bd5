"""Registry of provider kinds, by apiVersion and kind, and by ESO's embedded key.

An entry describes a kind: model of its spec, client factory, features and maintenance. It never contains a
client; `direct` caches those.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypedDict, TypeVar, Unpack

from pydantic import ValidationError

from components.errors import CredfleetError, Problem
from components.secret_stores.clients.client import Capability, ClientFactory, SpecLimits
from components.secret_stores.eso_providers import Scope, facts_of, unmet
from components.secret_stores.model import AnyProvider, ClusterProvider, Provider, ProviderSpec, as_document

GROUP: Final = "providers.credfleet.io"
CLUSTER_GROUP: Final = f"cluster.{GROUP}"
VERSION: Final = "v1alpha1"

_OWN: Final = "components.secret_stores.kinds"
"""Module that registers this project's own kinds, which have ESO's specs."""

Spec = TypeVar("Spec", bound=ProviderSpec)


class Maintenance(StrEnum):
    """Maintenance status of a kind, as ESO names it."""

    MAINTAINED = "Maintained"
    NOT_MAINTAINED = "NotMaintained"
    DEPRECATED = "Deprecated"


NameFaults: TypeAlias = Callable[[str, str | None, str | None], Iterable[tuple[str, str]]]
"""Finds what a kind does not support in a key, its property and its version; yields problem and fix."""


SpecForEso: TypeAlias = Callable[[Any, bool], ProviderSpec]
"""Returns the spec for External Secrets Operator. The flag: whether it is in a ClusterSecretStore."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Conversion of a kind to the version that serves it. `spec`: converts the spec."""

    version: str
    spec: Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """Kind of provider, in one version.

    `served_as`: other version that serves this one, and to which all fields except those for specs apply.
    `embedded`: its key in a store's `spec.provider`. `model`: returns the model of its specs. `module`:
    registers it. `by_shape`: only ESO's schema is known; a stack's code can register it in full. `strict`:
    selectors never use the caller's namespace. `client`: client factory of the direct back end; None if there
    is none. `limits`: yields what its clients do not support in a spec. `faults`: yields what no back end
    supports in a spec. `for_eso`: returns a spec as compiled for ESO. `missed`: yields what ESO lacks in an
    uncompiled spec. `names`: yields problems of key names. `by_caller`: clients use the caller's namespace,
    so callers never share one. `has_properties`: a push writes a property of a key, as in a Secret; otherwise
    the whole value. `has_namespaces`: a push can name a namespace. `has_versions`: a read can name a version.
    `credential`: key of a provider's login Secret → selector in the spec. `gathers`: ways in which reads can
    gather keys: extract, name, tags, path.
    """

    name: str
    embedded: str
    model: Callable[[], type[ProviderSpec]]
    module: str
    by_shape: bool = False
    version: str = VERSION
    served_as: Conversion | None = None
    strict: bool = False
    client: ClientFactory | None = None
    limits: SpecLimits = lambda _: ()
    faults: SpecLimits = lambda _: ()
    for_eso: SpecForEso = lambda spec, _of_all: spec
    missed: SpecLimits = lambda _: ()
    names: NameFaults = lambda _key, _property, _version: ()
    capabilities: Capability = Capability.READ_WRITE
    maintenance: Maintenance = Maintenance.MAINTAINED
    by_caller: bool = False
    has_properties: bool = False
    has_namespaces: bool = False
    has_versions: bool = True
    credential: Mapping[str, str] = field(default_factory=dict[str, str])
    gathers: Collection[str] = ()

    @property
    def spec(self) -> type[ProviderSpec]:
        """Model of its specs."""
        return self.model()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts about ESO's code for it; empty for a kind of a stack's own code."""
        return facts_of(self.embedded) if self.module == _OWN else {}

    def unmet(self, spec: ProviderSpec, *scopes: Scope) -> Iterator[Problem]:
        """Yield ESO's requirements that a spec does not meet."""
        if self.facts:
            yield from unmet(self.embedded, as_document(spec), *scopes)

    @property
    def warning(self) -> str | None:
        """Warning for users of the kind, or None."""
        said = {
            Maintenance.NOT_MAINTAINED: "not maintained: their faults stay",
            Maintenance.DEPRECATED: "deprecated and will go: move to another kind",
        }.get(self.maintenance)
        return said and f"providers of kind {self.name} are {said}"

    def provider(self, namespace: str | None, name: str, spec: object) -> AnyProvider:
        """Create a provider of this kind; cluster-scoped if there is no namespace.

        Raises pydantic.ValidationError for an invalid spec.
        """
        model, group = (ClusterProvider, CLUSTER_GROUP) if namespace is None else (Provider, GROUP)
        home = {} if namespace is None else {"namespace": namespace}
        given = {"apiVersion": f"{group}/{self.version}", "kind": self.name, "name": name, **home}
        return model.model_validate({**given, "spec": self.spec.model_validate(spec)})


class KindFacts(TypedDict, total=False):
    """Optional arguments for registering a kind."""

    version: str
    served_as: Conversion | None
    strict: bool
    client: ClientFactory | None
    limits: SpecLimits
    faults: SpecLimits
    for_eso: SpecForEso
    missed: SpecLimits
    names: NameFaults
    capabilities: Capability
    maintenance: Maintenance
    by_caller: bool
    has_properties: bool
    has_namespaces: bool
    has_versions: bool
    credential: Mapping[str, str]
    gathers: Collection[str]


class RefRegister:
    """Kinds known to a process; a stack's own code adds kinds by decorating their specs."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], ProviderKind] = {}
        self._embedded: dict[str, ProviderKind] = {}

    def register(
        self, name: str, *, embedded: str, module: str | None = None, **facts: Unpack[KindFacts]
    ) -> Callable[[type[Spec]], type[Spec]]:
        """Return a decorator that registers a spec as a kind, in both groups; arguments as in ProviderKind.

        `module`: import that registers the kind; by default that of the spec. Of several versions, the
        serving one has the embedded key. Raises CredfleetError `duplicate-kind` if this version, or the key,
        is already registered.
        """

        def take(spec: type[Spec]) -> type[Spec]:
            module_ = module or spec.__module__
            kind = ProviderKind(name=name, embedded=embedded, model=lambda: spec, module=module_, **facts)
            for known in (self._embedded.get(embedded), self._kinds.get((f"{GROUP}/{VERSION}", name))):
                if known is not None and known.by_shape:  # a stack's own code replaces it
                    self._embedded.pop(known.embedded, None)
                    for group in (GROUP, CLUSTER_GROUP):
                        self._kinds.pop((f"{group}/{known.version}", known.name), None)
            is_taken = kind.served_as is None and embedded in self._embedded
            if (f"{GROUP}/{kind.version}", name) in self._kinds or is_taken:
                raise CredfleetError(
                    code="duplicate-kind",
                    place=f"{spec.__module__}.{spec.__qualname__}",
                    problem=f"{name} ({kind.version}), or its key {embedded}, is taken;"
                    f" known are {self.listed()}",
                    fix="register it under another name, or leave one of the two out",
                )
            self._add(kind)
            return spec

        return take

    def know(self, name: str, *, embedded: str, module: str, model: Callable[[], type[ProviderSpec]]) -> None:
        """Register a kind for which only ESO's schema is known, unless its embedded key is taken."""
        if embedded not in self._embedded:
            can = Capability(facts_of(embedded)["can"])
            kind = ProviderKind(
                name=name, embedded=embedded, model=model, module=module, capabilities=can, by_shape=True
            )
            self._add(kind)

    def _add(self, kind: ProviderKind) -> None:
        for group in (GROUP, CLUSTER_GROUP):
            self._kinds[f"{group}/{kind.version}", kind.name] = kind
        if kind.served_as is None:
            self._embedded[kind.embedded] = kind

    def referred(self, api_version: str, name: str) -> ProviderKind | Problem:
        """Return the kind of a provider object, or a problem."""
        found = self._kinds.get((api_version, name))
        if found is not None:
            return found
        versions = [version for version, kind in self._kinds if kind == name]
        return Problem(
            name,
            f"no kind of provider {name} is known in {api_version}; known are {self.listed()}",
            self._nearest(api_version, versions)
            if versions
            else self._nearest(name, [kind for _, kind in self._kinds]),
        )

    def embedded(self, key: str) -> ProviderKind | Problem:
        """Return the kind of an embedded block by its key, or a problem."""
        found = self._embedded.get(key)
        return found or Problem(
            key,
            f"no kind of provider is known by the key {key}; known are"
            f" {', '.join(name for name, kind in self._embedded.items() if not kind.by_shape)}"
            f"{self._further()}",
            self._nearest(key, self._embedded),
        )

    def kind_of(self, provider: AnyProvider) -> ProviderKind:
        """Return the kind of a provider created from this registry."""
        return self._kinds[provider.api_version, provider.kind]

    def serving(self, provider: AnyProvider) -> ProviderKind:
        """Return the kind that serves a provider: its own, or that of its conversion."""
        return self.kind_of(self.served(provider))

    def served(self, provider: AnyProvider) -> AnyProvider:
        """Return a provider converted to the version that serves it.

        Raises CredfleetError `no-conversion` if that version is not registered, or rejects the spec.
        """
        passed: set[str] = set()
        while (to := self.kind_of(provider).served_as) is not None:
            passed.add(provider.api_version)
            version = f"{provider.api_version.partition('/')[0]}/{to.version}"
            kind = None if version in passed else self._kinds.get((version, provider.kind))
            namespace = provider.namespace if isinstance(provider, Provider) else None
            try:
                made = kind and kind.provider(namespace, provider.name, to.spec(provider.spec))
            except ValidationError:
                made = None
            if made is None:
                raise CredfleetError(
                    code="no-conversion",
                    place=provider.key.title,
                    problem=f"its spec ({provider.api_version}) becomes none of {to.version}, which serves"
                    " it",
                    fix="correct the conversion where the kind is registered",
                )
            provider = made
        return provider

    def references(self) -> tuple[tuple[str, str], ...]:
        """Return every apiVersion and kind that `referred` accepts."""
        return tuple(self._kinds)

    def listed(self) -> str:
        """Return the known kinds with their apiVersions, for messages."""
        own = [
            f"{name} ({version})"
            for (version, name), kind in self._kinds.items()
            if not is_clusterwide(version) and not kind.by_shape
        ]
        return f"{', '.join(own)}{self._further()}; each in {CLUSTER_GROUP}, too"

    def _further(self) -> str:
        count = sum(kind.by_shape for kind in self._embedded.values())
        return f" and {count} more of ESO" if count else ""

    @staticmethod
    def _nearest(name: str, known: list[str] | dict[str, ProviderKind]) -> str:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        return f"did you mean {near[0]}?" if near else "use one of these, or register the kind"


def is_clusterwide(api_version: str) -> bool:
    """Return whether an apiVersion is of cluster-scoped providers."""
    return api_version.startswith(f"{CLUSTER_GROUP}/")
