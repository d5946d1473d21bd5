"""Claimers in two processes that do one step at a time, all at once, on the word of the benchmark.

Started as a module, a process of claimers reads orders, one JSON object per line, and answers each with one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from statistics import quantiles
from threading import Barrier
from typing import Any, Final

from benchmarks.boskos import BoskosFlow
from benchmarks.flows import ByHand, Flow, OurFlow, SeedFlow
from benchmarks.kept_alive import Access, Tally, Traffic

PROCESSES: Final = 2
_ROOT: Final = Path(__file__).resolve().parent.parent


class Way(StrEnum):
    """The flows that are compared."""

    OURS = "credfleet"
    BY_HAND = "its calls by hand"
    SEED = "the seed's flow"
    BOSKOS = "Boskos"


_BY_HAND: Final = {Way.BY_HAND: ByHand, Way.SEED: SeedFlow}


class Deed(StrEnum):
    """The steps of each flow."""

    CLAIM = "claim"
    REUSE = "reuse"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the claimers work. boskos: the address of its server, empty without one."""

    kubeconfig: str
    namespace: str
    boskos: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One step of all claimers at once.

    seconds: of each claimer. wall: seconds from the first start to the end of the last, Events included.
    """

    seconds: tuple[float, ...]
    wall: float
    traffic: Traffic

    def __add__(self, other: Sample) -> Sample:
        return Sample(self.seconds + other.seconds, self.wall + other.wall, self.traffic + other.traffic)

    def percentile(self, percent: int) -> float:
        """Return the seconds that this many percent of the claimers did not exceed."""
        return quantiles([*self.seconds, *self.seconds], n=100, method="inclusive")[percent - 1]

    @property
    def p50(self) -> float:
        """The median, in seconds."""
        return self.percentile(50)

    @property
    def rate(self) -> float:
        """Steps per second of wall time."""
        return len(self.seconds) / self.wall


class Claimers:
    """The processes, from the benchmark's side."""

    def __init__(self, place: Place, most: int) -> None:
        share = -(-most // PROCESSES)
        command = [sys.executable, "-m", "benchmarks.claimers", json.dumps(asdict(place)), str(share)]
        self._processes = [
            subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(PROCESSES)
        ]

    def do(self, way: Way, deed: Deed, turn: int, claimers: int) -> Sample:
        """Let this many claimers do one step of this turn, all at once."""
        firsts = range(PROCESSES)
        for first, process in zip(firsts, self._processes, strict=True):
            numbers = list(range(first, claimers, PROCESSES))
            order = {"way": way, "deed": deed, "turn": turn, "numbers": numbers}
            _pipe(process.stdin).write(json.dumps(order) + "\n")
            _pipe(process.stdin).flush()
        answers = [json.loads(_pipe(process.stdout).readline() or "null") for process in self._processes]
        if None in answers:
            raise SystemExit("a process of claimers ended")
        busy = [answer for answer in answers if answer["seconds"]]
        return Sample(
            tuple(seconds for answer in busy for seconds in answer["seconds"]),
            max(answer["ended"] for answer in busy) - min(answer["began"] for answer in busy),
            sum((Traffic(**answer["traffic"]) for answer in busy), Traffic()),
        )

    def stop(self) -> None:
        """End the processes."""
        for process in self._processes:
            _pipe(process.stdin).close()
        for process in self._processes:
            process.wait()
            _pipe(process.stdout).close()


def _pipe(pipe: Any) -> Any:
    assert pipe is not None
    return pipe


class _Crew:
    """The claimers of one process: a thread each, and per way a flow each; ours is one for all."""

    def __init__(self, place: Place, size: int) -> None:
        self._place = place
        self._threads = ThreadPoolExecutor(size)
        self._access = Access.of(Path(place.kubeconfig))
        self._tallies = {way: Tally() for way in Way}
        self._ours = OurFlow(Path(place.kubeconfig), place.namespace, self._tallies[Way.OURS])
        self._flows: dict[tuple[Way, int], Flow] = {}

    def do(self, way: Way, deed: Deed, turn: int, numbers: Sequence[int]) -> dict[str, Any]:
        if not numbers:
            return {"seconds": []}
        flows = {number: self._flow(way, number) for number in numbers}
        start = Barrier(len(numbers))
        self._tallies[way].take()

        def work(number: int) -> tuple[float, float]:
            flow, tenant = flows[number], f"{way.name.lower()}-{turn}-{number}".replace("_", "-")
            start.wait()
            began = time.monotonic()
            match deed:
                case Deed.CLAIM:
                    flow.claim(tenant, number)
                case Deed.REUSE:
                    flow.reuse(tenant)
                case Deed.RELEASE:
                    flow.release(tenant)
            return began, time.monotonic()

        times = [future.result() for future in [self._threads.submit(work, number) for number in numbers]]
        flows[numbers[0]].settle()
        return {
            "seconds": [ended - began for began, ended in times],
            "began": min(began for began, _ in times),
            "ended": time.monotonic(),
            "traffic": asdict(self._tallies[way].take()),
        }

    def _flow(self, way: Way, number: int) -> Flow:
        if way is Way.OURS:
            return self._ours
        if (way, number) not in self._flows:
            tally = self._tallies[way]
            if way is Way.BOSKOS:
                flow: Flow = BoskosFlow(Access(self._place.boskos), tally)
            else:
                flow = _BY_HAND[way](self._access, self._place.namespace, tally)
            self._flows[way, number] = flow
        return self._flows[way, number]


def main(place: str, size: str) -> None:
    """Carry out orders until there are no more."""
    crew = _Crew(Place(**json.loads(place)), int(size))
    for line in sys.stdin:
        order = json.loads(line)
        answer = crew.do(Way(order["way"]), Deed(order["deed"]), order["turn"], order["numbers"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
