"""Stands in front of a process of a deployment: has it forked by a zygote, or turns into it (Linux).

Started as a script: `launcher.py PARENT_PID SOCKET PROGRAM ARGUMENT…`. The kernel kills it with its parent,
and the zygote ends what it forked once this is gone. It imports next to nothing: it runs for each process.
"""

import _socket
import ctypes
import marshal
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
_WORD = 4
_LOST = 70
"""The exit code when the zygote is killed with what it forked."""


def main(parent: int, address: str, command: list[str]) -> None:
    """Let a zygote run the command and end as it ended, or become the command."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    zygote = _connect(address)
    if zygote is not None and _asked(zygote, command):
        _follow(zygote)
    os.execv(command[0], command)  # noqa: S606 - a list from the engine, no shell


def _connect(address: str) -> "_socket.socket | None":
    """Reach the socket by its folder: the address of a socket may not pass 107 bytes, a path may."""
    folder, _, name = address.rpartition("/")
    zygote = _socket.socket(_socket.AF_UNIX)
    try:
        zygote.connect(f"/proc/self/fd/{os.open(folder, os.O_PATH)}/{name}")
    except OSError:
        return None
    return zygote


def _asked(zygote: "_socket.socket", command: list[str]) -> bool:
    """Hand everything over; return whether the command was started, which any byte says."""
    body = marshal.dumps((command, os.getcwd(), dict(os.environ)))
    streams = b"".join(stream.to_bytes(_WORD, sys.byteorder) for stream in (0, 1, 2))
    try:
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
        zygote.sendmsg([len(body).to_bytes(_WORD, "little")], rights)
        zygote.sendall(body)
        return bool(zygote.recv(1))
    except OSError:
        return False


def _follow(zygote: "_socket.socket") -> None:
    """Pass on that it shall end, and end as it does; both never return."""

    def end(_number: int, _frame: object) -> None:
        zygote.send(b"T")

    signal.signal(signal.SIGTERM, end)
    for stream in (0, 1, 2):
        os.close(stream)
    ended = zygote.recv(_WORD)
    code = int.from_bytes(ended, "little", signed=True) if len(ended) == _WORD else _LOST
    if code < 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
