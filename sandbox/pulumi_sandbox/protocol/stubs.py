"""Pulumi's gRPC stubs, taken from the installed SDK without importing the SDK.

`import pulumi` would cost a provider 0.4 s of CPU without need. The stubs import each other relatively, so
they can be loaded from a package of another name. They share one descriptor pool with the SDK's own copies,
and so one set of message classes: a process can use both.
"""

# ruff: noqa: PLC0414 - other modules take them from here

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pulumi.runtime.proto import plugin_pb2 as plugin_pb2
    from pulumi.runtime.proto import provider_pb2 as provider_pb2
    from pulumi.runtime.proto import provider_pb2_grpc as provider_pb2_grpc
else:
    import importlib.util
    import sys
    from pathlib import Path
    from types import ModuleType

    _PACKAGE: Final = ModuleType(f"{__name__}_stubs")
    _PACKAGE.__path__ = [str(Path(importlib.util.find_spec("pulumi").origin).parent / "runtime" / "proto")]
    sys.modules[_PACKAGE.__name__] = _PACKAGE

    def __getattr__(name: str) -> ModuleType:
        if name.startswith("__"):
            raise AttributeError(name)
        return importlib.import_module(f"{_PACKAGE.__name__}.{name}")


CHANNEL_OPTIONS: Final = [(f"grpc.max_{way}_message_length", 400 << 20) for way in ("send", "receive")]
"""Limits of the SDK and the CLI; gRPC's default is 4 MiB."""
