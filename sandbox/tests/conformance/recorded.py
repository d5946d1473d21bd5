"""What the genuine CLI did with the rows, as it was recorded, and the comparison with what was done since."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from sandbox.tests.conformance.laboratory import HERE, Row, rows

_FOLDER: Final = HERE / "recorded"


@dataclass
class Recorded:
    """The version of the CLI, and group → row → what each step came to."""

    version: str = ""
    groups: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    @classmethod
    def load(cls) -> Recorded:
        """Read what is recorded; nothing where nothing is."""
        read = cls()
        for file in sorted(_FOLDER.glob("*.json")):
            data = json.loads(file.read_text(encoding="utf-8"))
            read.version = data["version"]
            read.groups[file.stem] = data["rows"]
        return read

    def of(self, row: Row) -> list[dict[str, Any]]:
        """Return what is recorded of a row."""
        return self.groups.get(row.group, {}).get(row.name, [])

    def keep(self, row: Row, came: list[dict[str, Any]]) -> None:
        """Take what a row came to."""
        self.groups.setdefault(row.group, {})[row.name] = came

    def save(self, group: str, version: str) -> None:
        """Write the file of a group, a line for each request and resource; rows that are gone go."""
        of = self.groups[group]
        there = {row.name for row in rows() if row.group == group}
        text = _text({"version": version, "rows": {name: of[name] for name in sorted(of) if name in there}})
        (_FOLDER / f"{group}.json").write_text(text + "\n", encoding="utf-8")


def _text(value: Any, indent: str = "\n") -> str:
    """Return JSON that breaks lines around whatever does not fit into one."""
    flat = json.dumps(value)
    inner = indent + " "
    if len(flat) < 110 or not isinstance(value, dict | list):
        return flat
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(f"{inner}{json.dumps(key)}: {_text(each, inner)}" for key, each in value.items())
            + indent
            + "}"
        )
    return "[" + ",".join(f"{inner}{_text(each, inner)}" for each in value) + indent + "]"


def differences(
    recorded: Sequence[Mapping[str, Any]], came: Sequence[Mapping[str, Any]]
) -> list[tuple[int, str, Any, Any]]:
    """Return step, aspect, and both sides of what differs: of lists the first that does."""
    if len(recorded) != len(came):
        return [(0, "steps", len(recorded), len(came))]
    return [
        (number, aspect, *_first(was[aspect], now[aspect]))
        for number, (was, now) in enumerate(zip(recorded, came, strict=True))
        for aspect in was
        if not _alike(aspect, was[aspect], now[aspect])
    ]


def _alike(aspect: str, was: Any, now: Any) -> bool:
    """Whether both did the same; an error may name a resource where the CLI names none."""
    if aspect == "errors":
        return bool(was) == bool(now) and {*was} - {""} <= {*now}
    return bool(was == now)


def _first(was: Any, now: Any) -> tuple[Any, Any]:
    return next(_parts(was, now))


def _parts(was: Any, now: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the smallest parts that differ."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was.keys() | now.keys():
            if was.get(key) != now.get(key):
                for one, other in _parts(was.get(key), now.get(key)):
                    yield {key: one}, {key: other}
    elif isinstance(was, list) and isinstance(now, list):
        for one, other in zip_longest(was, now):
            if one != other:
                yield from _parts(one, other)
    else:
        yield was, now
