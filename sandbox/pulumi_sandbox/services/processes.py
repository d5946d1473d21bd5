"""Processes that outlive the command that started them, and how later commands recognize them.

There are no PID files: such a file becomes stale when its writer is killed, and the PID can belong to another
program by then. A process is ours if its command line says so.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

import psutil

from pulumi_sandbox.files import make_folder

NOTHING: Mapping[str, str] = MappingProxyType({})
"""Environment of a process that gets all its settings as arguments."""

_LOOK_SECONDS: Final = 0.02
_TIED: Final = ("--pdeathsig", "KILL", "--", "/bin/sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')
"""After `setpriv`, before the caller's PID and the command. If the caller has ended, nothing is started."""
_FIRST_WORDS = 14
"""The program is one of the first words: after the eight of a tie, and those that start a Python module."""


def spawn(
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] = NOTHING,
    die_with_parent: bool = False,
) -> int:
    """Start a process in its own process group and return its ID; its output is appended to `log`.

    It stays in the caller's session, by which the kernel may distribute CPU time; it does not get Ctrl-C, but
    its children might, even if the caller runs behind a shell and does not. Its environment is empty by
    default, without the settings and secrets of the user's shell. With `die_with_parent` Linux kills it when
    the calling thread ends, which is set up by `setpriv`.
    """
    tie = shutil.which("setpriv") if die_with_parent else None
    words = [tie, *_TIED, str(os.getpid()), *command] if tie else [*command]
    make_folder(log.parent)
    return os.posix_spawn(
        words[0],
        words,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setpgroup=0,
        setsigdef=[signal.SIGINT],
    )


def find(program: str, argument: str) -> list[int]:
    """Return the running processes of `program` (a file name) that have exactly this argument."""
    return [each.pid for each in psutil.process_iter() if _is_of(_words(each), program, argument)]


def _is_of(words: Sequence[str], program: str, argument: str) -> bool:
    return argument in words and program in (Path(word).name for word in words[:_FIRST_WORDS])


def command_line(pid: int) -> list[str]:
    """Return the words of a command line; empty for an ended process, a zombie, or another user's."""
    process = _opened(pid)
    return _words(process) if process else []


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def end(pids: Iterable[int], ours: Callable[[int], bool], *, patience: float) -> None:
    """End processes and wait for that: SIGTERM, and SIGKILL after `patience` seconds (0: at once).

    A process is signalled only if `ours` accepts it, and never another one that reuses its ID.
    """
    alive = [each for each in map(_opened, pids) if each and ours(each.pid)]
    if patience:
        _tell(alive, psutil.Process.terminate)
        alive = outlasting(alive, patience)
    _tell(alive, psutil.Process.kill)
    outlasting(alive, 10.0)


def end_all(program: str, argument: str, *, patience: float) -> None:
    """End the processes that `find` returns."""
    pids = find(program, argument)
    end(pids, lambda pid: _is_of(command_line(pid), program, argument), patience=patience)


def first_ended(pids: Iterable[int], seconds: float) -> int | None:
    """Wait up to `seconds` for one of the processes to end, and return its ID."""
    opened = {pid: _opened(pid) for pid in pids}
    deadline = time.monotonic() + seconds
    while True:
        for pid, process in opened.items():
            if process is None or not outlasting([process], 0):
                return pid
        if (left := deadline - time.monotonic()) <= 0:
            return None
        time.sleep(min(_LOOK_SECONDS, left))


def _opened(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def outlasting(processes: Sequence[psutil.Process], seconds: float) -> Sequence[psutil.Process]:
    """Wait until all have ended, and return those that have not; zombies count as ended."""
    deadline = time.monotonic() + seconds
    while True:
        _, alive = psutil.wait_procs(processes, 0)
        processes = [each for each in alive if not _is_zombie(each)]
        if not processes or time.monotonic() >= deadline:
            return processes
        time.sleep(_LOOK_SECONDS)


def _is_zombie(process: psutil.Process) -> bool:
    """Return whether a process is a zombie without other threads, which might still hold its ports."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
    except psutil.NoSuchProcess:
        return True


def _tell(processes: Iterable[psutil.Process], tell: Callable[[psutil.Process], None]) -> None:
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            tell(each)
