"""What a provider is told that is to construct a component.

Seen of the genuine engine: sandbox/docs/engine-facts.md, components that a provider constructs.
"""

from google.protobuf import struct_pb2

from pulumi_sandbox.engine.model.goal import Goal
from pulumi_sandbox.engine.project.identity import ORGANIZATION, Identity
from pulumi_sandbox.protocol.stubs import provider_pb2, resource_pb2

_Dependencies = provider_pb2.ConstructRequest.PropertyDependencies


def construct_request(
    goal: Goal,
    inputs: struct_pb2.Struct,
    options: resource_pb2.TransformResourceOptions,
    *,
    identity: Identity,
    parallel: int,
    monitor: str,
) -> provider_pb2.ConstructRequest:
    """Return the request for a registration that was transformed, and has inherited what it inherits.

    inputs: with output values as the program sent them, where no transform changed any. monitor: where the
    provider registers.
    """
    config = identity.config
    timeouts = options.custom_timeouts
    return provider_pb2.ConstructRequest(
        project=identity.project,
        stack=identity.stack,
        organization=ORGANIZATION,
        config=config.values,
        configSecretKeys=config.secret_keys,
        dryRun=identity.preview,
        parallel=parallel,
        monitorEndpoint=monitor,
        accepts_output_values=True,
        type=goal.type,
        name=goal.name,
        parent=goal.parent,
        inputs=inputs,
        inputDependencies={key: _Dependencies(urns=urns) for key, urns in goal.property_dependencies.items()},
        dependencies=goal.dependencies,
        providers=goal.providers,
        aliases=goal.aliases,
        protect=goal.protect,
        retainOnDelete=goal.retain_on_delete,
        deleteBeforeReplace=goal.delete_before_replace,
        ignoreChanges=goal.ignore_changes,
        replaceOnChanges=goal.replace_on_changes,
        additionalSecretOutputs=goal.additional_secret_outputs,
        deletedWith=goal.deleted_with,
        replace_with=goal.replace_with,
        customTimeouts=provider_pb2.ConstructRequest.CustomTimeouts(
            create=timeouts.create, update=timeouts.update, delete=timeouts.delete
        )
        if options.HasField("custom_timeouts")
        else None,
        resource_hooks=_hooks(options.hooks) if options.hooks.ByteSize() else None,
    )


def _hooks(
    hooks: resource_pb2.RegisterResourceRequest.ResourceHooksBinding,
) -> provider_pb2.ConstructRequest.ResourceHooksBinding:
    return provider_pb2.ConstructRequest.ResourceHooksBinding.FromString(hooks.SerializeToString())
