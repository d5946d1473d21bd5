"""Runs the command of `pool clean` or `rotate`, and ends it together with that run, however it ends.

Started as a script: `launcher.py SECONDS PROGRAM ARGUMENT…`. Each line of its input runs a command once: an
empty line the given command, answered by a line with the failure, if any; JSON {command, input} another one
with an input, answered by JSON {failure, code, output}. Inputs and outputs stay in memory. Before each answer
and before this process ends, all processes that a command started are ended. It ends at the end of its input.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Final

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

GRACE_SECONDS: Final = 5.0
"""How long a command may take to exit after SIGTERM."""
_LOOK_SECONDS: Final = 0.02
_MOST_BYTES: Final = 1 << 20
_WAKING_SECONDS: Final = 3600.0


def main(seconds: float, command: list[str]) -> None:
    """Run a command whenever asked; processes that it leaves behind become children of this one."""
    set_option = ctypes.CDLL(None).prctl
    set_option(PR_SET_CHILD_SUBREAPER, 1)
    nothing, (woken, wake) = os.open(os.devnull, os.O_RDONLY), os.pipe()
    for each in (woken, wake):
        os.set_blocking(each, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def hear(number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            os.dup2(nothing, 0)  # as the end of the input

    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, hear)
    events = select.poll()
    for each in (0, woken):
        events.register(each, select.POLLIN)
    while line := _read_line():
        asked = json.loads(line) if line.strip() else {}
        with _in_memory(asked.get("input", "")) as given, _in_memory("") as output:
            try:
                process = subprocess.Popen(
                    asked.get("command") or command,
                    stdin=given if asked else subprocess.DEVNULL,
                    stdout=output if asked else 2,
                    preexec_fn=partial(set_option, PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 - one thread
                )
            except OSError as error:
                answer, code = f"could not be started: {error.strerror}", None
            else:
                try:
                    answer = outcome(process, seconds, events, woken)
                    code = process.poll()
                finally:
                    end_all()
            if _is_at_end(events):
                return
            if asked:
                output.seek(0)
                text = output.read(_MOST_BYTES).decode(errors="replace")
                answer = json.dumps({"failure": answer, "code": code, "output": text})
        with suppress(BrokenPipeError):
            os.write(1, f"{answer}\n".encode())


def _read_line() -> bytes:
    """Read a line, and no byte beyond it; empty at the end."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line + byte if byte else b""


def _in_memory(text: str) -> BinaryIO:
    """Return a file with a text that exists only in memory."""
    file = os.fdopen(os.memfd_create("credfleet"), "w+b")
    file.write(text.encode())
    file.seek(0)
    return file


def outcome(process: "subprocess.Popen[bytes]", seconds: float, events: select.poll, woken: int) -> str:
    """Wait for a command, and return why it failed."""
    deadline = time.monotonic() + seconds
    while (code := process.poll()) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return f"was not done after {seconds:g} s"
        if _is_at_end(events, min(left, _WAKING_SECONDS)):
            return "was stopped"
        with suppress(BlockingIOError):
            os.read(woken, select.PIPE_BUF)
    return f"ended with exit code {code}" if code else ""


def _is_at_end(events: select.poll, seconds: float = 0.0) -> bool:
    """Wait for an event; return whether the input ended. No requests come during a command."""
    return any(descriptor == 0 for descriptor, _ in events.poll(seconds * 1000))


def end_all() -> None:
    """End all remaining processes: SIGTERM during the grace period, then SIGKILL until none is left."""
    deadline, told = time.monotonic() + GRACE_SECONDS, set[psutil.Process]()
    while _has_children():
        number = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
        for each in psutil.Process().children(recursive=True):
            if each not in told or number is signal.SIGKILL:
                with suppress(psutil.Error):
                    each.send_signal(number)
            told.add(each)
        time.sleep(_LOOK_SECONDS)


def _has_children() -> bool:
    """Reap ended children, including reparented ones; return whether any is left."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
