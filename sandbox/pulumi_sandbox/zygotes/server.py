"""A process that has imported what a deployment's processes need, and becomes them by forking (Linux).

A script of its own interpreter: `server.py SOCKET MODULE…`. Whoever connects hands over its standard input,
output and errors, a command line, a folder and an environment; what is forked runs that command as a new
interpreter would. It ends when a file that it imported changes or its socket is gone: what it gives away is
never stale.
See sandbox/docs/engine-facts.md, processes that are forked.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import termios
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

_PATIENCE: Final = 2.0
_LOOK: Final = 1.0
"""How long without work until it looks whether its socket is still there, in seconds."""

_WORD: Final = 4
_STARTED: Final = b"S"
"""What a client hears whose command runs, before its exit code; one that hears nothing runs it itself."""


def _leave_the_terminal() -> None:
    """Have no terminal: what is forked would stop as it reads from one whose foreground it is not.

    The session stays the caller's, by which the kernel may share out processor time.
    """
    with contextlib.suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDWR)
        fcntl.ioctl(terminal, termios.TIOCNOTTY)
        os.close(terminal)


class Zygote:
    """It imports, then forks."""

    def __init__(self, address: Path, modules: list[str]) -> None:
        """Import what is there, and listen in the folder of `address`, where the last to come is asked."""
        given = {*os.environ}
        for name in modules:
            with contextlib.suppress(ImportError):
                hasattr(importlib.import_module(name), "__all__")  # a lazy one loads at the first question
        gc.freeze()
        self._set = {name: text for name, text in os.environ.items() if name not in given}
        folders = [place for place in sys.path if place.startswith(sys.prefix)]
        files = filter(None, map(_file_of, list(sys.modules.values())))
        self._stamps = {file: _stamp(file) for file in (*folders, *files)}
        os.chdir(address.parent)
        self._name = address.name
        self._listener = socket.socket(socket.AF_UNIX)
        mine = f"{self._name}.{os.getpid()}"
        self._listener.bind(mine)
        self._listener.listen(64)
        self._inode = os.stat(mine).st_ino
        Path(mine).rename(self._name)

    def serve(self) -> None:
        """Fork for whoever asks, until what was imported changes."""
        while self._is_mine():
            ready, _, _ = select.select([self._listener], [], [], _LOOK)
            if not ready:
                continue
            client, _ = self._listener.accept()
            with client:
                if not self._is_fresh():
                    Path(self._name).unlink(missing_ok=True)
                    return
                if os.fork() == 0:
                    self._listener.close()
                    _attend(client, self._set)

    def _is_mine(self) -> bool:
        try:
            return os.stat(self._name).st_ino == self._inode
        except FileNotFoundError:
            return False

    def _is_fresh(self) -> bool:
        unchanged = all(_stamp(file) == stamp for file, stamp in self._stamps.items())
        return unchanged and threading.active_count() == 1


def _file_of(module: object) -> str | None:
    """Return where a module was read from; asking a lazy one for its attribute would load it."""
    try:
        return object.__getattribute__(module, "__dict__").get("__file__")
    except AttributeError:  # cffi lists what is no module
        return None


def _stamp(file: str) -> tuple[int, int, int]:
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino


def _attend(client: socket.socket, given: Mapping[str, str]) -> None:
    """Run one command for a client, end it with the client, and tell how it ended.

    given: variables that the imported modules set, unless they were set.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, ancillary, _, _ = client.recvmsg(_WORD, socket.CMSG_SPACE(3 * _WORD))
    size, body = int.from_bytes(head, "little"), b""
    while len(body) < size and (part := client.recv(size - len(body))):
        body += part
    streams = [
        int.from_bytes(data[at : at + _WORD], sys.byteorder)
        for _, _, data in ancillary
        for at in range(0, len(data), _WORD)
    ]
    if len(body) < size or len(streams) != 3:
        os._exit(1)
    command, folder, environment, mask = marshal.loads(body)  # noqa: S302 - of this user: nobody else opens the folder
    if command[1:2] != ["-u"] or command[2:3] not in (["-P"], ["-m"]):
        os._exit(0)
    pid = os.fork()
    if pid == 0:
        client.close()
        os.setpgid(0, 0)
        os.umask(mask)
        _become(command[2:], folder, {**given, **environment}, streams)
    with contextlib.suppress(ProcessLookupError):
        os.setpgid(pid, pid)  # here too: a signal may come before the child has done it
    for stream in streams:
        os.close(stream)
    _tell(client, _STARTED)
    _watch(client, pid)
    os._exit(0)


def _watch(client: socket.socket, pid: int) -> None:
    """Pass signals to the child and its group, its end to the client; it ends with a client that is gone."""
    child, deadline = os.pidfd_open(pid), None
    poll = select.poll()
    poll.register(child, select.POLLIN)
    poll.register(client, select.POLLIN)
    while True:
        left = None if deadline is None else max(deadline - time.monotonic(), 0) * 1000
        ready = dict(poll.poll(left))
        if child in ready:
            _, status = os.waitpid(pid, 0)
            _tell(client, os.waitstatus_to_exitcode(status).to_bytes(_WORD, "little", signed=True))
            return
        number = _heard(client) if ready else signal.SIGKILL
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number or signal.SIGTERM)
            if number != signal.SIGSTOP:
                os.killpg(pid, signal.SIGCONT)
        if not number:
            poll.unregister(client)
            deadline = time.monotonic() + _PATIENCE


def _tell(client: socket.socket, word: bytes) -> None:
    """Send a word; a client that is gone is seen by whoever waits for it."""
    with contextlib.suppress(OSError):
        client.sendall(word)


def _heard(client: socket.socket) -> int:
    """Return the number of a signal, 0 of a client that is gone; killed before it read all, it resets it."""
    try:
        return int.from_bytes(client.recv(1), "little")
    except ConnectionError:
        return 0


def _become(words: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> NoReturn:
    """Run what the words of a command line name, as the interpreter would, and leave as it would."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        if words[0] == "-m":
            sys.path.insert(0, folder)
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words[1:]
            main = sys.modules["__main__"] = ModuleType("__main__")
            main.__file__ = words[1]
            exec(compile(Path(words[1]).read_bytes(), words[1], "exec"), main.__dict__)  # noqa: S102 - as Python does
    except Exception as error:
        frames = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(frames), frames)
        sys.exit(1)
    sys.exit()


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _leave_the_terminal()
    Zygote(Path(sys.argv[1]), sys.argv[2:]).serve()
