"""Stands in front of a process of a deployment: has it forked by a zygote, or turns into it (Linux).

Started as a script: `launcher.py PARENT_PID SOCKET PROGRAM ARGUMENT…`. The kernel kills it with its parent,
and the zygote ends what it forked once this is gone. It imports next to nothing: it runs for each process.
"""

import _socket
import marshal
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
_WORD = 4
_ERRORS = 2
"""The number of standard error, the last of the standard streams."""
_LOST = 70
"""The exit code when the zygote is killed with what it forked."""


def main(parent: int, address: str, command: list[str]) -> None:
    """Let a zygote run the command and end as it ended, or become the command."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    run_forked(address, command)
    os.execv(command[0], command)  # noqa: S606 - a list from the engine, no shell


def run_forked(address: str, command: list[str]) -> None:
    """Have a zygote run a command with what is open here, and end as it ends; return if none does."""
    zygote = _connect(address)
    if zygote is None:
        return
    known = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP)}
    heeded = [each for each, handler in known.items() if handler is not signal.SIG_IGN]
    if signal.SIGINT in heeded:  # nothing runs yet that could say a word of it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _hand_over(zygote, command) and _heard(zygote, 1):
        _pass_on(zygote, heeded)
        _end_with(zygote)
    signal.signal(signal.SIGINT, known[signal.SIGINT])


def _connect(address: str) -> "_socket.socket | None":
    """Reach the socket by its folder: the address of a socket may not pass 107 bytes, a path may.

    It is this user's zygote, or none: whoever listens is handed all variables. None where a standard stream
    is closed, whose number the socket would get.
    """
    folder, _, name = address.rpartition("/")
    zygote = _socket.socket(_socket.AF_UNIX)
    if zygote.fileno() <= _ERRORS:
        return None
    try:
        place = os.open(folder, os.O_PATH)
    except OSError:
        return None
    try:
        zygote.connect(f"/proc/self/fd/{place}/{name}")
        peer = zygote.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 3 * _WORD)
    except OSError:
        return None
    finally:
        os.close(place)
    user = int.from_bytes(peer[_WORD : 2 * _WORD], sys.byteorder)
    return zygote if user == os.geteuid() else None


def _hand_over(zygote: "_socket.socket", command: list[str]) -> bool:
    """Hand everything over; return whether that could be done."""
    mask = os.umask(0o077)
    os.umask(mask)
    body = marshal.dumps((command, os.getcwd(), dict(os.environ), mask))
    streams = b"".join(stream.to_bytes(_WORD, sys.byteorder) for stream in (0, 1, 2))
    try:
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
        zygote.sendmsg([len(body).to_bytes(_WORD, "little")], rights)
        zygote.sendall(body)
    except OSError:
        return False
    return True


def _pass_on(zygote: "_socket.socket", signals: list[signal.Signals]) -> None:
    """Have signals that this process is sent reach the command; a pause is one of both."""

    def tell(number: int, _frame: object = None) -> None:
        try:
            zygote.send(bytes([number]))
        except OSError:  # it has ended, which is about to be read
            return

    def pause(_number: int, _frame: object) -> None:
        tell(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        tell(signal.SIGCONT)

    for each in signals:
        signal.signal(each, pause if each == signal.SIGTSTP else tell)


def _heard(zygote: "_socket.socket", size: int) -> bytes:
    """Wait for a word: any byte says that the command runs, four are its exit code."""
    try:
        return zygote.recv(size)
    except OSError:
        return b""


def _end_with(zygote: "_socket.socket") -> None:
    """End as the command does; never returns."""
    for stream in (0, 1, 2):
        os.close(stream)
    ended = _heard(zygote, _WORD)
    code = int.from_bytes(ended, "little", signed=True) if len(ended) == _WORD else _LOST
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
