"""Runs a Pulumi program against a monitor that writes down what it registers and does nothing else."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import pulumi
import pytest
from google.protobuf.struct_pb2 import Struct, Value
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import SETTINGS, set_root_resource
from pulumi.runtime.stack import run_in_stack, wait_for_rpcs

PROJECT: Final = "credfleet"
STACK: Final = "dev"
ORGANIZATION: Final = "organization"


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that travelled marked as secret."""

    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not known before the update."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One resource as the program registered it; parent and provider are URNs, the latter with an id."""

    type: str
    name: str
    urn: str
    parent: str
    custom: bool
    read_id: str
    inputs: Mapping[str, Any]
    provider: str
    dependencies: frozenset[str]
    request: Any = field(repr=False)

    @property
    def own_inputs(self) -> dict[str, Any]:
        """All inputs but those that every dynamic resource has: its code, and whether it is a preview."""
        return {key: value for key, value in self.inputs.items() if not key.startswith("__")}


class Recorder(mocks.MockMonitor):
    """Answers every registration with its inputs, and what `outputs` says of its type.

    Outputs the answers leave out are unknown in a preview and None in an update, as with the genuine engine.
    calls: what functions of providers answer, by token.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        secret_keys: Sequence[str],
        outputs: Mapping[str, Mapping[str, str]],
        calls: Mapping[str, Mapping[str, Any]],
    ) -> None:
        super().__init__(_Unused())
        self.config, self.secret_keys = config, secret_keys
        self._calls = {"pulumi:pulumi:readStackOutputs": {}, **calls}  # of a stack without a state
        self._outputs = outputs
        self.registrations: list[Registration] = []
        self.stack_outputs: Mapping[str, Any] = {}
        self.put_out: dict[str, Struct] = {}

    def of_type(self, type_: str) -> dict[str, Registration]:
        """All registrations of a type, by name."""
        return {one.name: one for one in self.registrations if one.type == type_}

    def named(self, type_: str, name: str) -> Registration:
        """The one registration of this type and name."""
        (found,) = (one for one in self.registrations if (one.type, one.name) == (type_, name))
        return found

    def waits_for(self, one: Registration) -> set[str]:
        """Name what must be there before a resource and stays until it is gone, directly or not."""
        by_urn = {each.urn: each for each in self.registrations}
        seen: set[str] = set()
        open_ = [*one.dependencies]
        while open_:
            each = by_urn[open_.pop()]
            if each.name not in seen:
                seen.add(each.name)
                open_ += each.dependencies
        return seen

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Write down a resource."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        self.registrations.append(_registration(request, urn, request.object, custom=request.custom))
        if not request.custom:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        answer = self._answer(request, request.object)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id", object=answer)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Write down the look-up of an object somebody else made."""
        urn = self.make_urn(request.parent, request.type, request.name)
        self.registrations.append(
            _registration(request, urn, request.properties, custom=True, read_id=request.id)
        )
        return resource_pb2.ReadResourceResponse(
            urn=urn, properties=self._answer(request, request.properties)
        )

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Answer a function; one without an answer is not to be called."""
        if request.tok not in self._calls:
            raise AssertionError(f"the program called {request.tok}: components call nothing")
        answer = resource_pb2.ResourceInvokeResponse()
        getattr(answer, "return").update({**request.args, **self._calls[request.tok]})
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Keep what the stack exports, and components put out."""
        self.put_out[request.urn] = request.outputs
        if request.urn.split("::")[2] == "pulumi:pulumi:Stack":
            self.stack_outputs = decode(request.outputs)
        return super().RegisterResourceOutputs(request)

    def _answer(self, request: Any, inputs: Struct) -> Struct:
        answer = Struct()
        answer.CopyFrom(inputs)
        answer.update(self._outputs.get(request.type, {}))
        return answer


class _Unused(mocks.Mocks):
    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError(f"{args.token} was called past the recorder")

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        raise AssertionError(f"{args.typ} was registered past the recorder")


def record(
    program: Callable[[], None],
    *,
    preview: bool = False,
    config: Mapping[str, str] | None = None,
    secret_keys: Iterable[str] = (),
    outputs: Mapping[str, Mapping[str, str]] | None = None,
    calls: Mapping[str, Mapping[str, Any]] | None = None,
) -> Recorder:
    """Run a program to its end in an event loop and a context of its own.

    outputs: type → what its resources get beyond their inputs. calls: token of a function → what it answers.
    Raises what the program raises.
    """
    recorder = Recorder(config or {}, [*secret_keys], outputs or {}, calls or {})

    async def main() -> None:
        # What fails the program is raised from here; every output that waited for it fails likewise, unheard.
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        _forget_failed_programs()
        pulumi.runtime.set_all_config({**recorder.config}, [*recorder.secret_keys])
        mocks.set_mocks(
            recorder.mocks,
            project=PROJECT,
            stack=STACK,
            organization=ORGANIZATION,
            preview=preview,
            monitor=recorder,
        )
        await wait_for_rpcs()  # the stack that `set_mocks` makes tells its outputs under the same name
        set_root_resource(cast(pulumi.Resource, None))
        await run_in_stack(program)

    with asyncio.Runner() as runner, pytest.MonkeyPatch.context() as patches:
        # Those of the program are not the tests'.
        patches.setattr(sys, "excepthook", sys.excepthook)
        patches.setattr(pulumi.log, "error", pulumi.log.error)
        runner.run(main())
    return recorder


def _forget_failed_programs() -> None:
    """Let go of what a program that failed has left unfinished in a loop that is closed by now."""
    settings: Any = SETTINGS
    settings.rpc_manager.clear()
    settings.outputs.clear()


def decode(struct: Struct) -> dict[str, Any]:
    """Read a Struct of the wire, secrets and unknowns kept apart from plain values."""
    return {key: _decode(value) for key, value in struct.fields.items()}


def plain(value: Any) -> Any:
    """Take the secret marks off, deeply."""
    if isinstance(value, Secret):
        return plain(value.value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def _decode(value: Value) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            fields = decode(value.struct_value)
            return Secret(fields["value"]) if fields.get(_SIGNATURE) == _SECRET else fields
        case "list_value":
            return [_decode(item) for item in value.list_value.values]
        case "string_value" if value.string_value == rpc.UNKNOWN:
            return Unknown()
        case "null_value":
            return None
        case kind:
            return getattr(value, str(kind))


_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"


def _registration(request: Any, urn: str, inputs: Struct, *, custom: bool, read_id: str = "") -> Registration:
    return Registration(
        type=request.type,
        name=request.name,
        urn=urn,
        parent=request.parent,
        custom=custom,
        read_id=read_id,
        inputs=decode(inputs),
        provider=request.provider,
        dependencies=frozenset(request.dependencies),
        request=request,
    )


@dataclass(frozen=True, slots=True)
class Resolved:
    """What became of an output: its value, and whether it is secret."""

    value: Any = field(repr=False)
    secret: bool


def resolve(make: Callable[[], Iterable[pulumi.Output[Any]]]) -> list[Resolved]:
    """Await outputs in an event loop of their own."""

    async def main() -> list[Resolved]:
        return [Resolved(await output.future(), await output.is_secret()) for output in make()]

    with asyncio.Runner() as runner:
        return runner.run(main())
