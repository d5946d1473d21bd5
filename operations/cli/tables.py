"""Tables and lists of commands for people, without borders, laid out for the width of the terminal.

Names are never broken. If a terminal is too narrow, sentences are folded between words, then columns are
dropped in their declared order, and rows that are still too wide are written one cell per line. A pipe gets
every column, and one row per line unless a cell is very long.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import typer

_GAP: Final = 2
_NARROWEST: Final = 24
"""Width that a column of sentences keeps before another column is dropped."""
_WIDEST: Final = 300
"""Maximum width of a cell if the output is not a terminal."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and how it adapts if a terminal is too narrow for all of them.

    leaves: 0 always stays, of the others the highest is dropped first. folds: its cells are sentences, which
    can be folded. names: its cells are printed by `--output name`.
    """

    title: str
    leaves: int = 0
    folds: bool = False
    names: bool = False


class Table:
    """A heading, columns, and rows of cells; a column given as a title always stays and does not fold.

    empty: text instead of the table if it has no rows.
    """

    def __init__(
        self, title: str, columns: Iterable[Column | str], rows: Iterable[Sequence[str]], empty: str = ""
    ) -> None:
        """Store the arguments; rows can be an iterator."""
        self.title = title
        self.columns = tuple(each if isinstance(each, Column) else Column(each) for each in columns)
        self.rows = tuple(tuple(row) for row in rows)
        self.empty = empty

    @classmethod
    def of(
        cls,
        title: str,
        columns: Mapping[str, Column | str],
        documents: Iterable[Mapping[str, object]],
        empty: str = "",
    ) -> Self:
        """Return a table of documents. columns: by the document fields that they show."""
        rows = ([str(each[field] or "") for field in columns] for each in documents)
        return cls(title, columns.values(), rows, empty)

    def names(self) -> Iterator[str]:
        """Yield the cells of the columns that contain names."""
        for row in self.rows:
            yield from (cell for column, cell in zip(self.columns, row, strict=True) if column.names)

    def lines(self, width: int | None) -> Iterator[str]:
        """Yield the lines of the table for a width, None for unlimited, with terminal styles."""
        every = range(len(self.columns))
        filled = [index for index in every if width is None or any(row[index] for row in self.rows)]
        kept = list(filled)
        while width is not None and sum(self._least(kept)) > width - _GAP * (len(kept) - 1):
            leaving = max(kept, key=lambda index: self.columns[index].leaves)
            if not self.columns[leaving].leaves:
                yield from self._records()
                return
            kept.remove(leaving)
        widths = self._widths(kept, width)
        yield typer.style(self.title, bold=True)
        if any(column.title for column in self.columns):
            yield typer.style(_joined([self.columns[index].title for index in kept], widths), dim=True)
        for row in self.rows:
            cells = [
                _folded(row[index], size if width is None or self.columns[index].folds else None)
                for index, size in zip(kept, widths, strict=True)
            ]
            for line in range(max(map(len, cells), default=0)):
                yield _joined([cell[line] if line < len(cell) else "" for cell in cells], widths)
        if gone := [self.columns[index].title for index in filled if index not in kept]:
            yield typer.style(f"· --output wide shows {', '.join(gone)} as well", dim=True)

    def _records(self) -> Iterator[str]:
        """Yield every row as a block with one cell per line."""
        beside = max((_wide(column.title) for column in self.columns), default=0)
        yield typer.style(self.title, bold=True)
        for number, row in enumerate(self.rows):
            if number:
                yield ""
            for column, cell in zip(self.columns, row, strict=True):
                for line, text in enumerate(cell.splitlines()):
                    head = "" if line else column.title
                    yield _joined([typer.style(_padded(head, beside), dim=True), text], [0, 0])

    def _least(self, kept: Sequence[int]) -> list[int]:
        """Return the minimum width of each column."""
        least: list[int] = []
        for index in kept:
            natural = self._natural(index)
            if self.columns[index].folds:
                cells = (word for row in self.rows for word in row[index].split())
                longest = max((_wide(word) for word in cells), default=0)
                natural = min(natural, max(longest, _NARROWEST))
            least.append(natural)
        return least

    def _widths(self, kept: Sequence[int], width: int | None) -> list[int]:
        """Return the width of each column; columns of sentences share the remaining space by need."""
        natural = [self._natural(index) for index in kept]
        if width is None:
            return [min(size, _WIDEST) for size in natural]
        least = self._least(kept)
        lacking = [wanted - given for wanted, given in zip(natural, least, strict=True)]
        left = min(width - _GAP * (len(kept) - 1) - sum(least), sum(lacking))
        return [
            given + left * lack // max(1, sum(lacking)) for given, lack in zip(least, lacking, strict=True)
        ]

    def _natural(self, index: int) -> int:
        cells = (line for row in self.rows for line in row[index].splitlines())
        return max(map(_wide, (self.columns[index].title, *cells)))


@dataclass(frozen=True, slots=True)
class Commands:
    """A heading and commands to copy, each on one line, with its purpose beside or below it."""

    title: str
    rows: tuple[tuple[str, str], ...]

    def lines(self, width: int | None) -> Iterator[str]:
        """Yield the lines for a width, None for unlimited, with terminal styles."""
        yield typer.style(self.title, bold=True)
        for command, purpose in self.rows:
            line, remark = f"  {command}", f"# {purpose}"
            if width is None or len(line) + _GAP + len(remark) <= width:
                yield f"{line}{' ' * _GAP}{typer.style(remark, dim=True)}"
            else:
                yield line
                yield f"    {typer.style(remark, dim=True)}"


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (_padded(cell, width) for cell, width in zip(cells, widths, strict=True))
    return (" " * _GAP).join(padded).rstrip()


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _wide(text))


def _folded(cell: str, width: int | None) -> list[str]:
    """Return the lines of a cell, folded between words to a width."""
    if width is None:
        return cell.splitlines()
    lines: list[str] = []
    for given in cell.splitlines():
        words = given.split(" ")
        indent = " " * words.index(next(filter(None, words), ""))
        line = ""
        for word in words[len(indent) :]:
            if line and _wide(line) + 1 + _wide(word) > width:
                lines.append(line)
                line = indent + word
            else:
                line = f"{line} {word}" if line else indent + word
        lines.append(line)
    return lines


def _wide(text: str) -> int:
    """Return how many terminal columns a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
