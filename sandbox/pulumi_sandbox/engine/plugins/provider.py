"""What the engine asks of a resource provider, and how it asks one over gRPC (engine facts 2.5)."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf import empty_pb2, struct_pb2
from pulumi_sandbox.engine.model.diff import Changes, Diff, PropertyDiff
from pulumi_sandbox.engine.model.goal import package_of
from pulumi_sandbox.protocol import urns, wire
from pulumi_sandbox.protocol.stubs import CHANNEL_OPTIONS, provider_pb2, provider_pb2_grpc, status_pb2
from pulumi_sandbox.protocol.values import (
    Properties,
    conceal,
    conceal_like,
    contains_secret,
    contains_unknown,
    reveal,
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """A property a provider refuses; an empty name means the resource as a whole."""

    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """Inputs as the provider completes them, or why it refuses them."""

    inputs: Properties
    failures: tuple[CheckFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Live:
    """A resource as its provider reports it.

    `id` is empty when there is none, `inputs` None when not told.
    """

    id: str
    outputs: Properties
    inputs: Properties | None = None


_TRACEBACK: Final = "Traceback (most recent call last):"
_RUN_ERROR: Final = "pulumi.errors.RunError: "


class ProviderError(Exception):
    """A provider refused a call; the text is the provider's."""


class InitializationError(ProviderError):
    """The resource exists, but did not become what was asked for; `live` is what there is."""

    def __init__(self, reasons: tuple[str, ...], live: Live) -> None:
        super().__init__("\n".join(reasons) or "the resource was made but did not initialize")
        self.reasons = reasons
        self.live = live


class DiffUnavailableError(Exception):
    """The provider's own configuration is unknown as yet, so it cannot compare anything."""


class Provider(Protocol):
    """Whoever manages custom resources.

    A plugin, the engine itself, or the registry for provider resources.
    """

    async def check(self, urn: str, olds: Properties | None, news: Properties, *, preview: bool) -> Checked:
        """Validate and complete inputs; `olds` are the old inputs, None for a new resource."""
        ...

    async def diff(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        *,
        unknowns: bool,
        ignored: tuple[str, ...] = (),
    ) -> Diff:
        """Compare; the answer may be `unknown`."""
        ...

    async def create(self, urn: str, inputs: Properties, *, timeout: float, preview: bool) -> Live:
        """Make a resource; in a preview say what it would be, with an empty id."""
        ...

    async def update(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        *,
        timeout: float,
        ignored: tuple[str, ...],
        preview: bool,
    ) -> Live:
        """Change a resource in place."""
        ...

    async def delete(
        self, urn: str, id: str, old_inputs: Properties, old_outputs: Properties, *, timeout: float
    ) -> None:
        """Unmake a resource."""
        ...

    async def read(self, urn: str, id: str, inputs: Properties, outputs: Properties) -> Live:
        """Report a resource as it is; an empty id means it is gone."""
        ...

    async def invoke(self, token: str, args: Properties, *, preview: bool) -> Checked:
        """Call a function; its results stand where inputs do."""
        ...


@dataclass(frozen=True, slots=True)
class _Abilities:
    secrets: bool = False
    resources: bool = False
    preview: bool = False


class PluginProvider:
    """A provider in a process of its own. It is configured once, then serves."""

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
        try:
            answer = await self._stub.Handshake(request)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise ProviderError(_text(error)) from error
        else:
            self._abilities = _Abilities(answer.accept_secrets, answer.accept_resources, preview=True)

    async def check_config(self, urn: str, olds: Properties | None, news: Properties) -> Checked:
        """Validate a provider's own configuration, without secrets; one that cannot takes it as it is."""
        request = provider_pb2.CheckRequest(
            urn=urn,
            olds=None if olds is None else _plain(olds),
            news=_plain(news),
            name=urns.parse(urn).name,
            type=urns.parse(urn).type,
        )
        try:
            answer = await self._stub.CheckConfig(request)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise ProviderError(_text(error)) from error
            return Checked(news)
        return Checked(conceal_like(wire.decode(answer.inputs), news), _failures(answer.failures))

    async def diff_config(
        self, urn: str, old_inputs: Properties, old_outputs: Properties, news: Properties
    ) -> Diff:
        """Compare a provider's configurations; one that cannot leaves it to the engine."""
        request = provider_pb2.DiffRequest(
            urn=urn,
            olds=_plain(old_outputs),
            news=_plain(news),
            old_inputs=_plain(old_inputs),
            name=urns.parse(urn).name,
            type=urns.parse(urn).type,
        )
        try:
            return _diff(await self._stub.DiffConfig(request))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise ProviderError(_text(error)) from error
            return Diff("unknown")

    async def configure(self, urn: str, id: str, inputs: Properties) -> None:
        """Hand over the configuration, secrets included; with unknowns in it the provider is left alone."""
        if contains_unknown(inputs):
            self._config_known = False
            return
        parts = urns.parse(urn)
        request = provider_pb2.ConfigureRequest(
            variables={
                f"{package_of(parts.type)}:config:{key}": _text_of(value)
                for key, value in inputs.items()
                if key != "version"
            },
            args=wire.encode(inputs, secrets=True, resources=True, unknowns=True),
            acceptSecrets=True,
            acceptResources=True,
            sends_old_inputs=True,
            sends_old_inputs_to_delete=True,
            urn=urn,
            id=id,
            name=parts.name,
            type=parts.type,
        )
        answer = await self._call(self._stub.Configure(request))
        if self._abilities is None:
            self._abilities = _Abilities(
                answer.acceptSecrets, answer.acceptResources, preview=answer.supportsPreview
            )

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
        parts = urns.parse(urn)
        request = provider_pb2.CheckRequest(
            urn=urn,
            olds=None if olds is None else self._encode(olds, unknowns=preview),
            news=self._encode(news, unknowns=preview),
            name=parts.name,
            type=parts.type,
        )
        answer = await self._call(self._stub.Check(request))
        return Checked(self._mark(wire.decode(answer.inputs), news), _failures(answer.failures))

    async def diff(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        *,
        unknowns: bool,
        ignored: tuple[str, ...] = (),
    ) -> Diff:
        """See `Provider`."""
        if not self._config_known:
            raise DiffUnavailableError
        parts = urns.parse(urn)
        request = provider_pb2.DiffRequest(
            id=id,
            urn=urn,
            olds=self._encode(old_outputs, unknowns=unknowns),
            news=self._encode(news, unknowns=unknowns),
            old_inputs=self._encode(old_inputs, unknowns=unknowns),
            ignoreChanges=ignored,
            name=parts.name,
            type=parts.type,
        )
        return _diff(await self._call(self._stub.Diff(request)))

    async def create(self, urn: str, inputs: Properties, *, timeout: float, preview: bool) -> Live:
        """See `Provider`."""
        if preview and not self._config_known:
            return Live("", {})
        if preview and not self._able.preview:
            return Live("", inputs)
        parts = urns.parse(urn)
        request = provider_pb2.CreateRequest(
            urn=urn,
            properties=self._encode(inputs, unknowns=preview),
            timeout=timeout,
            preview=preview,
            name=parts.name,
            type=parts.type,
        )
        answer = await self._call(self._stub.Create(request), inputs)
        if not preview and not answer.id:
            raise ProviderError("the provider made the resource but gave it no id")
        return Live("" if preview else answer.id, self._mark(wire.decode(answer.properties), inputs))

    async def update(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        *,
        timeout: float,
        ignored: tuple[str, ...],
        preview: bool,
    ) -> Live:
        """See `Provider`."""
        if preview and not self._config_known:
            return Live(id, {})
        if preview and not self._able.preview:
            return Live(id, news)
        parts = urns.parse(urn)
        request = provider_pb2.UpdateRequest(
            id=id,
            urn=urn,
            olds=self._encode(old_outputs, unknowns=preview),
            news=self._encode(news, unknowns=preview),
            old_inputs=self._encode(old_inputs, unknowns=preview),
            timeout=timeout,
            ignoreChanges=ignored,
            preview=preview,
            name=parts.name,
            type=parts.type,
        )
        answer = await self._call(self._stub.Update(request), news)
        return Live(id, self._mark(wire.decode(answer.properties), news))

    async def delete(
        self, urn: str, id: str, old_inputs: Properties, old_outputs: Properties, *, timeout: float
    ) -> None:
        """See `Provider`."""
        parts = urns.parse(urn)
        request = provider_pb2.DeleteRequest(
            id=id,
            urn=urn,
            properties=self._encode(old_outputs, unknowns=False),
            old_inputs=self._encode(old_inputs, unknowns=False),
            timeout=timeout,
            name=parts.name,
            type=parts.type,
        )
        await self._call(self._stub.Delete(request))

    async def read(self, urn: str, id: str, inputs: Properties, outputs: Properties) -> Live:
        """See `Provider`."""
        if not self._config_known:
            return Live(id, {}, {})
        parts = urns.parse(urn)
        request = provider_pb2.ReadRequest(
            id=id,
            urn=urn,
            properties=self._encode(outputs, unknowns=False),
            inputs=self._encode(inputs, unknowns=False),
            name=parts.name,
            type=parts.type,
        )
        answer = await self._call(self._stub.Read(request), inputs)
        return Live(
            answer.id,
            self._mark(wire.decode(answer.properties), outputs),
            self._mark(wire.decode(answer.inputs), inputs) if answer.HasField("inputs") else None,
        )

    async def invoke(self, token: str, args: Properties, *, preview: bool) -> Checked:
        """See `Provider`."""
        if not self._config_known:
            return Checked({})
        request = provider_pb2.InvokeRequest(
            tok=token, args=self._encode(args, unknowns=False), preview=preview
        )
        answer = await self._call(self._stub.Invoke(request))
        results = wire.decode(getattr(answer, "return"))
        if contains_secret(args) and not self._able.secrets:
            results = {key: conceal(value) for key, value in results.items()}
        return Checked(results, _failures(answer.failures))

    @property
    def _able(self) -> _Abilities:
        return self._abilities or _Abilities()

    def _encode(self, properties: Properties, *, unknowns: bool) -> struct_pb2.Struct:
        able = self._able
        return wire.encode(properties, secrets=able.secrets, resources=able.resources, unknowns=unknowns)

    def _mark(self, returned: Properties, sent: Properties) -> Properties:
        return returned if self._able.secrets else conceal_like(returned, sent)

    async def _call(self, call: Awaitable[_T], sent: Properties | None = None) -> _T:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            partial = _init_failure(error)
            if partial is None:
                raise ProviderError(_text(error)) from error
            live = Live(
                partial.id,
                self._mark(wire.decode(partial.properties), sent or {}),
                wire.decode(partial.inputs) if partial.HasField("inputs") else None,
            )
            raise InitializationError(tuple(partial.reasons), live) from error


def _plain(properties: Properties) -> struct_pb2.Struct:
    return wire.encode(properties, secrets=False, resources=False, unknowns=True)


def _text_of(value: object) -> str:
    plain = reveal(cast("Properties", value))
    return plain if isinstance(plain, str) else json.dumps(plain, separators=(",", ":"))


_CHANGES: Final[dict[int, Changes]] = {0: "unknown", 1: "none", 2: "some"}
_KINDS: Final = ("add", "add-replace", "delete", "delete-replace", "update", "update-replace")


def _diff(answer: provider_pb2.DiffResponse) -> Diff:
    told = answer.hasDetailedDiff or bool(answer.detailedDiff)
    return Diff(
        changes=_CHANGES[answer.changes],
        replaces=tuple(answer.replaces),
        changed=tuple(answer.diffs),
        detailed={
            path: PropertyDiff(_KINDS[each.kind], input_diff=each.inputDiff)
            for path, each in answer.detailedDiff.items()
        }
        if told
        else None,
        delete_before_replace=answer.deleteBeforeReplace,
    )


def _failures(failures: object) -> tuple[CheckFailure, ...]:
    return tuple(
        CheckFailure(each.property, each.reason) for each in cast("list[provider_pb2.CheckFailure]", failures)
    )


def _text(error: grpc.aio.AioRpcError) -> str:
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return f"the provider's process is gone ({error.details()})"
    return without_traceback(error.details() or error.code().name)


def without_traceback(text: str) -> str:
    """Cut the traceback that the dynamic host prints around a RunError, as the program's own runner does."""
    frames, found, message = text.rpartition(_RUN_ERROR)
    is_of_host = not frames or (frames.startswith(_TRACEBACK) and frames.endswith("\n"))
    return message.strip() if found and is_of_host else text


def _init_failure(error: grpc.aio.AioRpcError) -> provider_pb2.ErrorResourceInitFailed | None:
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for detail in status_pb2.Status.FromString(value).details:
                failure = provider_pb2.ErrorResourceInitFailed()
                if detail.Unpack(failure):
                    return failure
    return None
