"""What the recording provider constructs where a test wants components: a room, and a chair in it."""

from __future__ import annotations

import grpc
from pulumi_sandbox.protocol import wire
from pulumi_sandbox.protocol.stubs import (
    CHANNEL_OPTIONS,
    engine_pb2_grpc,
    provider_pb2,
    resource_pb2_grpc,
)

from sandbox.tests.support.scripted_program import Script


def furnish(request: provider_pb2.ConstructRequest) -> provider_pb2.ConstructResponse:
    """Construct as the SDK does: the component, a resource in it, the outputs of both."""
    with grpc.insecure_channel(request.monitorEndpoint, options=CHANNEL_OPTIONS) as channel:
        monitor, engine = resource_pb2_grpc.ResourceMonitorStub(channel), engine_pb2_grpc.EngineStub(channel)
        script = Script({}, monitor, engine, request.parent)
        inputs = wire.decode(request.inputs)
        room = script.register(
            request.name,
            {"size": inputs.get("size")},
            type_=request.type,
            custom=False,
            providers=request.providers,
            aliases=request.aliases,
            protect=request.protect if request.HasField("protect") else None,
        )
        chair = script.register(f"{request.name}-chair", inputs, parent=room.urn)
        script.outputs(room.urn, {"size": inputs.get("size"), "chair": chair.outputs.get("made")})
    dependencies = provider_pb2.ConstructResponse.PropertyDependencies
    return provider_pb2.ConstructResponse(
        urn=room.urn,
        state=wire.encode({"size": inputs.get("size"), "chair": chair.outputs.get("made")}),
        stateDependencies={"chair": dependencies(urns=[chair.urn])},
    )
