"""Child processes of a deployment: none outlives the engine, none hears the terminal's Ctrl-C by itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pulumi_sandbox import files
from pulumi_sandbox.die_with_parent import tied_to_this_process
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.passphrases import PASSPHRASES

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 2.0
_LINE_LIMIT: Final = 16 * 1024 * 1024
_TAIL_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class Confinement:
    """How a program that nobody trusts is shut in, by `confined.py`.

    readable: what it sees of the file system, read-only; hidden: folders of that which are empty to it.
    environment: all of it. address: where the engine listens, as it sees no network. seconds, size: of wall
    clock and processor each, and bytes of memory.
    """

    readable: tuple[Path, ...]
    address: Path
    hidden: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: int = 180
    size: int = 6 << 30

    def command(self, folder: Path, *command: str) -> list[str]:
        """Return the command line that runs another one shut in."""
        script = Path(__file__).with_name("confined.py")
        spec = {
            "readable": [*map(str, self.readable), str(self.address.parent)],
            "hidden": [*map(str, self.hidden)],
            "environment": dict(self.environment),
            "folder": str(folder),
            "seconds": self.seconds,
            "bytes": self.size,
        }
        return [sys.executable, "-I", "-S", str(script), json.dumps(spec), *command]


class Child:
    """A running child process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process
        self._readers: list[asyncio.Task[None]] = []

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path | None = None,
        confinement: Confinement | None = None,
    ) -> Child:
        """Start a process with pipes for its input and output; its errors go to `log`, or to a third pipe.

        The passphrase of the state is not handed on; to one that is shut in nothing is.
        Raises SandboxError `program-missing`, when there is no such executable.
        """
        inherited = {key: value for key, value in os.environ.items() if key not in PASSPHRASES}
        environment = {**({} if confinement else inherited), **env}
        if not os.access(command[0], os.X_OK):
            raise SandboxError(
                code="program-missing",
                place=f"{name}: {command[0]}",
                cause="it does not exist, so the process cannot be started",
                mend="check `runtime.options.virtualenv` of the project, or make the environment (make env)",
            )
        command = confinement.command(cwd, *command) if confinement else command
        errors = files.opened_to_append(log) if log else None
        try:
            process = await asyncio.create_subprocess_exec(
                *tied_to_this_process(*command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors or asyncio.subprocess.PIPE,
                cwd=cwd,
                env=environment,
                process_group=0,
                limit=_LINE_LIMIT,
            )
        finally:
            if errors:
                errors.close()
        return cls(name, process)

    def follow(self, stdout: Callable[[str], None], stderr: Callable[[str], None] | None = None) -> None:
        """Hand each further line of output to a function, until the process ends."""
        streams = [(self._process.stdout, stdout), (self._process.stderr, stderr)]
        self._readers += [
            asyncio.create_task(_each_line(stream, sink)) for stream, sink in streams if stream and sink
        ]

    async def tell(self, text: str) -> None:
        """Write to the process' standard input and close it."""
        stream = self._process.stdin
        if stream:
            with contextlib.suppress(ConnectionError):
                stream.write(text.encode())
                await stream.drain()
            stream.close()

    async def first_line(self) -> str:
        """Return the first line of output, empty when the process ended without any."""
        if self._process.stdout is None:
            return ""
        return (await self._process.stdout.readline()).decode(errors="replace").strip()

    async def wait(self) -> int:
        """Wait for the end of the process and of its output; return its exit code."""
        code = await self._process.wait()
        await asyncio.gather(*self._readers)
        return code

    async def stop(self) -> None:
        """End the process: politely first, by force after two seconds; what it started sees its input end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        if self._process.stdin:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
        except TimeoutError:
            self.kill()
            await self._process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    def kill(self) -> None:
        """End the process by force, without waiting."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()


async def start_plugin(
    name: str,
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    output: Callable[[str], None] | None = None,
) -> tuple[Child, str]:
    """Start a plugin and return it with its address: the first line it prints is its port.

    What it prints afterwards goes to `output`, else to the log.
    Raises SandboxError `plugin-failed`, when it ends or stays silent for a minute; the message quotes its
    log.
    """
    child = await Child.start(name, command, cwd=cwd, env=env, log=log)
    try:
        port = await asyncio.wait_for(child.first_line(), _START_SECONDS)
    except TimeoutError:
        port = ""
    except asyncio.CancelledError:
        await child.stop()
        raise
    if not port.isdigit():
        await child.stop()
        raise SandboxError(
            code="plugin-failed",
            place=name,
            cause=f"it did not start: {_tail(log) or 'it printed no port'}",
            mend=f"read its log, {log}",
        )
    child.follow(output or _appender(log))
    return child, f"127.0.0.1:{port}"


async def _each_line(stream: asyncio.StreamReader, sink: Callable[[str], None]) -> None:
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # the reader has dropped it, and goes on behind it
            line = f"(a line of more than {_LINE_LIMIT >> 20} MiB is left out)\n".encode()
        if not line:
            return
        sink(line.decode(errors="replace").rstrip("\n"))


def _appender(log: Path) -> Callable[[str], None]:
    def append(line: str) -> None:
        with files.opened_to_append(log) as file:
            file.write(f"{line}\n".encode())

    return append


def _tail(log: Path) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
    except FileNotFoundError:
        return ""
