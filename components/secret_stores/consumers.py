"""Consumers of a store: reads of its secrets into the cluster, and pushes of Secrets to it.

A consumer belongs to a namespace, the *caller* in the rule of references. All names are resolved: a claimed
account is already the name of its Secret. Field names and defaults are those of External Secrets Operator
(ESO), to whose objects the same consumers can be compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from components.config.field_types import ConfigModel, Duration, ObjectName, must, refused_if
from components.secret_stores.conditions import is_found
from components.secret_stores.model import DataKey, NamespaceName


class Backend(StrEnum):
    """What serves a consumer: this program at each update, or ESO in the cluster continuously."""

    DIRECT = "direct"
    ESO = "eso"


class UpdatePolicy(StrEnum):
    """How a push treats an existing value; a value of another owner is never overwritten."""

    REPLACE = "Replace"
    IF_NOT_EXISTS = "IfNotExists"


class DeletionPolicy(StrEnum):
    """What happens to pushed values when the push is removed."""

    DELETE = "Delete"
    NONE = "None"


class DecodingStrategy(StrEnum):
    """Decoding of a value; Auto tries both base64 alphabets, and keeps a value that is neither."""

    AUTO = "Auto"
    BASE64 = "Base64"
    BASE64_URL = "Base64URL"
    NONE = "None"


RemoteKey: TypeAlias = Annotated[
    str,
    must(
        lambda text: text and text == text.strip() and text.isprintable(),
        "it is empty, or has invisible characters",
        "name the secret as its store does",
    ),
]
Property: TypeAlias = Annotated[RemoteKey | None, Field(alias="property")]


class StoreRef(ConfigModel):
    """The store a consumer names: one of its own namespace, or of the whole cluster."""

    kind: Literal["SecretStore", "ClusterSecretStore"] = "SecretStore"
    name: ObjectName


class RemoteRef(ConfigModel):
    """A value in a store: the secret's key there, one property of it, one version of it.

    What a key is depends on the provider: the name of a Secret for Kubernetes, whose keys are properties.
    """

    key: RemoteKey
    property_name: Property = None
    version: RemoteKey | None = None
    decoding_strategy: DecodingStrategy | None = None


class NamePattern(ConfigModel):
    """A regular expression (RE2) that matches anywhere in a name."""

    regexp: str


class Find(ConfigModel):
    """Secrets of a store, by their names or by all of their tags, which a cluster and Google call labels.

    path: under which they are, as far as the kind has paths; how the names begin at Google.
    """

    path: RemoteKey | None = None
    name: NamePattern | None = None
    tags: Mapping[str, str] | None = None
    decoding_strategy: DecodingStrategy | None = None

    @property
    def way(self) -> str:
        """Criterion that they are found by: tags or name."""
        return "tags" if self.name is None else "name"


class FindOthers(Find):
    """The same, without one name: that of the Secret which they are put into."""

    without: ObjectName


class DataSource(ConfigModel):
    """Where keys come from that are not named: the fields of one secret, or secrets under their names."""

    extract: RemoteRef | None = None
    find: Find | None = None

    @property
    def way(self) -> str:
        """Feature that the kind of provider must support: extract, name or tags."""
        return "extract" if self.find is None else self.find.way


@dataclass(frozen=True, slots=True)
class Place:
    """Target of a push: a key of the store, and one of its properties.

    `namespace`: if it differs from the provider's, for kinds with namespaces.
    """

    key: str
    property_name: str | None = None
    namespace: str | None = None

    def __str__(self) -> str:
        key = self.key if self.namespace is None else f"{self.namespace}/{self.key}"
        return key if self.property_name is None else f"{key}, property {self.property_name}"


class Pushed(ConfigModel):
    """One key of a Secret of the consumer's namespace, and where it goes to in the store.

    key: absent, all keys as one JSON object of texts.
    """

    secret: ObjectName
    key: DataKey | None = None
    remote_key: RemoteKey
    property_name: Property = None
    remote_namespace: NamespaceName | None = None

    @property
    def place(self) -> Place:
        """Target in the store, which must be unique among pushes."""
        return Place(self.remote_key, self.property_name, self.remote_namespace)


class _Consumer(ConfigModel):
    namespace: NamespaceName
    name: ObjectName
    store: StoreRef
    refresh_interval: Duration = "1h"

    @property
    def title(self) -> str:
        """`Kind/namespace/name`."""
        return f"{type(self).__name__}/{self.namespace}/{self.name}"


class ExternalSecret(_Consumer):
    """A read: the Secret `target` of its namespace is made of values of a store.

    data: key of the target → value, which goes before what the sources of data_from say of a key, and of
    those a later one before an earlier. type, labels, annotations: of the target. template: key of it → text
    of those values, in the place of all of them.
    """

    target: ObjectName
    data: Mapping[DataKey, RemoteRef] = {}
    data_from: tuple[DataSource, ...] = ()
    type: str | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    template: Mapping[DataKey, str] = {}

    def takes(self, secret: str) -> bool:
        """Return whether it would read a Secret of this name, if its store is a namespace; ignores labels."""
        sources = [each.find.name for each in self.data_from if each.find is not None]
        keys = {each.key for each in (*self.data.values(), *(one.extract for one in self.data_from)) if each}
        return secret in keys or any(each is not None and is_found(each.regexp, secret) for each in sources)


class PushSecret(_Consumer):
    """A push: keys of Secrets of its namespace are written to a store. ESO takes keys of one only."""

    _writes_nothing_twice = refused_if(
        lambda one: len({each.place for each in one.data}) < len(one.data),
        "two of its entries go to one place, so one would be lost",
        "give each a place",
    )
    data: Annotated[tuple[Pushed, ...], Field(min_length=1)]
    update_policy: UpdatePolicy = UpdatePolicy.REPLACE
    deletion_policy: DeletionPolicy = DeletionPolicy.NONE
