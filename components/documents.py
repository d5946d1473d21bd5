"""YAML and JSON documents from users: parsed within limits, each part with its position in the file.

Plain scalars have the same meaning as in the Pulumi CLI (its parser is a port of the same libyaml). Ambiguous
documents, and those that expand beyond their size, are rejected with place, problem and fix; no message
quotes a line of the document.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from components.errors import ExplainedError

MOST_BYTES: Final = 16 * 1024 * 1024
DEEPEST: Final = 100
DEEPEST_JSON: Final = 200
MOST_REPEATED: Final = 10_000
"""Nodes that aliases can repeat in one document: a written file needs few, an alias bomb has billions."""

Step: TypeAlias = str | int
_Part: TypeAlias = tuple[Any, int]
"""A value, and the number of its nodes."""
_Marks: TypeAlias = dict[Step, tuple[int, int]]
"""Key or index of each entry of a map or list → line and column where it begins."""


class Mark(NamedTuple):
    """Position in a file that terminals make clickable: lines and columns start at 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Unreadable(ExplainedError):  # noqa: N818 - what a document is
    """Rejected document. `code`: `yaml-invalid`; `file-missing` or `file-unreadable`."""

    def __init__(self, at: Mark, problem: str, fix: str, code: str = "yaml-invalid") -> None:
        place = str(at) if code == "yaml-invalid" else at.file
        super().__init__(code=code, place=place, problem=problem, fix=fix, at=at)
        self.mark = at


class TooDeep(ValueError):  # noqa: N818 - what a document is
    """JSON that is nested more than `DEEPEST_JSON` levels deep."""


def read_json(text: bytes | str, **hooks: Any) -> Any:
    """Parse untrusted JSON; `hooks`: those of `json.loads`.

    Raises ValueError if it is invalid: TooDeep if it is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    if text.count("[") + text.count("{") > DEEPEST_JSON and _depth(text) > DEEPEST_JSON:
        raise TooDeep(f"it is nested more than {DEEPEST_JSON} levels deep")
    return json.loads(text, **hooks)


def json_within(text: bytes | str) -> Any:
    """Return a string parsed as a JSON object or list; None for anything else."""
    try:
        found = read_json(text)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        if match[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in "]}":
            depth -= 1
    return deepest


_BRACKET_OR_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def change_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with each leaf, which is neither object nor list, changed."""
    match value:
        case dict():
            return {key: change_leaves(each, change) for key, each in value.items()}
        case list():
            return [change_leaves(each, change) for each in value]
        case _:
            return change(value)


@dataclass(frozen=True, slots=True)
class Document:
    """Document: its data, as from JSON except for dates, and the positions of its parts."""

    data: Any
    mark: Mark
    _marks: Mapping[int, _Marks] = field(default_factory=dict[int, _Marks])
    """By the `id()` of a map or list in `data`."""
    respelt: Sequence[Sequence[Step]] = ()
    """Paths of integers with characters other than digits, such as 1_000 and 2.0."""

    def at(self, path: Sequence[Step]) -> Mark:
        """Return the position of the entry at a path, or of the innermost existing entry around it."""
        value, found = self.data, self.mark
        for step in path:
            marks = self._marks.get(id(value), {})
            if step not in marks:
                break
            found = Mark(self.mark.file, *marks[step])
            value = value[step]
        return found


def read_file(path: Path) -> Document:
    """Read a file with one document; an empty file has None. Raises Unreadable."""
    at = Mark(str(path), 1, 1)
    try:
        return read_one(path.read_bytes(), render_path(path))
    except FileNotFoundError:
        fix = "correct its name, or run the command in the folder that it is named from"
        raise Unreadable(at, "there is no such file", fix, "file-missing") from None
    except OSError as error:
        problem, fix = f"it cannot be read ({error.strerror})", "name a file that this user may read"
        raise Unreadable(at, problem, fix, "file-unreadable") from None


def render_path(path: Path) -> str:
    """Return a path for messages: relative to the working directory if below it."""
    below = path.is_absolute() and path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd()) if below else path)


def read_one(content: bytes | str, file: str) -> Document:
    """Parse one document. Raises Unreadable, also for a second one."""
    documents = read_all(content, file)
    first, second = next(documents, None), next(documents, None)
    if second is not None:
        raise Unreadable(
            second.mark,
            "a second document begins before here, and only the first one would be read",
            "remove the line --- between them",
        )
    return first or Document(None, Mark(file, 1, 1))


def read_all(content: bytes | str, file: str) -> Iterator[Document]:
    """Yield the documents of a stream. Raises Unreadable."""
    import yaml

    text = _text(content, file)
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    events: Iterator[Any] = yaml.parse(text, Loader=loader)
    try:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                reading, first = _Reading(file, events), next(events)
                data, _ = reading.part(first, ())
                next(events)  # the document end, which the parser has already read
                yield Document(data, reading.mark(first), reading.marks, reading.respelt)
    except yaml.MarkedYAMLError as error:
        raise _told(error, text, file) from None


def _text(content: bytes | str, file: str) -> str:
    text = content if isinstance(content, str) else _decoded(content, file)
    if unfit := _UNFIT.search(text):
        raise Unreadable(
            _mark_behind(text[: unfit.start()], file),
            f"the character U+{ord(unfit[0]):04X} is invisible, and not allowed in YAML",
            'remove it, or write it as an escape in double quotes, such as "\\u0007"',
        )
    return text


def _decoded(content: bytes, file: str) -> str:
    if len(content) > MOST_BYTES:
        problem = f"it has {len(content):,} bytes, and no file of this kind has more than {MOST_BYTES:,}"
        raise Unreadable(Mark(file, 1, 1), problem, "name another file, or split it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = _mark_behind(error.object[: error.start].decode(), file)
        raise Unreadable(at, "it is not UTF-8 text from here on", "save the file in UTF-8") from None


_UNFIT: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _mark_behind(text: str, file: str) -> Mark:
    return Mark(file, text.count("\n") + 1, len(text) - text.rfind("\n"))


@dataclass(slots=True)
class _Reading:
    """State of parsing one document from the parser's events."""

    file: str
    events: Iterator[Any]
    marks: dict[int, _Marks] = field(default_factory=dict[int, _Marks])
    respelt: list[Sequence[Step]] = field(default_factory=list[Sequence[Step]])
    _anchors: dict[str, _Part] = field(default_factory=dict[str, "_Part"])
    """The size of an anchor is 0 until its map or list is completely read."""
    _repeated: int = 0

    def mark(self, event: Any) -> Mark:
        return Mark(self.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def part(self, event: Any, path: Sequence[Step]) -> _Part:
        """Parse the value that starts with an event."""
        import yaml

        at = self.mark(event)
        match event:
            case yaml.AliasEvent():
                return self._repeat(event.anchor, at)
            case yaml.ScalarEvent():
                if event.tag not in (None, "!", f"{_TAG}str"):
                    _refuse_tag(at, event.tag)
                is_plain = event.implicit[0] and event.tag is None
                value = _plain(event.value, at) if is_plain else event.value
                if type(value) in (int, float) and value == int(value) and str(int(value)) != event.value:
                    self.respelt.append(path)
                found = value, 1
            case _:
                is_map = isinstance(event, yaml.MappingStartEvent)
                if event.tag not in (None, "!", _MAP_TAG if is_map else _LIST_TAG):
                    _refuse_tag(at, event.tag)
                if len(path) == DEEPEST:
                    problem = f"it is nested more than {DEEPEST} levels deep here"
                    raise Unreadable(at, problem, "write it with fewer levels")
                if event.anchor:
                    self._anchors[event.anchor] = None, 0
                found = self._map(path) if is_map else self._list(path)
        if event.anchor:
            self._anchors[event.anchor] = found
        return found

    def _inside(self) -> Iterator[Any]:
        """Return the start events of the items of a map or list."""
        import yaml

        return takewhile(lambda event: not isinstance(event, yaml.CollectionEndEvent), self.events)

    def _list(self, path: Sequence[Step]) -> _Part:
        items, marks, size = list[Any](), _Marks(), 1
        for event in self._inside():
            marks[len(items)] = self.mark(event)[1:]
            item, parts = self.part(event, (*path, len(items)))
            items.append(item)
            size += parts
        self.marks[id(items)] = marks
        return items, size

    def _map(self, path: Sequence[Step]) -> _Part:
        entries, marks, size = dict[str, Any](), _Marks(), 1
        merged: list[tuple[Mark, Any]] = []
        for event in self._inside():
            at, key = self.mark(event), self._name(event)
            if key in marks:
                raise Unreadable(
                    at,
                    f"duplicate key, first in line {marks[key][0]}, and one of the two would be ignored",
                    "keep one of the two",
                )
            marks[key] = at[1:]
            of_value = next(self.events)
            value, parts = self.part(of_value, (*path, key))
            size += parts
            if key == "<<" and getattr(event, "implicit", (False,))[0]:  # an alias has no `implicit`
                behind = self.mark(of_value)
                merged += [(behind, each) for each in (value if isinstance(value, list) else [value])]
            else:
                entries[key] = value
        for at, given in merged:
            if not isinstance(given, dict):
                raise Unreadable(at, "<< takes a map, and this is none", "name the anchor of a map behind it")
            for key in given.keys() - entries.keys():
                marks[key] = at[1:]
            entries |= {key: each for key, each in given.items() if key not in entries}
        self.marks[id(entries)] = marks
        return entries, size

    def _name(self, event: Any) -> str:
        import yaml

        if isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                self._anchors[event.anchor] = event.value, 1
            return event.value
        if isinstance(event, yaml.AliasEvent):
            name, _ = self._repeat(event.anchor, self.mark(event))
            if not isinstance(name, dict | list):
                return str(name)
        raise Unreadable(
            self.mark(event),
            "the name of an entry is a map or a list here, and a name is a text",
            "write a text; what begins with { or [ and is one belongs in quotes",
        )

    def _repeat(self, anchor: str, at: Mark) -> _Part:
        if anchor not in self._anchors:
            raise Unreadable(
                at,
                "what begins with * refers to an anchor, and there is none of this name above",
                "put the text in quotes, or name the anchor as &NAME before",
            )
        value, size = self._anchors[anchor]
        if size == 0:
            raise Unreadable(at, "it refers to what holds it, without an end", "write out what is meant")
        self._repeated += size
        if self._repeated > MOST_REPEATED:
            raise Unreadable(
                at,
                f"aliases repeat more than {MOST_REPEATED:,} parts of the document",
                "write out what is meant, or split the file",
            )
        return value, size


_TAG: Final = "tag:yaml.org,2002:"
_MAP_TAG: Final = f"{_TAG}map"
_LIST_TAG: Final = f"{_TAG}seq"

_FIXED: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*|0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+)")
_FRACTION: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)?)?")


def _plain(text: str, at: Mark) -> Any:
    if text in _FIXED:
        return _FIXED[text]
    if _DATE.fullmatch(text):
        try:
            return (datetime if len(text) > len("2001-12-14") else date).fromisoformat(text.upper())
        except ValueError:
            return text
    if _NO_NUMBER.fullmatch(text):
        raise _no_number(at, "it is not a number that a document of JSON could carry")
    if _WHOLE.fullmatch(text):
        return _whole(text.replace("_", "").lower(), at)
    if _FRACTION.fullmatch(text):
        number = float(text)
        if math.isinf(number) or ("." not in text and "e" not in text.lower() and len(text) > len("1" * 20)):
            raise _no_number(at, "it is a number of more digits than readers keep")
        return number
    return text


def _whole(text: str, at: Mark) -> int:
    if len(text) <= len("-0b") + 64:
        number = int(text, 8) if re.fullmatch(r"[-+]?0[0-7]+", text) else int(text, 0)
        if -(2**63) <= number < 2**64:
            return number
    raise _no_number(at, "it is a whole number of more digits than readers keep")


def _no_number(at: Mark, problem: str) -> Unreadable:
    return Unreadable(at, problem, "write it in quotes if it is a text")


def _refuse_tag(at: Mark, tag: str) -> NoReturn:
    shown = tag.removeprefix(_TAG)
    shown = f"!!{shown}" if shown != tag else shown
    raise Unreadable(
        at,
        f"it has the tag {shown[:40]!r}, which is not read here",
        "remove the tag, or put all in quotes",
    )


_TOLD: Final = (
    (
        r"while scanning a quoted scalar.*(unexpected end|document indicator)",
        "a quote that opens here is never closed",
        "close it; a quote inside of single quotes is written twice",
    ),
    (
        r"tab character",
        "a tab indents this line, and YAML indents by blanks only",
        "replace the tab by blanks",
    ),
    (
        r"unknown escape|hexdecimal|Unicode character escape",
        "a backslash in double quotes begins an escape, and this is none that is a character",
        "write the text in single quotes, or the backslash twice",
    ),
    (
        r"mapping values are not allowed",
        "a second ': ' stands in one line, or the line is indented where nothing can be below the one above",
        "put a text with ': ' in quotes, or correct the indentation",
    ),
    (
        r"expected ',' or '\]'",
        "the list that [ opens in line {line} is not closed before here",
        "add the missing ] or comma",
    ),
    (
        r"expected ',' or '\}'",
        "the map that {{ opens in line {line} is not closed before here",
        "add the missing } or comma",
    ),
    (
        r"could not find expected ':'",
        "a line is not a `key: value`",
        "add what is missing, or put it in quotes",
    ),
    (
        r"did not find expected key|block mapping",
        "this line belongs to no key: it is indented otherwise than those beside it, or a quote ended early",
        "indent it as the lines beside it",
    ),
    (
        r"block sequence|expected '-'",
        "an item of a list stands where none can be, or is indented otherwise than those beside it",
        "begin each item with '- ', all indented alike",
    ),
    (
        r"cannot start any token",
        "a text without quotes cannot begin with this character",
        "put the text in quotes",
    ),
    (
        r"node content",
        "a value is missing here, or a bracket or comma is one too many",
        "correct this line, or put the text in quotes",
    ),
    (r"document start|<stream|directive|%", "the document ended before here", "remove what follows, or ---"),
)
"""Pattern of the parser's message → problem and fix."""


def _told(error: Any, text: str, file: str) -> Unreadable:
    said = f"{error.context or ''} {error.problem or ''}"
    opened = error.context_mark or error.problem_mark
    is_open = "quoted scalar" in said and "escape" not in said and "hexdecimal" not in said
    mark = opened if is_open or not error.problem_mark else error.problem_mark
    line = "".join(text.splitlines()[mark.line : mark.line + 1])
    if "\t" in line[: len(line) - len(line.lstrip())] or line[mark.column : mark.column + 1] == "\t":
        said = "tab character"
    at = Mark(file, mark.line + 1, mark.column + 1)
    for pattern, problem, fix in _TOLD:
        if re.search(pattern, said):
            return Unreadable(at, problem.format(line=opened.line + 1), fix)
    return Unreadable(at, "it is not YAML from here on", "correct this line")
