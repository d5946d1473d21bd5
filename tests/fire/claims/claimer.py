"""A process of claimers, two for each slot, that write down every call they make, before it and after it.

Started as a module with KUBECONFIG, NAMESPACE, FOLDER, NAME, SLOTS and SEED; it ends when the folder has a
file `enough`. Killed at any moment, its files say what was begun: a line is one invocation or one answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, Final

from components.account_pool.model import Claimed, ClaimRequest, Policy
from components.account_pool.pool import Pool
from components.connection import ClusterTarget
from components.errors import Exhausted, PoolError, Unreachable

PATIENCE_SECONDS: Final = 5.0


class Claimer:
    """A holder of a slot: claims, claims again, reads and releases, in an order drawn from a seed."""

    def __init__(self, pool: Pool, slot: str, holder: str, to: Path, seed: str) -> None:
        self._pool, self._slot, self._holder, self._random = pool, slot, holder, Random(seed)
        self._file = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._request = ClaimRequest(slot, "aws", holder=holder, policy=Policy.RELEASE)
        self._has: Claimed | None = None

    def run(self, enough: Path) -> None:
        while not enough.exists():
            self._one()

    def _one(self) -> None:
        drawn = self._random.random()
        kind = "claim" if self._has is None or drawn < 0.1 else "release" if drawn < 0.25 else "read"
        self._note({"kind": kind, "slot": self._slot, "holder": self._holder, "call": time.monotonic_ns()})
        try:
            end, member = self._do(kind)
        except Exhausted:
            end, member = "none", ""
        except Unreachable:
            end, member = "unknown", ""
        except PoolError as error:
            end, member = f"{error.code}: {error}", ""
        self._note({"return": time.monotonic_ns(), "end": end, "member": member})

    def _do(self, kind: str) -> tuple[str, str]:
        if kind == "claim":
            self._has = None
            self._has = self._pool.claim(self._request, seconds=PATIENCE_SECONDS)
            return "ok", self._has.secret_name
        assert self._has is not None
        record, holder = self._has.record, self._has.holder
        if kind == "read":
            found = self._pool.read(record, holder, member=self._has.secret_name)
            return ("ok", found.secret_name) if found else ("none", "")
        self._has = None
        self._pool.release(record, holder)
        return "ok", ""

    def _note(self, line: dict[str, Any]) -> None:
        os.write(self._file, f"{json.dumps(line)}\n".encode())


def main(arguments: Sequence[str]) -> None:
    kubeconfig, namespace, folder, name, slots, seed = arguments
    enough = Path(folder) / "enough"
    pool = Pool.open(ClusterTarget(kubeconfig=kubeconfig), namespace)
    claimers = [
        Claimer(pool, f"{name}-{n // 2}", f"h{n}", Path(folder) / f"{name}-{n}.jsonl", f"{seed}/{name}/{n}")
        for n in range(2 * int(slots))
    ]
    with ThreadPoolExecutor(len(claimers)) as threads:
        for future in [threads.submit(claimer.run, enough) for claimer in claimers]:
            future.result()
    pool.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
