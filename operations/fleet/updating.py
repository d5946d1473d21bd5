"""The stacks of `stacks.yaml` brought up side by side, each pool's stack before those that claim from it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from components.errors import Misused, how_many
from components.settings.shards import STACKS, Shards, Stacks
from operations.cli.answer import Answer
from operations.cli.failures import CLAIMS_SKIPPED, GENERIC
from operations.cli.tables import Column, Table
from operations.folders import Folders

_LAST: Final = 3
"""Lines of what an update said that are told of one that failed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the update of a stack ended. changes: what it did → how often. code: its exit code."""

    stack: str
    outcome: str
    code: int
    changes: Mapping[str, int] = field(default_factory=dict[str, int])
    why: str = ""


Update: TypeAlias = Callable[[str], Outcome]


def up_together(names: Sequence[str], at_once: int, kubeconfig: Path | None) -> Answer:
    """Bring stacks up, all of the file without names; at_once: how many at the same time.

    Exit code CLAIMS_SKIPPED where that is the worst of all; GENERIC where an update failed.
    Raises Misused for a name that the file has not, ConfigurationError as `Stacks.read`.
    """
    folders = Folders.find(Path.cwd())
    fleets = Stacks.read(folders.project).fleets
    known = [stack for fleet in fleets.values() for stack in (fleet.pool, *fleet.stacks) if stack]
    if strange := [*({*names} - {*known})] or (not known and [STACKS]):
        cause = "it is not there, or names no stack" if not known else "stacks.yaml has no such stack"
        mend = "write it with `credfleet fleet split --stack STACK --by N --write`"
        raise Misused(place=strange[0], cause=cause, mend=mend)
    options = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
    done = [
        *ordered(fleets, {*names} or {*known}, at_once, lambda stack: ran(folders.project, stack, options))
    ]
    failed = [each for each in done if each.code not in (0, CLAIMS_SKIPPED)]
    rows = [
        (each.stack, each.outcome, ", ".join(f"{n} {op}" for op, n in each.changes.items()) or "-", each.why)
        for each in done
    ]
    columns = (Column("Stack", names=True), "Outcome", "Changes", Column("Why", folds=True))
    skipped = any(each.code == CLAIMS_SKIPPED for each in done)
    return Answer(
        {"stacks": [asdict(each) for each in done]},
        [Table("Updated", columns, rows), f"{how_many(len(done), 'stack')}, {len(failed)} failed"],
        GENERIC if failed else CLAIMS_SKIPPED if skipped else 0,
    )


def ordered(
    fleets: Mapping[str, Shards], wanted: set[str], at_once: int, update: Update
) -> Iterator[Outcome]:
    """Update what is wanted of fleets: pools first; what claims from one that failed is left out."""
    pools = [*dict.fromkeys(fleet.pool for fleet in fleets.values() if fleet.pool in wanted)]
    with ThreadPoolExecutor(at_once) as threads:
        first = {each.stack: each for each in threads.map(update, filter(None, pools))}
        yield from first.values()
        broken = {stack for stack, each in first.items() if each.code not in (0, CLAIMS_SKIPPED)}
        rest: list[str] = []
        for fleet in fleets.values():
            own = [stack for stack in fleet.stacks if stack in wanted]
            if fleet.pool in broken:
                yield from (Outcome(stack, "left out", GENERIC, why=f"{fleet.pool} failed") for stack in own)
            else:
                rest += own
        yield from threads.map(update, rest)


def ran(project: Path, stack: str, options: Sequence[str]) -> Outcome:
    """Run `credfleet sandbox up` on a stack."""
    command = [sys.executable, "-m", "credfleet", "sandbox", "up", "--stack", stack, "--yes", *options]
    done = subprocess.run(
        [*command, "--output", "json"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        told: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        told = {}
    changes = {op: count for op, count in told.get("changes", {}).items() if op != "same" and count}
    refused = [told["error"]["message"]] if "error" in told else []
    why = [*refused, *told.get("errors", ()), *done.stderr.splitlines()[-_LAST:]] if done.returncode else []
    outcome = told.get("outcome", "failed") if changes or done.returncode else "nothing changed"
    return Outcome(stack, outcome, done.returncode, changes, "; ".join(why))
