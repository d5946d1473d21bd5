"""Methods of resources, which their provider answers (`Call`)."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import json_format, struct_pb2
from pulumi_sandbox.protocol import signatures, wire
from pulumi_sandbox.protocol.stubs import provider_pb2, resource_pb2
from pulumi_sandbox.protocol.values import Properties, Secret

from sandbox.tests.support.engine_stack import Stack, urn_of
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Script

_METHOD = "fake:index:Thing/measure"


def measured(request: Any) -> provider_pb2.CallResponse:
    """Answer a method with its arguments, a secret, and a dependency."""
    response = provider_pb2.CallResponse(
        failures=[provider_pb2.CheckFailure(property="by", reason="no ruler")],
        returnDependencies={"size": provider_pb2.CallResponse.ReturnDependencies(urns=[urn_of("it")])},
    )
    returned: Properties = {"size": 3, "word": Secret("hush"), **wire.decode(request.args)}
    getattr(response, "return").CopyFrom(wire.encode(returned))
    return response


@pytest.fixture(autouse=True)
def answering(provider: RecordingProvider) -> None:
    provider.answer = measured


def call(script: Script, args: dict[str, Any], token: str = _METHOD, **options: Any) -> Any:
    sent = json_format.ParseDict(args, struct_pb2.Struct())
    return script.monitor.Call(resource_pb2.ResourceCallRequest(tok=token, args=sent, **options))


def test_a_method_is_answered_by_the_provider_of_its_package(stack: Stack, provider: RecordingProvider):
    answers: list[Any] = []
    up = stack.up(lambda script: answers.append(call(script, {"by": "hand"})))
    assert (up.code, up.errors) == (0, [])
    (answer,) = answers
    returned = wire.decode(getattr(answer, "return"))
    assert returned == {"size": 3, "word": Secret("hush"), "by": "hand"}
    assert [*answer.returnDependencies["size"].urns] == [urn_of("it")]
    assert [each.reason for each in answer.failures] == ["no ruler"]
    (asked,) = (each.message for each in provider.of("Call"))
    assert (asked.tok, asked.project, asked.stack) == (_METHOD, "test", "dev")
    assert not asked.dryRun
    assert asked.monitorEndpoint
    assert asked.accepts_output_values


@pytest.mark.parametrize("accepts", [True, False], ids=["it takes output values", "it takes none"])
def test_the_provider_learns_what_the_arguments_depend_on(
    stack: Stack, provider: RecordingProvider, accepts: bool
):
    provider.accepts_outputs = accepts
    output = {signatures.KEY: signatures.OUTPUT, "value": 1, "dependencies": ["urn:b", "urn:a"]}
    said = resource_pb2.ResourceCallRequest.ArgumentDependencies
    stack.preview(
        lambda script: call(
            script,
            {"deep": [{"in": output}], "plain": 1},
            argDependencies={"deep": said(urns=["urn:c"]), "plain": said(urns=[])},
        )
    )
    (asked,) = (each.message for each in provider.of("Call"))
    assert asked.dryRun
    told = {key: [*each.urns] for key, each in asked.argDependencies.items()}
    assert told == {"deep": ["urn:a", "urn:b", "urn:c"], "plain": []}
    assert json_format.MessageToDict(asked.args)["deep"] == [{"in": output if accepts else 1}]


def test_a_method_is_answered_by_who_serves_its_resource(stack: Stack, provider: RecordingProvider):
    def program(script: Script) -> None:
        own = script.register("own", {"zone": "z"}, type_="pulumi:providers:fake")
        it = script.register("it", {}, provider=own.reference)
        call(script, {"__self__": {"urn": it.urn, "id": it.id}})
        call(script, {"__self__": {"urn": own.urn, "id": own.id}}, "pulumi:providers:fake/measure")
        call(script, {}, provider=own.reference)

    assert stack.up(program).code == 0
    assert len(provider.of("Call")) == 3
    assert [each.name for each in provider.of("Configure")] == ["own"]


def test_a_method_that_fails_stops_the_deployment(stack: Stack, provider: RecordingProvider):
    provider.answer = None

    def program(script: Script) -> None:
        with pytest.raises(grpc.RpcError):
            call(script, {})
        script.register("after", {})

    up = stack.up(program)
    assert up.failed_with(f"call to function '{_METHOD}' failed: it has no methods")
    assert "after" not in provider.names()
