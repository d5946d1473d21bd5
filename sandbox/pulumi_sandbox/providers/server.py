"""The provider protocol on gRPC: which method answers which call, and how a failure reaches the engine."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.message import Message

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import wire
from pulumi_sandbox.protocol.redaction import Redactor, texts_of
from pulumi_sandbox.protocol.stubs import CHANNEL_OPTIONS, plugin_pb2, provider_pb2, status_pb2
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.contract import InitFailedError, Package, RefusedError
from pulumi_sandbox.providers.service import ProviderService

_Method: TypeAlias = Callable[[Any], Message]

_THREADS: Final = 64
"""Calls served at once: each holds a thread for its whole request or wait."""


def serve(package: Package, meanwhile: Callable[[], None] | None = None) -> None:
    """Serve a package on a free loopback port until SIGTERM or SIGINT; the first line printed is the port.

    `meanwhile` runs as soon as the port is told: imports that the first call would wait for.
    """
    endings = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, endings)
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=CHANNEL_OPTIONS)
    server.add_generic_rpc_handlers((handler(package),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    if meanwhile is not None:
        meanwhile()
    signal.sigwait(endings)
    server.stop(grace=None)


def handler(package: Package) -> grpc.GenericRpcHandler:
    """Return the routes of a package; calls without one are answered with UNIMPLEMENTED."""
    service = ProviderService(package)
    routes: dict[str, tuple[_Method, type[Message]]] = {
        "CheckConfig": (service.check_config, provider_pb2.CheckRequest),
        "DiffConfig": (service.diff_config, provider_pb2.DiffRequest),
        "Configure": (service.configure, provider_pb2.ConfigureRequest),
        "Check": (service.check, provider_pb2.CheckRequest),
        "Diff": (service.diff, provider_pb2.DiffRequest),
        "Create": (service.create, provider_pb2.CreateRequest),
        "Update": (service.update, provider_pb2.UpdateRequest),
        "Read": (service.read, provider_pb2.ReadRequest),
        "Delete": (service.delete, provider_pb2.DeleteRequest),
        "Invoke": (service.invoke, provider_pb2.InvokeRequest),
        "GetPluginInfo": (service.get_plugin_info, empty_pb2.Empty),
        "Attach": (service.attach, plugin_pb2.PluginAttach),
        "Cancel": (service.cancel, empty_pb2.Empty),
    }
    return grpc.method_handlers_generic_handler(
        "pulumirpc.ResourceProvider",
        {
            call: grpc.unary_unary_rpc_method_handler(
                _reporting(method),
                request_deserializer=request.FromString,
                response_serializer=_serialized,
            )
            for call, (method, request) in routes.items()
        },
    )


def without_secrets(text: str, properties: Properties) -> str:
    """Take every secret of the properties out of a text, encoded ones too."""
    return Redactor(*texts_of(properties))(text)


def _reporting(method: _Method) -> Callable[[Message, grpc.ServicerContext], Message]:
    """Turn foreseeable failures into gRPC errors without secrets; what was written goes along."""

    def answer(request: Message, context: grpc.ServicerContext) -> Message:
        try:
            return method(request)
        except InitFailedError as failed:
            _abort_with_state(context, failed, without_secrets(failed.reason, _properties(request)))
        except (SandboxError, RefusedError) as error:
            text = without_secrets(str(error), _properties(request))
            context.abort(grpc.StatusCode.UNKNOWN, text)
        raise AssertionError("abort raises")

    return answer


def _abort_with_state(context: grpc.ServicerContext, failed: InitFailedError, reason: str) -> None:
    outputs = wire.encode(failed.state.outputs, secrets=True, resources=False, unknowns=True)
    detail = provider_pb2.ErrorResourceInitFailed(id=failed.state.id, properties=outputs, reasons=[reason])
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=reason)
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, reason)


def _properties(request: Message) -> Properties:
    """Return all properties of a request, old and new, under the names of its fields."""
    return {
        field.name: wire.decode(value)
        for field, value in request.ListFields()
        if isinstance(value, struct_pb2.Struct)
    }


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()
