"""What a provider is told that is to construct a component, or to answer a method of one.

Seen of the genuine engine: sandbox/docs/engine-facts.md, components that a provider constructs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypedDict

from google.protobuf import struct_pb2

from pulumi_sandbox.engine.model.goal import Goal
from pulumi_sandbox.engine.project.identity import ORGANIZATION, Identity
from pulumi_sandbox.protocol import signatures
from pulumi_sandbox.protocol.stubs import alias_pb2, provider_pb2, resource_pb2

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
    timeouts = options.custom_timeouts
    return provider_pb2.ConstructRequest(
        **_of_run(identity, parallel, monitor),
        organization=ORGANIZATION,
        type=goal.type,
        name=goal.name,
        parent=goal.parent,
        inputs=inputs,
        inputDependencies={key: _Dependencies(urns=urns) for key, urns in goal.property_dependencies.items()},
        dependencies=goal.dependencies,
        providers=goal.providers,
        aliases=map(_alias, goal.aliases),
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
        replacement_trigger=options.replacement_trigger if options.HasField("replacement_trigger") else None,
        resource_hooks=_hooks(options.hooks) if options.hooks.ByteSize() else None,
    )


def _alias(alias: alias_pb2.Alias) -> alias_pb2.Alias:
    """Return an alias that names no parent instead of an empty one."""
    told = alias_pb2.Alias.FromString(alias.SerializeToString())
    if told.spec.WhichOneof("parent") == "parentUrn" and not told.spec.parentUrn:
        told.spec.ClearField("parentUrn")
    return told


def _hooks(
    hooks: resource_pb2.RegisterResourceRequest.ResourceHooksBinding,
) -> provider_pb2.ConstructRequest.ResourceHooksBinding:
    return provider_pb2.ConstructRequest.ResourceHooksBinding.FromString(hooks.SerializeToString())


def call_request(
    request: resource_pb2.ResourceCallRequest, *, identity: Identity, parallel: int, monitor: str
) -> provider_pb2.CallRequest:
    """Return the request for a method; its arguments go on as the program sent them."""
    sent = {key: each.urns for key, each in request.argDependencies.items()}
    dependencies = provider_pb2.CallRequest.ArgumentDependencies
    return provider_pb2.CallRequest(
        tok=request.tok,
        args=request.args,
        argDependencies={
            key: dependencies(urns=urns) for key, urns in all_dependencies(request.args, sent).items()
        },
        **_of_run(identity, parallel, monitor),
    )


class _OfRun(TypedDict):
    """What every request to a provider that registers says of the run."""

    project: str
    stack: str
    config: Mapping[str, str]
    configSecretKeys: Sequence[str]
    dryRun: bool
    parallel: int
    monitorEndpoint: str
    accepts_output_values: bool


def _of_run(identity: Identity, parallel: int, monitor: str) -> _OfRun:
    return _OfRun(
        project=identity.project,
        stack=identity.stack,
        config=identity.config.values,
        configSecretKeys=identity.config.secret_keys,
        dryRun=identity.preview,
        parallel=parallel,
        monitorEndpoint=monitor,
        accepts_output_values=True,
    )


def all_dependencies(values: struct_pb2.Struct, said: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return what each value depends on: what was said, and what the output values in it say."""
    keys = (*values.fields, *(key for key in said if key not in values.fields))
    there = values.fields
    return {
        key: sorted({*said.get(key, ()), *(_dependencies(there[key]) if key in there else ())})
        for key in keys
    }


def _dependencies(value: struct_pb2.Value) -> Iterator[str]:
    fields = value.struct_value.fields
    if signatures.KEY in fields and fields[signatures.KEY].string_value == signatures.OUTPUT:
        said = fields["dependencies"].list_value.values if "dependencies" in fields else ()
        yield from (each.string_value for each in said)
    for each in (*fields.values(), *value.list_value.values):
        yield from _dependencies(each)
