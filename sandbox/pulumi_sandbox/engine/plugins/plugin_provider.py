"""How a provider is asked, over gRPC or within this process; see sandbox/docs/engine-facts.md."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NoReturn, TypedDict, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.message import Message

from pulumi_sandbox.engine.model.diff import Changes, Diff, PropertyDiff
from pulumi_sandbox.engine.model.goal import package_of
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.provider import (
    AnswerLostError,
    Checked,
    CheckFailure,
    DiffUnavailableError,
    InitializationError,
    Live,
    ProviderError,
)
from pulumi_sandbox.protocol import urns, wire
from pulumi_sandbox.protocol.calls import Call, CallRefusedError, Calls
from pulumi_sandbox.protocol.stubs import (
    CHANNEL_OPTIONS,
    errors_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)
from pulumi_sandbox.protocol.values import (
    Properties,
    Value,
    conceal,
    conceal_like,
    contains_secret,
    contains_unknown,
    reveal,
)

_T = TypeVar("_T")
_M = TypeVar("_M", bound=Message)

_PROVIDER: Final = "__provider"
_AT_ONCE: Final = 64
"""Calls within this process that are answered at a time: each holds a thread."""

_TRACEBACK: Final = "Traceback (most recent call last):"
_LOST: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED})
_RUN_ERROR: Final = "pulumi.errors.RunError: "
_UNEXPECTED: Final = "Unexpected <class 'pulumi.errors.RunError'>: "
"""What gRPC puts before the text of an error that a component raises for a person."""


@dataclass(frozen=True, slots=True)
class _Abilities:
    secrets: bool = False
    resources: bool = False
    outputs: bool = False
    preview: bool = False


class _Named(TypedDict):
    urn: str
    name: str
    type: str


class PluginProvider:
    """A provider in a process of its own. It is configured once, then serves; see `Provider`."""

    def __init__(self, address: str, engine_address: str) -> None:
        """Dial a plugin (the first call connects)."""
        self._channel = grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)
        self._stub: provider_pb2_grpc.ResourceProviderAsyncStub = cast(
            "provider_pb2_grpc.ResourceProviderAsyncStub",
            provider_pb2_grpc.ResourceProviderStub(self._channel),
        )
        self._engine_address = engine_address
        self._abilities: _Abilities | None = None
        self._config_known = True

    async def shake_hands(self, program_directory: str) -> None:
        """Introduce the engine; providers from before the handshake answer when they are configured."""
        request = provider_pb2.ProviderHandshakeRequest(
            engine_address=self._engine_address,
            root_directory=program_directory,
            program_directory=program_directory,
            configure_with_urn=True,
            invoke_with_preview=True,
        )
        answer = await _if_implemented(self._stub.Handshake(request))
        if answer:
            self._abilities = _Abilities(
                answer.accept_secrets, answer.accept_resources, answer.accept_outputs, preview=True
            )

    async def check_config(self, urn: str, olds: Properties | None, news: Properties) -> Checked:
        """Validate a provider's own configuration, without secrets; one that cannot takes it as it is."""
        request = provider_pb2.CheckRequest(olds=_plain(olds or {}), news=_plain(news), **_named(urn))
        answer = await _if_implemented(self._stub.CheckConfig(request))
        if not answer:
            return Checked(news)
        return Checked(conceal_like(wire.decode(answer.inputs), news), _failures(answer.failures))

    async def diff_config(self, urn: str, old: Resource, news: Properties) -> Diff:
        """Compare a provider's configurations; one that cannot leaves it to the engine."""
        request = provider_pb2.DiffRequest(
            olds=_plain(old.outputs), news=_plain(news), old_inputs=_plain(old.inputs), **_named(urn)
        )
        answer = await _if_implemented(self._stub.DiffConfig(request))
        return _diff(answer) if answer else Diff("unknown")

    async def configure(self, urn: str, id: str, inputs: Properties) -> None:
        """Hand over the configuration, secrets included; with unknowns in it the provider is left alone."""
        if contains_unknown(inputs):
            self._config_known = False
            return
        named = _named(urn)
        request = provider_pb2.ConfigureRequest(
            variables={
                f"{package_of(named['type'])}:config:{key}": _text_of(value)
                for key, value in inputs.items()
                if key != "version"
            },
            args=wire.encode(inputs),
            acceptSecrets=True,
            acceptResources=True,
            sends_old_inputs=True,
            sends_old_inputs_to_delete=True,
            id=id,
            **named,
        )
        answer = await self._call(self._stub.Configure(request))
        if self._abilities is None:
            self._abilities = _Abilities(
                answer.acceptSecrets,
                answer.acceptResources,
                answer.acceptOutputs,
                preview=answer.supportsPreview,
            )

    async def release(self) -> str:
        """Return the version that the provider says it has."""
        return (await self._call(self._stub.GetPluginInfo(empty_pb2.Empty()))).version

    async def cancel(self) -> None:
        """Ask the provider to give up what it waits for."""
        await self._call(self._stub.Cancel(empty_pb2.Empty()))

    async def close(self) -> None:
        """Hang up."""
        await self._channel.close()

    async def check(self, urn: str, olds: Properties | None, news: Properties, *, preview: bool) -> Checked:
        """See `Provider`."""
        if not self._config_known:
            return Checked(news)
        request = provider_pb2.CheckRequest(
            olds=self._encode(olds or {}, unknowns=preview),
            news=self._encode(news, unknowns=preview),
            **_named(urn),
        )
        answer = await self._call(self._stub.Check(request))
        return Checked(self._mark(wire.decode(answer.inputs), news), _failures(answer.failures))

    async def diff(self, old: Resource, new: Resource, *, preview: bool) -> Diff:
        """See `Provider`."""
        if not self._config_known:
            raise DiffUnavailableError
        request = provider_pb2.DiffRequest(
            id=old.id,
            olds=self._encode(old.outputs, unknowns=preview),
            news=self._encode(new.inputs, unknowns=preview),
            old_inputs=self._encode(old.inputs, unknowns=preview),
            ignoreChanges=new.ignore_changes,
            **_named(new.urn),
        )
        return _diff(await self._call(self._stub.Diff(request)))

    async def create(self, new: Resource, *, preview: bool) -> Live:
        """See `Provider`."""
        if preview and not self._config_known:
            return Live("", {})
        if preview and not self._able.preview:
            return Live("", new.inputs)
        request = provider_pb2.CreateRequest(
            properties=self._encode(new.inputs, unknowns=preview),
            timeout=new.custom_timeouts.create,
            preview=preview,
            **_named(new.urn),
        )
        answer = await self._call(self._stub.Create(request), new.inputs)
        if not preview and not answer.id:
            raise ProviderError("the provider made the resource but gave it no id")
        return Live("" if preview else answer.id, self._mark(wire.decode(answer.properties), new.inputs))

    async def update(self, old: Resource, new: Resource, *, preview: bool) -> Live:
        """See `Provider`."""
        if preview and not self._config_known:
            return Live(old.id, {})
        if preview and not self._able.preview:
            return Live(old.id, new.inputs)
        request = provider_pb2.UpdateRequest(
            id=old.id,
            olds=self._encode(old.outputs, unknowns=preview),
            news=self._encode(new.inputs, unknowns=preview),
            old_inputs=self._encode(old.inputs, unknowns=preview),
            timeout=new.custom_timeouts.update,
            ignoreChanges=new.ignore_changes,
            preview=preview,
            **_named(new.urn),
        )
        answer = await self._call(self._stub.Update(request), new.inputs)
        return Live(old.id, self._mark(wire.decode(answer.properties), new.inputs))

    async def delete(self, old: Resource) -> None:
        """See `Provider`."""
        request = provider_pb2.DeleteRequest(
            id=old.id,
            properties=self._encode(old.outputs),
            old_inputs=self._encode(old.inputs),
            timeout=old.custom_timeouts.delete,
            **_named(old.urn),
        )
        await self._call(self._stub.Delete(request))

    async def read(self, known: Resource) -> Live:
        """See `Provider`."""
        if not self._config_known:
            return Live(known.id, {}, {})
        request = provider_pb2.ReadRequest(id=known.id, **_named(known.urn))
        if known.external or known.inputs or known.outputs:
            request.properties.CopyFrom(self._encode(known.outputs))
            request.inputs.CopyFrom(self._encode(known.inputs))
        answer = await self._call(self._stub.Read(request), known.inputs)
        return Live(
            answer.id,
            self._mark(wire.decode(answer.properties), known.outputs),
            self._mark(wire.decode(answer.inputs), known.inputs) if answer.HasField("inputs") else None,
        )

    async def construct(self, request: provider_pb2.ConstructRequest) -> provider_pb2.ConstructResponse:
        """Construct a component, which the provider registers with all that it consists of."""
        if not self._config_known:
            raise ProviderError("its provider's configuration is not known before the update")
        if not self._able.outputs:
            request.inputs.CopyFrom(self._encode(wire.decode(request.inputs), unknowns=True))
        return await self._call(self._stub.Construct(request))

    async def call(self, request: provider_pb2.CallRequest) -> provider_pb2.CallResponse:
        """Answer a method of a resource; nothing is known while the provider's own configuration is not."""
        if not self._config_known:
            return provider_pb2.CallResponse()
        if not self._able.outputs:
            request.args.CopyFrom(self._encode(wire.decode(request.args), unknowns=True))
        return await self._call(self._stub.Call(request))

    async def invoke(self, token: str, args: Properties, *, preview: bool) -> Checked:
        """See `Provider`."""
        if not self._config_known:
            return Checked({})
        request = provider_pb2.InvokeRequest(tok=token, args=self._encode(args), preview=preview)
        answer = await self._call(self._stub.Invoke(request))
        results = wire.decode(getattr(answer, "return"))
        if contains_secret(args) and not self._able.secrets:
            results = {key: conceal(value) for key, value in results.items()}
        return Checked(results, _failures(answer.failures))

    @property
    def _able(self) -> _Abilities:
        return self._abilities or _Abilities()

    def _encode(self, properties: Properties, *, unknowns: bool = False) -> struct_pb2.Struct:
        able = self._able
        return wire.encode(properties, secrets=able.secrets, resources=able.resources, unknowns=unknowns)

    def _mark(self, returned: Properties, sent: Properties) -> Properties:
        return returned if self._able.secrets else conceal_like(returned, sent)

    async def _call(self, call: Awaitable[_T], sent: Properties | None = None) -> _T:
        try:
            return await call
        except CallRefusedError as refused:
            error, made = refused, refused.partial
        except grpc.aio.AioRpcError as refused:
            error, made = refused, _init_failure(refused)
        if made is not None:
            live = Live(
                made.id,
                self._mark(wire.decode(made.properties), sent or {}),
                wire.decode(made.inputs) if made.HasField("inputs") else None,
            )
            raise InitializationError(tuple(made.reasons), live) from error
        is_lost = isinstance(error, grpc.aio.AioRpcError) and error.code() in _LOST
        raise (AnswerLostError if is_lost else ProviderError)(_text(error)) from error


class DirectProvider(PluginProvider):
    """A provider within this process, of the same calls; see `Provider`."""

    def __init__(self, calls: Calls) -> None:
        """Take what answers each call."""
        self._calls = calls
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._stub = cast("provider_pb2_grpc.ResourceProviderAsyncStub", self)
        self._abilities = None
        self._config_known = True

    def __getattr__(self, call: str) -> Callable[[Any], Awaitable[Any]]:
        answer = self._calls.get(call) or partial(_unserved, call)
        if call == "Cancel":  # those that it ends may hold all places
            return partial(_answered, answer)

        async def answered(request: Any) -> Any:
            async with self._places:
                return await _answered(answer, request)

        return answered

    async def close(self) -> None:
        """Nothing is held open."""


def _unserved(call: str, _request: Message) -> NoReturn:
    raise CallRefusedError(f"the stand-in does not serve {call}: use the Pulumi CLI and the genuine provider")


async def _answered(call: Call, request: Message) -> Message:
    """Have a call answered in a thread of its own, whose end nothing waits for when this process ends."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Message] = loop.create_future()

    def tell(settle: Callable[[Any], None], what: Any) -> None:
        if not answer.done():
            settle(what)

    def ask() -> None:
        told: tuple[Callable[[Any], None], Any]
        try:
            told = answer.set_result, call(request)
        except CallRefusedError as refused:
            told = answer.set_exception, refused
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, *told)

    threading.Thread(target=ask, daemon=True).start()
    return await answer


class TrustedDynamic(PluginProvider):
    """A host of dynamic providers that loads none the program names, but those that are known by type.

    A resource of another type is taken as it is, and differs where its inputs do. Check and Diff pass, with
    the known provider in the place of the program's; every other call about a resource is refused, since the
    host loads a provider from whatever it is sent.
    """

    def __init__(self, address: str, engine_address: str, known: Mapping[str, Value]) -> None:
        """Dial the host."""
        super().__init__(address, engine_address)
        self._stub = cast("provider_pb2_grpc.ResourceProviderAsyncStub", _Passing(self._stub))
        self._known = known

    async def check(self, urn: str, olds: Properties | None, news: Properties, *, preview: bool) -> Checked:
        """See `Provider`."""
        if urns.parse(urn).type not in self._known:
            return Checked(news)
        olds = None if olds is None else self._with_known(urn, olds)
        answer = await super().check(urn, olds, self._with_known(urn, news), preview=preview)
        return Checked({**answer.inputs, _PROVIDER: news.get(_PROVIDER)}, answer.failures)

    async def diff(self, old: Resource, new: Resource, *, preview: bool) -> Diff:
        """See `Provider`."""
        if new.type not in self._known:
            return Diff("unknown")
        inputs, outputs = (self._with_known(old.urn, each) for each in (old.inputs, old.outputs))
        old = replace(old, inputs=inputs, outputs=outputs)
        return await super().diff(
            old, replace(new, inputs=self._with_known(new.urn, new.inputs)), preview=preview
        )

    def _with_known(self, urn: str, properties: Properties) -> Properties:
        return {**properties, _PROVIDER: self._known[urns.parse(urn).type]}


class _Passing:
    """The calls of a provider that may be made where nobody trusts the program."""

    _PASSES: Final = frozenset(
        {"Handshake", "CheckConfig", "DiffConfig", "Configure", "GetPluginInfo", "Cancel", "Check", "Diff"}
    )

    def __init__(self, stub: object) -> None:
        self._stub = stub

    def __getattr__(self, call: str) -> Callable[[Any], Awaitable[Any]]:
        return getattr(self._stub, call) if call in self._PASSES else partial(self._refuse, call)

    @staticmethod
    async def _refuse(call: str, _request: Message) -> NoReturn:
        raise CallRefusedError(f"a review runs no dynamic provider of the branch: {call} is not allowed")


def _named(urn: str) -> _Named:
    parts = urns.parse(urn)
    return {"urn": urn, "name": parts.name, "type": parts.type}


async def _if_implemented(call: Awaitable[_T]) -> _T | None:
    try:
        return await call
    except CallRefusedError as error:
        raise ProviderError(_text(error)) from error
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise ProviderError(_text(error)) from error
        return None


def _plain(properties: Properties) -> struct_pb2.Struct:
    return wire.encode(properties, secrets=False, resources=False)


def _text_of(value: object) -> str:
    plain = reveal(cast("Properties", value))
    return plain if isinstance(plain, str) else json.dumps(plain, separators=(",", ":"))


_CHANGES: Final[dict[int, Changes]] = {0: "unknown", 1: "none", 2: "some"}
_KINDS: Final = ("add", "add-replace", "delete", "delete-replace", "update", "update-replace")


def _diff(answer: provider_pb2.DiffResponse) -> Diff:
    detailed = {
        path: PropertyDiff(_KINDS[each.kind], input_diff=each.inputDiff)
        for path, each in answer.detailedDiff.items()
    }
    return Diff(
        changes=_CHANGES[answer.changes],
        replaces=tuple(answer.replaces),
        changed=tuple(answer.diffs),
        detailed=detailed if answer.hasDetailedDiff or detailed else None,
        delete_before_replace=answer.deleteBeforeReplace,
    )


def _failures(failures: Iterable[provider_pb2.CheckFailure]) -> tuple[CheckFailure, ...]:
    return tuple(CheckFailure(each.property, each.reason) for each in failures)


def _text(error: grpc.aio.AioRpcError | CallRefusedError) -> str:
    if isinstance(error, CallRefusedError):
        return str(error)
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return f"the provider's process is gone ({error.details()})"
    if reasons := _wrong_inputs(error):
        return "; ".join(reasons)
    return without_traceback((error.details() or error.code().name).removeprefix(_UNEXPECTED))


def without_traceback(text: str) -> str:
    """Cut the traceback that the dynamic host prints around a RunError, as the program's own runner does."""
    frames, found, message = text.rpartition(_RUN_ERROR)
    is_of_host = not frames or (frames.startswith(_TRACEBACK) and frames.endswith("\n"))
    return message.strip() if found and is_of_host else text


def _wrong_inputs(error: grpc.aio.AioRpcError) -> list[str]:
    """Return what a component says of its inputs; the values are left out, unlike in the genuine engine."""
    found = _detail(error, errors_pb2.InputPropertiesError())
    return [f"property {one.property_path}: {one.reason}" for one in found.errors] if found else []


def _init_failure(error: grpc.aio.AioRpcError) -> provider_pb2.ErrorResourceInitFailed | None:
    return _detail(error, provider_pb2.ErrorResourceInitFailed())


def _detail(error: grpc.aio.AioRpcError, failure: _M) -> _M | None:
    """Read what an error carries beside its text, into a message of that kind."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in status_pb2.Status.FromString(value).details:
                if detail.Unpack(failure):
                    return failure
    return None
