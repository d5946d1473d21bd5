"""Language host for Python, for machines without `pulumi-language-python`; it is installed beside the CLI.

It runs programs and policy packs with the Python of the project's virtual environment, and does nothing else.
"""

# ruff: noqa: N802 - gRPC finds the methods by the names the protocol gives them

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

_EXECUTOR: Final = Path(__file__).with_name("pulumi-language-python-exec")
_ERROR_WAS_SHOWN: Final = 32  # the exit code of a program that has told the engine its error
_LARGEST_MESSAGE: Final = 400 << 20


def _answer(message: Any) -> Any:
    def method(self: object, request: object, context: object) -> Any:
        del self, request, context
        return message

    return method


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The Python runtime of one engine, at the address that programs report to."""

    def __init__(self, engine_address: str) -> None:
        self._engine = engine_address

    GetPluginInfo = _answer(plugin_pb2.PluginInfo(version="3.0.0"))
    GetRequiredPackages = _answer(language_pb2.GetRequiredPackagesResponse())
    GetRequiredPlugins = _answer(language_pb2.GetRequiredPluginsResponse())
    GetProgramDependencies = _answer(language_pb2.GetProgramDependenciesResponse())
    RuntimeOptionsPrompts = _answer(language_pb2.RuntimeOptionsResponse())
    InstallDependencies = _answer(())
    About = _answer(language_pb2.AboutResponse(executable=sys.executable))
    Cancel = _answer(empty_pb2.Empty())

    def Handshake(self, request: language_pb2.LanguageHandshakeRequest, context: Any) -> Any:
        """Learn the address, for a host that was attached and not started."""
        del context
        self._engine = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def Run(self, request: language_pb2.RunRequest, context: Any) -> Any:
        """Run a program to its end; it prints to the output of this process."""
        options = {
            "monitor": request.monitor_address,
            "engine": self._engine,
            "project": request.project,
            "stack": request.stack,
            "pwd": request.pwd,
            "dry_run": "true" if request.dryRun else "",
            "parallel": str(request.parallel),
            "organization": request.organization,
            "root_directory": request.info.root_directory,
        }
        command = [_python(request.info), "-u", str(_EXECUTOR)]
        command += [word for key, value in options.items() for word in (f"--{key}", value)]
        command += [str(Path(request.info.program_directory, request.info.entry_point)), *request.args]
        environment = {
            **_activated(request.info, os.environ),
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        child = subprocess.Popen(command, cwd=request.pwd, env=environment)
        context.add_callback(child.kill)
        code = child.wait()
        if code in (0, _ERROR_WAS_SHOWN):
            return language_pb2.RunResponse(bail=code == _ERROR_WAS_SHOWN)
        return language_pb2.RunResponse(error=f"Program exited with non-zero exit code: {code}")

    def RunPlugin(self, request: language_pb2.RunPluginRequest, context: Any) -> Iterator[Any]:
        """Run a policy pack, or a provider written in Python, and stream what it prints."""
        folder = request.info.program_directory
        is_pack = request.kind == "analyzer"
        words = ["-m", "pulumi.policy", *request.args, folder] if is_pack else [folder, *request.args]
        given = dict(each.split("=", 1) for each in request.env)
        command = [_python(request.info), "-u", *words]
        environment = _activated(request.info, {**os.environ, **given})
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, cwd=request.pwd, env=environment, stdout=pipe, stderr=pipe)
        context.add_callback(child.kill)
        printed: SimpleQueue[language_pb2.RunPluginResponse | None] = SimpleQueue()
        for name in ("stdout", "stderr"):
            threading.Thread(target=_read, args=(name, getattr(child, name), printed), daemon=True).start()
        for _ in range(2):
            yield from iter(printed.get, None)
        yield language_pb2.RunPluginResponse(exitcode=child.wait())


def _read(name: str, stream: IO[bytes], printed: SimpleQueue[language_pb2.RunPluginResponse | None]) -> None:
    while text := os.read(stream.fileno(), 1 << 16):
        output: dict[str, Any] = {name: text}
        printed.put(language_pb2.RunPluginResponse(**output))
    printed.put(None)


def _virtual_environment(info: language_pb2.ProgramInfo) -> Path | None:
    folder = dict(info.options).get("virtualenv")
    return Path(info.root_directory, str(folder)).absolute() if folder else None


def _python(info: language_pb2.ProgramInfo) -> str:
    folder = _virtual_environment(info)
    return str(folder / "bin" / "python") if folder else os.environ.get("PULUMI_PYTHON_CMD", "python3")


def _activated(info: language_pb2.ProgramInfo, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the programs of the virtual environment come first."""
    if not (folder := _virtual_environment(info)):
        return dict(environment)
    path = f"{folder / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    return {**environment, "VIRTUAL_ENV": str(folder), "PATH": path}


def main() -> None:
    """Serve until the engine is gone; print the port first, as the CLI expects of a plugin."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the engine gets Ctrl-C as well, and ends its program in order
    addresses = [word for word in sys.argv[1:] if not word.startswith("-")]
    sizes = [(f"grpc.max_{way}_message_length", _LARGEST_MESSAGE) for way in ("send", "receive")]
    server = grpc.server(ThreadPoolExecutor(), options=sizes)
    host = LanguageHost(addresses[-1] if addresses else "")
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    server.start()
    sys.stdout.flush()
    parent = os.getppid()
    while server.wait_for_termination(timeout=1) and os.getppid() == parent:
        pass
    os.killpg(0, signal.SIGKILL)  # the engine was killed: its programs must not outlive it


if __name__ == "__main__":
    main()
