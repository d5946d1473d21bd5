"""The entries of `credfleet:secretStores`: providers apart from stores, reads and pushes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import Field, JsonValue, model_validator

from components.config.field_types import (
    ConfigModel,
    Duration,
    Flag,
    FormerNames,
    LabelValue,
    NamespaceName,
    ObjectName,
    OwnAnnotation,
    OwnLabel,
    Text,
    called_first,
    config_error,
    exactly_one,
    must,
    refused_if,
)
from components.projection.settings import CredentialFrom
from components.secret_stores.consumers import (
    Backend,
    DecodingStrategy,
    DeletionPolicy,
    Property,
    RemoteKey,
    UpdatePolicy,
)
from components.secret_stores.model import Condition, DataKey, RetrySettings
from components.secret_stores.registry import CLUSTER_GROUP, GROUP, VERSION
from components.secret_stores.templates import VALUE, is_template

Named: TypeAlias = Callable[[str], Any]
"""Returns the Secret name of an account, given as `tenant/slot`: a string or an output."""


class _Named(ConfigModel):
    _keeps_its_name = called_first("name")
    previously: FormerNames = ()
    name: ObjectName | None = Field(default=None, description="Absent: its key. Unique in a namespace.")


class ProviderEntry(_Named):
    """Where secrets are kept. With a namespace it is that namespace's, without the whole cluster's."""

    _has_a_place_for_its_secret = refused_if(
        lambda one: one.credentials_from is not None and one.namespace is None,
        "who uses a provider of the whole cluster brings the credential along, so it has no Secret",
        "give it a namespace, or leave credentialsFrom out",
    )
    kind: Text = Field(description="Kind of provider, such as Kubernetes or GCPSM.")
    version: Text = Field(default=VERSION, description="Version of the kind.")
    namespace: NamespaceName | None = Field(
        default=None, description="Namespace it belongs to; absent: the whole cluster."
    )
    credentials_from: CredentialFrom = Field(
        default=None,
        description="Name of an entry of credentials, or where it is; its Secret to log in with.",
    )
    spec: Mapping[str, JsonValue] = Field(
        default={}, description="As External Secrets Operator has it for the kind."
    )

    @property
    def api_version(self) -> str:
        """Its group and version."""
        return f"{GROUP if self.namespace else CLUSTER_GROUP}/{self.version}"


class CallersProvider(ConfigModel):
    """Names the provider in the namespace of each that reads or pushes."""

    kind: Text = Field(description="Kind of provider.")
    version: Text = Field(default=VERSION, description="Version of the kind.")
    name: ObjectName = Field(description="Name that each namespace's own provider has.")

    @property
    def api_version(self) -> str:
        """Its group and version."""
        return f"{GROUP}/{self.version}"


class StoreEntry(_Named):
    """What reads and pushes name: a provider, and who may use it."""

    cluster: Flag = Field(default=False, description="Whether the whole cluster's namespaces use it.")
    namespace: NamespaceName | None = Field(default=None, description="The one namespace that uses it.")
    provider_ref: ObjectName | None = Field(default=None, description="Entry of providers.")
    callers_provider: CallersProvider | None = Field(
        default=None, description="Instead of providerRef: each caller's own provider of one name."
    )
    provider: Mapping[str, JsonValue] | None = Field(
        default=None, description="Instead of providerRef: a provider, embedded."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(), description="Namespaces that may use it, if it is the whole cluster's; empty: all."
    )
    controller: Text | None = Field(
        default=None, description="Class of who serves it; credfleet: the direct back end only."
    )
    retry_settings: RetrySettings | None = Field(default=None, description="How often a call is tried again.")
    refresh_interval: Duration | None = Field(default=None, description="How often ESO validates it.")

    @model_validator(mode="after")
    def _is_somebodys(self) -> Self:
        if self.cluster == (self.namespace is not None):
            raise config_error(
                "a store belongs to one namespace or to the whole cluster, not both",
                "give namespace, or cluster: true",
            )
        if self.conditions and not self.cluster:
            raise config_error(
                "conditions say who may use a store of the whole cluster, and this one is its namespace's",
                "leave conditions out",
            )
        ways = (self.provider, self.provider_ref, self.callers_provider)
        given = sum(way is not None for way in ways)
        if given != 1:
            several = {0: "neither is given", 2: "both are given"}.get(given, "all are given")
            raise config_error(
                f"a store has one provider, referred to or embedded; {several}",
                "give providerRef or provider",
            )
        if self.callers_provider is not None and not self.cluster:
            raise config_error(
                "a store of one namespace has one caller, whose provider providerRef names",
                "give providerRef, or cluster: true",
            )
        return self


class _Said(ConfigModel):
    def said(self) -> dict[str, Any]:
        """Return its values under External Secrets Operator's names, without accounts."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"account"})


class _Decoded(_Said):
    decoding_strategy: DecodingStrategy | None = Field(
        default=None, description="How a value is decoded; absent: not at all."
    )


class _Remote(_Decoded):
    _is_found_one_way = refused_if(
        lambda one: one.account is not None and (one.property_name or one.version),
        "the Secret of an account has keys, and neither properties nor versions",
        "leave property and version out",
    )
    account: Text | None = Field(default=None, description="tenant/slot: the Secret of a claimed account.")
    property_name: Property = Field(default=None, alias="property", description="Property of the value.")
    version: RemoteKey | None = Field(default=None, description="Absent: the newest.")

    def remote(self, named: Named) -> Mapping[str, Any]:
        """Return the reference of a value; for an account, `key` becomes a property of the Secret."""
        said = self.said()
        if self.account is None:
            return said
        return {**said, "key": named(self.account), **({"property": said["key"]} if "key" in said else {})}


class ReadValue(_Remote):
    """A value of a store: by its key there, or of an account its tenant claims."""

    key: RemoteKey = Field(description="Key in the store; with account, key of the account's Secret.")


class ExtractEntry(_Remote):
    """A secret whose fields become keys: one of the store, or that of an account its tenant claims."""

    _is_one_secret = exactly_one(
        "its fields are those of one secret", "give key or account", "account", "key"
    )
    key: RemoteKey | None = Field(default=None, description="Key in the store.")


class FindEntry(_Decoded):
    """Secrets of a store, each under its name."""

    _is_one_way = exactly_one("secrets are found one way", "give name or tags", "name", "tags")
    name: Text | None = Field(default=None, description="Regular expression (RE2).")
    tags: Mapping[str, str] = Field(default={}, description="Labels a secret has, all of them.")
    path: RemoteKey | None = Field(default=None, description="Where it looks, or how names begin.")

    def said(self) -> dict[str, Any]:
        """Return its values under External Secrets Operator's names."""
        said = super().said()
        return {**said, "name": {"regexp": said["name"]}} if "name" in said else said


class SourceEntry(ConfigModel):
    """Where a read gathers keys from."""

    _is_one_source = exactly_one("it is one source", "give extract or find", "extract", "find")
    extract: ExtractEntry | None = Field(default=None, description="The fields of one secret.")
    find: FindEntry | None = Field(default=None, description="Whole secrets.")

    def document(self, named: Named) -> Mapping[str, Any]:
        """Return it as an entry of `dataFrom` in an ExternalSecret."""
        if self.extract is not None:
            return {"extract": self.extract.remote(named)}
        return {"find": self.find and self.find.said()}


class _Consumer(_Named):
    _looks_when_it_can = refused_if(
        lambda one: one.refresh_interval is not None and one.backend is Backend.DIRECT,
        "the direct back end looks at every update of the stack, so an interval would do nothing",
        "leave refreshInterval out, or choose backend: eso",
    )
    namespace: NamespaceName = Field(description="A tenant's, or one of cluster.existingNamespaces.")
    store: ObjectName = Field(description="Entry of stores.")
    backend: Backend = Field(default=Backend.DIRECT, description="Who carries it out: credfleet or ESO.")
    refresh_interval: Duration | None = Field(default=None, description="How often ESO looks; absent: 1h.")

    def _document(self, name: str, store: Mapping[str, str]) -> Mapping[str, Any]:
        often = {} if self.refresh_interval is None else {"refreshInterval": self.refresh_interval}
        return {"name": self.name or name, "store": store, **often}


_DEMANDED: Final = {
    "kubernetes.io/basic-auth": ("password or username",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""Type → keys that Kubernetes requires (`ValidateSecret`). It defines no other type with this prefix."""

_UNKNOWN: Final = "Kubernetes has no such type, or makes its Secrets itself", f"use {', '.join(_DEMANDED)}"


_NO_TEMPLATE: Final = "it has more than values", "write each as {{ .key }}, key of letters, digits or '_'"
_RENDERED: Final = "External Secrets Operator takes it for a template", "write it without {{"
_OWNED: Final = (
    "a read owns its Secret: it overwrites no other, and removes its own with itself",
    "write Owner, or give target a name of its own",
)
_RETAINED: Final = (
    "a Secret stays with all its keys while its store lacks a value, and the update says what is missing",
    "write Retain; remove the read to remove its Secret",
)


class ReadEntry(_Consumer):
    """A Secret made of values of a store."""

    target: ObjectName | None = Field(default=None, description="Name of the Secret; absent: the read's own.")
    type: (
        Annotated[Text, must(lambda it: it in _DEMANDED or not it.startswith("kubernetes.io/"), *_UNKNOWN)]
        | None
    ) = Field(default=None, description="Type of the Secret; absent: Opaque.")
    labels: Mapping[OwnLabel, LabelValue] = Field(default={}, description="Labels of the Secret.")
    annotations: Mapping[OwnAnnotation, Annotated[str, must(lambda it: "{{" not in it, *_RENDERED)]] = Field(
        default={}, description="Annotations of the Secret."
    )
    creation_policy: Annotated[Text, must(lambda it: it == "Owner", *_OWNED)] = Field(
        default="Owner", description="Owner."
    )
    deletion_policy: Annotated[Text, must(lambda it: it == "Retain", *_RETAINED)] = Field(
        default="Retain", description="Retain."
    )
    data: Annotated[Mapping[DataKey, ReadValue], Field(min_length=1)] = Field(
        default={}, description="Key of the Secret → value."
    )
    data_from: tuple[SourceEntry, ...] = Field(
        default=(), description="Sources of other keys; a later one goes before."
    )
    template: Annotated[
        Mapping[DataKey, Annotated[str, must(is_template, *_NO_TEMPLATE)]], Field(min_length=1)
    ] = Field(default={}, description="Key of the Secret → text, with {{ .key }} for values.")

    @property
    def unchanged(self) -> Mapping[str, ReadValue]:
        """Map each key of the Secret that is one unchanged value to that value of `data`."""
        alone = {key: VALUE.fullmatch(text) for key, text in self.template.items()}
        its = {key: self.data[one[1]] for key, one in alone.items() if one and one[1] in self.data}
        return its if self.template else self.data

    @property
    def accounts(self) -> Sequence[tuple[str, str]]:
        """Every account it reads, each after the path of the field that names it."""
        named = [(f"data.{key}", value.account) for key, value in self.data.items()]
        gathered = [
            (f"dataFrom[{index}].extract", source.extract.account)
            for index, source in enumerate(self.data_from)
            if source.extract is not None
        ]
        return [(where, account) for where, account in (*named, *gathered) if account is not None]

    def secret(self, name: str) -> str:
        """Return the name of its Secret. `name`: key of this entry in the configuration."""
        return self.target or self.name or name

    def document(self, name: str, store: Mapping[str, str], named: Named) -> Mapping[str, Any]:
        """Return it as an ExternalSecret, without namespace. `store`: kind and name of its store."""
        document = {**self._document(name, store), "target": self.secret(name)}
        document["data"] = {key: value.remote(named) for key, value in self.data.items()}
        further = {
            "type": self.type,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
            "template": dict(self.template),
            "dataFrom": [each.document(named) for each in self.data_from],
        }
        return document | {key: value for key, value in further.items() if value}

    @model_validator(mode="after")
    def _reads_something(self) -> Self:
        if not self.data and not self.data_from:
            raise config_error("it reads nothing, and makes an empty Secret", "give data or dataFrom")
        demanded, made = _DEMANDED.get(self.type or "", ()), self.template or self.data
        lacking = " and ".join(each for each in demanded if not {*each.split(" or ")} & made.keys())
        if lacking and (self.template or not self.data_from):
            where = "template" if self.template else "data"
            raise config_error(f"a Secret of type {self.type} needs {lacking}", f"add {lacking} to {where}")
        return self


class PushValue(_Said):
    """A key of a Secret of the namespace, or all, and where it goes to."""

    _is_of_one_secret = exactly_one(
        "it is a key of one Secret", "give secret or account", "secret", "account"
    )
    secret: ObjectName | None = Field(default=None, description="Secret of the namespace.")
    account: Text | None = Field(
        default=None, description="tenant/slot: the copy of a claimed account (deliverTo)."
    )
    key: DataKey | None = Field(
        default=None, description="Key of that Secret; absent: all keys, as one JSON object."
    )
    remote_key: RemoteKey | None = Field(
        default=None, description="Key in the store; absent: the name of the entry."
    )
    property_name: Property = Field(
        default=None, alias="property", description="Property it becomes there; a Secret's key."
    )
    remote_namespace: NamespaceName | None = Field(
        default=None,
        description="Namespace of that Secret, through a store of the whole cluster; absent: the provider's.",
    )


class PushEntry(_Consumer):
    """Keys of Secrets that are written to stores."""

    store: ObjectName = Field(default_factory=str, description="Entry of stores.")
    stores: tuple[ObjectName, ...] = Field(
        default=(), description="Entries of stores, beside store or instead of it."
    )
    update_policy: UpdatePolicy = Field(
        default=UpdatePolicy.REPLACE, description="Whether a value that is there already is kept."
    )
    deletion_policy: DeletionPolicy = Field(
        default=DeletionPolicy.NONE, description="Whether what was pushed goes with the push."
    )
    data: Annotated[Mapping[RemoteKey, PushValue], Field(min_length=1)] = Field(
        description="Key in the store → value."
    )

    @property
    def accounts(self) -> Sequence[tuple[str, str]]:
        """Every account whose copy it pushes, each after the path of the field that names it."""
        return [(f"data.{key}", it.account) for key, it in self.data.items() if it.account is not None]

    @property
    def targets(self) -> Sequence[str]:
        """Every store that it writes to."""
        return [*([self.store] if self.store else ()), *self.stores]

    def to_each(self) -> Iterator[Self]:
        """Yield a copy of the push for each of its stores."""
        for store in self.targets:
            yield self.model_copy(update={"store": store, "stores": ()})

    def parts(self, name: str) -> Iterator[tuple[str, Self]]:
        """Yield the push as its back end requires it, in parts named `NAME`, `NAME/SECRET` or `NAME/STORE…`.

        There is one part per store, and with ESO one per Secret; the first part has the name of the push.
        """
        secrets: dict[str, dict[str, PushValue]] = {}
        for key, value in self.data.items():
            whole = "" if self.backend is Backend.DIRECT else str(value.secret or value.account)
            secrets.setdefault(whole, {})[key] = value
        for index, (each, (secret, data)) in enumerate(product(self.to_each(), secrets.items())):
            further = "" if each.store == self.targets[0] else each.store
            end = "/".join(filter(None, (further, secret)))
            own = f"{self.name or name}-{end.replace('/', '-')}" if index else self.name
            part = each.model_copy(update={"data": data, "name": own})
            yield f"{name}/{end}" if index else name, part

    def document(self, name: str, store: Mapping[str, str], named: Named) -> Mapping[str, Any]:
        """Return it, or a part, as a PushSecret, without namespace. `store`: kind and name."""
        data = [
            {
                "remoteKey": key,
                **value.said(),
                **({} if value.account is None else {"secret": named(value.account)}),
            }
            for key, value in self.data.items()
        ]
        policies = {"updatePolicy": str(self.update_policy), "deletionPolicy": str(self.deletion_policy)}
        return {**self._document(name, store), **policies, "data": data}

    @model_validator(mode="after")
    def _goes_to_each_store_once(self) -> Self:
        if not self.targets:
            raise config_error("it goes to no store", "give store or stores")
        if len({*self.targets}) < len(self.targets):
            raise config_error("it goes to one store twice", "name each store once")
        return self
