"""The provider protocol on gRPC: which method handles which call, and how errors reach the engine."""

# ruff: noqa: N802 - gRPC finds the methods by the names the protocol gives them

from __future__ import annotations

import base64
import json
import os
import re
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from operator import methodcaller
from typing import Any, Final, TypeAlias, cast

import grpc
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns, values, wire
from pulumi_sandbox.protocol.stubs import CHANNEL_OPTIONS, plugin_pb2, provider_pb2
from pulumi_sandbox.protocol.values import (
    MASK,
    Properties,
    conceal_keys,
    conceal_like,
    reveal,
    walk,
)
from pulumi_sandbox.providers.contract import Change, Package, Problem, Provider, ResourceKind, State

_SHORTEST: Final = 5
"""In characters. Shorter secrets are not masked: that would mask harmless words and protect nothing."""


def without_secrets(text: str, properties: Properties) -> str:
    """Return a text without the secrets of the properties: plain, within JSON, and in base64.

    For a secret that is a JSON document or has several lines, each text and line counts. Values that the same
    properties also contain in plaintext are no secrets: Google's provider marks all labels of a resource in
    one output, and has the given ones in plaintext beside it.
    """
    texts = {True: set[str](), False: set[str]()}
    for found, is_secret in walk(properties):
        if isinstance(found, str):
            texts[is_secret].add(found)
    forms = {form for secret in texts[True] for part in _parts(secret) for form in _forms(part)}
    known = [form for form in forms - texts[False] if len(form) >= _SHORTEST]
    longest_first = map(re.escape, sorted(known, key=len, reverse=True))
    return re.sub("|".join(longest_first), MASK, text) if known else text


def _parts(secret: str) -> Iterator[str]:
    yield secret
    inside = [line.strip() for line in secret.splitlines()]
    with suppress(ValueError, RecursionError):
        document = json.loads(secret, parse_int=str, parse_float=str)
        inside += (found for found, _ in walk(document) if isinstance(found, str))
    with suppress(ValueError):
        inside.append(base64.b64decode(secret, validate=True).decode())
    for part in inside:
        if part != secret:
            yield from _parts(part)


def _forms(part: str) -> Iterator[str]:
    yield from (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])
    yield base64.b64encode(part.encode(errors="surrogatepass")).decode()


_Call: TypeAlias = Callable[[Any], Message]
"""Answers a message of the protocol with another one; can block."""
_INPUTS_KEPT: Final = "__inputs"
"""Output of providers that store their inputs in it."""


class ProviderService:
    """Passes each call to the kind of its resource, in plain values; the latest Configure counts."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._provider: Provider | None = None

    def CheckConfig(self, request: provider_pb2.CheckRequest) -> provider_pb2.CheckResponse:
        """Reject options that are not supported."""
        found = self._package.problems(wire.decode(request.news))
        return provider_pb2.CheckResponse(inputs=request.news, failures=_failures(found))

    def Configure(self, request: provider_pb2.ConfigureRequest) -> provider_pb2.ConfigureResponse:
        """Store the options, given as `PACKAGE:config:OPTION`, without any request."""
        options = {key.rpartition(":config:")[2]: value for key, value in request.variables.items()}
        self._provider = self._package.configure(options)
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    def Check(self, request: provider_pb2.CheckRequest) -> provider_pb2.CheckResponse:
        """Complete and check the inputs."""
        kind = self._configured().kind(request.urn)
        if kind is None:
            served = f"the sandbox's {self._package.title} provider serves only {self._package.served}"
            return provider_pb2.CheckResponse(inputs=request.news, failures=_failures([Problem("", served)]))
        inputs, found = kind.check(_plain(request.olds), _plain(request.news))
        concealed = conceal_like(inputs, wire.decode(request.news))
        return provider_pb2.CheckResponse(inputs=wire.encode(concealed), failures=_failures(found))

    def Diff(self, request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
        """Compare the new inputs with the recorded resource."""
        ignored = tuple(values.parse_path(text) for text in request.ignoreChanges)
        found = self._kind(request.urn).diff(_old(request), _plain(request.news), ignored)
        replacing = [values.render_path(change.path) for change in found.changes if change.replaces]
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(
            changes=some if found.changes else none,
            replaces=replacing,
            deleteBeforeReplace=bool(replacing) and found.delete_first,
            detailedDiff={values.render_path(change.path): _detail(change) for change in found.changes},
            hasDetailedDiff=True,
        )

    def Create(self, request: provider_pb2.CreateRequest) -> provider_pb2.CreateResponse:
        """Create a resource, or preview that."""
        kind, new = self._kind(request.urn), _plain(request.properties)
        made = State("", kind.preview_create(new), {}) if request.preview else kind.create(request.urn, new)
        concealed = _concealed(made.outputs, kind.secrets, request.properties)
        return provider_pb2.CreateResponse(id=made.id, properties=concealed)

    def Update(self, request: provider_pb2.UpdateRequest) -> provider_pb2.UpdateResponse:
        """Update a resource, or preview that."""
        kind = self._kind(request.urn)
        change = kind.preview_update if request.preview else kind.update
        outputs = change(_old(request), _plain(request.news))
        return provider_pb2.UpdateResponse(properties=_concealed(outputs, kind.secrets, request.news))

    def Read(self, request: provider_pb2.ReadRequest) -> provider_pb2.ReadResponse:
        """Read the live resource; an empty ID means that it does not exist."""
        kind = self._kind(request.urn)
        live = kind.read(State(request.id, _plain(request.properties), _plain(request.inputs)))
        if live is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=live.id,
            properties=_concealed(live.outputs, kind.secrets, request.inputs, request.properties),
            inputs=_concealed(live.inputs, kind.secrets, request.inputs),
        )

    def Delete(self, request: provider_pb2.DeleteRequest) -> empty_pb2.Empty:
        """Delete a resource."""
        old = State(request.id, _plain(request.properties), _plain(request.old_inputs))
        self._kind(request.urn).delete(old, request.timeout)
        return empty_pb2.Empty()

    def Invoke(self, request: provider_pb2.InvokeRequest) -> provider_pb2.InvokeResponse:
        """Call a function."""
        function = self._configured().function(request.tok)
        if function is None:
            raise self._not_served(request.tok)
        answer = provider_pb2.InvokeResponse()
        getattr(answer, "return").CopyFrom(wire.encode(function(_plain(request.args))))
        return answer

    def GetPluginInfo(self, _request: empty_pb2.Empty) -> plugin_pb2.PluginInfo:
        """Return the version of the genuine provider that this one emulates."""
        return plugin_pb2.PluginInfo(version=self._package.version)

    def Cancel(self, _request: empty_pb2.Empty) -> empty_pb2.Empty:
        """End the waits; requests in flight finish."""
        if self._provider is not None:
            self._provider.cancel()
        return empty_pb2.Empty()

    def _configured(self) -> Provider:
        if self._provider is None:
            raise SandboxError(
                code="not-configured",
                place=f"{self._package.title} provider",
                problem="it was asked for a resource before it was configured",
                fix="run again; if it stays, report it with the engine's log",
            )
        return self._provider

    def _kind(self, urn: str) -> ResourceKind:
        kind = self._configured().kind(urn)
        if kind is None:
            raise self._not_served(urns.parse(urn).type)
        return kind

    def _not_served(self, token: str) -> SandboxError:
        return SandboxError(
            code="not-served",
            place=token,
            problem=f"the sandbox's {self._package.title} provider does not serve it",
            fix="use the Pulumi CLI and the genuine provider for it",
        )


def _plain(struct: struct_pb2.Struct) -> Properties:
    return cast("Properties", reveal(wire.decode(struct)))


def _concealed(
    properties: Properties, secrets: Iterable[str], *models: struct_pb2.Struct
) -> struct_pb2.Struct:
    """Return properties for the engine: secret if secret in a model, or always secret."""
    for model in map(wire.decode, models):
        properties = conceal_like(properties, {_INPUTS_KEPT: model, **model})
    return wire.encode(conceal_keys(properties, secrets))


def _failures(problems: Iterable[Problem]) -> list[provider_pb2.CheckFailure]:
    return [provider_pb2.CheckFailure(property=problem.place, reason=problem.reason) for problem in problems]


def _old(request: provider_pb2.DiffRequest | provider_pb2.UpdateRequest) -> State:
    return State(request.id, _plain(request.olds), _plain(request.old_inputs))


def _detail(change: Change) -> provider_pb2.PropertyDiff:
    kind = change.kind.upper() + ("_REPLACE" if change.replaces else "")
    return provider_pb2.PropertyDiff(
        kind=provider_pb2.PropertyDiff.Kind.Value(kind), inputDiff=change.kind == "delete"
    )


_THREADS: Final = 64
"""Maximum number of parallel calls: each occupies a thread for its whole request or wait."""


def serve(package: Package, meanwhile: Callable[[], None] | None = None) -> None:
    """Serve a package on a free loopback port; the first printed line is the port.

    It ends by SIGTERM or SIGINT, or with the engine that holds the other end of its input, however that ends.
    `meanwhile` runs after the port is printed: for imports that the first call would wait for.
    """
    endings = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, endings)
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=CHANNEL_OPTIONS)
    server.add_generic_rpc_handlers((handler(package),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    if stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        threading.Thread(target=_end_with_engine, daemon=True).start()
    if meanwhile is not None:
        meanwhile()
    signal.sigwait(endings)
    server.stop(grace=None)


def _end_with_engine() -> None:
    while os.read(sys.stdin.fileno(), 1 << 16):  # a Python reader would block its end
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def handler(package: Package) -> grpc.GenericRpcHandler:
    """Return the handler of a package; other calls are answered with UNIMPLEMENTED."""
    methods = provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"].methods_by_name
    service = ProviderService(package)
    return grpc.method_handlers_generic_handler(
        "pulumirpc.ResourceProvider",
        {
            name: grpc.unary_unary_rpc_method_handler(
                _aborting(call),
                request_deserializer=GetMessageClass(method.input_type).FromString,
                response_serializer=methodcaller("SerializeToString"),
            )
            for name, method in methods.items()
            if (call := getattr(service, name, None))
        },
    )


def _aborting(call: _Call) -> Callable[[Message, grpc.ServicerContext], Message]:
    """Return a handler that converts errors to gRPC errors without secrets."""

    def answer(request: Message, context: grpc.ServicerContext) -> Message:
        try:
            return call(request)
        except SandboxError as error:
            text = str(error)
        except Exception as defect:
            text = f"a defect of the local provider: {type(defect).__name__}: {defect}"
        context.abort(grpc.StatusCode.UNKNOWN, without_secrets(text, _properties(request)))
        raise AssertionError("abort raises")

    return answer


def _properties(request: Message) -> Properties:
    """Return all properties of a request, old and new, by field name."""
    return {
        field.name: wire.decode(value)
        for field, value in request.ListFields()
        if isinstance(value, struct_pb2.Struct)
    }
