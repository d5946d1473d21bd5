"""A provider of the sandbox behind genuine gRPC, driven the way an engine drives it."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import grpc
import pytest
from pulumi_sandbox.protocol import wire
from pulumi_sandbox.protocol.stubs import provider_pb2, provider_pb2_grpc
from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.contract import Package
from pulumi_sandbox.providers.server import handler


def urn(type_token: str, name: str) -> str:
    return f"urn:pulumi:dev::fleet::{type_token}::{name}"


@dataclass(frozen=True)
class Recorded:
    """A resource as an engine would have it in its state."""

    urn: str
    id: str
    inputs: Properties
    outputs: Properties


@dataclass(frozen=True)
class Engine:
    """Just enough of an engine to take resources through their lives."""

    stub: provider_pb2_grpc.ResourceProviderStub

    def check_config(self, config: Properties) -> dict[str, str]:
        return refusals(self.stub.CheckConfig(provider_pb2.CheckRequest(news=wire.encode(config))))

    def configure(self, **options: str) -> provider_pb2.ConfigureResponse:
        variables = {f"package:config:{key}": value for key, value in options.items()}
        return self.stub.Configure(provider_pb2.ConfigureRequest(variables=variables, acceptSecrets=True))

    def check(self, urn: str, inputs: Properties, old: Properties | None = None) -> Properties:
        answer = self.checked(urn, inputs, old)
        assert not answer.failures, answer.failures
        return wire.decode(answer.inputs)

    def checked(
        self, urn: str, inputs: Properties, old: Properties | None = None
    ) -> provider_pb2.CheckResponse:
        return self.stub.Check(
            provider_pb2.CheckRequest(urn=urn, news=wire.encode(inputs), olds=wire.encode(old or {}))
        )

    def create(self, urn: str, inputs: Properties) -> Recorded:
        checked = self.check(urn, inputs)
        answer = self.stub.Create(provider_pb2.CreateRequest(urn=urn, properties=wire.encode(checked)))
        return Recorded(urn, answer.id, checked, wire.decode(answer.properties))

    def preview_create(self, urn: str, inputs: Properties) -> Properties:
        checked = self.check(urn, inputs)
        answer = self.stub.Create(
            provider_pb2.CreateRequest(urn=urn, properties=wire.encode(checked), preview=True)
        )
        assert not answer.id
        return wire.decode(answer.properties)

    def diff(
        self, old: Recorded, inputs: Properties, ignore: tuple[str, ...] = ()
    ) -> provider_pb2.DiffResponse:
        checked = self.check(old.urn, inputs, old.inputs)
        return self.stub.Diff(
            provider_pb2.DiffRequest(
                urn=old.urn,
                id=old.id,
                olds=wire.encode(old.outputs),
                old_inputs=wire.encode(old.inputs),
                news=wire.encode(checked),
                ignoreChanges=ignore,
            )
        )

    def update(
        self, old: Recorded, inputs: Properties, ignore: tuple[str, ...] = (), *, preview: bool = False
    ) -> Recorded:
        checked = self.check(old.urn, inputs, old.inputs)
        answer = self.stub.Update(
            provider_pb2.UpdateRequest(
                urn=old.urn,
                id=old.id,
                olds=wire.encode(old.outputs),
                old_inputs=wire.encode(old.inputs),
                news=wire.encode(checked),
                ignoreChanges=ignore,
                preview=preview,
            )
        )
        return Recorded(old.urn, old.id, checked, wire.decode(answer.properties))

    def refresh(self, old: Recorded) -> Recorded:
        answer = self.stub.Read(
            provider_pb2.ReadRequest(
                urn=old.urn, id=old.id, properties=wire.encode(old.outputs), inputs=wire.encode(old.inputs)
            )
        )
        return Recorded(old.urn, answer.id, wire.decode(answer.inputs), wire.decode(answer.properties))

    def get(self, urn: str, id_: str) -> Recorded:
        return self.refresh(Recorded(urn, id_, {}, {}))

    def invoke(self, token: str, **args: Value) -> Properties:
        answer = self.stub.Invoke(provider_pb2.InvokeRequest(tok=token, args=wire.encode(dict(args))))
        return wire.decode(getattr(answer, "return"))

    def delete(self, old: Recorded, *, timeout: float = 0) -> None:
        self.stub.Delete(
            provider_pb2.DeleteRequest(
                urn=old.urn,
                id=old.id,
                properties=wire.encode(old.outputs),
                old_inputs=wire.encode(old.inputs),
                timeout=timeout,
            )
        )


@contextmanager
def served(package: Package) -> Generator[Engine]:
    """Serve a package that is not configured yet."""
    with ThreadPoolExecutor(16) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers((handler(package),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Engine(provider_pb2_grpc.ResourceProviderStub(channel))
        server.stop(grace=None).wait()


def refusals(answer: provider_pb2.CheckResponse) -> dict[str, str]:
    return {failure.property: failure.reason for failure in answer.failures}


def message(error: pytest.ExceptionInfo[grpc.RpcError]) -> str:
    return cast("grpc.Call", error.value).details() or ""
