"""The host of dynamic providers in a review: each type has the provider from our own code.

Providers serialized by a branch are never loaded (finding R1). Nothing is read or changed: a preview only
checks and compares inputs. The CLI starts this host from its PATH; CONFIGURED names the file for the provider
configuration.
"""

# ruff: noqa: N802 - gRPC finds the methods by the names the protocol gives them

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.dynamic import Config, ConfigureRequest, ResourceProvider
from pulumi.runtime import Settings, configure, rpc
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc
from pulumi_sandbox.language_host import answering

from components.dynamic import DynamicResource
from operations.review.confinement import CONFIGURED, PROJECT
from operations.review.gate import OPTIONS, note

_PROVIDER: Final = "__provider"
_DECLARING: Final = ("fleet", "pull_secret.resources")
"""Modules of components that import all classes of dynamic resources, but no cloud SDK."""
_THREADS: Final = 4
"""Same number as in the SDK's own host."""


def known_types() -> dict[str, type[ResourceProvider]]:
    """Return the type of each dynamic resource of the program here, and its provider."""
    for module in _DECLARING:
        import_module(f"{DynamicResource.__module__.rpartition('.')[0]}.{module}")
    kinds: list[Any] = [*DynamicResource.__subclasses__()]
    return {f"pulumi-python:{kind._resource_type_name}": kind.provider for kind in kinds}


class TrustedHost(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the calls of a preview with the classes of this program."""

    def __init__(self, notes: Path) -> None:
        """Load the known types, but no provider."""
        self._notes = notes
        self._config: dict[str, Any] = {}
        self._types = known_types()

    GetPluginInfo = answering(plugin_pb2.PluginInfo(version="0.1.0"))
    Cancel = answering(empty_pb2.Empty())

    def CheckConfig(self, request: Any, context: Any) -> Any:
        """Accept any configuration, and record it."""
        del context
        note(self._notes, request.urn, request.news)
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        """Report whether the configuration differs."""
        del context
        kinds = provider_pb2.DiffResponse
        same = request.olds == request.news
        return kinds(changes=kinds.DIFF_NONE if same else kinds.DIFF_SOME)

    def Configure(self, request: Any, context: Any) -> Any:
        """Store the configuration for the providers."""
        del context
        given = rpc.deserialize_properties(request.args)
        self._config = {key: rpc.unwrap_rpc_secret(value) for key, value in given.items()}
        return provider_pb2.ConfigureResponse(acceptSecrets=False)

    def Check(self, request: Any, context: Any) -> Any:
        """Check the inputs with the type's own provider; those of other types are accepted."""
        provider = self._provider(request.urn)
        if provider is None:
            return provider_pb2.CheckResponse(inputs=request.news)
        olds, news = (rpc.deserialize_properties(each, True) for each in (request.olds, request.news))
        with _aborting(context):
            result = provider.check(olds, news)
        inputs = {**result.inputs, _PROVIDER: news.get(_PROVIDER)}
        failures = [
            provider_pb2.CheckFailure(property=each.property, reason=each.reason) for each in result.failures
        ]
        encoded = asyncio.run(rpc.serialize_properties(inputs, {}))
        return provider_pb2.CheckResponse(inputs=encoded, failures=failures)

    def Diff(self, request: Any, context: Any) -> Any:
        """Compare with the type's own provider, and report the inputs that differ."""
        kinds = provider_pb2.DiffResponse
        provider = self._provider(request.urn)
        if provider is None:
            return kinds(changes=kinds.DIFF_UNKNOWN)
        olds, news = (rpc.deserialize_properties(each, True) for each in (request.olds, request.news))
        with _aborting(context):
            result = provider.diff(request.id, olds, news)
        known = {None: kinds.DIFF_UNKNOWN, True: kinds.DIFF_SOME, False: kinds.DIFF_NONE}
        before = rpc.deserialize_properties(request.old_inputs, True)
        compared = (key for key in news if key != _PROVIDER and news[key] != before.get(key))
        differing = [key.removeprefix("__") for key in compared]
        return kinds(
            changes=known[result.changes],
            replaces=result.replaces or (),
            deleteBeforeReplace=bool(result.delete_before_replace),
            diffs=differing if result.changes else (),
        )

    def _provider(self, urn: str) -> ResourceProvider | None:
        kind = self._types.get(urn.split("::")[2].rpartition("$")[2])
        if kind is None:
            return None
        configure(
            Settings(project=os.environ.get(PROJECT, "project"), stack="stack", organization="organization")
        )
        provider = kind()
        provider.configure(ConfigureRequest(Config(self._config, os.environ.get(PROJECT, "project"))))
        return provider


@contextmanager
def _aborting(context: grpc.ServicerContext) -> Generator[None]:
    try:
        yield
    except Exception as error:
        context.abort(grpc.StatusCode.UNKNOWN, str(error))
        raise


def _refusing(call: str) -> Any:
    def method(_self: object, _request: object, context: grpc.ServicerContext) -> NoReturn:
        why = f"a review runs no dynamic provider of the branch: {call} is not allowed"
        context.abort(grpc.StatusCode.PERMISSION_DENIED, why)
        raise AssertionError("abort raises")

    return method


for _call in provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"].methods_by_name:
    if _call not in vars(TrustedHost) and _call != "Handshake":  # the engine works without it
        setattr(TrustedHost, _call, _refusing(_call))


def main() -> None:
    """Serve until the engine ends; the first printed line is the port."""
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(
        TrustedHost(Path(os.environ[CONFIGURED])), server
    )
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    server.start()
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    while os.read(sys.stdin.fileno(), 1 << 16):  # the engine holds the other end
        pass


if __name__ == "__main__":
    main()
