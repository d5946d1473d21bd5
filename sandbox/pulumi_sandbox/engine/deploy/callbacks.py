"""Functions of the program that the engine calls back: transforms and resource hooks."""

from collections.abc import Callable
from typing import Final, cast

import grpc
import grpc.aio

from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.protocol import urns, wire
from pulumi_sandbox.protocol.stubs import CHANNEL_OPTIONS, callback_pb2, callback_pb2_grpc, resource_pb2
from pulumi_sandbox.protocol.values import Properties


class CallbackError(Exception):
    """A function of the program raised, or the program went away while it ran."""


class Callbacks:
    """Calls functions in the program; channels to its callback servers are shared."""

    def __init__(self, *, refused: bool = False) -> None:
        """Know nobody yet. refused: whether nobody is called, as it is the program that says whom."""
        self.refused: Final = refused
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def call(self, callback: callback_pb2.Callback, request: bytes) -> bytes:
        """Call one function and return its serialized answer.

        Raises CallbackError with the program's own words.
        """
        if self.refused:
            raise CallbackError("a program that nobody trusts is not called back")
        if callback.target not in self._channels:
            self._channels[callback.target] = grpc.aio.insecure_channel(
                callback.target, options=CHANNEL_OPTIONS
            )
        stub = cast(
            "callback_pb2_grpc.CallbacksAsyncStub",
            callback_pb2_grpc.CallbacksStub(self._channels[callback.target]),
        )
        message = callback_pb2.CallbackInvokeRequest(token=callback.token, request=request)
        try:
            return (await stub.Invoke(message)).response
        except grpc.aio.AioRpcError as error:
            raise CallbackError(error.details() or error.code().name) from error

    async def transform(
        self,
        callback: callback_pb2.Callback,
        request: resource_pb2.RegisterResourceRequest,
        inputs: Properties,
        options: resource_pb2.TransformResourceOptions,
    ) -> tuple[Properties, resource_pb2.TransformResourceOptions]:
        """Let a transform change a registration; what it leaves out stays as it is."""
        message = resource_pb2.TransformRequest(
            type=request.type,
            name=request.name,
            custom=request.custom,
            parent=request.parent,
            properties=wire.encode(inputs),
            options=options,
        )
        answer = resource_pb2.TransformResponse.FromString(
            await self.call(callback, message.SerializeToString())
        )
        return (
            wire.decode(answer.properties) if answer.HasField("properties") else inputs,
            answer.options if answer.HasField("options") else options,
        )

    async def transform_invoke(
        self,
        callback: callback_pb2.Callback,
        token: str,
        args: Properties,
        options: resource_pb2.TransformInvokeOptions,
    ) -> tuple[Properties, resource_pb2.TransformInvokeOptions]:
        """Let a transform change a function call; what it leaves out stays as it is."""
        message = resource_pb2.TransformInvokeRequest(token=token, args=wire.encode(args), options=options)
        answer = resource_pb2.TransformInvokeResponse.FromString(
            await self.call(callback, message.SerializeToString())
        )
        return (
            wire.decode(answer.args) if answer.HasField("args") else args,
            answer.options if answer.HasField("options") else options,
        )

    async def close(self) -> None:
        """Hang up."""
        for channel in self._channels.values():
            await channel.close()


DELETION: Final = ("BeforeDelete", "AfterDelete")
"""The moments of a deletion that hooks are bound to."""


class Hooks:
    """The resource hooks of one run, by name."""

    def __init__(self, callbacks: Callbacks, *, preview: bool, warn: Callable[[str, str], None]) -> None:
        """Know none yet; `warn(urn, message)` tells of hooks whose errors are to be ignored."""
        self._callbacks = callbacks
        self._preview = preview
        self._warn = warn
        self._known: Final[dict[str, resource_pb2.RegisterResourceHookRequest]] = {}

    def register(self, request: resource_pb2.RegisterResourceHookRequest) -> None:
        """Learn a hook."""
        self._known[request.name] = request

    async def run(self, moment: str, old: Resource | None, new: Resource | None) -> None:
        """Call all hooks bound to a moment (`BeforeCreate`, …) of a step, in their order.

        In previews only those run that ask for it.
        Raises CallbackError when one fails and its errors are not to be ignored.
        """
        resource = new or old
        if resource is None or self._callbacks.refused:
            return
        for name in resource.resource_hooks.get(moment, ()):
            hook = self._known.get(name)
            if hook is None:
                raise CallbackError(
                    f"hook {name!r} was not registered"
                    "\n→ run a destroy with --run-program; let the program of an update register it"
                )
            if self._preview and not hook.on_dry_run:
                continue
            error = await self._call(hook, _request(resource, old, new, after=moment.startswith("After")))
            if error and hook.ignore_errors:
                self._warn(resource.urn, f"{moment} hook {name!r} failed: {error}")
            elif error:
                when = "before" if moment.startswith("Before") else "after"
                raise CallbackError(f"{when} hook {name!r} failed: {error}")

    async def _call(
        self, hook: resource_pb2.RegisterResourceHookRequest, request: resource_pb2.ResourceHookRequest
    ) -> str:
        try:
            answer = await self._callbacks.call(hook.callback, request.SerializeToString())
        except CallbackError as error:
            return str(error)
        return resource_pb2.ResourceHookResponse.FromString(answer).error


def _request(
    resource: Resource, old: Resource | None, new: Resource | None, *, after: bool
) -> resource_pb2.ResourceHookRequest:
    return resource_pb2.ResourceHookRequest(
        urn=resource.urn,
        id=resource.id,
        name=urns.parse(resource.urn).name,
        type=resource.type,
        new_inputs=wire.encode(new.inputs) if new else None,
        old_inputs=wire.encode(old.inputs) if old else None,
        new_outputs=wire.encode(new.outputs) if new and after else None,
        old_outputs=wire.encode(old.outputs) if old else None,
    )
