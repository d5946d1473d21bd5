"""What `credfleet:services` holds: instances of user-provided services, and who is bound to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar, Self

from pydantic import Field, model_validator

from components.credentials import Credentials
from components.errors import Problem
from components.go_json import Numbers
from components.naming import OBJECT_NAME_LIMIT
from components.service_credentials.binding import ServiceCredentials, read_credentials_object
from components.service_credentials.conformity import Verdict, judge_text
from components.service_credentials.names import environment_secret, source_secret
from components.settings.noun import Noun
from components.settings.section import Problems, Section, Surroundings, Written
from components.settings.words import FileName, Flag, NamespaceName, ObjectName, Text, unfit


class Binding(Noun):
    """Who uses a service: a Secret of its own, with one file per credential."""

    display_name: FileName | None = Field(
        default=None, description="Directory below SERVICE_BINDING_ROOT; absent: the binding's name."
    )


class Instance(Noun):
    """A service somebody else runs, known by its credentials."""

    namespace: NamespaceName = Field(
        description="Namespace of its Secrets: a tenant's, or one of cluster.existingNamespaces."
    )
    credentials_from: Text | None = Field(
        default=None, description="Name of an entry of credentials: a JSON object."
    )
    legacy: Flag = Field(
        default=False, description="Whether its flat Secret of Korifi's older form is there already."
    )
    bindings: Mapping[ObjectName, Binding] = Field(default={}, description="Secret → binding.")
    label: Text | None = Field(default=None, description="Group in VCAP_SERVICES; absent: user-provided.")
    tags: tuple[Text, ...] = Field((), description="Tags in VCAP_SERVICES.")
    numbers: Numbers = Field(
        default=Numbers.FLOAT,
        description="Whether numbers pass through a 64-bit float, as Korifi's do, or keep every digit.",
    )
    strict: Flag = Field(
        default=False, description="Whether what only breaks the servicebinding.io specification is refused."
    )

    @model_validator(mode="after")
    def _has_credentials(self) -> Self:
        if self.credentials_from is None and not self.legacy:
            raise unfit(
                "a service without credentials serves nobody",
                "add credentialsFrom, or legacy: true if its Secret is in the cluster already",
            )
        return self

    def read(self, text: bytes) -> ServiceCredentials:
        """Return the credentials that a text holds."""
        return read_credentials_object(text, numbers=self.numbers)

    def verdict(self, credentials: Credentials) -> Verdict:
        """Return what is to be said of its credentials; nothing when they are absent or unreadable."""
        if self.credentials_from is None:
            return Verdict()
        judge = partial(judge_text, numbers=self.numbers, strict=self.strict)
        return credentials.judged(self.credentials_from, judge) or Verdict()


class Services(Section):
    """The user-provided services of the stack."""

    KEY: ClassVar = "services"
    instances: Mapping[ObjectName, Instance] = Field(default={}, description="Secret → instance.")

    def review(self, around: Surroundings) -> Problems:
        """Check namespaces, and what credentials hold."""
        for name, instance in self.instances.items():
            place = self.place("instances", name)
            yield from around.review_namespace(f"{place}.namespace", instance.namespace)
            if instance.credentials_from is not None:
                place = f"{place}.credentialsFrom"
                yield from around.review_credential(place, instance.credentials_from)
                for error in instance.verdict(around.credentials).errors:
                    where = f"{place} ({instance.credentials_from}: {error.place})"
                    yield Problem(where, error.cause, error.mend)
        for _, secret, place in self.written():
            if len(secret) > OBJECT_NAME_LIMIT:
                cause = f"its Secret {secret} has more than the {OBJECT_NAME_LIMIT} characters of a name"
                yield Problem(place, cause, "give it a shorter name")

    def written(self) -> Iterator[Written]:
        """Yield every Secret of the instances, those that are there already included."""
        for name, instance in self.instances.items():
            place = self.place("instances", name)
            owners = [(source_secret(name, legacy=instance.legacy), place)]
            if instance.legacy:
                owners.append((name, place))
            for binding in instance.bindings:
                bound = f"{place}.bindings.{binding}"
                owners += [(binding, bound), (environment_secret(binding), bound)]
            for secret, owner in owners:
                yield instance.namespace, secret, owner
