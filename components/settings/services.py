"""What `credfleet:services` holds: instances of user-provided services, and who is bound to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Self

from pydantic import Field, model_validator

from components.credentials import Credentials
from components.errors import Problem
from components.go_json import Numbers
from components.naming import config_path
from components.service_credentials.conformity import judge_text
from components.service_credentials.names import environment_secret, source_secret
from components.settings.nouns import Cluster, Noun, Tenant
from components.settings.review import unknown_credential, unusable_namespace, usable_namespaces
from components.settings.words import FileName, NamespaceName, ObjectName, Text, unfit
from components.settings.written_secrets import Written


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
    legacy: bool = Field(
        default=False, description="Whether its flat Secret of Korifi's older form is there already."
    )
    bindings: Mapping[ObjectName, Binding] = Field(default={}, description="Secret → binding.")
    label: Text | None = Field(default=None, description="Group in VCAP_SERVICES; absent: user-provided.")
    tags: tuple[Text, ...] = Field((), description="Tags in VCAP_SERVICES.")
    numbers: Numbers = Field(
        default=Numbers.FLOAT,
        description="Whether numbers pass through a 64-bit float, as Korifi's do, or keep every digit.",
    )
    strict: bool = Field(
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


class Services(Noun):
    """The user-provided services of the stack."""

    instances: Mapping[ObjectName, Instance] = Field(default={}, description="Secret → instance.")


def review_services(
    services: Services, tenants: Mapping[str, Tenant], cluster: Cluster, credentials: Credentials
) -> Iterator[Problem]:
    """Check namespaces, and what credentials hold."""
    namespaces = usable_namespaces(tenants, cluster)
    for name, instance in services.instances.items():
        place = config_path("services", "instances", name)
        if instance.namespace not in namespaces:
            yield unusable_namespace(f"{place}.namespace", instance.namespace)
        if instance.credentials_from is not None:
            yield from _review_credentials(
                f"{place}.credentialsFrom", instance, instance.credentials_from, credentials
            )


def _review_credentials(
    place: str, instance: Instance, name: str, credentials: Credentials
) -> Iterator[Problem]:
    if name not in credentials.names:
        yield unknown_credential(place, name, credentials)
        return
    judge = partial(judge_text, numbers=instance.numbers, strict=instance.strict)
    verdict = credentials.judged(name, judge)
    for error in verdict.errors if verdict else ():
        yield Problem(f"{place} ({name}: {error.place})", error.cause, error.mend)


def secrets_of(services: Services) -> Iterator[Written]:
    """Name every Secret of the instances, those that are there already included."""
    for name, instance in services.instances.items():
        place = config_path("services", "instances", name)
        for owner, secret in _secrets(place, name, instance):
            yield instance.namespace, secret, owner


def _secrets(place: str, name: str, instance: Instance) -> Iterator[tuple[str, str]]:
    """Name every Secret of an instance, with the place it comes from."""
    yield place, source_secret(name, legacy=instance.legacy)
    if instance.legacy:
        yield place, name
    for binding in instance.bindings:
        bound = f"{place}.bindings.{binding}"
        yield bound, binding
        yield bound, environment_secret(binding)
