"""What the engine does not do it refuses by name; nothing is passed over in silence."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi_sandbox.protocol.stubs import callback_pb2, resource_pb2

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Program, Script

HOOKS = resource_pb2.RegisterResourceRequest.ResourceHooksBinding


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param({"remote": True}, "remote components (Construct)", id="remote"),
        pytest.param({"importId": "x"}, "the option import_", id="import"),
        pytest.param(
            {"replacement_trigger": struct_pb2.Value(string_value="x")},
            "the option replacement_trigger",
            id="replacement-trigger",
        ),
        pytest.param({"state_migrations": [callback_pb2.Callback()]}, "state_migrations", id="migrations"),
        pytest.param({"hooks": HOOKS(on_error=["x"])}, "error hooks", id="error-hooks"),
        pytest.param({"pluginDownloadURL": "x"}, "plugin_download_url", id="download"),
        pytest.param({"hideDiffs": ["x"]}, "hide_diffs", id="hide-diffs"),
        pytest.param({"envVarMappings": {"A": "B"}}, "env_var_mappings", id="environment"),
    ],
)
def test_an_option_that_is_not_supported_is_refused_by_name(
    stack: Stack, provider: RecordingProvider, options: dict[str, Any], named: str
) -> None:
    up = stack.up(lambda program: program.register("a", {}, **options))
    assert up.code == 1
    (error,) = up.errors
    assert named in error
    assert "not supported by the embedded engine" in error
    assert not provider.things


def call(script: Script) -> None:
    script.monitor.Call(resource_pb2.ResourceCallRequest(tok="fake:index:Thing/method"))


def package(script: Script) -> None:
    script.monitor.RegisterPackage(resource_pb2.RegisterPackageRequest(name="terraform"))


def error_hook(script: Script) -> None:
    script.monitor.RegisterErrorHook(resource_pb2.RegisterErrorHookRequest(name="retry"))


def exists(script: Script) -> None:
    script.monitor.ExistsResource(resource_pb2.ExistsResourceRequest(type="fake:index:Thing"))


def stash(script: Script) -> None:
    script.register("kept", {"input": 1}, type_="pulumi:index:Stash")


def function(script: Script) -> None:
    script.invoke("pulumi:pulumi:readStackOutputs", {})


@pytest.mark.parametrize(
    ("program", "named"),
    [
        pytest.param(call, "methods of remote components (fake:index:Thing/method)", id="call"),
        pytest.param(package, "parameterized packages (terraform)", id="package"),
        pytest.param(error_hook, "error hooks (retry)", id="error-hook"),
        pytest.param(exists, "looking whether resources exist", id="exists"),
        pytest.param(stash, "pulumi:index:Stash", id="stash"),
        pytest.param(function, "pulumi:pulumi:readStackOutputs", id="function"),
    ],
)
def test_a_request_that_is_not_supported_is_refused_by_name(
    stack: Stack, program: Program, named: str
) -> None:
    up = stack.up(program)
    assert up.code == 1
    (error,) = up.errors
    assert named in error


def test_stack_references_are_refused_by_name(stack: Stack) -> None:
    def program(script: Script) -> None:
        script.monitor.ReadResource(
            resource_pb2.ReadResourceRequest(type="pulumi:pulumi:StackReference", name="other", id="x")
        )

    up = stack.up(program)
    assert up.code == 1
    assert "pulumi:pulumi:StackReference" in up.errors[0]


def test_exactly_what_is_implemented_is_advertised(stack: Stack) -> None:
    advertised: set[str] = set()

    def program(script: Script) -> None:
        from google.protobuf import empty_pb2

        info = script.monitor.GetDeploymentInfo(empty_pb2.Empty())
        names = resource_pb2.ResourceMonitorFeature.Name
        advertised.update(
            names(each).removeprefix("RESOURCE_MONITOR_FEATURE_") for each in info.supportedFeatures
        )

    stack.up(program)
    assert advertised == {
        "SECRETS",
        "RESOURCE_REFERENCES",
        "OUTPUT_VALUES",
        "ALIAS_SPECS",
        "DELETED_WITH",
        "REPLACE_WITH",
        "TRANSFORMS",
        "INVOKE_TRANSFORMS",
        "RESOURCE_HOOKS",
    }


def test_a_feature_is_supported_when_asked_for_one_by_one_too(stack: Stack) -> None:
    answers: dict[str, bool] = {}

    def program(script: Script) -> None:
        for id_ in ("secrets", "transforms", "errorHooks"):
            request = resource_pb2.SupportsFeatureRequest(id=id_)
            answers[id_] = script.monitor.SupportsFeature(request).hasSupport

    stack.up(program)
    assert answers == {"secrets": True, "transforms": True, "errorHooks": False}


def test_calls_after_a_refusal_end_as_the_sdk_expects(stack: Stack) -> None:
    codes: list[grpc.StatusCode] = []

    def program(script: Script) -> None:
        for _ in range(2):
            with pytest.raises(grpc.RpcError) as refused:
                script.register("a", {}, remote=True)
            codes.append(refused.value.code())

    stack.up(program)
    assert codes == [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE]
