"""User-provided services and bindings of a stack: one credentials object and its Secrets.

Owns the source Secret of an instance and, per binding, the binding Secret with a file per credential and the
Secret with VCAP_SERVICES; all derived in the program from one secret input. For a legacy instance it owns the
Secrets migrated from the legacy one, never that one: bindings refer to it until credentials are declared, and
then move once (docs/service-credentials.md, migrating a legacy instance).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.config.document import nearest
from components.credentials import Credentials
from components.naming import guid_of
from components.projection.model import HANDED_OVER, encode
from components.projection.provider import CompositionArgs, source_inputs
from components.projection.sources import Source
from components.service_credentials.binding import (
    BINDINGS_ROOT,
    CREDENTIALS_KEY,
    OPAQUE,
    SERVICE_INSTANCE_GUID,
    VCAP_FILE,
    VCAP_KEY,
    BoundInstance,
    ServiceCredentials,
    binding_data,
    binding_type,
    environment_secret,
    source_data,
    source_secret,
    vcap_services,
)
from components.service_credentials.provider import (
    Form,
    ServiceMigration,
    ServiceMigrationArgs,
    ServiceSecret,
    WorkloadBinding,
    WorkloadBindingArgs,
    bound_properties,
    instance_properties,
)
from components.service_credentials.settings import App, Binding, Instance
from components.waiting import declare_unless, join_reasons

_Data = Callable[[ServiceCredentials], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProvidedServiceArgs:
    """Instance as configured.

    `owner`: the same string in every run; identifies a migrated Secret as this stack's, and is the basis of
    ids. `credentials`: those of the stack. `referred`: external source of its credentials, and why that is
    not available yet.
    """

    namespace: pulumi.Input[str]
    instance: Instance
    owner: str
    credentials: Credentials
    referred: tuple[Source, pulumi.Input[str]] | None = None


def _left(hand_over: bool, owner: str) -> Mapping[str, str] | None:
    return {HANDED_OVER: owner} if hand_over else None


class UserProvidedService(pulumi.ComponentResource):
    """Service instance, by its name. Outputs: namespace, secretName (of the source Secret), guid."""

    TYPE: ClassVar = "credfleet:index:UserProvidedService"
    namespace: pulumi.Output[str]
    secret_name: pulumi.Output[str]
    guid: str

    def __init__(
        self, name: str, args: UserProvidedServiceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        given = args.instance
        if given.entry is not None and given.entry not in args.credentials.names:
            raise pulumi.RunError(
                f"service {name}: credentialsFrom names {given.entry}, and no credential has this name\n"
                f"→ {nearest(given.entry, args.credentials.names)}"
            )
        own = given.name(name)
        props = {"namespace": args.namespace, "instance": own, "legacy": given.legacy}
        super().__init__(self.TYPE, name, props, opts)
        self.args, self.instance, self.guid = args, own, guid_of(args.owner)
        self.namespace = pulumi.Output.from_input(args.namespace)
        secret_name = source_secret(own, legacy=given.legacy)
        migrated = self.migrated(f"{name}-migration", secret_name, self)
        self.content: pulumi.Input[str] = migrated[0].digest if migrated else ""
        self.holders: Sequence[pulumi.Resource] = ()
        if given.credentials_from is None:
            self.secret_name = migrated[0].target_name
        elif args.referred is not None:
            self.composed(f"{name}-source", secret_name, Form.SOURCE, self, after=migrated)
            self.secret_name = pulumi.Output.from_input(secret_name)
        else:
            self.content = args.credentials.secret(given.entry or "", lambda text: sha256(text).hexdigest())
            labels = {SERVICE_INSTANCE_GUID: self.guid}
            opts = pulumi.ResourceOptions(parent=self, depends_on=migrated)
            data = self.data(source_data)
            source = self.declared(f"{name}-source", secret_name, OPAQUE, data, opts, labels=labels)
            self.holders, self.secret_name = (source,), source.metadata.name
        for warning in given.verdict(args.credentials).warnings:
            pulumi.log.warn(f"{given.entry}: {warning}", self)
        self.register_outputs(
            {"namespace": self.namespace, "secretName": self.secret_name, "guid": self.guid}
        )

    def composed(
        self,
        logical: str,
        target: str,
        form: Form,
        parent: pulumi.Resource,
        *,
        bound: BoundInstance | None = None,
        after: Sequence[pulumi.Resource] = (),
    ) -> pulumi.Output[ServiceSecret | None]:
        """Declare a Secret composed from credentials in the cluster, once they exist."""
        if self.args.referred is None:
            raise TypeError(f"the credentials of {self.instance} are an entry of the configuration")
        source, waits = self.args.referred
        args = CompositionArgs(
            namespace=self.args.namespace,
            target_name=target,
            owner=self.args.owner,
            sources=source_inputs([source]),
            recipe={"form": form, "instances": [self.reading(bound)]},
            labels={SERVICE_INSTANCE_GUID: self.guid} if form is Form.SOURCE else {},
        )
        opts = pulumi.ResourceOptions(parent=parent, depends_on=after)
        return declare_unless(waits, lambda: ServiceSecret(logical, args, opts))

    def declared(
        self,
        logical: str,
        target: str,
        type_: str,
        data: pulumi.Input[Mapping[str, str]],
        opts: pulumi.ResourceOptions,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> Secret:
        """Declare a Secret in its namespace from an entry of credentials."""
        left = _left(self.args.instance.hand_over, self.args.owner)
        metadata = ObjectMetaArgs(name=target, namespace=self.args.namespace, labels=labels, annotations=left)
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=bool(left) or None))
        return Secret(logical, metadata=metadata, type=type_, data=data, opts=opts)

    @property
    def written(self) -> Source:
        """Source of its credentials in the cluster: the reference, or its own Secret."""
        if self.args.referred is not None:
            return self.args.referred[0]
        place = f"service {self.instance}"
        return Source(self.args.namespace, self.secret_name, place, CREDENTIALS_KEY, declared=True)

    def reading(self, bound: BoundInstance | None) -> Mapping[str, Any]:
        """Return how a provider parses its credentials, and for which binding."""
        named = {} if bound is None else {"bound": instance_properties(bound)}
        given = self.args.instance
        return {"numbers": given.numbers, "strict": given.strict, **named}

    def data(self, made_of: _Data) -> pulumi.Output[Mapping[str, str]]:
        """Return the data of a Secret derived from the instance's credentials."""
        given = self.args.instance
        return self.args.credentials.secret(given.entry or "", lambda text: encode(made_of(given.read(text))))

    def binding_type(self) -> str:
        """Return the type of the binding Secrets; a plain value, because a preview must show a change."""
        given = self.args.instance
        type_ = self.args.credentials.judged(given.entry or "", lambda text: binding_type(given.read(text)))
        if type_ is None:
            if self.args.credentials.is_unseen(given.entry or ""):
                return binding_type(ServiceCredentials({}))
            raise TypeError(f"settings let credential {given.entry} through that cannot be read")
        return type_

    def migrated(
        self, name: str, target: str, parent: pulumi.Resource, bound: BoundInstance | None = None
    ) -> list[ServiceMigration]:
        """Migrate the legacy Secret, or hand its name over to the declared one."""
        if not self.args.instance.legacy:
            return []
        args = ServiceMigrationArgs(
            namespace=self.args.namespace,
            instance=self.instance,
            instance_guid=self.guid,
            target_name=target,
            owner=self.args.owner,
            binding=None if bound is None else bound_properties(bound),
            handed_over=self.args.instance.credentials_from is not None,
            remove_legacy=(self.args.instance.remove_legacy and bound is None) or None,
        )
        return [ServiceMigration(name, args, pulumi.ResourceOptions(parent=parent))]


@dataclass(frozen=True, slots=True)
class ServiceBindingArgs:
    """Binding of an instance, by its name in the configuration."""

    service: UserProvidedService
    name: str
    binding: Binding


class ServiceBinding(pulumi.ComponentResource):
    """Binding, in the namespace of its instance.

    Outputs: secretName and type of the Secret with its files; mountPath, their directory below the default
    root; vcapServices, the key of a Secret with VCAP_SERVICES of this binding.
    """

    TYPE: ClassVar = "credfleet:index:ServiceBinding"
    secret_name: pulumi.Output[str]
    type: pulumi.Output[str]
    mount_path: str
    vcap_services: Mapping[str, Any]

    def __init__(
        self, name: str, args: ServiceBindingArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        service, display_name = args.service, args.binding.display_name
        given = service.args.instance
        props = {"instance": service.instance, "binding": args.name, "displayName": display_name}
        super().__init__(self.TYPE, name, props, opts)
        bound = given.bound(service.instance, service.args.owner, args.name, args.binding)
        self.bound, self.service, self.name = bound, service, args.name
        self.directory = display_name or args.name
        self.composed: Sequence[pulumi.Output[ServiceSecret | None]] = ()
        env_name = environment_secret(args.name)
        migrated = service.migrated(f"{name}-env-migration", env_name, self, bound)
        if given.credentials_from is None:
            self.secret_name = pulumi.Output.from_input(service.instance)
            self.type = migrated[0].source_type
            env_secret_name = migrated[0].target_name
        elif service.args.referred is not None:
            files = service.composed(f"{name}-binding", args.name, Form.BINDING, self)
            env = service.composed(
                f"{name}-env", env_name, Form.ENVIRONMENT, self, bound=bound, after=migrated
            )
            self.composed = [files, env]
            self.secret_name, env_secret_name = map(pulumi.Output.from_input, (args.name, env_name))
            self.type = files.apply(lambda made: made.type if made else "")
        else:
            # another type requires a new Secret of the same name
            opts = pulumi.ResourceOptions(parent=self, delete_before_replace=True)
            type_, data = service.binding_type(), service.data(binding_data)
            files = service.declared(f"{name}-binding", args.name, type_, data, opts)
            # ids change only after the service has accepted new ones
            opts = pulumi.ResourceOptions(parent=self, depends_on=[*migrated, *service.holders])
            data = service.data(lambda content: {VCAP_KEY: vcap_services([(bound, content)])})
            env = service.declared(f"{name}-env", env_name, OPAQUE, data, opts)
            self.secret_name, self.type = files.metadata.name, files.type
            env_secret_name = env.metadata.name
        self.mount_path = f"{BINDINGS_ROOT}/{self.directory}"
        self.vcap_services = {"namespace": service.namespace, "secretName": env_secret_name, "key": VCAP_KEY}
        self.outputs: Mapping[str, Any] = {
            "secretName": self.secret_name,
            "type": self.type,
            "mountPath": self.mount_path,
            "vcapServices": self.vcap_services,
        }
        self.register_outputs(self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAppArgs:
    """Application as configured.

    `owner`: the same string in every run. `bindings`: `INSTANCE/BINDING` → declared binding. `credentials`:
    those of the stack. `takes_file`: whether it reads VCAP_SERVICES from a file.
    """

    namespace: pulumi.Input[str]
    app: App
    owner: str
    bindings: Mapping[str, ServiceBinding]
    credentials: Credentials
    takes_file: bool


class ServiceApp(pulumi.ComponentResource):
    """Application, by its name, with one VCAP_SERVICES for all its bindings.

    Outputs: vcapServices, the key of its Secret; filePath, the file of VCAP_SERVICES_FILE_PATH, or None;
    bindings, Secret and mount path of each.
    """

    TYPE: ClassVar = "credfleet:index:ServiceApp"

    def __init__(self, name: str, args: ServiceAppArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {"namespace": args.namespace, "bindings": [*args.bindings]}
        super().__init__(self.TYPE, name, props, opts)
        self._args = args
        bindings = args.bindings.values()
        waits = [one.service.args.referred[1] for one in bindings if one.service.args.referred is not None]
        self.is_referred = any(one.service.args.instance.entry is None for one in bindings)
        self.waits = join_reasons(waits)
        namespace, secret_name = pulumi.Output.from_input(args.namespace), args.app.secret(name)
        if self.is_referred:
            declare_unless(self.waits, lambda: self._referred(name, secret_name))
        else:
            left = _left(any(one.service.args.instance.hand_over for one in bindings), args.owner)
            secret = Secret(
                f"{name}-vcap-services",
                metadata=ObjectMetaArgs(name=secret_name, namespace=args.namespace, annotations=left),
                type=OPAQUE,
                data=self._data(),
                # ids change only after the services have accepted new ones
                opts=pulumi.ResourceOptions(
                    parent=self, depends_on=[*bindings], retain_on_delete=bool(left) or None
                ),
            )
            content = self._data().apply(lambda data: sha256(data[VCAP_KEY].encode()).hexdigest())
            self._bind(name, content, [secret, *bindings])
        told = pulumi.Output.from_input(secret_name)
        self.outputs: Mapping[str, Any] = {
            "vcapServices": {"namespace": namespace, "secretName": told, "key": VCAP_KEY},
            "filePath": VCAP_FILE if args.takes_file else None,
            "bindings": {
                reference: {"secretName": binding.secret_name, "mountPath": binding.mount_path}
                for reference, binding in args.bindings.items()
            },
        }
        self.register_outputs(self.outputs)

    def _referred(self, name: str, secret_name: str) -> None:
        """Compose VCAP_SERVICES from credentials in the cluster; entries are read from their Secrets."""
        args, bindings = self._args, [*self._args.bindings.values()]
        instances = [{**one.service.reading(one.bound), "takesFile": args.takes_file} for one in bindings]
        given = CompositionArgs(
            namespace=args.namespace,
            target_name=secret_name,
            owner=args.owner,
            sources=source_inputs([one.service.written for one in bindings]),
            recipe={"form": Form.APPLICATION, "instances": instances},
            content=pulumi.Output.all(*(one.service.content for one in bindings)).apply("".join),
        )
        made = [one for binding in bindings for one in binding.composed]
        after = pulumi.Output.all(*made).apply(lambda known: [*filter(None, known), *bindings])
        opts = pulumi.ResourceOptions(parent=self, depends_on=after)
        secret = ServiceSecret(f"{name}-vcap-services", given, opts)
        self._bind(name, secret.digest, after.apply(lambda known: [secret, *known]))

    def _bind(
        self, name: str, content: pulumi.Input[str], after: pulumi.Input[Sequence[pulumi.Resource]]
    ) -> None:
        """Bind the workload, if there is one, to its files and variables, after their Secrets."""
        args, workload = self._args, self._args.app.workload
        if workload is None:
            return
        bindings = args.bindings.values()
        given = WorkloadBindingArgs(
            namespace=args.namespace,
            api_version=workload.api_version,
            kind=workload.kind,
            name=workload.name,
            vcap_secret=args.app.secret(name),
            takes_file=args.takes_file,
            directories={binding.directory: binding.name for binding in bindings},
            containers=[*workload.containers],
            restart=workload.restart,
            content=content,
        )
        opts = pulumi.ResourceOptions(parent=self, depends_on=after)
        WorkloadBinding(f"{name}-workload", given, opts)

    def _data(self) -> pulumi.Output[Mapping[str, str]]:
        bindings = [*self._args.bindings.values()]
        given = [binding.service.args.instance for binding in bindings]
        contents = (self._args.credentials.secret(one.entry or "", bytes) for one in given)

        def made(texts: Sequence[bytes]) -> Mapping[str, str]:
            read = [one.read(text) for one, text in zip(given, texts, strict=True)]
            bound = [binding.bound for binding in bindings]
            return encode({VCAP_KEY: vcap_services(zip(bound, read, strict=True))})

        return pulumi.Output.secret(pulumi.Output.all(*contents).apply(made))
