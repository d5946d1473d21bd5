"""Where providers come from: which process serves a package, and how it is started and stopped."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pulumi_sandbox.engine.plugins.package_source import package_command
from pulumi_sandbox.engine.plugins.plugin_provider import DirectProvider, PluginProvider, TrustedDynamic
from pulumi_sandbox.engine.plugins.process import Child, start_plugin
from pulumi_sandbox.engine.plugins.provider import ProviderError
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.calls import Calls
from pulumi_sandbox.protocol.values import Value

DYNAMIC: Final = "pulumi-python"
"""The package of dynamic providers."""

_CANCEL_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Trusted:
    """Where dynamic providers are loaded from, and by type which, as the state names them."""

    folder: Path
    providers: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Sources:
    """All that decides where a package's provider is found.

    `attached` maps packages to loopback ports of providers that run already (PULUMI_DEBUG_PROVIDERS),
    `folders` maps packages to folders with an executable (`plugins.providers` of Pulumi.yaml), `packages` to
    those with their source (`packages`), `within` to what else serves them in this process; `python` is that
    of the project's environment. `trusted`: the only dynamic providers that are loaded.
    """

    project: str
    program: Path
    python: Path
    logs: Path
    attached: Mapping[str, int] = field(default_factory=dict[str, int])
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    packages: Mapping[str, Path] = field(default_factory=dict[str, Path])
    within: Mapping[str, Callable[[Path], Calls]] = field(
        default_factory=dict[str, "Callable[[Path], Calls]"]
    )
    trusted: Trusted | None = None


def attached_providers(variable: str) -> dict[str, int]:
    """Read PULUMI_DEBUG_PROVIDERS: `name:port,name:port`.

    Raises SandboxError `debug-providers-invalid`.
    """
    attached: dict[str, int] = {}
    for entry in filter(None, variable.split(",")):
        name, _, port = entry.partition(":")
        if not port.isdigit():
            raise SandboxError(
                code="debug-providers-invalid",
                place="PULUMI_DEBUG_PROVIDERS",
                cause=f"{entry!r} is not a name and a port",
                mend="write name:port, several with commas: kubernetes:4001,gcp:4002",
            )
        attached[name] = int(port)
    return attached


class Plugins:
    """The provider processes of one deployment."""

    def __init__(self, sources: Sources, engine_address: str, said: Callable[[str], None]) -> None:
        """Start nothing yet; `said` takes what dynamic providers print: the user's own code speaking."""
        self._sources = sources
        self._engine_address = engine_address
        self._said = said
        self._children: list[Child] = []
        self._providers: list[PluginProvider] = []
        self._warm: dict[str, asyncio.Task[PluginProvider]] = {}

    def warm_up(self, package: str) -> None:
        """Start a provider that will surely be asked for, while other things happen."""
        with contextlib.suppress(SandboxError):
            if not self.stands_in(package):
                self._resolve(package)
            self._warm[package] = asyncio.create_task(self._start(package))

    async def start(self, package: str) -> PluginProvider:
        """Return a provider that nobody has configured yet.

        Raises SandboxError `provider-unknown`, `plugin-failed`.
        """
        warm = self._warm.pop(package, None)
        return await (warm or self._start(package))

    def stands_in(self, package: str) -> bool:
        """Whether a package is served by what stands in for its provider."""
        sources = self._sources
        own = (sources.attached, sources.folders, sources.packages)
        return package in sources.within and not any(package in each for each in own)

    async def cancel(self) -> None:
        """Ask all providers to give up what they wait for."""
        calls = (provider.cancel() for provider in self._providers)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), _CANCEL_SECONDS)

    def kill(self) -> None:
        """End all processes by force, without waiting."""
        for child in self._children:
            child.kill()

    async def stop(self) -> None:
        """End all processes."""
        for warm in self._warm.values():
            warm.cancel()
        await asyncio.gather(*self._warm.values(), return_exceptions=True)
        await asyncio.gather(*(provider.close() for provider in self._providers), return_exceptions=True)
        await asyncio.gather(*(child.stop() for child in self._children))

    async def _start(self, package: str) -> PluginProvider:
        if self.stands_in(package):
            provider = DirectProvider(
                await asyncio.to_thread(self._sources.within[package], self._sources.program)
            )
            self._providers.append(provider)
            return provider
        command = self._resolve(package)
        trusted = self._sources.trusted if package == DYNAMIC else None
        if isinstance(command, int):
            address = f"127.0.0.1:{command}"
        else:
            child, address = await start_plugin(
                f"provider {package}",
                command,
                cwd=trusted.folder if trusted else self._sources.program,
                env={"PULUMI_PROJECT": self._sources.project},
                log=self._sources.logs / f"provider-{package}.log",
                output=self._said if package == DYNAMIC else None,
            )
            self._children.append(child)
        provider = (
            TrustedDynamic(address, self._engine_address, trusted.providers)
            if trusted
            else PluginProvider(address, self._engine_address)
        )
        self._providers.append(provider)
        try:
            await provider.shake_hands(str(self._sources.program))
        except ProviderError as error:
            raise SandboxError(
                code="plugin-failed",
                place=f"provider {package} at {address}",
                cause=f"it does not answer: {error}",
                mend="check that it runs; unset PULUMI_DEBUG_PROVIDERS to have it started",
            ) from error
        return provider

    def _resolve(self, package: str) -> int | list[str]:
        """Return the port of a running provider, or the command that starts one."""
        if package in self._sources.attached:
            return self._sources.attached[package]
        if package == DYNAMIC:
            return [str(self._sources.python), "-u", "-m", "pulumi.dynamic", self._engine_address]
        folder = self._sources.folders.get(package)
        if folder is not None:
            return [str(folder / f"pulumi-resource-{package}"), self._engine_address]
        if package in self._sources.packages:
            source = package_command(self._sources.packages[package], self._sources.python)
            return [*source, self._engine_address]
        raise SandboxError(
            code="provider-unknown",
            place=f"package {package}",
            cause="the embedded engine has no provider for it",
            mend="run one and name it in PULUMI_DEBUG_PROVIDERS, or declare its folder under "
            "packages or plugins.providers of Pulumi.yaml, or use the Pulumi CLI",
        )
