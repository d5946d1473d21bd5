"""Processes that outlive the command that started them, and how a later command knows them for its own.

No file of process ids is kept: such a file goes stale when its writer is killed, and a stale id may be
somebody else's process by then. A process is ours when its command line says so.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pulumi_sandbox.die_with_parent import tied_to_this_process
from pulumi_sandbox.files import make_folder

NOTHING: Mapping[str, str] = MappingProxyType({})
"""The environment of a process that is told everything by its arguments."""

_FIRST_WORDS = 10
"""Where a program is named: behind the launcher's five words, and those with which Python starts a module."""


def spawn(
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] = NOTHING,
    die_with_parent: bool = False,
) -> int:
    """Start a process in a group of its own and return its id; its output is added to `log`.

    It stays in the caller's session, by which the kernel may share out processor time; Ctrl-C is not for it.
    Its environment is empty unless given: settings and secrets of the user's shell are none of its business.
    With `die_with_parent` the kernel kills it when the calling thread ends.
    """
    words = tied_to_this_process(*command) if die_with_parent else list(command)
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
    )


def find(program: str, argument: str) -> list[int]:
    """Find the running processes of `program` (a file name) that were given exactly `argument`."""
    processes = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return [pid for pid in processes if is_process_of(pid, program, argument)]


def is_process_of(pid: int, program: str, argument: str) -> bool:
    """Whether process `pid` runs `program` (perhaps still through the launcher) with `argument`."""
    words = command_line(pid)
    names = [Path(word).name for word in words[:_FIRST_WORDS]]
    return program in names and argument in words


def command_line(pid: int) -> list[str]:
    """Return the words of a command line; none for a process that is gone or a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def end(pids: Iterable[int], ours: Callable[[int], bool], *, patience: float) -> None:
    """End processes and wait until they are gone: SIGTERM, and SIGKILL after `patience` seconds (0: at once).

    A process is signalled only if `ours` says yes to it, through a descriptor that a reused id cannot fool.
    """
    opened = {pid: descriptor for pid in pids if (descriptor := _open(pid, ours)) is not None}
    try:
        if patience:
            _signal(opened, signal.SIGTERM)
            _wait(opened, patience)
        _signal(opened, signal.SIGKILL)
        _wait(opened, 10.0)
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def end_all(program: str, argument: str, *, patience: float) -> None:
    """End the processes that `find` finds."""
    end(find(program, argument), lambda pid: is_process_of(pid, program, argument), patience=patience)


def first_ended(pids: Iterable[int], seconds: float) -> int | None:
    """Wait up to `seconds` for one of the processes to end, and give its id."""
    poll = select.poll()
    opened: dict[int, int] = {}
    try:
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                return pid
            opened[descriptor] = pid
            poll.register(descriptor, select.POLLIN)
        ended = [opened[descriptor] for descriptor, _ in poll.poll(seconds * 1000)]
    finally:
        for descriptor in opened:
            os.close(descriptor)
    if not ended:
        return None
    reap(ended[0])
    return ended[0]


def reap(pid: int) -> int | None:
    """Return the exit status of a child that has ended (negative: the signal), None for any other process."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if ended else None


def _open(pid: int, ours: Callable[[int], bool]) -> int | None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if ours(pid):
        return descriptor
    os.close(descriptor)
    return None


def _signal(opened: dict[int, int], number: signal.Signals) -> None:
    for descriptor in opened.values():
        try:
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            continue


def _wait(opened: dict[int, int], seconds: float) -> None:
    """Wait until all have ended or the time is over; closes and forgets those that have ended."""
    deadline = time.monotonic() + seconds
    while opened and (left := deadline - time.monotonic()) > 0:
        poll = select.poll()
        for descriptor in opened.values():
            poll.register(descriptor, select.POLLIN)
        ended = {descriptor for descriptor, _ in poll.poll(left * 1000)}
        for pid in [pid for pid, descriptor in opened.items() if descriptor in ended]:
            os.close(opened.pop(pid))
            reap(pid)
