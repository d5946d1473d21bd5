"""Parses YAML files to stores, providers and namespaces; reports all problems of the files at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ValidationError

from components.config.document import problems_of
from components.connection import Connection
from components.documents import Unreadable, read_all
from components.errors import ConfigurationError, CredfleetError, Problem
from components.http_answers import HttpOutcome
from components.naming import is_namespace, is_object_name
from components.secret_stores.conditions import NAME_LABEL
from components.secret_stores.convert import convert
from components.secret_stores.explain import KnownObjects
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import (
    AS_ESO,
    AnyProvider,
    AnyStore,
    ClusterSecretStore,
    ProviderKey,
    SecretStore,
    StoreSpec,
)
from components.secret_stores.registry import CLUSTER_GROUP, GROUP, ProviderKind, is_clusterwide
from components.secret_stores.rewriting import ESO
from components.stack_config.store_logins import as_map
from operations.cli.inputs import place_of, read_yaml


@dataclass(frozen=True, slots=True)
class Documents:
    """The content of files, in order. raw: all documents as written, with lists split up."""

    stores: tuple[AnyStore, ...]
    around: KnownObjects
    raw: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class _Reading:
    stores: dict[str, AnyStore] = field(default_factory=dict[str, AnyStore])
    providers: dict[ProviderKey, AnyProvider] = field(default_factory=dict[ProviderKey, AnyProvider])
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    problems: list[Problem] = field(default_factory=list[Problem])
    takes_old: bool = False
    raw: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])

    def add(self, place: str, document: object) -> None:
        """Add a document, or record its problems."""
        if not isinstance(document, dict):
            self.refuse(place, "it is not a map of fields", "write apiVersion, kind, metadata and spec")
            return
        api_version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
        if self.takes_old and api_version == _OLD and (ESO, kind) in _READERS:
            api_version, document = ESO, {**document, "apiVersion": ESO}
            for key in as_map(as_map(document.get("spec")).get("provider")):
                if isinstance(gone := KINDS.embedded(key), Problem):
                    self.problems.append(gone.within(f"{place}: spec.provider"))
        if (api_version, kind) == ("v1", "List"):
            items = document.get("items")
            for index, item in enumerate(items if isinstance(items, list) else ()):
                self.add(f"{place}: items[{index}]", item)
            return
        if _is_other(api_version, kind):
            self.raw.append(document)
            return
        reader = _reader(api_version, kind)
        if isinstance(reader, Problem):
            self.problems.append(reader.within(f"{place}: kind"))
            return
        is_provider = isinstance(reader, ProviderKind)
        namespaced = not is_clusterwide(api_version) if is_provider else reader is SecretStore
        metadata = as_map(document.get("metadata"))
        name, namespace = metadata.get("name"), metadata.get("namespace")
        title = "/".join(str(part) for part in (kind, namespace, name) if part)
        place = f"{place}: {title}"
        if not isinstance(name, str) or not is_object_name(name):
            self.refuse(
                f"{place}: metadata.name",
                "it is missing, or Kubernetes takes no such name",
                "write up to 253 of a-z, 0-9 and, inside, '-' and '.'",
            )
        elif namespaced and not (isinstance(namespace, str) and is_namespace(namespace)):
            self.refuse(
                f"{place}: metadata.namespace",
                f"a {kind} of {api_version} belongs to a namespace, and none is given that Kubernetes takes",
                "add metadata.namespace, since nothing here knows that of `kubectl apply -n`"
                if namespace is None
                else "write up to 63 of a-z, 0-9 and, inside, '-'",
            )
        elif not namespaced and namespace is not None:
            self.refuse(
                f"{place}: metadata.namespace",
                f"a {kind} of {api_version} is the whole cluster's, so its namespace would be ignored",
                "leave the namespace out",
            )
        else:
            self._keep(place, reader, name, namespace, document)

    def whole(self) -> Documents:
        """Return all that was read. Raises ConfigurationError with all problems."""
        if self.problems:
            raise ConfigurationError(self.problems)
        around = KnownObjects(KINDS, self.providers, self.namespaces, as_they_stand=True)
        return Documents((*self.stores.values(),), around, (*self.raw,))

    def refuse(self, place: str, problem: str, fix: str) -> None:
        """Record a problem."""
        self.problems.append(Problem(place, problem, fix))

    def _keep(
        self, place: str, reader: _Reader, name: str, namespace: Any, document: Mapping[str, Any]
    ) -> None:
        spec = document.get("spec", {})
        self.raw.append(document)
        try:
            if isinstance(reader, ProviderKind):
                provider = reader.provider(namespace, name, spec)
                self._once(self.providers, place, provider.key, provider)
            elif reader is not None:
                identity = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
                if reader is SecretStore and isinstance(spec, dict):  # ESO ignores conditions here
                    spec = {key: value for key, value in spec.items() if key != "conditions"}
                store = reader.model_validate({**identity, "spec": spec})
                self._once(self.stores, place, store.title, store)
                self._check_embedded(place, store)
            else:
                labels = as_map(as_map(document.get("metadata")).get("labels"))
                if not all(isinstance(value, str) for value in labels.values()):
                    self.refuse(f"{place}: metadata.labels", "a label's value is text", "write it in quotes")
                self._once(self.namespaces, place, name, {NAME_LABEL: name, **labels})
        except ValidationError as error:
            is_provider = isinstance(reader, ProviderKind)
            root = reader.spec if is_provider else reader or SecretStore
            self.problems.extend(_problems(error, place, "spec" if is_provider else "", root))

    def _once(self, kept: dict[Any, Any], place: str, key: Any, value: Any) -> None:
        if key in kept:
            self.refuse(place, "it is in the files twice, and the two might differ", "keep one of the two")
        kept.setdefault(key, value)

    def _check_embedded(self, place: str, store: AnyStore) -> None:
        """Check an embedded provider; an unknown kind is reported when the store is explained."""
        block = store.spec.provider
        if block is None or len(block) != 1:
            return
        [key] = block
        try:
            convert(store, block, KINDS)
        except ValidationError as error:
            kind = KINDS.embedded(key)
            root = kind.spec if isinstance(kind, ProviderKind) else StoreSpec
            self.problems.extend(_problems(error, place, f"spec.provider.{key}", root))


_Reader: TypeAlias = ProviderKind | type[SecretStore] | type[ClusterSecretStore] | None
"""Type that a document is parsed as; None for a Namespace."""
_READERS: Final[Mapping[tuple[str, str], _Reader]] = {
    ("v1", "Namespace"): None,
    (ESO, "SecretStore"): SecretStore,
    (ESO, "ClusterSecretStore"): ClusterSecretStore,
}
_OLD: Final = "external-secrets.io/v1beta1"
"""Version that ESO served until 0.16. v1 has all of it, except removed kinds of providers."""


def read(files: Sequence[str], *, takes_old: bool = False) -> Documents:
    """Read all files, `-` for standard input; documents of other kinds only appear in `raw`.

    takes_old: read stores of v1beta1 as the equivalent ones of v1. Raises ConfigurationError with every
    problem; none contains a value from a document.
    """
    reading = _Reading(takes_old=takes_old)
    for name in dict.fromkeys(files):
        try:
            for index, document in enumerate(read_all(read_yaml(name), place_of(name)), start=1):
                if document.data is not None:
                    reading.add(f"{place_of(name)}, document {index}", document.data)
        except (Unreadable, CredfleetError) as error:
            reading.problems.append(Problem(place_of(name), error.problem, error.fix, at=error.at))
    return reading.whole()


def live(connection: Connection, *namespaces: str) -> Documents:
    """Read the stores of a cluster that namespaces can refer to, and the namespaces themselves.

    Raises CredfleetError, also if the cluster has no such namespace; NoReply; and as `read`.
    """
    group = f"/apis/{ESO}"
    reading = _Reading()
    for namespace in namespaces:
        reading.add(f"Namespace {namespace}", _got(connection, f"/api/v1/namespaces/{namespace}"))
    for kind, path in (
        *(("SecretStore", f"{group}/namespaces/{namespace}/secretstores") for namespace in namespaces),
        ("ClusterSecretStore", f"{group}/clustersecretstores"),
    ):
        for item in _got(connection, path).get("items", ()):
            reading.add("cluster", {"apiVersion": ESO, **item, "kind": kind})
    return reading.whole()


def _got(connection: Connection, path: str) -> Mapping[str, Any]:
    reply = connection.call("GET", path)
    if reply.answer is HttpOutcome.ABSENT and path.startswith("/apis/"):
        problem = f"the cluster does not serve {ESO}: External Secrets Operator is not installed there"
        raise CredfleetError(
            code="not-served", place=path, problem=problem, fix="name the cluster that has it"
        )
    if reply.answer is not HttpOutcome.DONE:
        problem = f"the API server does not show it: {reply.reason}"
        fix = "name a namespace that is there, a cluster that has such objects, and a user who may read them"
        raise CredfleetError(code="not-allowed", place=path, problem=problem, fix=fix)
    return reply.body if "items" in reply.body else {"apiVersion": "v1", "kind": "Namespace", **reply.body}


def _is_other(api_version: str, kind: str) -> bool:
    """Return whether a kind is not one of those read here, nor a likely typo of one."""
    group = api_version.partition("/")[0]
    if not (api_version and kind) or group in (GROUP, CLUSTER_GROUP):
        return False
    return not any(
        difflib.get_close_matches(group, [version.partition("/")[0]], cutoff=0.9)
        and difflib.get_close_matches(kind, [name], cutoff=0.8)
        for version, name in (*_READERS, *KINDS.references())
    )


def _reader(api_version: str, kind: str) -> _Reader | Problem:
    if (api_version, kind) in _READERS:
        return _READERS[api_version, kind]
    if isinstance(found := KINDS.referred(api_version, kind), ProviderKind):
        return found
    own = [f"{name} ({version})" for version, name in _READERS]
    known = [*own, *(f"{name} ({version})" for version, name in KINDS.references())]
    near = difflib.get_close_matches(f"{kind} ({api_version})", known, n=1)
    fix = f"did you mean {near[0]}?" if near else "leave this document out"
    if api_version == _OLD and (ESO, kind) in _READERS:
        fix = "make it one of v1: credfleet stores convert FILE"
    return Problem(
        "kind",
        f"{kind or 'a document without kind'} ({api_version or 'no apiVersion'}) is nothing that is explained"
        f" here; known are {', '.join(own)}, {KINDS.listed()}",
        fix,
    )


def _problems(error: ValidationError, place: str, prefix: str, root: type[BaseModel]) -> Iterator[Problem]:
    for problem in problems_of(error, root, prefix, otherwise=AS_ESO):
        yield problem.within(f"{place}: {problem.place}")
