"""The pack in the genuine host, spoken to as the engine does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pack import POLICIES
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from tests.support.policies import UNKNOWN, secret
from tests.support.stacks import ROOT

PACK = ROOT / "policies"
CANARY = "canary-7f3a"


@pytest.fixture(scope="module")
def host() -> Generator[Any]:
    """The analyzer of the genuine host, started from the folder of the pack as the engine does."""
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:1", str(PACK)]
    with subprocess.Popen(command, cwd=PACK, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield analyzer_pb2_grpc.AnalyzerStub(channel)
        finally:
            process.terminate()


def analyze(host: Any, type_: str, **inputs: Any) -> dict[str, Any]:
    properties = Struct()
    properties.update(inputs)
    request = analyzer_pb2.AnalyzeRequest(type=type_, urn="urn:x", name="x", properties=properties)
    return {diagnostic.policyName: diagnostic for diagnostic in host.Analyze(request).diagnostics}


def test_the_host_lists_every_rule_with_its_level(host: Any) -> None:
    info = host.GetAnalyzerInfo(empty_pb2.Empty())

    assert info.name == "credfleet"
    assert {policy.name: policy.enforcementLevel for policy in info.policies} == dict.fromkeys(
        [policy.name for policy in POLICIES], analyzer_pb2.MANDATORY
    )


def test_a_violation_is_mandatory_and_shows_no_value(host: Any) -> None:
    found = analyze(host, "kubernetes:core/v1:Secret", stringData=secret({"token": CANARY}))

    assert set(found) == {"kubernetes-secret-data-only"}
    assert found["kubernetes-secret-data-only"].enforcementLevel == analyzer_pb2.MANDATORY
    assert CANARY not in str(found)


def test_unknown_values_make_no_rule_give_up(host: Any) -> None:
    found = analyze(
        host,
        "kubernetes:core/v1:ConfigMap",
        metadata={"name": UNKNOWN, "annotations": UNKNOWN},
        data={"a": UNKNOWN, "password": CANARY},
    )

    assert set(found) == {"kubernetes-readable-no-credential"}


def test_what_complies_is_let_through(host: Any) -> None:
    assert analyze(host, "kubernetes:core/v1:Secret", data=secret({"token": CANARY})) == {}


@pytest.mark.parametrize("module", sorted(PACK.glob("*.py")), ids=lambda path: path.stem)
def test_no_file_of_the_pack_shadows_a_package(module: Path) -> None:
    """The folder of the pack comes first on the path of its process."""
    if module.stem == "__main__":
        return
    asked = f"import importlib.util as u; print(u.find_spec({module.stem!r}))"

    answer = subprocess.run(
        [sys.executable, "-P", "-c", asked], cwd=ROOT.parent, capture_output=True, text=True, check=True
    )

    assert answer.stdout.strip() == "None"
