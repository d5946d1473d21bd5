"""Policy packs, in the genuine `python -m pulumi.policy` host."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf import empty_pb2, struct_pb2

from pulumi_sandbox.engine.model.events import PolicyViolation
from pulumi_sandbox.engine.model.goal import Goal
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.process import Child, start_plugin
from pulumi_sandbox.engine.policies import pack_config
from pulumi_sandbox.engine.policies.pack_config import PackConfig
from pulumi_sandbox.engine.project.entries import entry
from pulumi_sandbox.engine.project.identity import ORGANIZATION, Identity
from pulumi_sandbox.engine.project.python_runtime import interpreter
from pulumi_sandbox.engine.project.yaml_file import load_map
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns, wire
from pulumi_sandbox.protocol.stubs import CHANNEL_OPTIONS, analyzer_pb2, analyzer_pb2_grpc
from pulumi_sandbox.protocol.values import Properties

_T = TypeVar("_T")

_ADVISORY: Final = analyzer_pb2.ADVISORY
_REMEDIATE: Final = analyzer_pb2.REMEDIATE


@dataclass(frozen=True, slots=True)
class Judged:
    """Inputs after all remediations, and what the packs had to say."""

    inputs: Properties
    violations: tuple[PolicyViolation, ...]


class PolicyPack:
    """One running pack."""

    def __init__(
        self,
        child: Child,
        channel: grpc.aio.Channel,
        info: analyzer_pb2.AnalyzerInfo,
        levels: Mapping[str, analyzer_pb2.PolicyConfig],
        version: str,
    ) -> None:
        self.name = info.name
        self.version = version
        self._child = child
        self._channel = channel
        self._stub = _stub(channel)
        self._remediates = any(level.enforcementLevel == _REMEDIATE for level in levels.values())
        self._judges_stacks = any(
            policy.policy_type != analyzer_pb2.POLICY_TYPE_RESOURCE for policy in info.policies
        )

    @classmethod
    async def start(
        cls, folder: Path, config: Path | None, stack: Identity, engine_address: str, logs: Path
    ) -> PolicyPack:
        """Start a pack with its own interpreter, and configure it: its own defaults, `config` over them.

        Raises SandboxError `policy-pack-missing`, `plugin-failed`, `policy-pack-failed`,
        `policy-config-invalid`.
        """
        manifest = _manifest(folder)
        given = pack_config.load(config) if config else pack_config.NOTHING
        child, address = await start_plugin(
            f"policy pack {folder}",
            [str(manifest.python), "-u", "-m", "pulumi.policy", engine_address, str(folder)],
            cwd=folder,
            env={
                **stack.config.environment,
                "PULUMI_PROJECT": stack.project,
                "PULUMI_STACK": stack.stack,
                "PULUMI_DRY_RUN": "true" if stack.preview else "false",
                "PULUMI_ORGANIZATION": ORGANIZATION,
            },
            log=logs / f"policy-{folder.name}.log",
        )
        channel = grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)
        try:
            info, levels = await _introduce(_stub(channel), folder, given, stack, engine_address)
        except (grpc.aio.AioRpcError, SandboxError) as error:
            await channel.close()
            await child.stop()
            if isinstance(error, grpc.aio.AioRpcError):
                raise _failure(str(folder), error) from error
            raise
        return cls(child, channel, info, levels, manifest.version or info.version)

    async def remedied(self, resource: Resource, goal: Goal, provider: Resource | None) -> Judged:
        """Let the pack change a resource's inputs.

        Raises SandboxError `policy-pack-failed`, for an exception in a policy.
        """
        return await self._remedy(resource, _request(resource, goal, provider))

    async def _remedy(self, resource: Resource, request: analyzer_pb2.AnalyzeRequest) -> Judged:
        inputs, violations = resource.inputs, list[PolicyViolation]()
        if self._remediates:
            request.properties.CopyFrom(wire.encode(inputs))
            answer = await self._call(self._stub.Remediate(request))
            for remedy in answer.remediations:
                if not remedy.diagnostic:
                    inputs = wire.decode(remedy.properties)
                violations.append(
                    PolicyViolation(
                        policy=remedy.policyName,
                        pack=remedy.policyPackName,
                        pack_version=self.version,
                        level="advisory" if remedy.diagnostic else "remediate",
                        message=remedy.diagnostic or remedy.description,
                        urn=resource.urn,
                    )
                )
        return Judged(inputs, tuple(violations))

    async def judge(self, resource: Resource, goal: Goal, provider: Resource | None) -> Judged:
        """Let the pack change a resource's inputs, then object to them.

        Raises SandboxError `policy-pack-failed`, for an exception in a policy.
        """
        request = _request(resource, goal, provider)
        remedied = await self._remedy(resource, request)
        request.properties.CopyFrom(wire.encode(_shown(remedied.inputs)))
        answer = await self._call(self._stub.Analyze(request))
        objections = _violations(answer.diagnostics, resource.urn, self.version)
        return Judged(remedied.inputs, (*remedied.violations, *objections))

    async def judge_stack(
        self, resources: Iterable[tuple[Resource, Goal | None, Resource | None]], stack_urn: str
    ) -> tuple[PolicyViolation, ...]:
        """Let the pack object to the stack as a whole: all resources with their outputs.

        Raises SandboxError `policy-pack-failed`, for an exception in a policy.
        """
        if not self._judges_stacks:
            return ()
        request = analyzer_pb2.AnalyzeStackRequest(resources=[_stack_resource(*each) for each in resources])
        answer = await self._call(self._stub.AnalyzeStack(request))
        return _violations(answer.diagnostics, stack_urn, self.version)

    async def stop(self) -> None:
        """End the pack's process."""
        await self._channel.close()
        await self._child.stop()

    async def _call(self, call: Awaitable[_T]) -> _T:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise _failure(self.name, error) from error


async def start_packs(
    folders: Iterable[Path],
    configs: Mapping[Path, Path],
    stack: Identity,
    engine_address: str,
    logs: Path,
) -> tuple[PolicyPack, ...]:
    """Start all packs at once; when one cannot, none is left running.

    Raises SandboxError as `PolicyPack.start` does.
    """
    started = await asyncio.gather(
        *(PolicyPack.start(folder, configs.get(folder), stack, engine_address, logs) for folder in folders),
        return_exceptions=True,
    )
    packs = tuple(each for each in started if isinstance(each, PolicyPack))
    for each in started:
        if isinstance(each, BaseException):
            await asyncio.gather(*(pack.stop() for pack in packs))
            raise each
    return packs


@dataclass(frozen=True, slots=True)
class _Manifest:
    """What PulumiPolicy.yaml says: whose interpreter runs the pack, and its version (the host knows none)."""

    python: Path
    version: str


def _manifest(folder: Path) -> _Manifest:
    path = folder / "PulumiPolicy.yaml"
    if not path.exists():
        raise SandboxError(
            code="policy-pack-missing",
            place=str(path),
            cause="there is no such file, so this is no policy pack",
            mend="name a folder that holds PulumiPolicy.yaml",
        )
    written = load_map(path)
    python = interpreter(written, Path(sys.executable), "policy-pack-unsupported")
    version = written.data.get("version")
    is_number = isinstance(version, int | float)
    return _Manifest(python.absolute(), str(version) if is_number else entry(written, "", "version"))


def _stub(channel: grpc.aio.Channel) -> analyzer_pb2_grpc.AnalyzerAsyncStub:
    return cast("analyzer_pb2_grpc.AnalyzerAsyncStub", analyzer_pb2_grpc.AnalyzerStub(channel))


async def _introduce(
    stub: analyzer_pb2_grpc.AnalyzerAsyncStub,
    folder: Path,
    given: PackConfig,
    stack: Identity,
    engine_address: str,
) -> tuple[analyzer_pb2.AnalyzerInfo, Mapping[str, analyzer_pb2.PolicyConfig]]:
    """Shake hands, tell of the stack, ask for the policies, configure them: the CLI's order."""
    await _if_implemented(
        stub.Handshake(
            analyzer_pb2.AnalyzerHandshakeRequest(
                engine_address=engine_address, root_directory=str(folder), program_directory=str(folder)
            )
        )
    )
    await _if_implemented(
        stub.ConfigureStack(
            analyzer_pb2.AnalyzerStackConfigureRequest(
                stack=stack.stack,
                project=stack.project,
                organization=ORGANIZATION,
                dry_run=stack.preview,
                config=stack.config.values,
                config_secret_keys=stack.config.secret_keys,
            )
        )
    )
    await stub.GetPluginInfo(empty_pb2.Empty())
    info = await stub.GetAnalyzerInfo(empty_pb2.Empty())
    levels = given.over(_levels(info), info)
    await stub.Configure(analyzer_pb2.ConfigureAnalyzerRequest(policyConfig=levels))
    return info, levels


async def _if_implemented(call: Awaitable[object]) -> None:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise


def _levels(info: analyzer_pb2.AnalyzerInfo) -> dict[str, analyzer_pb2.PolicyConfig]:
    """Return each policy's level and properties.

    The pack's initial configuration over its policies' defaults.
    """
    levels: dict[str, analyzer_pb2.PolicyConfig] = {}
    for policy in info.policies:
        config = analyzer_pb2.PolicyConfig(enforcementLevel=policy.enforcementLevel)
        for name, schema in policy.configSchema.properties.items():
            if isinstance(schema, struct_pb2.Struct) and "default" in schema:
                config.properties[name] = schema["default"]
        if policy.name in info.initialConfig:
            initial = info.initialConfig[policy.name]
            config.enforcementLevel = initial.enforcementLevel
            config.properties.MergeFrom(initial.properties)
        levels[policy.name] = config
    return levels


def _request(resource: Resource, goal: Goal, provider: Resource | None) -> analyzer_pb2.AnalyzeRequest:
    """Return what a resource is judged by, but for its properties."""
    return analyzer_pb2.AnalyzeRequest(
        type=resource.type,
        urn=resource.urn,
        name=urns.parse(resource.urn).name,
        options=_options(resource, goal.delete_before_replace),
        provider=_provider(provider),
    )


def _stack_resource(
    resource: Resource, goal: Goal | None, provider: Resource | None
) -> analyzer_pb2.AnalyzerResource:
    return analyzer_pb2.AnalyzerResource(
        type=resource.type,
        properties=wire.encode(_shown(resource.outputs)),
        urn=resource.urn,
        name=urns.parse(resource.urn).name,
        options=_options(resource, goal.delete_before_replace if goal else None),
        provider=_provider(provider),
        parent=resource.parent,
        dependencies=resource.dependencies,
        propertyDependencies={
            key: analyzer_pb2.AnalyzerPropertyDependencies(urns=depended)
            for key, depended in resource.property_dependencies.items()
        },
    )


def _options(resource: Resource, delete_before_replace: bool | None) -> analyzer_pb2.AnalyzerResourceOptions:
    timeouts = resource.custom_timeouts
    return analyzer_pb2.AnalyzerResourceOptions(
        protect=resource.protect,
        ignoreChanges=resource.ignore_changes,
        deleteBeforeReplace=bool(delete_before_replace),
        deleteBeforeReplaceDefined=delete_before_replace is not None,
        additionalSecretOutputs=resource.additional_secret_outputs,
        aliases=resource.aliases,
        customTimeouts=analyzer_pb2.AnalyzerResourceOptions.CustomTimeouts(
            create=timeouts.create, update=timeouts.update, delete=timeouts.delete
        ),
        parent=resource.parent,
    )


def _provider(provider: Resource | None) -> analyzer_pb2.AnalyzerProviderResource | None:
    if provider is None:
        return None
    return analyzer_pb2.AnalyzerProviderResource(
        type=provider.type,
        properties=wire.encode(_shown(provider.inputs)),
        urn=provider.urn,
        name=urns.parse(provider.urn).name,
    )


def _shown(properties: Properties) -> Properties:
    """Return the properties without a provider's own notes."""
    return {key: value for key, value in properties.items() if not key.startswith("__")}


def _violations(
    diagnostics: Iterable[analyzer_pb2.AnalyzeDiagnostic], urn: str, version: str
) -> tuple[PolicyViolation, ...]:
    """Read objections; one that a remediation should have cured is mandatory."""
    return tuple(
        PolicyViolation(
            policy=each.policyName,
            pack=each.policyPackName,
            pack_version=version,
            level="advisory" if each.enforcementLevel == _ADVISORY else "mandatory",
            message=each.message,
            urn=each.urn or urn,
        )
        for each in diagnostics
    )


def _failure(place: str, error: grpc.aio.AioRpcError) -> SandboxError:
    return SandboxError(
        code="policy-pack-failed",
        place=f"policy pack {place}",
        cause=error.details() or error.code().name,
        mend="mend the policy; an exception in a policy stops the deployment",
    )
