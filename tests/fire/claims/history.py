"""A history of claims: read from what claimers wrote, and judged by porcupine, which others wrote."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from models.go_program import built

SOURCE: Final = Path(__file__).parent / "judge"
ENDS: Final = ("ok", "none", "unknown")


@dataclass(frozen=True)
class Operation:
    """One call: by whom, of which kind, when, and how it ended; `answered` is -1 where no answer came."""

    client: int
    kind: str
    slot: str
    holder: str
    called: int
    answered: int
    end: str
    member: str = ""

    def line(self) -> str:
        """Return it as the judge reads it."""
        told: dict[str, Any] = asdict(self)
        return json.dumps({"call": told.pop("called"), "return": told.pop("answered"), **told})


@dataclass(frozen=True)
class Judgement:
    """What the judge says: the parts that no order of their operations explains."""

    operations: int
    slots: int
    accounts: int
    wrong: tuple[dict[str, Any], ...]

    def text(self) -> str:
        """Return the parts that are wrong as a list to read."""
        return "\n".join(
            f"{part['of']}: {part['result']}, {part['fits']} of {len(part['operations'])} operations fit\n  "
            + "\n  ".join(part["operations"])
            for part in self.wrong
        )


def operations_in(folder: Path) -> Iterator[Operation]:
    """Yield what the files of claimers tell; an invocation without an answer ended nobody knows how."""
    for client, path in enumerate(sorted(folder.glob("*.jsonl"))):
        begun: dict[str, Any] | None = None
        for line in path.read_text().splitlines():
            told = json.loads(line)
            if "call" in told:
                yield from _unanswered(client, begun)
                begun = told
            elif begun:
                if told["end"] == "unknown":
                    yield from _unanswered(client, begun)
                else:
                    yield Operation(
                        client,
                        begun["kind"],
                        begun["slot"],
                        begun["holder"],
                        begun["call"],
                        told["return"],
                        told["end"],
                        told["member"],
                    )
                begun = None
        yield from _unanswered(client, begun)


def _unanswered(client: int, begun: dict[str, Any] | None) -> Iterator[Operation]:
    if begun and begun["kind"] != "read":
        yield Operation(client, begun["kind"], begun["slot"], begun["holder"], begun["call"], -1, "unknown")


def judge(operations: Iterable[Operation], pages: Path, *, offline: bool) -> Judgement:
    """Ask porcupine whether some order explains a history; of what none does, a page is written.

    Raises SandboxError when the judge is not built and cannot be.
    """
    program = built(SOURCE, "judge", offline=offline)
    lines = "\n".join(each.line() for each in operations)
    told = subprocess.run(
        [program, str(pages)], input=lines, env={}, capture_output=True, text=True, check=True
    ).stdout
    answer = json.loads(told)
    return Judgement(answer["operations"], answer["slots"], answer["accounts"], tuple(answer["wrong"]))
