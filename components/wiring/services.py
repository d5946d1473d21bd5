"""User-provided services of a stack, and the applications bound to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.config.field_types import first_name
from components.holding import current_holder, known_as
from components.naming import HELD_AS, config_path
from components.service_credentials.binding import SERVICE_INSTANCE_GUID
from components.service_credentials.component import (
    ServiceApp,
    ServiceAppArgs,
    ServiceBinding,
    ServiceBindingArgs,
    UserProvidedService,
    UserProvidedServiceArgs,
)
from components.stack_config.stack import Settings
from components.waiting import pending
from components.wiring.tenants import Declared


def declare_services(
    settings: Settings, declared: Declared, opts: pulumi.ResourceOptions
) -> tuple[Mapping[str, Any], Mapping[str, Any], pulumi.Input[Mapping[str, str]]]:
    """Declare every instance with its bindings, and every application.

    Returns instance → {secretName, bindings}, with bindings name → {secretName, type, mountPath,
    vcapServices}; application → {vcapServices, filePath, bindings}, with bindings `INSTANCE/BINDING` →
    {secretName, mountPath}; and what is skipped → why.
    """
    section, credentials = settings.services, settings.credentials
    if section is None:
        return {}, {}, {}
    services: dict[str, Any] = {}
    bound: dict[str, ServiceBinding] = {}
    waiting: dict[str, pulumi.Input[str]] = {}
    for name, instance in section.instances.items():
        referred = instance.referred and declared.source(
            instance.referred, section.place("instances", name, "credentialsFrom")
        )
        args = UserProvidedServiceArgs(
            namespace=declared.namespace(instance.namespace),
            instance=instance,
            owner=current_holder(section.KEY, first_name(name, instance.previously)),
            credentials=credentials,
            referred=referred,
        )
        if referred is not None:
            waiting[f"service {name}"] = referred[1]
        named = pulumi.ResourceOptions.merge(opts, known_as(name, instance.previously))
        service = UserProvidedService(name, args, named)
        bindings = {
            key: ServiceBinding(f"{name}/{key}", ServiceBindingArgs(service, key, binding), named)
            for key, binding in instance.bindings.items()
        }
        bound |= {f"{name}/{key}": binding for key, binding in bindings.items()}
        outputs = {key: binding.outputs for key, binding in bindings.items()}
        services[name] = {"secretName": service.secret_name, "bindings": outputs}
    apps: dict[str, Any] = {}
    for name, app in section.apps.items():
        app_args = ServiceAppArgs(
            namespace=declared.namespace(app.namespace),
            app=app,
            owner=current_holder("apps", first_name(name, app.previously)),
            bindings={reference: bound[reference] for reference in app.bindings},
            credentials=credentials,
            takes_file=section.takes_file(app, credentials),
        )
        made = ServiceApp(name, app_args, pulumi.ResourceOptions.merge(opts, known_as(name, app.previously)))
        apps[name] = made.outputs
        if made.is_referred:
            waiting[f"app {name}"] = made.waits
    return services, apps, pending(waiting)


def keeping_ids() -> pulumi.ResourceOptions:
    """Return parent options that reject updates giving a Secret another instance id.

    Applications know an instance by its id, which is derived from the stack's holder name.
    """
    stack = pulumi.get_stack()

    async def look(args: pulumi.ResourceHookArgs) -> None:
        before, now = _id_in(args.old_inputs), _id_in(args.new_inputs)
        if before is not None and now is not None and before != now:
            raise pulumi.RunError(
                f"{config_path(HELD_AS)}: this stack holds services under another name than before, as after"
                f" `pulumi stack rename`; {args.name} would get another id, so nothing was changed\n"
                f"→ pulumi config set {config_path(HELD_AS)} FORMER_NAME_OF_THE_STACK --stack {stack}"
            )

    hook = pulumi.ResourceHook("service-ids", look, pulumi.ResourceHookOptions(on_dry_run=True))
    hooks = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(before_update=[hook]))

    def bound(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if args.type_ != "kubernetes:core/v1:Secret":
            return None
        return pulumi.ResourceTransformationResult(args.props, pulumi.ResourceOptions.merge(args.opts, hooks))

    return pulumi.ResourceOptions(transformations=[bound])


def _id_in(inputs: Mapping[str, Any] | None) -> str | None:
    labels = ((inputs or {}).get("metadata") or {}).get("labels") or {}
    return labels.get(SERVICE_INSTANCE_GUID)
