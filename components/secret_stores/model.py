"""Models of secret stores: providers, their selectors, and the stores that use them.

A *provider* names the place where secrets are stored, and the cluster objects that hold its credential. A
*store* is what consumers name; it refers to a provider, or embeds one as External Secrets Operator (ESO)
does. The Python type, not a field, determines whether an object is namespaced. Field names, and the defaults
from the CRD schemas, are ESO's.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, InstanceOf

from components.config.field_types import (
    NO_DURATION,
    ConfigModel,
    Count,
    Duration,
    ObjectName,
    config_error,
    must,
)
from components.durations import DURATION
from components.errors import Problem
from components.naming import is_data_key, is_namespace

AS_ESO: Final = "write it the way External Secrets Operator does"
"""Fix for a problem in a document that credfleet has no message of its own for."""


def as_document(part: ConfigModel) -> dict[str, Any]:
    """Return a part as in a document, without absent values."""
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True).decode()
    except ValueError:
        raise config_error("it is not base64 of text", "encode the certificates with: base64 -w0") from None
    return text


def _refresh_interval(given: Any) -> Any:
    if isinstance(given, str) and not DURATION.fullmatch(given):
        raise config_error(*NO_DURATION)
    if not isinstance(given, int | str) or isinstance(given, bool) or (isinstance(given, int) and given < 0):
        raise config_error("it is neither a duration nor a number of seconds", "write 1h, 90s or 3600")
    return given


NamespaceName: TypeAlias = Annotated[
    str,
    must(is_namespace, "Kubernetes takes no such namespace", "write up to 63 of a-z, 0-9 and, inside, '-'"),
]
DataKey: TypeAlias = Annotated[
    str, must(is_data_key, "no Secret has such a key", "write letters, digits, '-', '_' and '.'")
]
CaBundle: TypeAlias = Annotated[str, AfterValidator(_base64)]


class Selector(ConfigModel):
    """Names an object a provider needs; without a namespace the rule of references finds it one."""

    KIND: ClassVar = "Secret"

    name: ObjectName
    namespace: NamespaceName | None = None


class SecretSelector(Selector):
    """One key of a Secret, or of a ConfigMap where the field says so."""

    key: DataKey | None = None


class ServiceAccountSelector(Selector):
    """A ServiceAccount a token is asked for."""

    KIND = "ServiceAccount"
    audiences: tuple[str, ...] | None = None


class CaSelector(Selector):
    """The certificates a server is known by; they are the server's, never the caller's."""

    type: Literal["Secret", "ConfigMap"]
    key: DataKey | None = None


class ProviderSpec(ConfigModel):
    """What one kind of provider needs to know; the kinds are in `kinds`."""

    @property
    def digest(self) -> str:
        """Digest that identifies the spec."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class ProviderKey(NamedTuple):
    """Key of a provider object; `namespace` is None for a cluster-scoped one."""

    api_version: str
    kind: str
    namespace: str | None
    name: str

    @property
    def title(self) -> str:
        """`Kind/namespace/name`, or `Kind/name`."""
        return "/".join(filter(None, self[1:]))


class _ProviderObject(ConfigModel):
    api_version: str
    kind: str
    name: ObjectName
    spec: InstanceOf[ProviderSpec]

    @property
    def key(self) -> ProviderKey:
        """Key of the provider."""
        return ProviderKey(self.api_version, self.kind, getattr(self, "namespace", None), self.name)

    def objection(self, said: str, fix: str) -> Problem:
        """Return a problem of this provider."""
        return Problem(self.key.title, f"{self.key.title}: {said}", fix)


class Provider(_ProviderObject):
    """A provider of one namespace: only objects of that namespace serve it."""

    namespace: NamespaceName


class ClusterProvider(_ProviderObject):
    """A provider of the whole cluster: who uses it brings the credential along."""


AnyProvider: TypeAlias = Provider | ClusterProvider


class ProviderRef(ConfigModel):
    """Names a provider object; the group of `apiVersion` tells whether it is the whole cluster's."""

    api_version: str
    kind: str
    name: ObjectName
    namespace: NamespaceName | None = None


class Requirement(ConfigModel):
    """One expression of a label selector; the operators are judged when it is used, as Kubernetes does."""

    key: str = Field(description="Key of the label.")
    operator: str = Field(description="In, NotIn, Exists or DoesNotExist.")
    values: tuple[str, ...] = Field(default=(), description="Values to compare with, for In and NotIn.")


class LabelSelector(ConfigModel):
    """Labels a namespace must have: all of them. An empty one takes every namespace."""

    match_labels: Mapping[str, str] = Field(default={}, description="Labels with their values: all of them.")
    match_expressions: tuple[Requirement, ...] = Field(default=(), description="Expressions: all of them.")


class Condition(ConfigModel):
    """Namespaces that may use a store of the whole cluster: any of the three ways is enough."""

    namespace_selector: LabelSelector | None = Field(
        default=None, description="Labels of the namespace; an empty one takes every namespace."
    )
    namespaces: tuple[NamespaceName, ...] = Field(default=(), description="Names of namespaces.")
    namespace_regexes: tuple[str, ...] = Field(
        default=(), description="Regular expressions (RE2) that match anywhere in a name: write ^ and $."
    )


class RetrySettings(ConfigModel):
    """How often a client tries again, and after which duration (`10s`)."""

    max_retries: Count | None = Field(
        default=None, description="How often it is tried again; absent, the back end decides."
    )
    retry_interval: Duration | None = Field(
        default=None, description="How long is waited before, such as 10s."
    )


class StoreSpec(ConfigModel):
    """What both kinds of store say; `provider` is ESO's embedded block, one key that names its kind.

    That there is exactly one of `provider` and `provider_ref` is part of the admission (`referent`).
    `runtime_ref` is what ESO proposes: another process serves the store. `refresh_interval` is in seconds,
    or a duration such as `1h`.
    """

    controller: str = ""
    provider: Mapping[str, Any] | None = Field(default=None, repr=False)
    provider_ref: ProviderRef | None = None
    runtime_ref: Mapping[str, Any] | None = None
    retry_settings: RetrySettings | None = None
    refresh_interval: Annotated[int | str, BeforeValidator(_refresh_interval)] | None = None


class ClusterStoreSpec(StoreSpec):
    """What a store of the whole cluster says in addition."""

    conditions: tuple[Condition, ...] = ()


class SecretStore(ConfigModel):
    """A store of one namespace, used from that namespace."""

    namespace: NamespaceName
    name: ObjectName
    spec: StoreSpec

    @property
    def title(self) -> str:
        """`SecretStore/namespace/name`."""
        return f"SecretStore/{self.namespace}/{self.name}"


class ClusterSecretStore(ConfigModel):
    """A store of the whole cluster, used from every namespace its conditions allow."""

    name: ObjectName
    spec: ClusterStoreSpec

    @property
    def title(self) -> str:
        """`ClusterSecretStore/name`."""
        return f"ClusterSecretStore/{self.name}"


AnyStore: TypeAlias = SecretStore | ClusterSecretStore


def goes_by_labels(store: AnyStore) -> bool:
    """Return whether a store's conditions select namespaces by label."""
    return isinstance(store, ClusterSecretStore) and any(
        each.namespace_selector is not None for each in store.spec.conditions
    )
