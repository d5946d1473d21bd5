"""A resource provider behind genuine gRPC that keeps its resources in memory and every request it gets.

It serves the package `fake`. What it does with a resource hangs on the resource's own inputs:

- a key that begins with `fixed` cannot change in place; `exclusive: true` makes such a change delete first;
- without a `name` it makes up one, and keeps the one of the old inputs;
- `invalid: text` is refused by Check with that text;
- a key that begins with `quiet` is no difference.
"""

# ruff: noqa: N802, ARG002 - gRPC finds the methods by the protocol's names and gives each a context

import itertools
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
from google.protobuf import any_pb2, empty_pb2, struct_pb2
from pulumi_sandbox.protocol import urns, wire
from pulumi_sandbox.protocol.stubs import (
    CHANNEL_OPTIONS,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, reveal


@dataclass(frozen=True)
class Call:
    """One request: the method, the logical name of the resource, and the message itself."""

    method: str
    name: str
    message: Any

    def properties(self, name: str) -> Properties:
        """Return one of the request's property maps."""
        return wire.decode(getattr(self.message, name))

    def has(self, name: str) -> bool:
        """Whether the request carries this map at all."""
        return self.message.HasField(name)


@dataclass
class Thing:
    """A resource that exists."""

    urn: str
    inputs: Properties
    outputs: Properties


class PartialFailureError(Exception):
    """Makes a call do its work and report that the resource did not initialize, for this reason."""


@dataclass
class RecordingProvider(provider_pb2_grpc.ResourceProviderServicer):
    """The provider; tests read `calls` and `things`, and set `on` to interfere with a call.

    `build` answers Construct and `answer` Call, from the request. `on[method, name]` runs before the call
    does its work: it may raise, wait, or change the world.
    """

    accepts_secrets: bool = True
    accepts_outputs: bool = False
    supports_preview: bool = True
    shakes_hands: bool = True
    calls: list[Call] = field(default_factory=list[Call])
    things: dict[str, Thing] = field(default_factory=dict[str, Thing])
    on: dict[tuple[str, str], Callable[[], None]] = field(
        default_factory=dict[tuple[str, str], Callable[[], None]]
    )
    build: Callable[[Any], Any] | None = None
    answer: Callable[[Any], Any] | None = None
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self) -> None:
        """Forget all requests and resources, as if it had just been made."""
        for each in (self.calls, self.things, self.on):
            each.clear()
        self._ids = itertools.count(1)

    def of(self, method: str, name: str = "") -> list[Call]:
        """Return the calls of a method, of one resource if named."""
        return [call for call in self.calls if call.method == method and name in ("", call.name)]

    def methods(self, name: str) -> list[str]:
        """Return what was called on a resource, in order."""
        return [call.method for call in self.calls if call.name == name]

    def names(self) -> list[str]:
        """Return the logical names of what exists, sorted."""
        return sorted(urns.parse(thing.urn).name for thing in self.things.values())

    def thing(self, name: str) -> Thing:
        """Return the one thing of this logical name."""
        (found,) = (each for each in self.things.values() if urns.parse(each.urn).name == name)
        return found

    # The protocol

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        if not self.shakes_hands:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "an old provider")
        self._record("Handshake", "", request)
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=self.accepts_secrets, accept_resources=True, accept_outputs=self.accepts_outputs
        )

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._record("CheckConfig", _name(request.urn), request)
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._record("DiffConfig", _name(request.urn), request)
        olds, news = _plain(request.old_inputs), _plain(request.news)
        changed = sorted(key for key in olds.keys() | news.keys() if olds.get(key) != news.get(key))
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE,
            replaces=[key for key in changed if key.startswith("fixed")],
        )

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._record("Configure", request.name, request)
        return provider_pb2.ConfigureResponse(
            acceptSecrets=self.accepts_secrets,
            acceptResources=True,
            acceptOutputs=self.accepts_outputs,
            supportsPreview=self.supports_preview,
        )

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._record("Check", _name(request.urn), request)
        news = wire.decode(request.news)
        if "invalid" in news:
            failure = provider_pb2.CheckFailure(property="invalid", reason=str(reveal(news["invalid"])))
            return provider_pb2.CheckResponse(failures=[failure])
        if "name" not in news:
            old = wire.decode(request.olds).get("name")
            news["name"] = old or f"auto-{next(self._ids)}"
        return provider_pb2.CheckResponse(inputs=wire.encode(news))

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._work("Diff", request, context)
        olds, news = wire.decode(request.old_inputs), wire.decode(request.news)
        if news.get("diff") == "unknown":
            return provider_pb2.DiffResponse()
        plain_olds, plain_news = cast("Properties", reveal(olds)), cast("Properties", reveal(news))
        changed = sorted(
            key
            for key in olds.keys() | news.keys()
            if plain_olds.get(key) != plain_news.get(key) and not key.startswith("quiet")
        )
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE,
            diffs=changed,
            replaces=[key for key in changed if key.startswith("fixed")],
            deleteBeforeReplace=news.get("exclusive") is True,
        )

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        inputs = wire.decode(request.properties)
        if request.preview:
            self._record("Create", _name(request.urn), request)
            return provider_pb2.CreateResponse(properties=wire.encode({**inputs, "made": UNKNOWN}))
        with self._working("Create", request, context) as id_:
            outputs: Properties = {**inputs, "made": f"by {id_}"}
            self.things[id_] = Thing(request.urn, inputs, outputs)
            return provider_pb2.CreateResponse(id=id_, properties=wire.encode(outputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        news = wire.decode(request.news)
        outputs: Properties = {**news, "made": wire.decode(request.olds).get("made")}
        if request.preview:
            self._record("Update", _name(request.urn), request)
            return provider_pb2.UpdateResponse(properties=wire.encode(outputs))
        with self._working("Update", request, context, request.id) as id_:
            self.things[id_] = Thing(request.urn, news, outputs)
            return provider_pb2.UpdateResponse(properties=wire.encode(outputs))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._work("Delete", request, context)
        self.things.pop(request.id, None)
        return empty_pb2.Empty()

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        thing = self.things.get(request.id)
        try:
            self._work("Read", request, context)
        except PartialFailureError as failure:
            _abort_partially(context, failure, request.id, thing.outputs if thing else {})
        if thing is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=request.id, properties=wire.encode(thing.outputs), inputs=wire.encode(thing.inputs)
        )

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._record("Invoke", request.tok, request)
        self._interfere("Invoke", request.tok, context)
        return provider_pb2.InvokeResponse(**{"return": request.args})

    def Construct(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._record("Construct", request.name, request)
        if self.build is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "it constructs nothing")
        return self.build(request)

    def Call(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._record("Call", request.tok, request)
        if self.answer is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "it has no methods")
        return self.answer(request)

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._record("Cancel", "", request)
        return empty_pb2.Empty()

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version="1.0.0")

    # Recording and interfering

    def _record(self, method: str, name: str, message: Any) -> None:
        with self._lock:
            self.calls.append(Call(method, name, message))

    def _work(self, method: str, request: Any, context: grpc.ServicerContext) -> None:
        name = _name(request.urn)
        self._record(method, name, request)
        self._interfere(method, name, context)

    def _interfere(self, method: str, name: str, context: grpc.ServicerContext) -> None:
        interference = self.on.get((method, name))
        if interference:
            try:
                interference()
            except PartialFailureError:
                raise
            except ConnectionError as error:
                context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            except Exception as error:
                context.abort(grpc.StatusCode.UNKNOWN, str(error))

    @contextmanager
    def _working(
        self, method: str, request: Any, context: grpc.ServicerContext, id_: str = ""
    ) -> Generator[str]:
        """Do a call; after a partial failure its work is done, and reported in the error."""
        id_ = id_ or f"id-{next(self._ids)}"
        try:
            self._work(method, request, context)
            yield id_
        except PartialFailureError as failure:
            inputs = wire.decode(request.properties if method == "Create" else request.news)
            outputs: Properties = {**inputs, "made": f"by {id_}"}
            self.things[id_] = Thing(request.urn, inputs, outputs)
            _abort_partially(context, failure, id_, outputs)


@contextmanager
def serving(provider: RecordingProvider) -> Generator[int]:
    """Serve a provider on a loopback port."""
    server = grpc.server(ThreadPoolExecutor(32), options=CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def _abort_partially(
    context: grpc.ServicerContext, failure: PartialFailureError, id_: str, outputs: Properties
) -> None:
    detail = any_pb2.Any()
    reasons = [str(failure)]
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(id=id_, properties=wire.encode(outputs), reasons=reasons)
    )
    status = status_pb2.Status(code=2, message=str(failure), details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(failure))


def _name(urn: str) -> str:
    return urns.parse(urn).name


def _plain(struct: struct_pb2.Struct) -> Properties:
    return cast("Properties", reveal(wire.decode(struct)))
