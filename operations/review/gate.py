"""The engine calls available to a branch's program: an allowlist of calls, and one of their fields.

The program can only reach the socket of this gate. Requests with which the engine would read files, start a
plugin of the program's choice, or call the program back are rejected or reduced (docs/review.md).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import grpc
from google.protobuf import empty_pb2
from google.protobuf.message import Message
from pulumi.runtime.proto import engine_pb2, resource_pb2

_LARGEST_MESSAGE: Final = 400 << 20
OPTIONS: Final = [(f"grpc.max_{way}_message_length", _LARGEST_MESSAGE) for way in ("send", "receive")]
MOST_SAID: Final = 4 << 20
"""Maximum number of characters of program output that are kept."""

_MONITOR, _ENGINE = "/pulumirpc.ResourceMonitor/", "/pulumirpc.Engine/"
_LOG, _REGISTER = f"{_ENGINE}Log", f"{_MONITOR}RegisterResource"
_REDUCED: Final[Mapping[str, Any]] = {
    _REGISTER: resource_pb2.RegisterResourceRequest,
    f"{_MONITOR}ReadResource": resource_pb2.ReadResourceRequest,
    f"{_MONITOR}Invoke": resource_pb2.ResourceInvokeRequest,
}
"""Calls that are forwarded with some of their fields only."""
_PASS: Final = frozenset(
    {
        _LOG,
        *_REDUCED,
        *(
            f"{_MONITOR}{each}"
            for each in ("GetDeploymentInfo", "SupportsFeature", "RegisterResourceOutputs")
        ),
        f"{_MONITOR}SignalAndWaitForShutdown",
        *(f"{_ENGINE}{each}" for each in ("GetRootResource", "SetRootResource", "RequirePulumiVersion")),
    }
)
_ANSWERED: Final = frozenset(
    _MONITOR + each
    for each in (
        "RegisterResourceHook",
        "RegisterErrorHook",
        "RegisterStackTransform",
        "RegisterStackInvokeTransform",
    )
)
"""Registrations of callbacks from the engine to the program: accepted, but never forwarded."""
_FIELDS: Final = frozenset(
    {
        *("type", "name", "parent", "custom", "object", "protect", "dependencies", "provider", "providers"),
        *("propertyDependencies", "deleteBeforeReplace", "deleteBeforeReplaceDefined", "version"),
        *("ignoreChanges", "additionalSecretOutputs", "aliasURNs", "aliases", "aliasSpecs", "importId"),
        *("acceptSecrets", "acceptResources", "supportsPartialValues", "supportsResultReporting"),
        *("replaceOnChanges", "replacement_trigger", "retainOnDelete", "deletedWith", "replace_with"),
        *("customTimeouts", "sourcePosition", "hideDiffs", "accepts_byte_string", "id", "properties"),
        *("tok", "args", "dependsOn", "accept_output_values"),
    }
)
"""Fields of a resource, a lookup or a function that are forwarded to the engine."""
_NEVER: Final = frozenset({"remote", "packageRef", "pluginDownloadURL"})
"""Fields that make the engine start another plugin."""
_FILES: Final = (b"c44067f5952c0a294b673a41bacd8c21", b"0def7320c3a5731c473e5ecbe6d01bc7")
"""Signatures of assets and archives in values: the engine would read the files that they name."""


class Gate(grpc.GenericRpcHandler):
    """Serves the allowed calls to a program, and records the inputs of each declared resource.

    notes: a file with a line for each. stop: called once the program printed too much.
    """

    def __init__(self, monitor: str, engine: str, notes: Path, stop: Callable[[], None]) -> None:
        """Connect to the engine."""
        self._channels = {
            _MONITOR: grpc.insecure_channel(monitor, options=OPTIONS),
            _ENGINE: grpc.insecure_channel(engine, options=OPTIONS),
        }
        self._notes = notes
        self._stop = stop
        self._room = MOST_SAID

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        """Return the handler of a call."""
        call = path_of(handler_call_details)

        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            if any(mark in request for mark in _FILES):
                _refuse(context, "a review reads no assets")
            if call in _ANSWERED or (call == _LOG and not self._is_told(request)):
                return empty_pb2.Empty().SerializeToString()
            if call not in _PASS:
                _refuse(context, f"a review does not let a program call {call.rpartition('/')[2]}")
            asked = _reduced(_REDUCED[call].FromString(request), context) if call in _REDUCED else None
            passed = request if asked is None else asked.SerializeToString()
            answered = forward(self._channels[call[: call.rindex("/") + 1]], call, passed, context)
            if asked is not None and call == _REGISTER:
                urn = resource_pb2.RegisterResourceResponse.FromString(answered).urn
                note(self._notes, urn, asked.object)
            return answered

        return grpc.unary_unary_rpc_method_handler(answer)

    def hear(self, characters: int) -> bool:
        """Count characters of output; return whether more is accepted."""
        self._room -= characters
        if self._room < 0:
            self._stop()
        return self._room >= 0

    def _is_told(self, request: bytes) -> bool:
        said = engine_pb2.LogRequest.FromString(request)
        return said.severity != engine_pb2.DEBUG and self.hear(len(said.message))


def path_of(details: grpc.HandlerCallDetails) -> str:
    """Return the path of the requested call."""
    return str(details.method)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType] - untyped in grpc


def forward(channel: grpc.Channel, call: str, request: bytes, context: grpc.ServicerContext) -> bytes:
    """Forward a call to another server; fails like that server."""
    try:
        return channel.unary_unary(call)(request)
    except grpc.RpcError as error:
        failed: Any = error
        context.abort(failed.code(), failed.details())
        raise


def note(file: Path, urn: str, inputs: Message) -> None:
    """Record the inputs of a declared resource; concurrent lines do not mix."""
    with file.open("ab", buffering=0) as lines:
        lines.write(f"{urn}\t".encode() + base64.b64encode(inputs.SerializeToString()) + b"\n")


def _reduced(request: Any, context: grpc.ServicerContext) -> Any:
    """Return a request with only the allowed fields."""
    request.DiscardUnknownFields()
    for field, value in request.ListFields():
        if field.name in _NEVER and value:
            _refuse(context, f"a review does not let a program choose plugins ({field.name})")
        if field.name not in _FIELDS:
            request.ClearField(field.name)
    return request


def _refuse(context: grpc.ServicerContext, why: str) -> NoReturn:
    context.abort(grpc.StatusCode.PERMISSION_DENIED, why)
    raise AssertionError("abort raises")
