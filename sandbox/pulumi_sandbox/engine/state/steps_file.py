"""What a run did since its state was last written whole: a line for each save, in a file beside the state.

Each line holds the records that are new, and in which order all stand. A record's number is its place in the
state, behind those the places of its pending operations' records, then one after the other. The first line
names the state that the others follow, by its digest; a line that was cut off says nothing.
See sandbox/docs/engine-facts.md, the file of steps.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pulumi_sandbox import files
from pulumi_sandbox.engine.model.resource import Resource, Snapshot


class StepsFile:
    """Saves one snapshot after the other by what became different; the first is in the state itself."""

    def __init__(self, path: Path, state: str, snapshot: Snapshot) -> None:
        """Follow a state that was just written, of this text; no file is made as yet."""
        self._path = path
        self._lines = [_line({"follows": digest(state)})]
        self._numbers: dict[int, tuple[int, Resource]] = {}
        for number, each in enumerate((*snapshot.resources, *(each.resource for each in snapshot.pending))):
            self._numbers.setdefault(id(each), (number, each))
        self._next = len(snapshot.resources) + len(snapshot.pending)
        self.size = 0

    def save(self, snapshot: Snapshot, text_of: Callable[[Resource], str]) -> None:
        """Write what is new, and return once it would survive a crash; raises as `files.append` does."""
        new: list[str] = []
        numbers = self._numbers
        for each in (*snapshot.resources, *(each.resource for each in snapshot.pending)):
            if id(each) not in numbers:
                numbers[id(each)] = self._next, each
                new.append(f'"{self._next}":{text_of(each)}')
                self._next += 1
        order = _ranges(numbers[id(each)][0] for each in snapshot.resources)
        pending = [[numbers[id(each.resource)][0], each.type] for each in snapshot.pending]
        self._lines.append(
            f'{{"new":{{{",".join(new)}}},"order":{_json(order)},"pending":{_json(pending)}}}\n'
        )
        text = "".join(self._lines)
        files.append(self._path, text)
        self._lines.clear()
        self.size += len(text)

    @staticmethod
    def fold(path: Path, state: str) -> None:
        """Note that a state of this text is about to hold what stands there."""
        files.append(path, "\n" + _line({"in": digest(state)}))


def followed(steps: str, state: str, deployment: dict[str, Any]) -> dict[str, Any] | None:
    """Return a deployment as the steps behind its state left it; None where they are those of another state.

    Raises KeyError, TypeError or AttributeError for what is no file of steps, or lacks a line.
    """
    read = [line for line in map(_read, steps.split("\n")) if line is not None]
    if not read:
        return deployment
    head, *steps_read = read
    known = digest(state)
    if any(each.get("in") == known for each in steps_read):
        return deployment
    if head["follows"] != known:
        return None
    pending = deployment.get("pending_operations") or []
    records = dict(enumerate([*(deployment.get("resources") or []), *(each["resource"] for each in pending)]))
    saved = [each for each in steps_read if "in" not in each]
    for step in saved:
        records |= {int(number): record for number, record in step["new"].items()}
    if not saved:
        return deployment
    last = saved[-1]
    return {
        **deployment,
        "resources": [records[number] for first, end in last["order"] for number in range(first, end)],
        "pending_operations": [
            {"resource": records[number], "type": type_} for number, type_ in last["pending"]
        ],
    }


def _read(line: str) -> dict[str, Any] | None:
    try:
        return json.loads(line)
    except ValueError:  # cut off: what is in it was never told to be written
        return None


def digest(text: str) -> str:
    """Return by what a state is known."""
    return hashlib.sha256(text.encode()).hexdigest()


def _ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Write numbers as ranges, each from its first to behind its last."""
    ranges: list[list[int]] = []
    end = -1
    for number in numbers:
        if number == end:
            ranges[-1][1] = end = number + 1
        else:
            end = number + 1
            ranges.append([number, end])
    return ranges


def _line(value: Any) -> str:
    return _json(value) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
