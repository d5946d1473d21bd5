"""A process of claimers that take accounts, hold them and give them back, and tell who had what, and when.

Started as a module with KUBECONFIG, NAMESPACE, NAME, SEED and ROUNDS, a number. Each of its threads is one
holder. It writes one JSON object: the holdings, counts, and whatever should not have happened.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.pool import Pool
from components.account_pool.core.records import Claimed
from components.connection import ClusterTarget
from components.errors import Exhausted, Unreachable

TENANTS = ("ada", "bob", "cyd", "dan", "eve")
THREADS = 4
HASTE_SECONDS = 0.03
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Holding:
    """One claim from its return to the first call of its release, on the clock all processes share."""

    tenant: str
    holder: str
    member: str
    since: float
    until: float

    def overlaps(self, other: Holding) -> bool:
        return self.since < other.until and other.since < self.until


@dataclass
class Report:
    """What a process of claimers did."""

    holdings: list[Holding] = field(default_factory=list[Holding])
    counts: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    @classmethod
    def parse(cls, text: str) -> Report:
        value: dict[str, Any] = json.loads(text)
        holdings = [Holding(**each) for each in value["holdings"]]
        return cls(holdings, Counter(value["counts"]), value["wrong"])


class Claimer:
    """One holder: claims, perhaps claims again, reads, releases; gives up in the middle now and then."""

    def __init__(self, pool: Pool, holder: str, seed: str) -> None:
        self._pool = pool
        self._holder = holder
        self._random = Random(seed)
        self.report = Report()

    def run(self, rounds: int) -> Report:
        for _ in range(rounds):
            try:
                self._one_round(self._random.choice(TENANTS))
            except Exhausted:
                self.report.counts["exhausted"] += 1
            except Exception as error:
                self.report.wrong.append(f"{self._holder}: {type(error).__name__}: {error}")
        return self.report

    def _one_round(self, tenant: str) -> None:
        claimed = self._claim(tenant)
        since = time.monotonic()
        if self._random.random() < 0.3:
            again = self._claim(tenant)
            self._expect_same(claimed, again, "claimed again")
        if self._random.random() < 0.5:
            seen = self._pool.read(claimed.record, self._holder, member=claimed.secret_name)
            self.report.counts["reads"] += 1
            self._expect_same(claimed, seen, "read")
        until = time.monotonic()
        self.report.holdings.append(Holding(tenant, self._holder, claimed.secret_name, since, until))
        self._pool.release(claimed.record, self._holder)
        self.report.counts["releases"] += 1

    def _claim(self, tenant: str) -> Claimed:
        """Claim; now and then give up in the middle first, as a killed update that is run again does."""
        request = ClaimRequest(tenant, "aws", holder=self._holder, policy=Policy.RELEASE)
        if self._random.random() < 0.3:
            try:
                return self._counted(self._pool.claim(request, seconds=HASTE_SECONDS))
            except Unreachable:
                self.report.counts["given up"] += 1
        return self._counted(self._pool.claim(request, seconds=PATIENCE_SECONDS))

    def _counted(self, claimed: Claimed) -> Claimed:
        self.report.counts["claims"] += 1
        return claimed

    def _expect_same(self, first: Claimed, then: Claimed | None, what: str) -> None:
        if then is None or then.secret_name != first.secret_name:
            self.report.wrong.append(f"{self._holder} had {first.secret_name}, {what}: {then}")


def main(arguments: Sequence[str]) -> None:
    kubeconfig, namespace, name, seed, rounds = arguments
    pool = None
    while pool is None:
        with suppress(Unreachable):  # nothing was begun, so the user runs it again
            pool = Pool.open(ClusterTarget(kubeconfig=kubeconfig), namespace)
    claimers = [Claimer(pool, f"{name}-{n}", f"{seed}/{name}/{n}") for n in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as threads:
        running = [threads.submit(claimer.run, int(rounds)) for claimer in claimers]
    reports = [future.result() for future in running]
    pool.flush()
    merged = {
        "holdings": [asdict(holding) for report in reports for holding in report.holdings],
        "counts": sum((report.counts for report in reports), Counter[str]()),
        "wrong": [wrong for report in reports for wrong in report.wrong],
    }
    json.dump(merged, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
