"""What a review lets pass to the host of dynamic providers, by the host itself and a pickle that acts."""

from __future__ import annotations

import asyncio
import base64
import pickle
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.plugin_provider import TrustedDynamic
from pulumi_sandbox.engine.plugins.process import start_plugin
from pulumi_sandbox.protocol.stubs import provider_pb2
from pulumi_sandbox.protocol.values import Properties

_TYPE: Final = "pulumi-python:dynamic/x:Y"
_URN: Final = f"urn:pulumi:dev::shop::{_TYPE}::n"
_PASSES: Final = {"Handshake", "CheckConfig", "DiffConfig", "Configure", "GetPluginInfo", "Cancel"}
_CALLS: Final = sorted(
    {each.name for each in provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"].methods} - _PASSES
)


class _Acts:
    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.write_text, (self._file, "the branch was here")


def _asked(folder: Path, ask: Callable[[TrustedDynamic], Awaitable[Any]]) -> None:
    async def run() -> None:
        command = [sys.executable, "-u", "-m", "pulumi.dynamic", "127.0.0.1:1"]
        host, address = await start_plugin("host", command, cwd=folder, env={}, log=folder / "host.log")
        provider = TrustedDynamic(address, "127.0.0.1:1", {})
        try:
            await provider.configure("urn:pulumi:dev::shop::pulumi:providers:pulumi-python::default", "1", {})
            await ask(provider)
        finally:
            await provider.close()
            await host.stop()

    asyncio.run(run())


def _sent(call: str, pickled: str) -> Callable[[TrustedDynamic], Awaitable[Any]]:
    """Return a call as the engine makes it of what a branch declares; a bare message where it makes none."""
    properties: Properties = {"__provider": pickled}
    resource = Resource(urn=_URN, type=_TYPE, custom=True, id="1", inputs=properties, outputs=properties)
    asks: dict[str, Callable[[TrustedDynamic], Awaitable[Any]]] = {
        "Check": lambda provider: provider.check(_URN, properties, properties, preview=True),
        "Diff": lambda provider: provider.diff(resource, resource, preview=True),
        "Create": lambda provider: provider.create(resource, preview=False),
        "Update": lambda provider: provider.update(resource, resource, preview=False),
        "Delete": lambda provider: provider.delete(resource),
        "Read": lambda provider: provider.read(resource),
        "Invoke": lambda provider: provider.invoke("x:y:z", properties, preview=True),
        "Construct": lambda provider: provider.construct(provider_pb2.ConstructRequest()),
        "Call": lambda provider: provider.call(provider_pb2.CallRequest()),
    }
    return asks.get(call, lambda provider: getattr(provider._stub, call)(object()))  # pyright: ignore[reportPrivateUsage] - the boundary itself


@pytest.mark.parametrize("call", _CALLS)
def test_a_call_of_a_branch_never_loads_the_provider_it_sends(tmp_path: Path, call: str) -> None:
    acted = tmp_path / "acted"
    pickled = base64.b64encode(pickle.dumps(_Acts(acted))).decode()
    refused = False

    async def ask(provider: TrustedDynamic) -> None:
        nonlocal refused
        try:
            await _sent(call, pickled)(provider)
        except Exception as error:
            refused = "a review runs no dynamic provider of the branch" in str(error)

    _asked(tmp_path, ask)

    assert not acted.exists()
    assert refused is (call not in ("Check", "Diff"))
