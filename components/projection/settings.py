"""Models of `deliverTo`, the copy of an account's Secret, and of credential sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self, TypeAlias

from pydantic import BeforeValidator, model_validator

from components.config.field_types import (
    ConfigModel,
    ObjectName,
    Text,
    config_error,
    exactly_one,
    must,
    optional,
    refused_if,
)
from components.errors import ProjectionError
from components.labels import ASO_CREDENTIAL
from components.naming import is_data_key, is_namespace, is_object_name
from components.projection.keys import AsoMethod, KeyPlan, plan_keys
from components.projection.sources import Source, names_version


def _is_secret(text: str) -> bool:
    """Return whether a string is NAMESPACE/NAME or NAMESPACE/NAME/KEY."""
    namespace, name, *key = [*text.split("/"), ""][: max(2, text.count("/") + 1)]
    return is_namespace(namespace) and is_object_name(name) and len(key) < 2 and all(map(is_data_key, key))


_names_secret = must(
    _is_secret, "it names no Secret, and no key of one", "write NAMESPACE/NAME, or NAMESPACE/NAME/KEY"
)
_names_version = must(
    names_version,
    "it names no version of a secret in Google's Secret Manager",
    "write projects/PROJECT/secrets/NAME/versions/NUMBER, or latest for the number",
)


class Delivery(ConfigModel):
    """A copy of the claimed account's Secret in the tenant's namespace, which follows its rotation."""

    name: ObjectName | None = optional("Name of the copy.")
    aso_credential: AsoMethod | None = optional(
        "Method of an Azure Service Operator credential; the copy has its keys."
    )
    keys: Mapping[Text, Text] = optional(
        "Key of the copy → key of the account's Secret; empty means all of them.", {}
    )

    @property
    def target(self) -> str:
        """Name of the copy; for ASO its default name."""
        return self.name or ASO_CREDENTIAL

    @property
    def plan(self) -> KeyPlan:
        """Key mapping of the copy; raises ProjectionError for invalid keys."""
        return plan_keys(self.keys, self.aso_credential)

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        if self.name is None and self.aso_credential is None:
            raise config_error("a copy needs a name to be found by", "add name, or asoCredential")
        try:
            _ = self.plan
        except ProjectionError as error:
            raise config_error(error.problem, error.fix) from None
        return self


class CredentialSource(ConfigModel):
    """Where a credential is: an entry of credentials, a Secret, an account's Secret, or Secret Manager."""

    _is_in_one_place = exactly_one(
        "a credential is in one place",
        "give its entry's name, {secret: …}, {account: …} or {gcpSecret: …}",
        *("entry", "secret", "account", "gcp_secret"),
    )
    _has_keys_of_an_account = refused_if(
        lambda one: one.key and not one.account,
        "a key is of an account's Secret",
        "write secret: NAMESPACE/NAME/KEY",
    )
    entry: Text | None = optional("Name of an entry of credentials.")
    secret: Annotated[str, _names_secret] | None = optional(
        "Existing Secret, NAMESPACE/NAME; with /KEY that key alone, otherwise the object of all."
    )
    account: Text | None = optional("Claimed account, TENANT/SLOT: its Secret.")
    gcp_secret: Annotated[str, _names_version] | None = optional(
        "Version in Google's Secret Manager: projects/…/secrets/…/versions/…, or latest."
    )
    key: Annotated[str, must(is_data_key, "no Secret has such a key", "correct it")] | None = optional(
        "Key of the account's Secret; absent: the object of all its keys."
    )

    def source(self, place: str) -> Source:
        """Return the Secret or version that it names directly. `place`: of the reference."""
        if self.in_secret is None:
            return Source(place=place, version=self.gcp_secret)
        namespace, name, key = self.in_secret
        return Source(namespace, name, place, key)

    @property
    def named(self) -> str:
        """Name of the source, of any kind."""
        return self.entry or self.secret or self.account or self.gcp_secret or ""

    @property
    def in_secret(self) -> tuple[str, str, str | None] | None:
        """Namespace, name and key of the Secret that it names directly; key None means all keys."""
        if self.secret is None:
            return None
        namespace, name, *key = self.secret.split("/")
        return namespace, name, key[0] if key else None


def _as_source(given: object) -> object:
    return {"entry": given} if isinstance(given, str) else given


CredentialGiven: TypeAlias = Annotated[
    CredentialSource, BeforeValidator(_as_source, json_schema_input_type=CredentialSource | str)
]
"""A credential; a string is the name of an entry of `credentials`."""

CredentialFrom: TypeAlias = Annotated[
    CredentialSource | None, BeforeValidator(_as_source, json_schema_input_type=CredentialSource | str | None)
]
"""A credential that may be absent."""
