"""Ties a process' life to that of the process that starts it: the kernel sees to it (Linux).

Started as a script it stands in front of a program and turns into it: `die_with_parent.py PARENT_PID PROGRAM
ARGUMENT…`. A script, since gRPC breaks children forked with a `preexec_fn`. The kernel ties
to the forking *thread*, which must live as long as the child is to live.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG, SIGKILL = 1, 9
"""By number: importing their names would double the time this takes."""


def tied_to_this_process(*command: str) -> list[str]:
    """Return the command line that starts `command` (its program by its path) and ends it with this one.

    Elsewhere than on Linux its parent must end it.
    """
    if sys.platform != "linux":
        return [*command]
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: int, command: list[str]) -> None:
    """Ask for the signal, then become the program; do nothing when the parent is gone already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() == parent:
        os.execv(command[0], command)  # noqa: S606 - a list from `tied_to_this_process`, no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
