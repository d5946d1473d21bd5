"""What the engine does not do it refuses by name; nothing is passed over in silence."""

from __future__ import annotations

from typing import Any, Final

import grpc
import pytest
from pulumi_sandbox.protocol.stubs import callback_pb2, engine_pb2, resource_pb2

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Script

_REQUESTS: Final = {
    "RegisterPackage": resource_pb2.RegisterPackageRequest,
    "RegisterErrorHook": resource_pb2.RegisterErrorHookRequest,
    "ExistsResource": resource_pb2.ExistsResourceRequest,
    "ReadResource": resource_pb2.ReadResourceRequest,
    "Invoke": resource_pb2.ResourceInvokeRequest,
}
HOOKS = resource_pb2.RegisterResourceRequest.ResourceHooksBinding


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param({"state_migrations": [callback_pb2.Callback()]}, "state_migrations", id="migrations"),
        pytest.param({"hooks": HOOKS(on_error=["x"])}, "error hooks", id="error-hooks"),
        pytest.param({"pluginDownloadURL": "x"}, "plugin_download_url", id="download"),
        pytest.param({"envVarMappings": {"A": "B"}}, "env_var_mappings", id="environment"),
    ],
)
def test_an_option_that_is_not_supported_is_refused_by_name(
    stack: Stack, provider: RecordingProvider, options: dict[str, Any], named: str
):
    up = stack.up(lambda program: program.register("a", {}, **options))
    assert up.code == 1
    (error,) = up.errors
    assert named in error
    assert "not supported by the embedded engine" in error
    assert not provider.things


@pytest.mark.parametrize(
    ("method", "request_", "named"),
    [
        ("RegisterPackage", {"name": "terraform"}, "parameterized packages (terraform)"),
        ("RegisterErrorHook", {"name": "retry"}, "error hooks (retry)"),
        ("ExistsResource", {"type": "fake:index:Thing"}, "looking whether resources exist"),
        (
            "ReadResource",
            {"type": "pulumi:pulumi:Other", "name": "other", "id": "x"},
            "the resource type pulumi:pulumi:Other",
        ),
        ("Invoke", {"tok": "pulumi:pulumi:other"}, "the function pulumi:pulumi:other"),
        ("Invoke", {"tok": "fake:index:echo", "pluginDownloadURL": "x"}, "plugin_download_url"),
        (
            "ReadResource",
            {"type": "fake:index:Thing", "name": "a", "id": "x", "pluginDownloadURL": "x"},
            "plugin_download_url",
        ),
    ],
)
def test_a_request_that_is_not_supported_is_refused_by_name(
    stack: Stack, method: str, request_: dict[str, Any], named: str
):
    def program(script: Script) -> None:
        message = _REQUESTS[method](**request_)
        getattr(script.monitor, method)(message)

    up = stack.up(program)
    assert up.code == 1
    (error,) = up.errors
    assert named in error


@pytest.mark.parametrize(
    ("wanted", "runs"),
    [
        (">=3.0.0 <4.0.0", True),
        (">=99.0.0 || > 3.0.0", True),
        ("99.0.0", False),
        ("!=99.0.0", True),
        (">=3.0.0 <3.1.0", False),
        ("anything", False),
        (">=3.x", True),
        ("3.x", True),
        ("<3.x", False),
        (">3.x", False),
        ("<=3.x", True),
        ("2.x || 3.x", True),
        (">=3.0.0||<2.0.0", False),
        ("3.0.x || >=3.x.x", True),
        ("3.1.0-rc.1x", False),
        (">=3.1.0-linux", True),
        ("^3.0.0", False),
        (">=3.0", False),
    ],
)
def test_a_program_runs_only_under_the_release_it_wants(stack: Stack, wanted: str, runs: bool):
    def program(script: Script) -> None:
        script.engine.RequirePulumiVersion(
            engine_pb2.RequirePulumiVersionRequest(pulumi_version_range=wanted)
        )

    assert (stack.up(program).code == 0) == runs


def test_a_reference_to_a_stack_is_read_and_not_made(stack: Stack):
    up = stack.up(
        lambda script: script.register("other", {"name": "dev"}, type_="pulumi:pulumi:StackReference")
    )
    assert up.code == 1
    (error,) = up.errors
    assert "pulumi:pulumi:StackReference" in error


def test_exactly_what_is_implemented_is_advertised(stack: Stack):
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
        "REPLACEMENT_TRIGGER",
        "TRANSFORMS",
        "INVOKE_TRANSFORMS",
        "RESOURCE_HOOKS",
    }


def test_a_feature_is_supported_when_asked_for_one_by_one_too(stack: Stack):
    answers: dict[str, bool] = {}

    def program(script: Script) -> None:
        for id_ in ("secrets", "transforms", "errorHooks"):
            request = resource_pb2.SupportsFeatureRequest(id=id_)
            answers[id_] = script.monitor.SupportsFeature(request).hasSupport

    stack.up(program)
    assert answers == {"secrets": True, "transforms": True, "errorHooks": False}


def test_calls_after_a_refusal_end_as_the_sdk_expects(stack: Stack):
    codes: list[grpc.StatusCode] = []

    def program(script: Script) -> None:
        for _ in range(2):
            with pytest.raises(grpc.RpcError) as refused:
                script.register("a", {}, pluginDownloadURL="x")
            codes.append(refused.value.code())

    stack.up(program)
    assert codes == [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE]


@pytest.mark.parametrize(("asked", "told"), [("99.0.0", 1), ("4.0.1", 0)])
def test_what_stands_in_for_another_release_than_is_asked_for_says_so(
    stack: Stack, asked: str, told: int
) -> None:
    def program(script: Script) -> None:
        script.register("own", {}, type_="pulumi:providers:kubernetes", version=asked)

    preview = stack.preview(program)
    assert preview.code == 0, preview.errors
    warnings = preview.said("warning")
    assert len(warnings) == told
    assert all("version 99.0.0 of kubernetes is asked for" in each for each in warnings)


def test_a_provider_that_runs_already_serves_whatever_version_is_asked_for(stack: Stack) -> None:
    preview = stack.preview(lambda script: script.register("a", version="99.0.0"))
    assert (preview.code, preview.messages) == (0, [])
