"""The pack in the genuine host, spoken to as the engine does."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2, json_format
from google.protobuf.struct_pb2 import Struct
from pack import POLICIES
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from tests.support.policies import UNKNOWN, secret
from tests.support.stacks import ROOT

PACK = ROOT / "policies"
CANARY = "canary-7f3a"
DECLARED = "canary-of-the-stack"


@pytest.fixture(scope="module")
def host() -> Generator[Any]:
    """The analyzer of the genuine host, started from the folder of the pack as the engine does."""
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:1", str(PACK)]
    config = {"credfleet:credentials": json.dumps({"orders": json.dumps({"password": DECLARED})})}
    with subprocess.Popen(command, cwd=PACK, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                analyzer = analyzer_pb2_grpc.AnalyzerStub(channel)
                analyzer.ConfigureStack(analyzer_pb2.AnalyzerStackConfigureRequest(config=config))
                yield analyzer
        finally:
            process.terminate()


def request(type_: str, urn: str = "urn:x", **inputs: Any) -> analyzer_pb2.AnalyzeRequest:
    properties = Struct()
    properties.update(inputs)
    return analyzer_pb2.AnalyzeRequest(type=type_, urn=urn, name="x", properties=properties)


def analyze(host: Any, type_: str, **inputs: Any) -> dict[str, Any]:
    diagnostics = host.Analyze(request(type_, **inputs)).diagnostics
    return {diagnostic.policyName: diagnostic for diagnostic in diagnostics}


def remediate(host: Any, type_: str, urn: str = "urn:x", **inputs: Any) -> dict[str, Any]:
    remediations = host.Remediate(request(type_, urn, **inputs)).remediations
    return {one.policyName: json_format.MessageToDict(one.properties) for one in remediations}


def test_the_host_lists_every_rule_with_its_level(host: Any) -> None:
    info = host.GetAnalyzerInfo(empty_pb2.Empty())

    assert info.name == "credfleet"
    assert {
        policy.name: analyzer_pb2.EnforcementLevel.Name(policy.enforcementLevel) for policy in info.policies
    } == {policy.name: policy.enforcement_level and policy.enforcement_level.name for policy in POLICIES}


def test_unknown_values_make_no_rule_give_up(host: Any) -> None:
    found = analyze(
        host,
        "kubernetes:core/v1:ConfigMap",
        metadata={"name": UNKNOWN, "annotations": UNKNOWN},
        data={"a": UNKNOWN, "password": CANARY},
    )

    assert set(found) == {"kubernetes-readable-no-credential"}


def test_string_data_becomes_data_on_its_way_and_stays_secret(host: Any) -> None:
    data, texts = secret({"a": "YQ==", "b": "old"}), secret({"b": "b", "c": UNKNOWN})
    fixed = remediate(host, "kubernetes:core/v1:Secret", metadata={"name": "x"}, data=data, stringData=texts)

    data = secret({"a": "YQ==", "b": "Yg==", "c": UNKNOWN})
    assert fixed["kubernetes-secret-data-only"] == {"metadata": {"name": "x"}, "data": data}


def test_a_secret_of_the_configuration_is_found_in_plain_at_once_and_what_another_marks_is_not(
    host: Any,
) -> None:
    marked_elsewhere = "generated-by-a-cloud"
    host.Analyze(request("kubernetes:core/v1:Secret", "urn:other", data=secret({"token": marked_elsewhere})))
    shown = {"greeting": "hello", "a": f"postgres://x:{DECLARED}@db", "b": marked_elsewhere}
    answer = host.Analyze(request("kubernetes:core/v1:ConfigMap", "urn:shown", data=shown))

    found = [one for one in answer.diagnostics if one.policyName == "secrets-stay-marked"]
    assert [one.message.splitlines()[1] for one in found] == ["data.a is a secret in plaintext"]
    assert {one.enforcementLevel for one in found} == {analyzer_pb2.MANDATORY}
    assert DECLARED not in str(answer)
    assert marked_elsewhere not in str(answer)


def test_what_an_environment_says_reaches_its_rules(host: Any) -> None:
    said = {
        "stores-cluster-store-conditions": analyzer_pb2.PolicyConfig(enforcementLevel=analyzer_pb2.MANDATORY),
        "estate-account-types": analyzer_pb2.PolicyConfig(enforcementLevel=analyzer_pb2.MANDATORY),
    }
    said["estate-account-types"].properties.update({"allowed": ["aws"]})
    store = "kubernetes:external-secrets.io/v1:ClusterSecretStore"
    claim = "pulumi-python:dynamic/credfleet:AccountClaim"
    try:
        host.Configure(analyzer_pb2.ConfigureAnalyzerRequest(policyConfig=said))
        found = analyze(host, store, spec={}) | analyze(host, claim, type="azure")
    finally:
        host.Configure(analyzer_pb2.ConfigureAnalyzerRequest())

    assert {name: one.enforcementLevel for name, one in found.items()} == dict.fromkeys(
        said, analyzer_pb2.MANDATORY
    )


@pytest.mark.parametrize("level", ["ADVISORY", "MANDATORY", "REMEDIATE"])
def test_a_rule_that_looks_for_marks_judges_at_whatever_level(host: Any, level: str) -> None:
    said = {
        name: analyzer_pb2.PolicyConfig(enforcementLevel=analyzer_pb2.EnforcementLevel.Value(level))
        for name in ("secrets-stay-marked", "gcp-secret-version-marked")
    }
    version = "gcp:secretmanager/secretVersion:SecretVersion"
    try:
        host.Configure(analyzer_pb2.ConfigureAnalyzerRequest(policyConfig=said))
        refused = analyze(host, version, secretData="of-nobody", note=DECLARED)
        let_through = analyze(host, version, secretData=secret("of-nobody"), note=secret(DECLARED))
    finally:
        host.Configure(analyzer_pb2.ConfigureAnalyzerRequest())

    told = analyzer_pb2.ADVISORY if level == "ADVISORY" else analyzer_pb2.MANDATORY
    assert {name: one.enforcementLevel for name, one in refused.items()} == dict.fromkeys(said, told)
    assert let_through == {}


def test_what_no_rule_looks_into_is_not_even_read(host: Any) -> None:
    asked = request("kubernetes:core/v1:Secret", data=secret({"token": CANARY}))
    nobody_can_read = {"4dabf18193072939515e22adb298388d": "no signature"}
    asked.provider.properties.update({"host": nobody_can_read})

    assert not host.Analyze(asked).diagnostics


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
