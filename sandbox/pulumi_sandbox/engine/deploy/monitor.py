"""The gRPC services a program talks to.

The resource monitor and the engine's log.
See sandbox/docs/engine-facts.md, what the SDK calls, what the engine answers.
"""

# ruff: noqa: N802 - gRPC finds the methods by the names the protocol gives them

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf import empty_pb2, struct_pb2

from pulumi_sandbox.engine.deploy.assets import hashed
from pulumi_sandbox.engine.deploy.callbacks import CallbackError, Callbacks, Hooks
from pulumi_sandbox.engine.deploy.construct import all_dependencies, call_request, construct_request
from pulumi_sandbox.engine.deploy.control import Control, Stopped, Unfulfilled
from pulumi_sandbox.engine.deploy.register import Registrar
from pulumi_sandbox.engine.deploy.resources import Resources
from pulumi_sandbox.engine.deploy.root_stack import RootStack
from pulumi_sandbox.engine.deploy.source_position import source_position
from pulumi_sandbox.engine.model.events import Severity
from pulumi_sandbox.engine.model.goal import (
    Goal,
    goal_of,
    inherit,
    options_of,
    package_of,
    provider_for,
    refuse_unsupported,
    unsupported,
)
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.plugin_provider import PluginProvider
from pulumi_sandbox.engine.plugins.provider import ProviderError
from pulumi_sandbox.engine.project.identity import ORGANIZATION, Identity
from pulumi_sandbox.engine.project.version_range import is_range, satisfies
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import signatures, urns, wire
from pulumi_sandbox.protocol.stubs import (
    CHANNEL_OPTIONS,
    callback_pb2,
    engine_pb2,
    engine_pb2_grpc,
    provider_pb2,
    resource_pb2,
    resource_pb2_grpc,
)

_T = TypeVar("_T")
_Q = TypeVar("_Q")
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_FEATURES: Final = {
    "secrets": resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    "resourceReferences": resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    "outputValues": resource_pb2.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
    "aliasSpecs": resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    "deletedWith": resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    "replaceWith": resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    "replacementTrigger": resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    "transforms": resource_pb2.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
    "invokeTransforms": resource_pb2.RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
    "resourceHooks": resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
}
"""What is implemented; the SDK refuses clearly whatever is not among these."""

_RELEASE: Final = version("pulumi")

_SHUTTING_DOWN: Final = "Resource monitor has terminated, shutting down"
"""What the SDK says when the engine hangs up: noise after the real error."""


class InvokeFailed(Exception):  # noqa: N818 - no error of the engine: the program may go on without the answer
    """A provider's function failed; the program is told, and decides what that means."""


def _served(work: Callable[[Monitor, _Q], Coroutine[Any, Any, object]]) -> Any:
    """Return a method of the service from the work it does.

    When the deployment stops, the call ends as the SDK expects: UNAVAILABLE.
    """

    @wraps(work)
    async def method(self: Monitor, request: _Q, context: _Context) -> object:
        try:
            return await self.control.serve(lambda: self.reported(work(self, request)))
        except Stopped:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the deployment has stopped")
            raise
        except InvokeFailed as failed:
            await context.abort(grpc.StatusCode.UNKNOWN, str(failed))
            raise

    return method


@dataclass(eq=False)
class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Answers a program's registrations, reads and function calls, in one deployment.

    address: where it listens, for providers that construct components.
    `signalled` is set when the program has registered all it wants.
    """

    control: Control
    registrar: Registrar
    resources: Resources
    root: RootStack
    callbacks: Callbacks
    hooks: Hooks
    identity: Identity
    parallel: int
    address: str
    signalled: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _finished: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _transforms: dict[str, list[callback_pb2.Callback]] = field(default_factory=dict, init=False)
    _stack_transforms: list[callback_pb2.Callback] = field(default_factory=list, init=False)
    _invoke_transforms: list[callback_pb2.Callback] = field(default_factory=list, init=False)

    @property
    def _root_of_assets(self) -> Path | None:
        """The folder that paths of assets begin at; None: no file that the program names may be read."""
        return None if self.callbacks.refused else self.identity.program

    def release(self) -> None:
        """Let the program end: all that needs it alive is done."""
        self._finished.set()

    async def GetDeploymentInfo(
        self, request: empty_pb2.Empty, context: _Context
    ) -> resource_pb2.DeploymentInfo:
        """Return what is deployed where, and what this engine can do."""
        del request, context
        config = self.identity.config
        return resource_pb2.DeploymentInfo(
            project=self.identity.project,
            stack=self.identity.stack,
            organization=ORGANIZATION,
            config=config.values,
            configSecretKeys=config.secret_keys,
            dryRun=self.control.preview,
            parallel=self.parallel,
            supportedFeatures=_FEATURES.values(),
        )

    async def SupportsFeature(
        self, request: resource_pb2.SupportsFeatureRequest, context: _Context
    ) -> resource_pb2.SupportsFeatureResponse:
        """Whether this engine can do something."""
        del context
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id in _FEATURES)

    @_served
    async def RegisterResource(
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        """Bring a resource to the state the program wants."""
        try:
            if request.remote:
                return await self._construct(request)
            goal, _, _ = await self._goal(request)
            resource = await self.registrar.register(goal)
        except Unfulfilled as unfulfilled:
            if not request.supportsResultReporting:
                raise self.control.stop() from unfulfilled
            return resource_pb2.RegisterResourceResponse(urn=unfulfilled.urn, result=resource_pb2.FAIL)
        return resource_pb2.RegisterResourceResponse(
            urn=resource.urn,
            id=resource.id,
            unknown=resource.urn in self.resources.not_made,
            object=wire.encode(
                resource.outputs if goal.custom else {},
                secrets=request.acceptSecrets,
                resources=request.acceptResources,
            ),
        )

    async def _construct(
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        """Have a provider construct a component; all of it, itself too, is registered here meanwhile."""
        goal, inputs, options = await self._goal(request)
        urn = urns.make(self.identity.stack, self.identity.project, goal.parent, goal.type, goal.name)
        try:
            reference = await self.registrar.provider_reference(goal.package, goal.version, goal.provider)
            provider = await self.registrar.provider(reference)
            if not isinstance(provider, PluginProvider):
                raise unsupported("components of the engine's own package", urn)
            answer = await provider.construct(
                construct_request(
                    goal,
                    inputs,
                    options,
                    identity=self.identity,
                    parallel=self.parallel,
                    monitor=self.address,
                )
            )
        except (ProviderError, SandboxError) as error:
            if self.control.stopping or not self.control.goes_on:
                raise self.control.fail_unless_stopping(str(error), urn) from error
            self.control.flaw(str(error), urn)
            self.resources.unfulfilled.add(urn)
            raise Unfulfilled(urn) from error
        dependencies = resource_pb2.RegisterResourceResponse.PropertyDependencies
        return resource_pb2.RegisterResourceResponse(
            urn=answer.urn,
            object=wire.encode(
                wire.decode(answer.state), secrets=request.acceptSecrets, resources=request.acceptResources
            ),
            propertyDependencies={
                key: dependencies(urns=each.urns) for key, each in answer.stateDependencies.items()
            },
        )

    async def _goal(
        self, request: resource_pb2.RegisterResourceRequest
    ) -> tuple[Goal, struct_pb2.Struct, resource_pb2.TransformResourceOptions]:
        """Read a registration after its own transforms, its ancestors' and the stack's, in this order.

        A component that is constructed is registered twice, and transformed by the same both times. Returns
        the inputs on the wire as well, untouched where nothing transformed them.
        """
        sent, options = wire.decode(request.object), options_of(request)
        inputs = sent
        urn = urns.make(
            self.identity.stack, self.identity.project, request.parent, request.type, request.name
        )
        self._transforms[urn] = transforms = [*self._transforms.get(urn, ()), *request.transforms]
        transforms = [*transforms]
        above = request.parent
        while above:
            transforms += self._transforms.get(above, [])
            ancestor = self.resources.goals.get(above)
            above = ancestor.parent if ancestor else ""
        for transform in (*transforms, *self._stack_transforms):
            inputs, options = await self.callbacks.transform(transform, request, inputs, options)
        object_ = request.object if inputs == sent else wire.encode(inputs)
        refuse_unsupported(request, options)
        goal = goal_of(request, hashed(inputs, self._root_of_assets), options)
        goal = replace(goal, source_position=source_position(request.sourcePosition, self.identity.directory))
        parent = self.resources.goals.get(request.parent)
        if (goal.custom and not goal.is_provider) or request.remote:
            goal = goal.served_by(provider_for(goal, parent))
        return inherit(goal, parent) if parent else goal, object_, options

    @_served
    async def ReadResource(
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        """Look up a resource that is managed elsewhere."""
        _refuse_download(request.pluginDownloadURL, f"{request.type} {request.name!r}")
        parent = self.resources.goals.get(request.parent)
        package = package_of(request.type)
        given = request.provider or (parent.providers.get(package, "") if parent else "")
        wanted = Resource(
            urn="",
            type=request.type,
            custom=True,
            external=True,
            parent=request.parent,
            id=request.id,
            inputs=wire.decode(request.properties),
            dependencies=tuple(sorted(request.dependencies)),
            provider=await self.registrar.provider_reference(package, request.version, given),
            additional_secret_outputs=tuple(request.additionalSecretOutputs),
            source_position=source_position(request.sourcePosition, self.identity.directory),
        )
        resource = await self.registrar.read(request.name, wanted)
        return resource_pb2.ReadResourceResponse(
            urn=resource.urn,
            id=resource.id,
            properties=wire.encode(
                resource.outputs,
                secrets=request.acceptSecrets,
                resources=request.acceptResources,
            ),
        )

    @_served
    async def RegisterResourceOutputs(
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        """Take the outputs of a component; the stack's own are kept aside until the end."""
        outputs = hashed(wire.decode(request.outputs), self._root_of_assets)
        if request.urn == self.root.urn:
            self.root.keep(outputs)
        else:
            await self.registrar.outputs(request.urn, outputs)
        return empty_pb2.Empty()

    @_served
    async def Invoke(
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        """Call a provider's function."""
        args = wire.decode(request.args)
        options = resource_pb2.TransformInvokeOptions(
            provider=request.provider,
            version=request.version,
            plugin_download_url=request.pluginDownloadURL,
        )
        for transform in self._invoke_transforms:
            args, options = await self.callbacks.transform_invoke(transform, request.tok, args, options)
        _refuse_download(options.plugin_download_url, request.tok)
        package = package_of(request.tok)
        reference = await self.registrar.provider_reference(package, options.version, options.provider)
        provider = await self.registrar.provider(reference)
        try:
            answer = await provider.invoke(request.tok, args, preview=self.control.preview)
        except ProviderError as error:
            raise InvokeFailed(f"invocation of {request.tok} returned an error: {error}") from error
        response = resource_pb2.ResourceInvokeResponse(
            failures=[
                provider_pb2.CheckFailure(property=each.property, reason=each.reason)
                for each in answer.failures
            ]
        )
        results = wire.encode(answer.inputs, resources=request.acceptResources)
        getattr(response, "return").CopyFrom(results)
        return response

    async def RegisterStackTransform(
        self, request: callback_pb2.Callback, context: _Context
    ) -> empty_pb2.Empty:
        """Learn a transform of all resources to come."""
        del context
        self._stack_transforms.append(request)
        return empty_pb2.Empty()

    async def RegisterStackInvokeTransform(
        self, request: callback_pb2.Callback, context: _Context
    ) -> empty_pb2.Empty:
        """Learn a transform of all function calls to come."""
        del context
        self._invoke_transforms.append(request)
        return empty_pb2.Empty()

    async def RegisterResourceHook(
        self, request: resource_pb2.RegisterResourceHookRequest, context: _Context
    ) -> empty_pb2.Empty:
        """Learn a hook."""
        del context
        self.hooks.register(request)
        return empty_pb2.Empty()

    async def SignalAndWaitForShutdown(self, request: empty_pb2.Empty, context: _Context) -> empty_pb2.Empty:
        """Take notice that the program is through; answer when nothing needs it any more."""
        del request, context
        self.signalled.set()
        await self._finished.wait()
        return empty_pb2.Empty()

    @_served
    async def Call(self, request: resource_pb2.ResourceCallRequest) -> provider_pb2.CallResponse:
        """Call a method of a resource: who serves that answers; a failure stops the deployment."""
        _refuse_download(request.pluginDownloadURL, request.tok)
        package, given = self._receiver(request)
        reference = await self.registrar.provider_reference(package, request.version, given)
        provider = await self.registrar.provider(reference)
        if not isinstance(provider, PluginProvider):
            raise unsupported("methods of the engine's own package", request.tok)
        try:
            answer = await provider.call(
                call_request(request, identity=self.identity, parallel=self.parallel, monitor=self.address)
            )
        except ProviderError as error:
            message = f"call to function '{request.tok}' failed: {error}"
            raise self.control.fail_unless_stopping(message) from error
        returned = getattr(answer, "return")
        said = {key: each.urns for key, each in answer.returnDependencies.items()}
        dependencies = provider_pb2.CallResponse.ReturnDependencies
        response = provider_pb2.CallResponse(
            failures=answer.failures,
            returnDependencies={
                key: dependencies(urns=urns) for key, urns in all_dependencies(returned, said).items()
            },
        )
        getattr(response, "return").CopyFrom(wire.encode(wire.decode(returned)))
        return response

    def _receiver(self, request: resource_pb2.ResourceCallRequest) -> tuple[str, str]:
        """Return the package that a method is of, and the reference of its provider, where one is said.

        A method of a provider, `pulumi:providers:PACKAGE/METHOD`, is answered by that very one.
        """
        self_ = request.args.fields["__self__"].struct_value if "__self__" in request.args.fields else None
        told = {} if self_ is None else {key: self_[key] for key in ("urn", "id") if key in self_.fields}
        urn = str(told.get("urn", ""))
        if request.tok.startswith(urns.PROVIDER_TYPE_PREFIX):
            package = package_of(request.tok).partition("/")[0]
            return package, f"{urn}::{told.get('id') or signatures.UNKNOWN}"
        goal = self.resources.goals.get(urn)
        return package_of(request.tok), request.provider or (goal.provider if goal else "")

    @_served
    async def RegisterErrorHook(self, request: resource_pb2.RegisterErrorHookRequest) -> empty_pb2.Empty:
        """Refuse by name."""
        raise unsupported(f"error hooks ({request.name})", "the program")

    @_served
    async def RegisterPackage(
        self, request: resource_pb2.RegisterPackageRequest
    ) -> resource_pb2.RegisterPackageResponse:
        """Refuse by name."""
        raise unsupported(f"parameterized packages ({request.name})", "the program")

    @_served
    async def ExistsResource(
        self, request: resource_pb2.ExistsResourceRequest
    ) -> resource_pb2.ExistsResourceResponse:
        """Refuse by name."""
        raise unsupported(f"looking whether resources exist ({request.type})", "the program")

    async def reported(self, work: Awaitable[_T]) -> _T:
        """Do a piece of work; what goes wrong is said and stops the deployment."""
        try:
            return await work
        except (Stopped, InvokeFailed, asyncio.CancelledError):
            raise
        except CallbackError as error:
            raise self.control.fail_unless_stopping(str(error)) from error
        except (SandboxError, ProviderError) as error:
            raise self.control.fail(str(error)) from error
        except Exception as error:
            raise self.control.fail(f"the engine itself failed:\n{traceback.format_exc()}") from error


def _refuse_download(url: str, place: str) -> None:
    if url:
        raise unsupported("the option plugin_download_url", place)


class EngineLog(engine_pb2_grpc.EngineServicer):
    """Takes what a program or a provider logs."""

    _SEVERITIES: Final[dict[int, Severity]] = {
        engine_pb2.INFO: "info",
        engine_pb2.WARNING: "warning",
        engine_pb2.ERROR: "error",
    }

    def __init__(self, control: Control) -> None:
        """Hand everything on to the run; `errors` counts what was said as an error."""
        self.errors = 0
        self._control = control

    async def Log(self, request: engine_pb2.LogRequest, context: _Context) -> empty_pb2.Empty:
        """Hand a message on; debug messages are dropped, they are many."""
        del context
        severity = self._SEVERITIES.get(request.severity)
        hung_up = self._control.stopping and _SHUTTING_DOWN in request.message
        if severity is not None and not request.ephemeral and not hung_up:
            self.errors += severity == "error"
            self._control.say(severity, request.message.rstrip("\n"), request.urn)
        return empty_pb2.Empty()

    async def RequirePulumiVersion(
        self, request: engine_pb2.RequirePulumiVersionRequest, context: _Context
    ) -> engine_pb2.RequirePulumiVersionResponse:
        """Hold the program to the version of Pulumi that it wants: this engine acts as the one of the SDK."""
        given = request.pulumi_version_range
        if not satisfies(_RELEASE, given):
            other = f"this engine acts as Pulumi {_RELEASE}, the program wants {given}"
            why = other if is_range(given) else f"{given} is no range of releases"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, why)
        return engine_pb2.RequirePulumiVersionResponse()


def listen(socket: Path | None = None) -> tuple[grpc.aio.Server, str]:
    """Make the server of a deployment, not yet started; return it with its address, or this one's."""
    server = grpc.aio.server(options=CHANNEL_OPTIONS)
    if socket is not None:
        server.add_insecure_port(f"unix:{socket}")
        return server, f"unix:{socket}"
    port = server.add_insecure_port("127.0.0.1:0")
    return server, f"127.0.0.1:{port}"


async def serve(server: grpc.aio.Server, monitor: Monitor, log: EngineLog) -> None:
    """Begin to answer."""
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    engine_pb2_grpc.add_EngineServicer_to_server(log, server)
    await server.start()
