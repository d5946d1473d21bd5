"""The dynamic providers of a review: the host over gRPC, and a provider that acts once it is loaded."""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import provider_pb2

from operations.review import dynamic_host
from operations.review.confinement import CONFIGURED, PROJECT
from tests.support.stacks import ROOT

CLAIM: Final = "pulumi-python:dynamic/credfleet:AccountClaim"
STRANGE: Final = "pulumi-python:dynamic/x:Y"
SERVICE: Final = provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"]
CONFIGURING: Final = {
    *("Handshake", "CheckConfig", "DiffConfig", "Configure", "GetPluginInfo", "Cancel"),
}
CALLS: Final = sorted({each.name for each in SERVICE.methods} - CONFIGURING)


class _Acts:
    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.write_text, (self._file, "the branch was here")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Generator[grpc.Channel]:
    notes = tmp_path_factory.mktemp("host") / "configured"
    command = [sys.executable, "-u", "-m", dynamic_host.__name__]
    environment = {**os.environ, CONFIGURED: str(notes), PROJECT: "credfleet"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
            yield channel
        process.kill()


def _ask(host: grpc.Channel, call: str, request: Any) -> bytes:
    return host.unary_unary(f"/pulumirpc.ResourceProvider/{call}")(request.SerializeToString())


def test_every_class_that_states_name_is_served() -> None:
    frozen = (ROOT / "tests/dynamic/frozen_paths.txt").read_text().split()
    served = {f"{kind.__module__}:{kind.__qualname__}" for kind in dynamic_host.known_types().values()}
    assert served == set(frozen)


@pytest.mark.parametrize("type_", [CLAIM, STRANGE])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_never_loads_the_provider_that_a_branch_sends(
    host: grpc.Channel, tmp_path: Path, call: str, type_: str
) -> None:
    acted = tmp_path / "acted"
    properties = Struct()
    properties["__provider"] = base64.b64encode(pickle.dumps(_Acts(acted))).decode()
    urn = f"urn:pulumi:dev::shop::{type_}::n"
    request: Any = {
        "Check": provider_pb2.CheckRequest(urn=urn, news=properties),
        "Diff": provider_pb2.DiffRequest(urn=urn, id="1", olds=properties, news=properties),
        "Create": provider_pb2.CreateRequest(urn=urn, properties=properties),
        "Read": provider_pb2.ReadRequest(urn=urn, id="1", properties=properties, inputs=properties),
        "Update": provider_pb2.UpdateRequest(urn=urn, id="1", olds=properties, news=properties),
        "Delete": provider_pb2.DeleteRequest(urn=urn, id="1", properties=properties),
    }.get(call, empty_pb2.Empty())

    if call in ("Check", "Diff"):
        assert _ask(host, call, request) is not None
    else:
        with pytest.raises(grpc.RpcError, match=f"{call} is not allowed"):
            _ask(host, call, request)
    assert not acted.exists()
