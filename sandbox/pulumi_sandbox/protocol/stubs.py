"""Pulumi's gRPC stubs, taken from the installed SDK without importing the SDK.

`import pulumi` costs the engine 0.4 s of CPU that nothing here needs. The stubs import each other
relatively, so they load just as well from a package of another name. They share one descriptor pool with
the SDK's own copies, hence one set of message classes: a process may use both. `google.rpc.Status` is taken
from Google's package: the SDK's copy would keep Google's clients from being imported in this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.rpc import status_pb2

if TYPE_CHECKING:
    from pulumi.runtime.proto import (
        alias_pb2,
        analyzer_pb2,
        analyzer_pb2_grpc,
        callback_pb2,
        callback_pb2_grpc,
        engine_pb2,
        engine_pb2_grpc,
        plugin_pb2,
        provider_pb2,
        provider_pb2_grpc,
        resource_pb2,
        resource_pb2_grpc,
    )
else:
    import importlib
    import importlib.util
    import sys
    from pathlib import Path
    from types import ModuleType

    def _stubs() -> str:
        name = f"{__name__}_stubs"
        sdk = importlib.util.find_spec("pulumi")
        package = ModuleType(name)
        package.__path__ = [str(Path(sdk.origin).parent / "runtime" / "proto")]
        sys.modules[name] = package
        return name

    _NAME: Final = _stubs()
    alias_pb2 = importlib.import_module(f"{_NAME}.alias_pb2")
    analyzer_pb2 = importlib.import_module(f"{_NAME}.analyzer_pb2")
    analyzer_pb2_grpc = importlib.import_module(f"{_NAME}.analyzer_pb2_grpc")
    callback_pb2 = importlib.import_module(f"{_NAME}.callback_pb2")
    callback_pb2_grpc = importlib.import_module(f"{_NAME}.callback_pb2_grpc")
    engine_pb2 = importlib.import_module(f"{_NAME}.engine_pb2")
    engine_pb2_grpc = importlib.import_module(f"{_NAME}.engine_pb2_grpc")
    plugin_pb2 = importlib.import_module(f"{_NAME}.plugin_pb2")
    provider_pb2 = importlib.import_module(f"{_NAME}.provider_pb2")
    provider_pb2_grpc = importlib.import_module(f"{_NAME}.provider_pb2_grpc")
    resource_pb2 = importlib.import_module(f"{_NAME}.resource_pb2")
    resource_pb2_grpc = importlib.import_module(f"{_NAME}.resource_pb2_grpc")

MAX_MESSAGE_BYTES: Final = 400 * 1024 * 1024
"""The limit of the SDK and of the CLI; gRPC's own default is 4 MiB."""

CHANNEL_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)

__all__ = [
    "CHANNEL_OPTIONS",
    "alias_pb2",
    "analyzer_pb2",
    "analyzer_pb2_grpc",
    "callback_pb2",
    "callback_pb2_grpc",
    "engine_pb2",
    "engine_pb2_grpc",
    "plugin_pb2",
    "provider_pb2",
    "provider_pb2_grpc",
    "resource_pb2",
    "resource_pb2_grpc",
    "status_pb2",
]
