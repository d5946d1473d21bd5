"""What a command costs, process by process: it and its descendants are looked at while it runs."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_LOOK_SECONDS: Final = 0.05
_KINDS: Final = {
    "pulumi": "CLI",
    "pulumi-language-python": "language host",
    "pulumi-language-python-exec": "program",
    "pulumi.policy": "policy host",
    "pulumi-resource-pulumi-python": "dynamic host",
    "pulumi.dynamic": "dynamic host",
    "credfleet": "credfleet",
}
"""What a process is, by the first word of its command line that says it."""
OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a command cost: by kind of process the seconds of processor, and the MiB that the largest had.

    waited: the seconds of processor of all of them, as the kernel sums them up for `wait4`.
    """

    wall: float
    seconds: Mapping[str, float]
    mebibytes: Mapping[str, int]
    waited: float

    @property
    def seen(self) -> float:
        """The share of `waited` that was seen process by process."""
        return sum(self.seconds.values()) / self.waited

    @property
    def largest(self) -> tuple[str, int]:
        """The kind of process that had the most MiB, and how many."""
        return max(self.mebibytes.items(), key=lambda each: each[1])


def measured(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> Usage:
    """Run a command to its end; a failing one ends the benchmark with the last that it said."""
    began = time.perf_counter()
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(command, cwd=folder, env=dict(environment), stdout=said, stderr=said)
        tree, over = _Tree(process.pid), threading.Event()
        looking = threading.Thread(target=tree.look_until, args=(over,), daemon=True)
        looking.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - began
        over.set()
        looking.join()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(map(str, command))} in {folder}:\n{said.read()[-4000:]}")
    return tree.usage(wall, used.ru_utime + used.ru_stime)


class _Tree:
    """A process and its descendants; one whose parent is gone stays one of them."""

    def __init__(self, root: int) -> None:
        self._root = psutil.Process(root)
        self._kinds: dict[psutil.Process, str] = {}
        self._seconds: defaultdict[psutil.Process, float] = defaultdict(float)
        self._mebibytes: defaultdict[str, int] = defaultdict(int)

    def look_until(self, over: threading.Event) -> None:
        """Note again and again what each has used so far, and once more when it is over."""
        is_over = False
        while not is_over:
            is_over = over.wait(_LOOK_SECONDS)
            for process in {self._root, *self._root.children(recursive=True), *self._seconds}:
                with suppress(psutil.Error), process.oneshot():
                    times = process.cpu_times()
                    self._seconds[process] = times.user + times.system
                    kind = _kind(process.cmdline()) or self._kinds.get(process, OTHER)
                    self._kinds[process] = kind
                    self._mebibytes[kind] = max(self._mebibytes[kind], process.memory_info().rss >> 20)

    def usage(self, wall: float, waited: float) -> Usage:
        """Return what they have used, kind by kind."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for process, used in self._seconds.items():
            seconds[self._kinds.get(process, OTHER)] += used
        return Usage(wall, seconds, self._mebibytes, waited)


def _kind(words: Sequence[str]) -> str:
    """Name a process by its command line; one that has ended has none."""
    for name in (word.rpartition("/")[2] for word in words):
        if name in _KINDS:
            return _KINDS[name]
        package = name.removeprefix("pulumi-resource-").removeprefix("pulumi_sandbox.providers.")
        if package != name:
            return package.replace("_", "-")
    return ""
