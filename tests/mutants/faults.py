"""The deliberate faults of `faults.toml`, as they are planted."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
_FILE: Final = Path(__file__).with_name("faults.toml")


@dataclass(frozen=True)
class Fault:
    """One fault: where it is, what it makes of the text that stands there, and which tests have to see it.

    survives: why no test fails, where that is known.
    """

    file: str
    why: str
    text: str
    becomes: str
    tests: tuple[str, ...]
    survives: str = ""

    def planted(self, source: str) -> str:
        """Return the file with the fault."""
        return source.replace(self.text, self.becomes)


def faults() -> list[Fault]:
    """Read them all; the names of suites become the paths of their tests."""
    page: dict[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    suites: dict[str, list[str]] = page["suites"]
    return [
        Fault(
            file=str(entry["file"]),
            why=str(entry["why"]),
            text=str(entry["text"]),
            becomes=str(entry["becomes"]),
            tests=tuple(path for suite in entry["tests"] for path in suites[suite]),
            survives=str(entry.get("survives", "")),
        )
        for entry in page["fault"]
    ]
