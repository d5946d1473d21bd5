"""The section `credfleet:services`: instances of user-provided services, and their bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, ClassVar, Final

from pydantic import Field

from components.config.document import nearest
from components.config.field_types import (
    ConfigModel,
    FileName,
    Flag,
    FormerNames,
    NamespaceName,
    ObjectName,
    Text,
    called_first,
    must,
    optional,
    refused_if,
)
from components.config.section import Problems, ReviewContext, Section, Written
from components.credentials import Credentials
from components.errors import Problem
from components.go_json import Numbers
from components.naming import OBJECT_NAME_LIMIT, guid_of
from components.projection.settings import CredentialFrom, CredentialSource
from components.service_credentials.binding import (
    DEFAULT_TYPE,
    BoundInstance,
    ServiceCredentials,
    app_secret,
    environment_secret,
    read_credentials_object,
    source_secret,
    vcap_services,
)
from components.service_credentials.conformity import ENVIRONMENT_LIMIT, SIZE_LIMIT, Conformity, judge_text

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")


class Binding(ConfigModel):
    """Who uses a service: a Secret of its own, with one file per credential."""

    display_name: FileName | None = optional(
        "Directory below SERVICE_BINDING_ROOT; absent: the binding's name."
    )


class Instance(ConfigModel):
    """A user-provided service, known by its credentials."""

    _keeps_its_secret = called_first("secretName")
    _has_credentials = refused_if(
        lambda one: not (one.credentials_from or one.legacy),
        "a service needs credentials",
        "add credentialsFrom, or legacy: true if its Secret is in the cluster already",
    )
    _hands_over_what_it_has = refused_if(
        lambda one: one.hand_over and one.entry is None,
        "only Secrets of an entry of credentials are handed over",
        "leave it out",
    )
    _removes_what_was_migrated = refused_if(
        lambda one: one.remove_legacy and not (one.legacy and one.credentials_from),
        "only what was migrated leaves a legacy Secret behind, and only with credentials of its own",
        "give legacy: true and credentialsFrom beside it, or leave it out",
    )
    previously: FormerNames = ()

    secret_name: ObjectName | None = optional(
        "Its name and its Secret's; absent: its key. Each namespace may have one of a name."
    )
    namespace: NamespaceName = Field(
        description="Namespace of its Secrets: a tenant's, or one of cluster.existingNamespaces."
    )
    credentials_from: CredentialFrom = optional(
        "A JSON object: name of an entry of credentials, or the Secret or account that holds it."
    )
    legacy: Flag = optional("Whether its flat Secret of Korifi's older form exists.", False)
    remove_legacy: Flag = optional("Whether that Secret goes, once nothing refers to it any more.", False)
    hand_over: Flag = optional(
        "Whether its Secrets stay when the stack drops them, for a reference to take.", False
    )
    bindings: Mapping[ObjectName, Binding] = optional("Secret → binding.", {})
    label: Text | None = optional("Group in VCAP_SERVICES; absent: user-provided.")
    tags: tuple[Text, ...] = optional("Tags in VCAP_SERVICES.", ())
    numbers: Numbers = Field(
        default=Numbers.FLOAT,
        description="Whether numbers pass through a 64-bit float, as Korifi's do, or keep every digit.",
    )
    strict: Flag = optional("Whether violations of the servicebinding.io specification are errors.", False)

    @property
    def entry(self) -> str | None:
        """Entry of credentials with its credentials, or None."""
        return self.credentials_from and self.credentials_from.entry

    @property
    def referred(self) -> CredentialSource | None:
        """External source of its credentials, read only by the update; otherwise None."""
        return None if self.entry else self.credentials_from

    def name(self, key: str) -> str:
        """Return the name of the instance. `key`: its key in the configuration."""
        return self.secret_name or key

    def bound(self, key: str, owner: str, name: str, binding: Binding) -> BoundInstance:
        """Return a binding of the instance for VCAP_SERVICES. `owner`: of the instance, for its ids."""
        return BoundInstance(
            instance_guid=guid_of(owner),
            instance_name=self.name(key),
            binding_guid=guid_of(f"{owner}/{name}"),
            binding_name=binding.display_name,
            tags=self.tags,
            label=self.label or DEFAULT_TYPE,
        )

    def read(self, text: bytes) -> ServiceCredentials:
        """Parse the credentials."""
        return read_credentials_object(text, numbers=self.numbers)

    def verdict(self, credentials: Credentials) -> Conformity:
        """Return the validation of its credentials; empty if they are external or unreadable."""
        if self.entry is None:
            return Conformity()
        judge = partial(judge_text, numbers=self.numbers, strict=self.strict)
        return credentials.judged(self.entry, judge) or Conformity()


class Workload(ConfigModel):
    """What runs an application: an existing object with a template of pods."""

    api_version: Text = Field(default="apps/v1", description="Group and version of its kind.")
    kind: Annotated[
        str, must(_KIND.fullmatch, "no kind of Kubernetes is written so", "write it such as Deployment")
    ] = Field(default="Deployment", description="Any kind with a template of pods.")
    name: ObjectName = Field(description="Its name, in the namespace of the application.")
    containers: tuple[Text, ...] = optional("Containers that are bound; absent: all.", ())
    restart: Flag = optional("Whether its pods are restarted when a Secret changes.", False)


class App(ConfigModel):
    """An application, with one VCAP_SERVICES over all its bindings."""

    _keeps_its_secret = called_first("secretName", app_secret("{}"))
    previously: FormerNames = ()

    namespace: NamespaceName = Field(description="Namespace of the application and of its bindings.")
    bindings: tuple[Text, ...] = optional("Its bindings, as INSTANCE/BINDING.", ())
    secret_name: ObjectName | None = optional(
        "Secret with VCAP_SERVICES; absent: its key and -vcap-services."
    )
    file: Flag = optional(
        "Whether it reads VCAP_SERVICES from a file although an environment could hold it.", False
    )

    workload: Workload | None = optional("What runs it, which is given its files and variables.")

    def secret(self, key: str) -> str:
        """Return the name of its Secret. `key`: its key in the configuration."""
        return self.secret_name or app_secret(key)


class Services(Section):
    """The user-provided services of the stack."""

    KEY: ClassVar = "services"
    instances: Mapping[ObjectName, Instance] = optional("Name → instance.", {})
    apps: Mapping[ObjectName, App] = optional("Name → application.", {})

    def review(self, context: ReviewContext) -> Problems:
        """Check namespaces, and the contents of credentials."""
        for name, instance in self.instances.items():
            place = self.place("instances", name)
            yield from context.review_namespace(f"{place}.namespace", instance.namespace)
            if instance.credentials_from is not None:
                place = f"{place}.credentialsFrom"
                yield from context.review_source(place, instance.credentials_from, instance.namespace)
                for error in instance.verdict(context.credentials).errors:
                    yield error.within(f"{place} ({instance.entry}: {error.place})")
        for name, app in self.apps.items():
            yield from context.review_namespace(f"{self.place('apps', name)}.namespace", app.namespace)
            yield from self._review_app(name, app, context)
        for _, secret, place in self.written():
            if len(secret) > OBJECT_NAME_LIMIT:
                problem = f"its Secret {secret} has more than the {OBJECT_NAME_LIMIT} characters of a name"
                yield Problem(place, problem, "give it a shorter name")

    def warnings(self, credentials: Credentials) -> Problems:
        """Yield warnings about the credentials of instances."""
        for name, instance in self.instances.items():
            place = self.place("instances", name, "credentialsFrom")
            for warning in instance.verdict(credentials).warnings:
                yield warning.within(f"{place} ({instance.entry}: {warning.place})")

    def bindings_of(self, app: App) -> Iterator[tuple[str, Instance, str]]:
        """Yield key, instance and name of each existing binding of an application."""
        for reference in app.bindings:
            key, _, binding = reference.partition("/")
            instance = self.instances.get(key)
            if instance is not None and binding in instance.bindings:
                yield key, instance, binding

    def vcap_size(self, app: App, credentials: Credentials) -> int | None:
        """Return the size of an application's VCAP_SERVICES in bytes; None if a credential is unreadable."""
        bindings = [*self.bindings_of(app)]
        entries = [instance.entry for _, instance, _ in bindings if instance.entry is not None]
        # all ids have the same length
        bound = [one.bound(key, key, name, one.bindings[name]) for key, one, name in bindings]

        def size(contents: Sequence[bytes]) -> int:
            read = [one.read(text) for (_, one, _), text in zip(bindings, contents, strict=True)]
            return len(vcap_services(zip(bound, read, strict=True)))

        return credentials.judged_together(entries, size) if len(entries) == len(bindings) else None

    def takes_file(self, app: App, credentials: Credentials) -> bool:
        """Return whether VCAP_SERVICES is read from a file: by request, or because it exceeds a variable."""
        return app.file or (self.vcap_size(app, credentials) or 0) > ENVIRONMENT_LIMIT

    def _review_app(self, name: str, app: App, context: ReviewContext) -> Problems:
        """Check the bindings of an application, and whether a Secret can hold all of them."""
        place = self.place("apps", name, "bindings")
        known = [
            f"{key}/{binding}" for key, instance in self.instances.items() for binding in instance.bindings
        ]
        faults: list[Problem] = []
        for reference in app.bindings:
            instance = self.instances.get(reference.partition("/")[0])
            if reference not in known or instance is None:
                problem = f"{reference} is not a binding of an entry of instances"
                faults.append(Problem(place, problem, nearest(reference, known)))
            elif instance.namespace != app.namespace:
                problem = (
                    f"{reference} is in namespace {instance.namespace}, and a workload reads its own only"
                )
                faults.append(Problem(place, problem, f"bind a service of {app.namespace}"))
            elif app.bindings.count(reference) > 1:
                faults.append(Problem(place, f"{reference} is named more than once", "name it once"))
        yield from faults
        bound = [*self.bindings_of(app)]
        sound = not (faults or any(one.verdict(context.credentials).errors for _, one, _ in bound))
        directories = [one.bindings[binding].display_name or binding for _, one, binding in bound]
        for directory in sorted({each for each in directories if directories.count(each) > 1 and sound}):
            problem = f"two of its bindings have the directory {directory}"
            yield Problem(place, problem, "give one of them another displayName")
        size = self.vcap_size(app, context.credentials) if sound else None
        if size is not None and size > SIZE_LIMIT:
            problem = f"its VCAP_SERVICES has {size} bytes, and a Secret takes no more than {SIZE_LIMIT}"
            yield Problem(place, problem, "bind fewer services to one application")

    def sources(self) -> Iterator[tuple[str, CredentialSource]]:
        """Yield the credential sources of instances."""
        for name, instance in self.instances.items():
            if instance.credentials_from is not None:
                yield self.place("instances", name, "credentialsFrom"), instance.credentials_from

    def written(self) -> Iterator[Written]:
        """Yield every Secret of the instances, including existing ones."""
        for name, instance in self.instances.items():
            place, own = self.place("instances", name), instance.name(name)
            owners = [(source_secret(own, legacy=instance.legacy), place)]
            if instance.legacy:
                owners.append((own, place))
            for binding in instance.bindings:
                bound = f"{place}.bindings.{binding}"
                owners += [(binding, bound), (environment_secret(binding), bound)]
            for secret, owner in owners:
                yield instance.namespace, secret, owner
        for name, app in self.apps.items():
            yield app.namespace, app.secret(name), self.place("apps", name)
