"""What Events of a pool add up to: a checkpoint, and the Events that came after it. Pure.

What is told is the checkpoint and all Events since, so it is the same whoever adds up, however often, and
moving the checkpoint changes nothing of it (docs/adr/0007-counters-live-in-the-cluster.md).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias, cast

from pulumi_sandbox.documents import read_json

from components.account_pool.keys import MEASURED
from components.account_pool.model import JsonObject

KEPT: Final = timedelta(hours=1)
"""How long an API server keeps Events, unless its `--event-ttl` says otherwise."""

BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, float("inf"))
"""Upper bounds of how long a claim took, in seconds."""

SERVED, REFUSED, CLEANINGS = "served", "refused", "cleanings"
CONFLICTS, RETRIES, SECONDS, SUM = "conflicts", "retries", "seconds", "sum"
_COUNTED: Final = {"Claimed": SERVED, "ClaimRefused": REFUSED, "Cleaned": CLEANINGS}
_WORD: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,62}")
OTHER: Final = "other"
"""For a type or an end that is no word: an Event may be anybody's, where no policy is in force."""

Series: TypeAlias = tuple[str, str, str]
"""What is counted, of which type, and how it ended; of a time the bucket."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts up to a version of the Events.

    since: when counting began. folded: when the checkpoint was last moved. gaps: how often Events may have
    gone uncounted before that, as nobody came for longer than they are kept.
    """

    version: int
    since: datetime
    folded: datetime
    gaps: int = 0
    counts: Mapping[Series, float] = field(default_factory=dict[Series, float])

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Totals | None:
        """Return what a checkpoint says; None where it says nothing that can be read."""
        try:
            rows = cast("list[Any]", read_json(data["counts"]))
            return cls(
                int(data["version"]),
                datetime.fromisoformat(data["since"]),
                datetime.fromisoformat(data["folded"]),
                int(data["gaps"]),
                {(str(what), str(type_), str(end)): float(count) for what, type_, end, count in rows},
            )
        except (KeyError, ValueError, TypeError):
            return None

    def render(self) -> dict[str, str]:
        """Return the data of the checkpoint."""
        return {
            "version": str(self.version),
            "since": self.since.isoformat(),
            "folded": self.folded.isoformat(),
            "gaps": str(self.gaps),
            "counts": json.dumps([[*series, count] for series, count in sorted(self.counts.items())]),
        }

    def and_after(self, events: Iterable[JsonObject], version: int, now: datetime) -> Totals:
        """Return these with the Events that came since, all of which were listed at a version.

        Events from before this checkpoint are in it. A version older than its own is that of another store,
        whose Events may be in it or not: none is counted, and a gap is.
        """
        is_other_store = version < self.version
        missed = is_other_store or now - self.folded > KEPT
        new = () if is_other_store else (each for each in events if _version(each) > self.version)
        counts = defaultdict[Series, float](float, self.counts)
        for event in new:
            for series, count in _told(event):
                counts[series] += count
        return replace(self, version=version, folded=now, gaps=self.gaps + missed, counts=counts)


def _version(event: JsonObject) -> int:
    return int(event["metadata"]["resourceVersion"])


def _told(event: JsonObject) -> Iterator[tuple[Series, float]]:
    """Return what an Event adds, nothing where it does not say what it measured."""
    try:
        measured: Any = read_json((event["metadata"].get("annotations") or {})[MEASURED])
        what, type_, end = _COUNTED[measured["reason"]], _word(measured["type"]), _word(measured["outcome"])
    except (KeyError, ValueError, TypeError):
        return
    yield (what, type_, end), 1
    for each in (CONFLICTS, RETRIES):
        yield (each, type_, ""), _number(measured.get(each))
    if what in (SERVED, REFUSED) and "milliseconds" in measured:
        seconds = _number(measured["milliseconds"]) / 1000
        yield (SECONDS, type_, str(next(bound for bound in BUCKETS if seconds <= bound))), 1
        yield (SECONDS, type_, SUM), seconds


def _word(text: object) -> str:
    return text if isinstance(text, str) and _WORD.fullmatch(text) else OTHER


def _number(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 10**9 else 0
