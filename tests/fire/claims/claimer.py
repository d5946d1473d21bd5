"""A process of holders, one for each slot, and of one who keeps the pool; all they call is written down.

Started as a module with KUBECONFIG, POOLS, FOLDER, NAME, SLOTS and SEED; it goes from pool to pool as the
folder's file `pool` says, and ends when there is a file `enough`. Killed at any moment, its file says what
was begun: a line is one invocation or one answer. Its clocks jump, as of a machine that slept.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Final

from components.account_pool.core.pool_operator import PoolOperator
from components.connection import ClusterTarget
from components.errors import CredfleetError
from tests.fire.claims.clients import Holder, Keeper, Place

ACCOUNTS: Final = tuple(f"aws-{n}" for n in range(4))
CALLS_PER_JUMP: Final = 500
LONGEST_JUMP_SECONDS: Final = 10.0

_now: Final = time.monotonic_ns


class Written:
    """Notes in a file, a line each; the true time is what all processes share."""

    def __init__(self, to: Path) -> None:
        self._file = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._numbers = count()
        self._run = os.getpid()
        self.calls = 0

    def begin(self, **told: Any) -> int:
        number = next(self._numbers)
        self._write({**told, "id": f"{self._run}/{number}", "call": _now()})
        return number

    def end(self, number: int, end: str, member: str = "") -> None:
        self.calls += 1
        self._write({"id": f"{self._run}/{number}", "return": _now(), "end": end, "member": member})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, f"{json.dumps(line)}\n".encode())


class Clocks:
    """The clocks of a machine that is set to other times, and sleeps now and then."""

    def __init__(self, random: Random) -> None:
        self._random, self._ahead, self._set = random, 0.0, 0.0
        wall, steady = time.time, time.monotonic
        time.time = lambda: wall() + self._set
        time.monotonic = lambda: steady() + self._ahead

    def jump(self) -> None:
        self._set = self._random.uniform(-1e6, 1e6)
        self._ahead += self._random.uniform(0, LONGEST_JUMP_SECONDS)


class Places:
    """The pool of the moment, opened once for all threads."""

    def __init__(self, target: ClusterTarget, pools: str, told: Path) -> None:
        self._target, self._pools, self._told, self._lock = target, pools, told, Lock()
        self._now: Place | None = None

    def now(self) -> Place | None:
        with self._lock:
            name = f"{self._pools}-{self._told.read_text()}"
            if self._now is None or self._now.name != name:
                try:
                    self._now = Place(PoolOperator.open(self._target, name), name, ACCOUNTS)
                except CredfleetError:  # the API server is away: nothing was begun
                    return None
            return self._now


def _lives(one: Holder | Keeper, places: Places, enough: Path, often: Callable[[], None]) -> None:
    before = None
    while not enough.exists():
        place = places.now()
        if place is None:
            continue
        if isinstance(one, Holder) and place is not before:
            one.has, one.had, before = None, [], place
        one.act(place)
        often()


def main(arguments: Sequence[str]) -> None:
    kubeconfig, pools, folder, name, slots, seed = arguments
    enough = Path(folder) / "enough"
    places = Places(ClusterTarget(kubeconfig=kubeconfig), pools, Path(folder) / "pool")
    random = Random(f"{seed}/{name}")
    clocks = Clocks(random)
    everybody: list[Holder | Keeper] = []
    for n in range(int(slots)):
        notes = Written(Path(folder) / f"{name}-{n}.jsonl")
        numbers = count(time.monotonic_ns())
        everybody.append(Holder(f"slot-{n}", name, notes, Random(f"{seed}/{name}/{n}"), numbers=numbers))
    notes = Written(Path(folder) / f"{name}-keeper.jsonl")
    everybody.append(Keeper(f"cleaner-{name}", notes, Random(f"{seed}/{name}/keeper")))

    def often() -> None:
        if random.random() < 1 / CALLS_PER_JUMP:
            clocks.jump()

    with ThreadPoolExecutor(len(everybody)) as threads:
        for future in [threads.submit(_lives, one, places, enough, often) for one in everybody]:
            future.result()


if __name__ == "__main__":
    main(sys.argv[1:])
