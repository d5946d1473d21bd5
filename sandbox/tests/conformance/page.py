"""What docs/engine.md says of the rows: `python -m sandbox.tests.conformance.page` writes it anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TypeVar

from sandbox.tests.conformance.laboratory import HERE, Row, rows
from sandbox.tests.conformance.recorded import Recorded

_K = TypeVar("_K")
PAGE: Final = HERE.parents[2] / "docs" / "engine.md"
_BEGIN, _END = "<!-- of the rows, by sandbox/tests/conformance/page.py -->\n", "<!-- end of the rows -->\n"


def written() -> str:
    """Return the page with the lists that the rows make."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    return (
        f"{before}{_BEGIN}{''.join(_lists(rows(), Recorded.load().version))}{_END}{rest.partition(_END)[2]}"
    )


def _lists(asked: tuple[Row, ...], version: str) -> Iterator[str]:
    alike = [each for each in asked if not each.refused and not each.differs]
    yield (
        f"Of {len(asked)} programs that were recorded of the CLI ({version}; "
        "`sandbox/tests/conformance/test_conformance.py`), "
        f"this engine does {len(alike)} alike: operations, requests to the provider, state, exit code.\n\n"
    )
    yield "| | Done alike |\n|---|---|\n"
    for group, each in groupby(alike, lambda row: row.group):
        yield f"| {group} | {', '.join(_words(row.name) for row in each)} |\n"
    yield "\n### What it does otherwise\n\n| Why | | |\n|---|---|---|\n"
    for (why, aspects), names in _gathered(
        ((why, ", ".join(sorted(each for each in row.differs if row.differs[each] == why))), row)
        for row in asked
        for why in dict.fromkeys(row.differs.values())
    ).items():
        yield f"| {why} | {aspects} | {', '.join(names)} |\n"
    yield "\n### What it refuses of them\n\n| The error names | |\n|---|---|\n"
    for refused, names in _gathered((row.refused, row) for row in asked if row.refused).items():
        yield f"| {refused} | {', '.join(names)} |\n"


def _gathered(pairs: Iterable[tuple[_K, Row]]) -> dict[_K, list[str]]:
    """Return what rows have in common → their names."""
    found: dict[_K, list[str]] = {}
    for key, row in pairs:
        found.setdefault(key, []).append(f"{row.group}: {_words(row.name)}")
    return found


def _words(name: str) -> str:
    """Return a row's name as words; names of options keep their form."""
    return name.replace("-", " ")


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
