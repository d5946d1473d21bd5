"""How a provider's process speaks to whoever runs the update. That engines show it, their tests show."""

from collections.abc import Generator
from concurrent import futures

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto.engine_pb2 import LogRequest, LogSeverity
from pulumi.runtime.proto.engine_pb2_grpc import EngineServicer, add_EngineServicer_to_server

from components.dynamic import log


class Engine(EngineServicer):
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, str]] = []
        self.address = ""

    def Log(self, request: LogRequest, context: grpc.ServicerContext) -> Empty:  # noqa: ARG002, N802
        self.logged.append((request.severity, request.message))
        return Empty()


@pytest.fixture
def engine() -> Generator[Engine]:
    found = Engine()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    add_EngineServicer_to_server(found, server)
    found.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield found
    server.stop(None)


def test_a_warning_reaches_the_engine_as_one_and_all_else_is_printed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.argv", ["host", "-v=1", engine.address])
    log("warning: acme/aws: none is free")
    log("acme/gcp: expected to get the only one")
    assert engine.logged == [(LogSeverity.WARNING, "acme/aws: none is free")]
    assert capsys.readouterr().out == "acme/gcp: expected to get the only one\n"


@pytest.mark.parametrize("arguments", [["host"], ["host", "127.0.0.1:1"]], ids=["none", "gone"])
def test_a_warning_that_no_engine_takes_is_printed(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.argv", arguments)
    log("warning: acme/aws: none is free")
    assert capsys.readouterr().out == "warning: acme/aws: none is free\n"
