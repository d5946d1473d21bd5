"""Language host for Python, for machines without `pulumi-language-python`; it is installed beside the CLI.

It runs programs and policy packs with the Python of the project's virtual environment, and nothing else.
"""

# ruff: noqa: N802 - gRPC finds the methods by the names the protocol gives them

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

_EXECUTOR: Final = Path(__file__).with_name("pulumi-language-python-exec")
_ERROR_WAS_SHOWN: Final = 32  # the exit code of a program that has reported its error to the engine
_LARGEST_MESSAGE: Final = 400 << 20
_MOST_AT_ONCE: Final = 1000  # calls; each program and each policy pack occupies one while it runs


def answering(message: Any) -> Callable[..., Any]:
    """Return a method that answers any call with the same message."""
    return lambda *_: message


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The Python runtime of one engine, whose address is passed to programs."""

    def __init__(self, engine_address: str) -> None:
        self.engine = engine_address

    GetPluginInfo = answering(plugin_pb2.PluginInfo(version="3.0.0"))
    GetRequiredPackages = answering(language_pb2.GetRequiredPackagesResponse())
    GetRequiredPlugins = answering(language_pb2.GetRequiredPluginsResponse())
    GetProgramDependencies = answering(language_pb2.GetProgramDependenciesResponse())
    RuntimeOptionsPrompts = answering(language_pb2.RuntimeOptionsResponse())
    InstallDependencies = answering(iter(()))
    About = answering(language_pb2.AboutResponse(executable=sys.executable))
    Cancel = answering(empty_pb2.Empty())

    def Handshake(self, request: language_pb2.LanguageHandshakeRequest, context: Any) -> Any:
        """Store the engine's address, for a host that was attached instead of started."""
        del context
        self.engine = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def Run(self, request: language_pb2.RunRequest, context: Any) -> Any:
        """Run a program to its end; its output goes to that of this process."""
        words, config = program_of(request, self.engine)
        return ended(_start(request, [str(_EXECUTOR), *words], config, context).wait())

    def RunPlugin(self, request: language_pb2.RunPluginRequest, context: Any) -> Iterator[Any]:
        """Run a policy pack, or a provider written in Python, and stream its output."""
        folder = request.info.program_directory
        is_pack = request.kind == "analyzer"
        words = ["-m", "pulumi.policy", *request.args, folder] if is_pack else [folder, *request.args]
        given = dict(each.split("=", 1) for each in request.env)
        child = _start(request, words, given, context, out=subprocess.PIPE)
        printed: SimpleQueue[language_pb2.RunPluginResponse | None] = SimpleQueue()
        for name in ("stdout", "stderr"):
            threading.Thread(target=_read, args=(name, getattr(child, name), printed), daemon=True).start()
        for _ in range(2):
            yield from iter(printed.get, None)
        yield language_pb2.RunPluginResponse(exitcode=child.wait())


def program_of(request: language_pb2.RunRequest, engine: str) -> tuple[list[str], dict[str, str]]:
    """Return the executor's arguments for a program, and its environment variables."""
    options = {
        **{name: getattr(request, name) for name in ("project", "stack", "pwd", "organization")},
        "monitor": request.monitor_address,
        "engine": engine,
        "dry_run": "true" if request.dryRun else "",
        "parallel": str(request.parallel),
        "root_directory": request.info.root_directory,
    }
    words = [word for key, text in options.items() for word in (f"--{key}", text)]
    words.append(str(Path(request.info.program_directory, request.info.entry_point)))
    config = {"": dict(request.config), "_SECRET_KEYS": list(request.configSecretKeys)}
    return [*words, *request.args], {f"PULUMI_CONFIG{key}": json.dumps(each) for key, each in config.items()}


def ended(code: int) -> language_pb2.RunResponse:
    """Return the response for a program's exit code."""
    if code in (0, _ERROR_WAS_SHOWN):
        return language_pb2.RunResponse(bail=code == _ERROR_WAS_SHOWN)
    return language_pb2.RunResponse(error=f"Program exited with non-zero exit code: {code}")


def _read(name: str, stream: IO[bytes], printed: SimpleQueue[language_pb2.RunPluginResponse | None]) -> None:
    while text := os.read(stream.fileno(), 1 << 16):
        output: dict[str, Any] = {name: text}
        printed.put(language_pb2.RunPluginResponse(**output))
    printed.put(None)


def _start(
    request: Any, words: Sequence[str], variables: Mapping[str, str], context: Any, out: int | None = None
) -> subprocess.Popen[bytes]:
    """Start the Python of the project's virtual environment; it is killed when the call ends."""
    python, environment = os.environ.get("PULUMI_PYTHON_CMD", "python3"), {**os.environ, **variables}
    if named := dict(request.info.options).get("virtualenv"):
        folder = Path(request.info.root_directory, str(named)).absolute()
        path = f"{folder / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
        python, environment = str(folder / "bin" / "python"), {**environment, "PATH": path}
        environment["VIRTUAL_ENV"] = str(folder)
    command, no_input = [python, "-u", *words], subprocess.DEVNULL
    child = subprocess.Popen(
        command, cwd=request.pwd, env=environment, stdin=no_input, stdout=out, stderr=out
    )
    if not context.add_callback(child.kill):  # the call was cancelled meanwhile
        child.kill()
    return child


def main(kind: type[LanguageHost] = LanguageHost) -> None:
    """Serve until the engine closes this host or ends; first print the port, as the CLI expects."""
    # The engine closes hosts by SIGINT. Programs inherit that it is blocked, and end with their calls.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    addresses = [word for word in sys.argv[1:] if not word.startswith("-")]
    sizes = [(f"grpc.max_{way}_message_length", _LARGEST_MESSAGE) for way in ("send", "receive")]
    server = grpc.server(ThreadPoolExecutor(_MOST_AT_ONCE), options=sizes)
    host = kind(addresses[-1] if addresses else "")
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    server.start()
    sys.stdout.flush()
    threading.Thread(target=_close_with_engine, daemon=True).start()
    signal.sigwait({signal.SIGINT})
    os.killpg(0, signal.SIGKILL)  # no program may outlive its engine


def _close_with_engine() -> None:
    os.read(sys.stdin.fileno(), 1)  # the engine holds the other end, and writes nothing
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
