"""Processes that outlive the command that started them, and how a later command knows them for its own.

No file of process ids is kept: such a file goes stale when its writer is killed, and a stale id may be
another program's process by then. A process is ours when its command line says so.
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
"""The environment of a process that is told everything by its arguments."""

_LOOK_SECONDS: Final = 0.02
_TIED: Final = ("--pdeathsig", "KILL", "--", "/bin/sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')
"""Behind `setpriv`, before the caller's id and the command: one that is gone by then has nothing started."""
_FIRST_WORDS = 14
"""Where a program is named: behind the eight words of a tie, and those by which Python starts a module."""


def spawn(
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] = NOTHING,
    die_with_parent: bool = False,
) -> int:
    """Start a process in a group of its own and return its id; its output is added to `log`.

    It stays in the caller's session, by which the kernel may share out processor time; Ctrl-C is not for it,
    but what it forks may hear it, also where the caller runs behind a shell and hears none.
    Its environment is empty unless given: settings and secrets of the user's shell are none of its business.
    With `die_with_parent` Linux kills it when the calling thread ends, which `setpriv` asks it to.
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
    """Find the running processes of `program` (a file name) that were given exactly `argument`."""
    return [each.pid for each in psutil.process_iter() if _is_of(_words(each), program, argument)]


def _is_of(words: Sequence[str], program: str, argument: str) -> bool:
    return argument in words and program in (Path(word).name for word in words[:_FIRST_WORDS])


def command_line(pid: int) -> list[str]:
    """Return the words of a command line; none for a process that is gone, a zombie, or another user's."""
    process = _opened(pid)
    return _words(process) if process else []


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def end(pids: Iterable[int], ours: Callable[[int], bool], *, patience: float) -> None:
    """End processes and wait until they are gone: SIGTERM, and SIGKILL after `patience` seconds (0: at once).

    A process is signalled only if `ours` says yes to it, and never another one that has got its id since.
    """
    alive = [each for each in map(_opened, pids) if each and ours(each.pid)]
    if patience:
        _tell(alive, psutil.Process.terminate)
        alive = outlasting(alive, patience)
    _tell(alive, psutil.Process.kill)
    outlasting(alive, 10.0)


def end_all(program: str, argument: str, *, patience: float) -> None:
    """End the processes that `find` finds."""
    pids = find(program, argument)
    end(pids, lambda pid: _is_of(command_line(pid), program, argument), patience=patience)


def first_ended(pids: Iterable[int], seconds: float) -> int | None:
    """Wait up to `seconds` for one of the processes to end, and give its id."""
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
    """Wait until all have ended, and return those that have not; one that is not reaped has."""
    deadline = time.monotonic() + seconds
    while True:
        _, alive = psutil.wait_procs(processes, 0)
        processes = [each for each in alive if not _is_zombie(each)]
        if not processes or time.monotonic() >= deadline:
            return processes
        time.sleep(_LOOK_SECONDS)


def _is_zombie(process: psutil.Process) -> bool:
    """Whether a process has ended but for being reaped; others of its threads may hold its ports yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
    except psutil.NoSuchProcess:
        return True


def _tell(processes: Iterable[psutil.Process], tell: Callable[[psutil.Process], None]) -> None:
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            tell(each)
