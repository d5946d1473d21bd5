"""A program without an interpreter start: the test plays it, over the same gRPC the SDK uses.

The engine starts `bin/python` of the project's environment. Here that is a shell script that hands what it is
told to the test, waits until the test's function has played the program, and exits with its code.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi_sandbox.protocol import urns, wire
from pulumi_sandbox.protocol.stubs import (
    CHANNEL_OPTIONS,
    engine_pb2,
    engine_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
)
from pulumi_sandbox.protocol.values import Properties

_PYTHON = """#!/bin/sh
here=$(dirname "$0")
echo $$ > "$here/pid"
cat > "$here/task"
read code < "$here/done"
exit "$code"
"""


class ProgramError(Exception):
    """Ends the scripted program as an uncaught exception ends a real one."""


@dataclass(frozen=True)
class Registered:
    """The engine's answer to a registration or a read."""

    urn: str
    id: str
    outputs: Properties

    @property
    def reference(self) -> str:
        """How other registrations name this resource as their provider."""
        return f"{self.urn}::{self.id or '04da6b54-80e4-46f7-96ec-b56ff0331ba9'}"


@dataclass
class Script:
    """What a scripted program can do: the calls of the SDK, with its defaults."""

    task: Mapping[str, Any]
    monitor: resource_pb2_grpc.ResourceMonitorStub
    engine: engine_pb2_grpc.EngineStub
    stack: str = ""
    exported: Properties = field(default_factory=dict[str, Any])

    def register(self, name: str, inputs: Properties | None = None, **options: Any) -> Registered:
        """Register a resource, as `request` tells of it."""
        answer = self.monitor.RegisterResource(self.request(name, inputs, **options))
        return Registered(answer.urn, answer.id, wire.decode(answer.object))

    def request(
        self,
        name: str,
        inputs: Properties | None = None,
        *,
        type_: str = "fake:index:Thing",
        custom: bool = True,
        parent: str | None = None,
        depends_on: Mapping[str, Iterable[str]] | None = None,
        **options: Any,
    ) -> resource_pb2.RegisterResourceRequest:
        """Build a registration as the SDK does.

        depends_on: properties → URNs; "" means the resource as a whole.
        """
        depended = {key: list(urns) for key, urns in (depends_on or {}).items()}
        whole = depended.pop("", [])
        properties = {key: depended.get(key, []) for key in inputs or {}}
        dependencies = resource_pb2.RegisterResourceRequest.PropertyDependencies
        return resource_pb2.RegisterResourceRequest(
            type=type_,
            name=name,
            custom=custom,
            object=wire.encode(inputs or {}),
            parent=self.stack if parent is None else parent,
            dependencies=[*whole, *(urn for urns in properties.values() for urn in urns)],
            propertyDependencies={key: dependencies(urns=urns) for key, urns in properties.items()},
            acceptSecrets=True,
            acceptResources=True,
            supportsPartialValues=True,
            supportsResultReporting=True,
            aliasSpecs=True,
            **options,
        )

    def read(
        self,
        name: str,
        id_: str,
        inputs: Properties | None = None,
        type_: str = "fake:index:Thing",
        **options: Any,
    ) -> Registered:
        """Read a resource, like `.get` of an SDK class."""
        answer = self.monitor.ReadResource(
            resource_pb2.ReadResourceRequest(
                type=type_,
                name=name,
                id=id_,
                parent=self.stack,
                properties=wire.encode(inputs or {}),
                acceptSecrets=True,
                acceptResources=True,
                **options,
            )
        )
        return Registered(answer.urn, answer.id, wire.decode(answer.properties))

    def component(self, name: str, inputs: Properties | None = None, **options: Any) -> Registered:
        """Register a component resource."""
        return self.register(name, inputs, type_="test:index:Component", custom=False, **options)

    def outputs(self, urn: str, outputs: Properties) -> None:
        """Register the outputs of a component or of the stack."""
        self.monitor.RegisterResourceOutputs(
            resource_pb2.RegisterResourceOutputsRequest(urn=urn, outputs=wire.encode(outputs))
        )

    def invoke(self, token: str, args: Properties, **options: Any) -> Properties:
        """Call a function."""
        request = resource_pb2.ResourceInvokeRequest(
            tok=token, args=wire.encode(args), acceptResources=True, **options
        )
        return wire.decode(getattr(self.monitor.Invoke(request), "return"))

    def together(self, *registrations: Callable[[], object]) -> list[BaseException | None]:
        """Do several things at once; return how each ended."""
        ends: list[BaseException | None] = [None] * len(registrations)

        def do(index: int) -> None:
            try:
                registrations[index]()
            except Exception as error:
                ends[index] = error

        threads = [threading.Thread(target=do, args=(index,)) for index in range(len(registrations))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ends

    def log(self, message: str, severity: int = engine_pb2.INFO) -> None:
        """Log, like `pulumi.log`."""
        self.engine.Log(engine_pb2.LogRequest(severity=severity, message=message))  # type: ignore[arg-type] # the stub wants its own enum type


Program = Callable[[Script], object]


def nothing(script: Script) -> None:
    """Register nothing."""


def environment(folder: Path) -> Path:
    """Make an environment whose interpreter is the test; return its directory."""
    bin_ = folder / "bin"
    bin_.mkdir(parents=True)
    python = bin_ / "python"
    python.write_text(_PYTHON)
    python.chmod(0o755)
    os.mkfifo(bin_ / "task")
    os.mkfifo(bin_ / "done")
    return folder


@contextmanager
def playing(program: Program, virtualenv: Path) -> Generator[None]:
    """Play a program while the engine runs it."""
    thread = threading.Thread(target=_play, args=(program, virtualenv / "bin"), daemon=True)
    thread.start()
    try:
        yield
    finally:
        _release(thread, virtualenv / "bin")


def _release(thread: threading.Thread, bin_: Path) -> None:
    """Let the thread end whose counterpart was never started, or was stopped: open the other ends."""
    reading = os.open(bin_ / "done", os.O_RDONLY | os.O_NONBLOCK)
    for _ in range(200):
        with suppress(OSError):
            os.close(os.open(bin_ / "task", os.O_WRONLY | os.O_NONBLOCK))
        thread.join(0.05)
        if not thread.is_alive():
            break
    os.close(reading)
    assert not thread.is_alive(), "the scripted program hangs"


def _play(program: Program, bin_: Path) -> None:
    told = (bin_ / "task").read_text()
    if not told:
        return
    task = json.loads(told)
    with grpc.insecure_channel(task["monitor"], options=CHANNEL_OPTIONS) as channel:
        code = _run(program, task, channel)
    with suppress(BrokenPipeError):
        (bin_ / "done").write_text(f"{code}\n")


def _run(program: Program, task: Mapping[str, Any], channel: grpc.Channel) -> int:
    monitor = resource_pb2_grpc.ResourceMonitorStub(channel)
    script = Script(task, monitor, engine_pb2_grpc.EngineStub(channel))
    try:
        script.stack = script.register(
            f"{task['project']}-{task['stack']}", type_=urns.ROOT_STACK_TYPE, custom=False, parent=""
        ).urn
        try:
            program(script)
        finally:
            script.outputs(script.stack, script.exported)
        monitor.SignalAndWaitForShutdown(empty_pb2.Empty())
    except ProgramError as error:
        script.log(f"Program failed with an unhandled exception:\n{error}", engine_pb2.ERROR)
        return 32
    except grpc.RpcError:
        return 1
    return 0
