"""Claims against the raw cost of their own calls, the seed's flow and Boskos, in turns on one API server."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks.boskos import serving
from benchmarks.claimers import Claimers, Deed, Place, Sample, Way
from benchmarks.large_pools import make_pool

CLAIMERS: Final = (1, 8, 50)
APART_SECONDS: Final = 0.12
"""Between two measurements. An API server lets its cache catch up at most every 0.1 s, and a LIST waits for
that: flows that follow each other at once would measure its clock, and each would pay for the one before."""

Samples: TypeAlias = dict[tuple[int, int, Way, Deed], Sample]
"""By pool size and number of claimers."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured.

    turns: claimers → how often each of them does each step. seed_lists: accounts times claimers up to which
    the seed's flow takes part: it lists the whole pool, and 50 claimers of 10,000 would take an hour.
    """

    pools: Sequence[int]
    turns: Mapping[int, int]
    seed_lists: int
    peers: bool = False

    def ways(self, pool: int, claimers: int) -> Iterator[Way]:
        """Return the flows that are compared at this size, ours first."""
        yield from (Way.OURS, Way.BY_HAND)
        if pool * claimers <= self.seed_lists:
            yield Way.SEED
        if self.peers and pool <= BOSKOS_MEMBERS:
            yield Way.BOSKOS


_DEEDS: Final = {
    Way.OURS: tuple(Deed),
    Way.BY_HAND: tuple(Deed),
    Way.SEED: tuple(Deed),
    Way.BOSKOS: (Deed.CLAIM, Deed.RELEASE),
}

BOSKOS_MEMBERS: Final = 1_000
"""Boskos makes its resources one by one, a hundred a second."""

QUICK: Final = Plan((100, 1_000), {1: 20, 8: 5, 50: 3}, seed_lists=8_000)
FULL: Final = Plan((100, 1_000, 10_000), {1: 60, 8: 12, 50: 6}, seed_lists=50_000)


def measure(kubeconfig: Path, folder: Path, plan: Plan) -> Samples:
    """Measure everything once, in one run on one API server."""
    samples: Samples = {}
    for pool in plan.pools:
        namespace = f"claims-{pool}"
        make_pool(kubeconfig, namespace, pool)
        with ExitStack() as running:
            boskos = ""
            if plan.peers and pool <= BOSKOS_MEMBERS:
                boskos = running.enter_context(serving(kubeconfig, f"boskos-{pool}", pool, folder))
            claimers = Claimers(Place(str(kubeconfig), namespace, boskos), max(CLAIMERS))
            running.callback(claimers.stop)
            for number in CLAIMERS:
                _measure_together(claimers, plan, pool, number, samples)
    return samples


def _measure_together(claimers: Claimers, plan: Plan, pool: int, number: int, samples: Samples) -> None:
    """Take turns, so that whatever else the machine does hits every flow; the first turn only warms up."""
    ways = list(plan.ways(pool, number))
    for turn in range(plan.turns[number] + 1):
        for way in ways[turn % len(ways) :] + ways[: turn % len(ways)]:
            for deed in _DEEDS[way]:
                time.sleep(APART_SECONDS)
                sample = claimers.do(way, deed, turn, number)
                key = (pool, number, way, deed)
                if turn:
                    samples[key] = samples[key] + sample if key in samples else sample


def report(samples: Samples) -> str:
    """Lay it out, ratios first: each p50 against that of the same calls by hand."""
    head = f"{'ratio':>7} {'p50 ms':>8} {'p95 ms':>8} {'per s':>7} {'calls':>6} {'409s':>6} {'kB':>9}  what"
    lines = ["Targets", *targets(samples), "", "Claims (calls, conflicts and bytes are per step)"]
    for pool, number in dict.fromkeys((pool, number) for pool, number, _, _ in samples):
        lines += ["", f"{pool:,} accounts, {number} claimers at once", head]
        for deed in Deed:
            floor = samples[pool, number, Way.BY_HAND, deed].p50
            lines += [
                _line(samples[pool, number, way, deed], floor, f"{deed}: {way}")
                for way in Way
                if (pool, number, way, deed) in samples
            ]
    return "\n".join(lines)


def _line(sample: Sample, floor: float, what: str) -> str:
    steps, traffic = len(sample.seconds), sample.traffic
    calls = (traffic.calls - traffic.events) / steps
    p50, p95 = sample.p50, sample.percentile(95)
    events = f" +{traffic.events / steps:.0f} Event" if traffic.events else ""
    return (
        f"{p50 / floor:6.2f}x {p50 * 1000:8.1f} {p95 * 1000:8.1f} {sample.rate:7.1f} "
        f"{calls:6.1f} {traffic.conflicts / steps:6.2f} {traffic.received / steps / 1000:9.1f}  "
        f"{what}{events}"
    )


def targets(samples: Samples) -> Iterator[str]:
    """Compare with what was aimed at."""
    pools = sorted({pool for pool, _, _, _ in samples})
    for pool in pools:
        ours, raw = (samples[pool, 1, way, Deed.CLAIM].p50 for way in (Way.OURS, Way.BY_HAND))
        yield _verdict(ours / raw, 1.15, f"p50 of one claimer over its calls by hand, {pool:,} accounts")
    for pool in pools:
        ours = samples[pool, 50, Way.OURS, Deed.CLAIM]
        conflicts = ours.traffic.conflicts / len(ours.seconds)
        yield _verdict(conflicts, 0.1, f"conflicts per claim, 50 claimers, {pool:,} accounts", unit="")
        if seed := samples.get((pool, 50, Way.SEED, Deed.CLAIM)):
            what = f"claims per second of 50 claimers over the seed's flow, {pool:,} accounts"
            yield _verdict(ours.rate / seed.rate, 5, what, at_least=True)
        if boskos := samples.get((pool, 50, Way.BOSKOS, Deed.CLAIM)):
            what = f"p50 of 50 claimers over Boskos' acquire, {pool:,} accounts"
            yield _verdict(ours.p50 / boskos.p50, 1, what)
    for number in CLAIMERS:
        small, large = (samples[pool, number, Way.OURS, Deed.CLAIM].p50 for pool in (pools[0], pools[-1]))
        what = f"p50 with {pools[-1]:,} accounts over {pools[0]:,}, {number} claimers"
        yield _verdict(large / small, 2, what)


def _verdict(value: float, bound: float, what: str, *, at_least: bool = False, unit: str = "x") -> str:
    met = value >= bound if at_least else value <= bound
    aim = "at least" if at_least else "at most"
    return f"{value:6.2f}{unit or ' '}  {aim} {bound:g}  {'met   ' if met else 'MISSED'}  {what}"
