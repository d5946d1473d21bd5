"""User-provided services and their bindings as a stack declares them: one credentials object, its Secrets.

Owns the source Secret of an instance and, per binding, the binding Secret with a file per credential and the
Secret with VCAP_SERVICES; all derived in the program from one secret input. Of a legacy instance it owns what
was made of the legacy Secret, never that Secret itself: bindings keep referring to it until credentials are
declared, and then move once (service credentials, table G).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.service_credentials.binding import (
    DEFAULT_TYPE,
    BoundInstance,
    ServiceCredentials,
    binding_data,
    source_data,
    vcap_services,
)
from components.service_credentials.migration import encoded
from components.service_credentials.names import (
    BINDINGS_ROOT,
    OPAQUE,
    SERVICE_INSTANCE_GUID,
    VCAP_KEY,
    environment_secret,
    source_secret,
)
from components.service_credentials.provider import ServiceMigration, ServiceMigrationArgs


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredCredentials:
    """The credentials of an instance.

    content: secret. type: of the Secrets of its bindings, `servicebinding.io/…`; plain, because another type
    means another Secret, which a preview has to tell.
    """

    content: pulumi.Input[ServiceCredentials]
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProvidedServiceArgs:
    """An instance: its name and namespace, and its id, the same whenever the program runs.

    owner: the text a migrated Secret is known by as this stack's. credentials: None for those of the legacy
    Secret. legacy: a flat Secret of the instance's name is in the cluster. label, tags: for VCAP_SERVICES.
    """

    namespace: pulumi.Input[str]
    instance: str
    guid: str
    owner: str
    credentials: DeclaredCredentials | None
    legacy: bool = False
    label: str = DEFAULT_TYPE
    tags: Sequence[str] = ()


class UserProvidedService(pulumi.ComponentResource):
    """An instance. Outputs: namespace, secretName (of the source Secret), guid."""

    TYPE: ClassVar = "credfleet:index:UserProvidedService"
    namespace: pulumi.Output[str]
    secret_name: pulumi.Output[str]

    def __init__(
        self, name: str, args: UserProvidedServiceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        if args.credentials is None and not args.legacy:
            raise ValueError(f"instance {args.instance} has neither credentials nor a legacy Secret")
        props = {"namespace": args.namespace, "instance": args.instance, "legacy": args.legacy}
        super().__init__(self.TYPE, name, props, opts)
        self.args = args
        self.namespace = pulumi.Output.from_input(args.namespace)
        secret_name = source_secret(args.instance, legacy=args.legacy)
        migrated = [_migrated(f"{name}-migration", args, secret_name, self)] if args.legacy else []
        if args.credentials is None:
            self.secret_name = migrated[0].target_name
        else:
            labels = {SERVICE_INSTANCE_GUID: args.guid}
            source = Secret(
                f"{name}-source",
                metadata=ObjectMetaArgs(name=secret_name, namespace=args.namespace, labels=labels),
                type=OPAQUE,
                data=_data(args.credentials, source_data),
                opts=pulumi.ResourceOptions(parent=self, depends_on=migrated),
            )
            self.secret_name = source.metadata.name
        self.register_outputs(
            {"namespace": self.namespace, "secretName": self.secret_name, "guid": args.guid}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBindingArgs:
    """Who is bound to an instance: the binding's name, and its id, the same whenever the program runs.

    display_name: the directory of its files and its name in VCAP_SERVICES, instead of the binding's.
    """

    service: UserProvidedService
    binding: str
    guid: str
    display_name: str | None = None


class SecretKey(TypedDict):
    """Where a value is, for an `env` entry with `secretKeyRef`."""

    namespace: pulumi.Output[str]
    secretName: pulumi.Output[str]
    key: str


class ServiceBinding(pulumi.ComponentResource):
    """A binding, in the namespace of its instance.

    Outputs: secretName and type of the Secret its files come from; mountPath, where they are below the
    default root; vcapServices, the key of a Secret that holds VCAP_SERVICES for this one binding.
    """

    TYPE: ClassVar = "credfleet:index:ServiceBinding"
    secret_name: pulumi.Output[str]
    type: pulumi.Output[str]
    mount_path: str
    vcap_services: SecretKey

    def __init__(
        self, name: str, args: ServiceBindingArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        service = args.service.args
        props = {"instance": service.instance, "binding": args.binding, "displayName": args.display_name}
        super().__init__(self.TYPE, name, props, opts)
        bound = BoundInstance(
            instance_guid=service.guid,
            instance_name=service.instance,
            binding_guid=args.guid,
            binding_name=args.display_name,
            tags=tuple(service.tags),
            label=service.label,
        )
        env_name = environment_secret(args.binding)
        migrated: list[ServiceMigration] = []
        if service.legacy:
            migrated.append(_migrated(f"{name}-env-migration", service, env_name, self, bound))
        if service.credentials is None:
            self.secret_name = pulumi.Output.from_input(service.instance)
            self.type = migrated[0].source_type
            env_secret_name = migrated[0].target_name
        else:
            files = Secret(
                f"{name}-binding",
                metadata=ObjectMetaArgs(name=args.binding, namespace=service.namespace),
                type=service.credentials.type,
                data=_data(service.credentials, binding_data),
                # another type is another Secret, and of the same name
                opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
            )
            env = Secret(
                f"{name}-env",
                metadata=ObjectMetaArgs(name=env_name, namespace=service.namespace),
                type=OPAQUE,
                data=_data(service.credentials, partial(_environment, bound)),
                opts=pulumi.ResourceOptions(parent=self, depends_on=migrated),
            )
            self.secret_name, self.type = files.metadata.name, files.type
            env_secret_name = env.metadata.name
        self.mount_path = f"{BINDINGS_ROOT}/{args.display_name or args.binding}"
        self.vcap_services = {
            "namespace": args.service.namespace,
            "secretName": env_secret_name,
            "key": VCAP_KEY,
        }
        self.register_outputs(
            {
                "secretName": self.secret_name,
                "type": self.type,
                "mountPath": self.mount_path,
                "vcapServices": self.vcap_services,
            }
        )


def _migrated(
    name: str,
    service: UserProvidedServiceArgs,
    target: str,
    parent: pulumi.Resource,
    bound: BoundInstance | None = None,
) -> ServiceMigration:
    """Make a Secret of the legacy one, or make place for the declared one of the same name."""
    args = ServiceMigrationArgs(
        namespace=service.namespace,
        instance=service.instance,
        instance_guid=service.guid,
        target_name=target,
        owner=service.owner,
        binding=bound,
        handed_over=service.credentials is not None,
    )
    return ServiceMigration(name, args, pulumi.ResourceOptions(parent=parent))


def _data(
    credentials: DeclaredCredentials, made_of: Callable[[ServiceCredentials], Mapping[str, bytes]]
) -> pulumi.Output[Mapping[str, str]]:
    return pulumi.Output.secret(credentials.content).apply(lambda content: encoded(made_of(content)))


def _environment(bound: BoundInstance, credentials: ServiceCredentials) -> Mapping[str, bytes]:
    return {VCAP_KEY: vcap_services(bound, credentials)}
