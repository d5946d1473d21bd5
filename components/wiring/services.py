"""The stack's user-provided services, each with its bindings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pulumi

from components.credentials import Credentials
from components.naming import guid_of, stack_holder
from components.service_credentials.binding import (
    DEFAULT_TYPE,
    binding_type,
    read_credentials_object,
)
from components.service_credentials.component import (
    DeclaredCredentials,
    ServiceBinding,
    ServiceBindingArgs,
    UserProvidedService,
    UserProvidedServiceArgs,
)
from components.service_credentials.conformity import judge_text
from components.settings.services import Instance, Services
from components.wiring.declared import Declared


def declare_services(
    services: Services,
    credentials: Credentials,
    declared: Declared,
    opts: pulumi.ResourceOptions,
) -> Mapping[str, Any]:
    """Declare every instance and its bindings.

    Returns instance → {secretName, bindings}, where bindings is name → {secretName, type, mountPath,
    vcapServices}.
    """
    return {
        name: _declare(name, instance, credentials, declared.namespace(instance.namespace), opts)
        for name, instance in services.instances.items()
    }


def _declare(
    name: str,
    instance: Instance,
    credentials: Credentials,
    namespace: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> Mapping[str, Any]:
    stack = (pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack())
    owner = stack_holder(*stack, "services", name)
    service = UserProvidedService(
        name,
        UserProvidedServiceArgs(
            namespace=namespace,
            instance=name,
            guid=guid_of(owner),
            owner=owner,
            credentials=_credentials(instance, credentials),
            legacy=instance.legacy,
            label=instance.label or DEFAULT_TYPE,
            tags=instance.tags,
        ),
        opts,
    )
    _tell_warnings(instance, credentials, service)
    bindings = {
        key: ServiceBinding(
            f"{name}/{key}",
            ServiceBindingArgs(
                service=service,
                binding=key,
                guid=guid_of(f"{owner}/{key}"),
                display_name=binding.display_name,
            ),
            opts,
        )
        for key, binding in instance.bindings.items()
    }
    return {
        "secretName": service.secret_name,
        "bindings": {
            key: {
                "secretName": binding.secret_name,
                "type": binding.type,
                "mountPath": binding.mount_path,
                "vcapServices": binding.vcap_services,
            }
            for key, binding in bindings.items()
        },
    }


def _credentials(instance: Instance, credentials: Credentials) -> DeclaredCredentials | None:
    if instance.credentials_from is None:
        return None
    read = partial(read_credentials_object, numbers=instance.numbers)
    type_ = credentials.judged(instance.credentials_from, lambda text: binding_type(read(text)))
    if type_ is None:
        raise TypeError(f"settings let credential {instance.credentials_from} through that cannot be read")
    return DeclaredCredentials(content=credentials.secret(instance.credentials_from, read), type=type_)


def _tell_warnings(instance: Instance, credentials: Credentials, service: UserProvidedService) -> None:
    if instance.credentials_from is None:
        return
    verdict = credentials.judged(instance.credentials_from, partial(judge_text, numbers=instance.numbers))
    for warning in verdict.warnings if verdict else ():
        pulumi.log.warn(f"{instance.credentials_from}: {warning}", service)
