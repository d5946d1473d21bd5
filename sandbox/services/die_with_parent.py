"""Turns into the program it is given, which the kernel kills when the process that asked for it ends (Linux).

Started as a script: `python die_with_parent.py PARENT_PID PROGRAM ARGUMENT…`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Ask for the signal, then become the program; do nothing when the parent is gone already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:
        os.execv(command[0], command)  # noqa: S606 - a list from `processes.spawn`, no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
