"""What passes from a program of a branch to the engine: the gate over gRPC, and who listens behind it."""

from __future__ import annotations

import base64
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, resource_pb2

from operations.review.gate import MOST_SAID, Gate

MONITOR: Final = "/pulumirpc.ResourceMonitor/"
ENGINE: Final = "/pulumirpc.Engine/"
ASSET: Final = "c44067f5952c0a294b673a41bacd8c21"
ARCHIVE: Final = "0def7320c3a5731c473e5ecbe6d01bc7"
PASSES: Final = {"GetDeploymentInfo", "SupportsFeature", "RegisterResource", "RegisterResourceOutputs"} | {
    *("ReadResource", "Invoke", "SignalAndWaitForShutdown"),
    *("Log", "GetRootResource", "SetRootResource", "RequirePulumiVersion"),
}
ANSWERED: Final = {
    *("RegisterResourceHook", "RegisterErrorHook", "RegisterStackTransform", "RegisterStackInvokeTransform")
}
CALLS: Final = sorted(
    prefix + method.name
    for prefix, file, service in (
        (MONITOR, resource_pb2, "ResourceMonitor"),
        (ENGINE, engine_pb2, "Engine"),
    )
    for method in file.DESCRIPTOR.services_by_name[service].methods
)


class _Engine(grpc.GenericRpcHandler):
    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []

    def service(self, handler_call_details: Any) -> Any:
        call = str(handler_call_details.method)

        def answer(request: bytes, _context: object) -> bytes:
            self.asked.append((call, request))
            if call.endswith("RegisterResource"):
                return resource_pb2.RegisterResourceResponse(urn="urn:x").SerializeToString()
            return empty_pb2.Empty().SerializeToString()

        return grpc.unary_unary_rpc_method_handler(answer)


@contextmanager
def served(handler: grpc.GenericRpcHandler) -> Generator[str]:
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handler,))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield address
    finally:
        server.stop(None).wait()


class _Program:
    """A program behind the gate: what it asks, and what the engine heard of it."""

    def __init__(self, engine: _Engine, channel: grpc.Channel, notes: Path, stopped: list[bool]) -> None:
        self.engine, self._channel, self.notes, self.stopped = engine, channel, notes, stopped

    def ask(self, call: str, message: Any = None) -> bytes:
        return self._channel.unary_unary(call)(message.SerializeToString() if message else b"")


@pytest.fixture
def program(tmp_path: Path) -> Generator[_Program]:
    engine, stopped = _Engine(), list[bool]()
    with served(engine) as address:
        gate = Gate(address, address, tmp_path / "notes", lambda: stopped.append(True))
        with served(gate) as own, grpc.insecure_channel(own) as channel:
            yield _Program(engine, channel, tmp_path / "notes", stopped)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_a_program_passes_by_the_list_alone(program: _Program, call: str) -> None:
    name = call.rpartition("/")[2]
    if name in PASSES | ANSWERED:
        program.ask(call)
    else:
        with pytest.raises(grpc.RpcError, match=f"does not let a program call {name}"):
            program.ask(call)
    heard = {each for each, _ in program.engine.asked}
    assert heard == ({call} if name in PASSES - {"Log"} else set())


@pytest.mark.parametrize("mark", [ASSET, ARCHIVE])
@pytest.mark.parametrize("call", ["RegisterResource", "RegisterResourceOutputs", "ReadResource", "Invoke"])
def test_an_asset_in_any_value_is_refused_before_the_engine_reads_it(
    program: _Program, call: str, mark: str
) -> None:
    message = resource_pb2.RegisterResourceRequest()
    message.object.update({"deep": [{"4dabf18193072939515e22adb298388d": mark, "path": "/etc/passwd"}]})
    with pytest.raises(grpc.RpcError, match="reads no assets"):
        program.ask(MONITOR + call, message)
    assert program.engine.asked == []


@pytest.mark.parametrize(
    "chosen", [{"remote": True}, {"packageRef": "x"}, {"pluginDownloadURL": "https://evil.example"}]
)
def test_a_resource_that_chooses_a_plugin_is_refused(program: _Program, chosen: dict[str, Any]) -> None:
    with pytest.raises(grpc.RpcError, match="choose plugins"):
        program.ask(f"{MONITOR}RegisterResource", resource_pb2.RegisterResourceRequest(**chosen))
    assert program.engine.asked == []


def test_what_the_engine_would_call_in_the_program_is_left_out_of_a_resource_and_its_inputs_are_noted(
    program: _Program,
) -> None:
    asked = resource_pb2.RegisterResourceRequest(type="a:b:C", name="n", custom=True)
    asked.object.update({"key": "value"})
    inputs = asked.object.SerializeToString()
    asked.hooks.before_create.append("hook")
    asked.transforms.add(target="127.0.0.1:1", token="t")

    program.ask(f"{MONITOR}RegisterResource", asked)

    ((_, heard),) = program.engine.asked
    passed = resource_pb2.RegisterResourceRequest.FromString(heard)
    assert (passed.type, passed.name, passed.custom) == ("a:b:C", "n", True)
    assert not passed.HasField("hooks")
    assert not passed.transforms
    urn, _, noted = program.notes.read_text().strip().partition("\t")
    assert (urn, base64.b64decode(noted)) == ("urn:x", inputs)


def test_a_program_that_says_too_much_is_stopped_and_heard_no_more(program: _Program) -> None:
    message = engine_pb2.LogRequest(severity=engine_pb2.INFO, message="x" * (MOST_SAID // 2 - 1))
    for _ in range(4):
        program.ask(f"{ENGINE}Log", message)

    assert len(program.engine.asked) == 2
    assert program.stopped
