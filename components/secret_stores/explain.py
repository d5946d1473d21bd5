"""Evaluation of the rule of references for one store and one caller."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from components.errors import Problem
from components.secret_stores.conditions import NAME_LABEL, allows
from components.secret_stores.eso_namespaces import NamespaceRule, list_unfollowed, list_unused
from components.secret_stores.eso_providers import WRITTEN, Scope
from components.secret_stores.model import AnyProvider, AnyStore, ClusterSecretStore, ProviderKey
from components.secret_stores.referent import (
    Resolution,
    eso_objections,
    missed_by_eso,
    provider_of,
    resolve,
    selector_objections,
    spec_objections,
    store_objections,
)
from components.secret_stores.registry import RefRegister


class Ready(StrEnum):
    """State of a store for a caller; ESO's words, and two for what ESO only logs."""

    READY = "Ready"
    UNKNOWN = "Unknown"
    DENIED = "Denied"
    INVALID = "Invalid"


_USABLE: Final = (Ready.READY, Ready.UNKNOWN)
_DEFERRED: Final = "validation is deferred:"


@dataclass(frozen=True, slots=True)
class KnownObjects:
    """Objects that a store is evaluated with: kinds, providers, and namespaces with their labels.

    `labels_are_whole`: namespaces have no other labels. `as_they_stand`: ESO gets embedded blocks unchanged;
    otherwise this program compiles them. `by_eso`: whether requirements of ESO's own code apply.
    """

    kinds: RefRegister
    providers: Mapping[ProviderKey, AnyProvider]
    namespaces: Mapping[str, Mapping[str, str]]
    as_they_stand: bool = False
    by_eso: bool = False
    labels_are_whole: bool = True

    def labels(self, namespace: str) -> tuple[Mapping[str, str], bool]:
        """Return the known labels of a namespace, and whether they are complete."""
        known = self.namespaces.get(namespace)
        named = {NAME_LABEL: namespace}
        return (named, False) if known is None else ({**named, **known}, self.labels_are_whole)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Result for a caller's use of a store.

    `refusals`: all problems. `deferred`: why the result is not known yet. `undecided`: what decides cannot be
    read; `deferred` is the reason. `caller`: empty for the validation of the store itself. `provider`: its
    title, if known. `referent`: another caller reads other namespaces. `selectors`: path in the provider's
    spec → namespace read. `unserved`: the kind, if only its schema is known. `overlooked`: selectors that ESO
    ignores.
    """

    ready: Ready
    refusals: tuple[Problem, ...] = ()
    deferred: str | None = None
    undecided: bool = False
    store: str = ""
    caller: str = ""
    provider: str | None = None
    referent: bool = False
    selectors: Mapping[str, str] = field(default_factory=dict[str, str])
    unserved: str | None = None
    overlooked: tuple[str, ...] = ()

    @property
    def reason(self) -> str | None:
        """Return the reason, or who else serves the store, in one line; None if there is none."""
        told = "; ".join(f"{each.problem} → {each.fix}" for each in self.refusals) or self.deferred
        if self.overlooked:
            said = f"ESO does not look at {', '.join(self.overlooked)}, and logs in as its own pod"
            return said if told is None else f"{told}; {said}"
        if told is None and self.unserved is not None:
            return f"not served here: of kind {self.unserved} the shape is known only, and ESO has a client"
        return told

    @property
    def admitted(self) -> bool | None:
        """Whether the caller is admitted without problems; None if undecided."""
        return None if self.undecided else self.ready in _USABLE


def _undecided(why: str) -> Explanation:
    return Explanation(Ready.UNKNOWN, (), f"unknown, because {why}", undecided=True)


def explain(store: AnyStore, caller: str, around: KnownObjects) -> Explanation:
    """Return whether a caller can use a store, and the namespaces its credential is read from.

    `caller`: a namespace, or empty to validate the store itself, without its conditions.
    """
    provider = provider_for(store, caller, around)
    known = None if isinstance(provider, Problem) else provider
    resolution = resolve(store, known, caller, around.kinds) if known else None
    barred = _reach(store, caller, around)
    verdict = _verdict(store, caller, provider, resolution, around)
    if barred is not None and (barred.ready is not Ready.UNKNOWN or verdict.ready is not Ready.INVALID):
        verdict = barred
    resolved = resolution if isinstance(resolution, Resolution) else None
    as_it_stands = known if around.as_they_stand and store.spec.provider else None
    overlooked = (
        (*list_unused(as_it_stands, around.kinds.kind_of(as_it_stands).embedded),) if as_it_stands else ()
    )
    read = resolved.namespaces if resolved and verdict.ready in _USABLE else {}
    return replace(
        verdict,
        store=store.title,
        caller=caller,
        provider=known.key.title if known else None,
        referent=provider is None or (resolved is not None and resolved.referent),
        selectors={path: namespace for path, namespace in read.items() if path not in overlooked},
        unserved=known.kind if known and around.kinds.kind_of(known).by_shape else None,
        overlooked=overlooked,
    )


def _reach(store: AnyStore, caller: str, around: KnownObjects) -> Explanation | None:
    """Return why a caller cannot reach the store's provider, or None."""
    if not caller:
        return None
    if not isinstance(store, ClusterSecretStore):
        elsewhere = Problem(
            store.title,
            f"a SecretStore is looked for in the caller's namespace only: {caller}, not {store.namespace}",
            "use a ClusterSecretStore, or a store of that namespace",
        )
        return None if caller == store.namespace else Explanation(Ready.INVALID, (elsewhere,))
    labels, whole = around.labels(caller)
    match allows(store.spec.conditions, caller, labels, whole=whole):
        case Problem() as senseless:
            return Explanation(Ready.INVALID, (senseless,))
        case False:
            problem = f"namespace {caller} meets none of spec.conditions"
            denied = Problem(caller, problem, "extend them, or use another store")
            return Explanation(Ready.DENIED, (denied,))
        case None:
            why = f"spec.conditions ask for labels, and those of Namespace {caller} are not known here"
            return _undecided(f"{why} → add the Namespace, or ask with --live")
        case _:
            return None


def _verdict(
    store: AnyStore,
    caller: str,
    provider: AnyProvider | Problem | None,
    resolution: Resolution | Problem | None,
    around: KnownObjects,
) -> Explanation:
    """Return the result of reaching the provider, with each problem of both layers once."""
    if store.spec.runtime_ref is not None and store.spec.provider is None:
        why = "spec.runtimeRef hands the store to another process, which alone knows whose login it reads"
        return _undecided(f"{why} → ask it, or use a store without runtimeRef")
    kinds, doubts = around.kinds, list[Problem]()
    refusals = [*store_objections(store, kinds)]
    if provider is not None and not isinstance(provider, Problem):
        refusals.extend(selector_objections(store, provider, kinds))
        refusals.extend(spec_objections(provider, kinds))
        if around.by_eso or around.as_they_stand:
            refusals.extend(eso_objections(store, provider, kinds, *WRITTEN))
            doubts.extend(eso_objections(store, provider, kinds, Scope.PERHAPS))
        if around.as_they_stand:
            refusals.extend(missed_by_eso(store, provider, kinds))
            refusals.extend(_never_read(store, caller, provider, kinds))
    elif around.as_they_stand and isinstance(provider_of(store, caller, kinds), ProviderKey):
        doubts.extend(each for each in [provider] if each is not None)
    elif provider is not None:
        refusals.append(provider)
    if refusals:
        return Explanation(Ready.INVALID, tuple(dict.fromkeys(refusals)))
    if doubts:
        return _undecided("; ".join(f"{each.problem} → {each.fix}" for each in doubts))
    if provider is None:
        return Explanation(
            Ready.UNKNOWN, (), f"{_DEFERRED} the provider is a caller's own, and there is none"
        )
    if isinstance(resolution, Resolution) and resolution.deferred:
        why = f"{_DEFERRED} a selector means a caller's namespace, and there is none"
        return Explanation(Ready.UNKNOWN, (), why)
    return Explanation(Ready.READY)


def _never_read(store: AnyStore, caller: str, provider: AnyProvider, kinds: RefRegister) -> Iterator[Problem]:
    """Yield selectors that keep an embedded block from becoming ready, as observed in ESO.

    A selector that fails in ESO only at a read affects callers, but not validation.
    """
    if not isinstance(store, ClusterSecretStore) or store.spec.provider is None:
        return
    for path, habit, problem in list_unfollowed(provider, kinds.kind_of(provider).embedded):
        if habit is not NamespaceRule.UNSEEN and (caller or habit is not NamespaceRule.LATE):
            said = f"{path} has no namespace, and {problem}"
            yield provider.objection(said, "add the namespace it is in")


def provider_for(store: AnyStore, caller: str, around: KnownObjects) -> AnyProvider | Problem | None:
    """Return the provider of a store for a caller; None if it is the caller's and there is no caller."""
    found = provider_of(store, caller, around.kinds)
    if not isinstance(found, ProviderKey):
        return found
    return around.providers.get(found) or Problem(
        store.title,
        f"there is no provider {found.title} ({found.api_version})",
        _near(found, around.providers),
    )


def _near(key: ProviderKey, known: Mapping[ProviderKey, AnyProvider]) -> str:
    titles = [each.title for each in known if each.api_version == key.api_version]
    near = difflib.get_close_matches(key.title, titles, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known are: {', '.join(titles)}" if titles else "add it: none is known"
