"""The genuine host of dynamic providers, `python -m pulumi.dynamic`, driven as an engine drives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Final

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime import rpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from components.dynamic import INCARNATION, PREVIEW

Properties = dict[str, Any]

ROOT: Final = Path(__file__).parents[2]
_PROVIDER: Final = "__provider"
_REFUSED: Final = "__refused"
UNKNOWN: Final = rpc.UNKNOWN


@dataclass(frozen=True)
class Recorded:
    """A resource as an engine has it in its state."""

    id: str
    inputs: Properties
    outputs: Properties

    @property
    def lasting(self) -> Properties:
        """Its outputs, without what tells it from the resource that takes its place."""
        return {key: value for key, value in self.outputs.items() if key != INCARNATION}


class Host:
    """One process of the host, and what the providers in it said on their standard output."""

    def __init__(self, stub: provider_pb2_grpc.ResourceProviderStub, process: subprocess.Popen[str]) -> None:
        self._stub = stub
        self._process = process
        self._said: list[str] = []
        self._listener = Thread(target=self._listen)
        self._listener.start()

    def configure(self, config: Mapping[str, Any]) -> None:
        """Hand over the configuration, as the engine does before all else: texts as they are, else JSON."""
        args = Struct()
        args.update(
            {
                key if ":" in key else f"credfleet:{key}": value
                if isinstance(value, str)
                else json.dumps(value)
                for key, value in config.items()
            }
        )
        self._stub.Configure(provider_pb2.ConfigureRequest(args=args))

    def provider(self, provider: ResourceProvider) -> Provider:
        """Drive one provider, serialised as a program does it."""
        return Provider(self._stub, serialize_provider(provider))

    def said(self) -> list[str]:
        """End the host and give every line its providers printed."""
        self._process.kill()
        self._listener.join()
        return self._said

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self._said.extend(line.rstrip("\n") for line in lines)


@dataclass(frozen=True)
class Provider:
    """Takes resources of one dynamic provider through their lives."""

    stub: provider_pb2_grpc.ResourceProviderStub
    serialized: str

    def refusals(self, inputs: Properties, old: Properties | None = None) -> list[str]:
        """Check inputs as in a preview; give the reasons of its failures."""
        previewed = {**inputs, PREVIEW: True}
        return [failure.reason for failure in self._check(previewed, old).failures]

    def update_refusals(self, inputs: Properties, old: Recorded | None = None) -> str:
        """Check inputs as in an update, which never fails, then create or update; give its refusal."""
        answer = self._check(inputs, old and old.inputs)
        assert not answer.failures, answer.failures
        news = answer.inputs
        try:
            if old is None:
                self.stub.Create(provider_pb2.CreateRequest(properties=news))
            else:
                olds = self._struct(old.outputs)
                diff = self.stub.Diff(provider_pb2.DiffRequest(id=old.id, olds=olds, news=news))
                assert diff.changes == provider_pb2.DiffResponse.DIFF_SOME
                assert not diff.replaces
                self.stub.Update(provider_pb2.UpdateRequest(id=old.id, olds=olds, news=news))
        except grpc.RpcError as error:
            return str(error.details()).removeprefix("pulumi.errors.RunError: ").rstrip("\n")
        raise AssertionError("nothing was refused")

    def check(self, inputs: Properties, old: Properties | None = None) -> Properties:
        """Check inputs that are in order."""
        answer = self._check(inputs, old)
        assert not answer.failures, answer.failures
        checked = _read(answer.inputs)
        assert _REFUSED not in checked, checked[_REFUSED]
        return checked

    def create(self, inputs: Properties) -> Recorded:
        return self.create_unchecked(self.check(inputs))

    def create_unchecked(self, checked: Properties) -> Recorded:
        answer = self.stub.Create(provider_pb2.CreateRequest(properties=self._struct(checked)))
        return Recorded(answer.id, checked, _read(answer.properties))

    def diff(self, old: Recorded, inputs: Properties) -> provider_pb2.DiffResponse:
        return self.diff_unchecked(old, self.check(inputs, old.inputs))

    def diff_unchecked(self, old: Recorded, checked: Properties) -> provider_pb2.DiffResponse:
        return self.stub.Diff(
            provider_pb2.DiffRequest(id=old.id, olds=self._struct(old.outputs), news=self._struct(checked))
        )

    def is_changed(self, old: Recorded, inputs: Properties) -> bool:
        """Whether an engine would update or replace it."""
        return self.diff(old, inputs).changes == provider_pb2.DiffResponse.DIFF_SOME

    def update(self, old: Recorded, inputs: Properties) -> Recorded:
        checked = self.check(inputs, old.inputs)
        return self.update_unchecked(old, checked)

    def update_unchecked(self, old: Recorded, inputs: Properties) -> Recorded:
        answer = self.stub.Update(
            provider_pb2.UpdateRequest(id=old.id, olds=self._struct(old.outputs), news=self._struct(inputs))
        )
        return Recorded(old.id, inputs, _read(answer.properties))

    def refresh(self, old: Recorded) -> Recorded:
        answer = self.stub.Read(
            provider_pb2.ReadRequest(
                id=old.id, properties=self._struct(old.outputs), inputs=self._struct(old.inputs)
            )
        )
        return Recorded(answer.id, _read(answer.inputs), _read(answer.properties))

    def delete(self, old: Recorded) -> None:
        self.stub.Delete(provider_pb2.DeleteRequest(id=old.id, properties=self._struct(old.outputs)))

    def _check(self, inputs: Properties, old: Properties | None) -> provider_pb2.CheckResponse:
        olds = Struct() if old is None else self._struct(old)
        return self.stub.Check(provider_pb2.CheckRequest(olds=olds, news=self._struct(inputs)))

    def _struct(self, properties: Properties) -> Struct:
        struct = Struct()
        struct.update({**properties, _PROVIDER: self.serialized})
        return struct


def provided(kind: type[ResourceProvider]) -> Any:
    """Return the fixture of one provider in the host of a module."""

    def provider(host: Host) -> Provider:
        return host.provider(kind())

    return pytest.fixture(provider)


@contextmanager
def dynamic_host(config: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Generator[Host]:
    """Start a host configured like a stack of project credfleet: keys bare or full, values as in YAML."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "pulumi.dynamic"],
        cwd=ROOT,
        env={**os.environ, "PULUMI_PROJECT": "credfleet", **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
        host = Host(provider_pb2_grpc.ResourceProviderStub(channel), process)
        try:
            host.configure(config)
            yield host
        finally:
            host.said()
            process.wait()


def _read(struct: Struct) -> Properties:
    properties = rpc.deserialize_properties(struct, True)
    return {key: value for key, value in properties.items() if key != _PROVIDER}
