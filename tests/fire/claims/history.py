"""A history of claims: read from what claimers wrote, and judged by porcupine, which others wrote."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.go_program import built

SOURCE: Final = Path(__file__).parent / "judge"
ENDS: Final = ("ok", "none", "unknown", "refused", "overtaken", "failed")
_SAY_NOTHING: Final = ("read", "sweep", "clean")


@dataclass(frozen=True)
class Operation:
    """One call: by whom, of which kind, when, and how it ended; `answered` is -1 where no answer came."""

    client: int
    kind: str
    called: int
    answered: int
    end: str
    slot: str = ""
    holder: str = ""
    nr: int = 0
    policy: str = ""
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
    """Yield what the files of clients tell; an invocation without an answer ended nobody knows how."""
    for client, path in enumerate(sorted(folder.glob("*.jsonl"))):
        yield from operations_of(client, map(json.loads, path.read_text().splitlines()))


def operations_of(client: int, lines: Iterable[dict[str, Any]]) -> Iterator[Operation]:
    """Yield the operations of one client; what cannot have changed anything is left out without an answer."""
    begun: dict[str, dict[str, Any]] = {}
    for line in lines:
        if "call" in line:
            begun[line["id"]] = line
        else:
            yield from _operation(client, begun.pop(line["id"]), line)
    for line in begun.values():
        yield from _operation(client, line, {"end": "unknown", "member": ""})


def _operation(client: int, call: dict[str, Any], answer: dict[str, Any]) -> Iterator[Operation]:
    told = {key: value for key, value in call.items() if key not in ("id", "call")}
    end, answered = answer["end"], answer.get("return", -1)
    if end == "unknown":
        if told["kind"] in _SAY_NOTHING:
            return
        answered = -1
    elif answer["member"]:
        told["member"] = answer["member"]
    yield Operation(client, called=call["call"], answered=answered, end=end, **told)


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
