"""Check that the Kubernetes provider plugin of the engine has the options that this program requires.

The engine uses the plugin version of the SDK, unless another one is attached or on PATH. It accepts that one
with any version, and an older plugin ignores options it does not know. A program cannot ask the engine which
plugin it uses, so this module searches like the engine and asks the plugin.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import IO, Final, cast

import grpc
import pulumi
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

RELIED_ON: Final = (
    "clusterIdentifier",
    "enableConfigMapMutable",
    "enableSecretMutable",
    "enableServerSideApply",
    "upsertExistingObjects",
)
"""Options without which accounts are replaced, or other owners' objects are taken over and later deleted."""

ACCEPTED: Final = "CREDFLEET_ACCEPT_PROVIDER_WITHOUT"
"""Variable with the missing options, comma-separated, without which the program still runs."""

_PLUGIN: Final = "pulumi-resource-kubernetes"
_ATTACHED: Final = "PULUMI_DEBUG_PROVIDERS"
_NOT_FROM_PATH: Final = "PULUMI_IGNORE_AMBIENT_PLUGINS"
_SECONDS: Final = 60.0


def refuse_older_plugin() -> None:
    """Fail the program, even a preview, if its Kubernetes provider lacks required options."""
    where, lacking = lacking_options()
    if not lacking:
        return
    named = ",".join(lacking)
    problem = f"Kubernetes provider {where}: it does not know {named}, so it takes over existing objects"
    if os.environ.get(ACCEPTED) == named:
        pulumi.log.warn(f"{problem}, which {ACCEPTED} accepts")
        return
    raise pulumi.RunError(
        f"{problem} and deletes them later; nothing was written\n"
        f"→ run `pulumi plugin install resource kubernetes v{version('pulumi-kubernetes')}`, and remove"
        f" {where} or set {_NOT_FROM_PATH}=true; to go on without, set {ACCEPTED}={named}"
    )


@cache
def lacking_options() -> tuple[str, tuple[str, ...]]:
    """Return the path of the plugin and its missing options; empty if the engine uses its own plugin.

    A plugin that does not answer, or lists no options, is left to the engine.
    """
    attached = dict(each.split(":", 1) for each in os.environ.get(_ATTACHED, "").split(",") if ":" in each)
    if port := attached.get("kubernetes"):
        return f"at port {port} ({_ATTACHED})", _lacking(port)
    path = None if os.environ.get(_NOT_FROM_PATH) else shutil.which(_PLUGIN)
    if path is None:
        return "", ()
    with _started(path) as port:
        return path, _lacking(port)


def _lacking(port: str) -> tuple[str, ...]:
    """Return the missing options of a plugin; its schema exceeds the default message size."""
    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        try:
            answer = stub.GetSchema(provider_pb2.GetSchemaRequest(), timeout=_SECONDS)
        except grpc.RpcError:
            return ()
    known = json.loads(answer.schema)["provider"]["inputProperties"]
    return tuple(option for option in RELIED_ON if option not in known)


@contextmanager
def _started(path: str) -> Generator[str]:
    """Start a plugin, which prints its port."""
    with subprocess.Popen(
        [path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield cast("IO[str]", process.stdout).readline().strip()
        finally:
            process.kill()
