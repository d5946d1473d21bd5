"""Members in CSV: `name,type,accountId` and one column per partition key.

A row with a credential is declared like an entry of `members`: with `credentialsFrom`, an entry of
credentials, or with `secret` or `gcpSecret`, a reference, so the file contains no credentials. Any other row
is an existing account, which is checked and never declared; ten thousand of them are fine.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.model import Member
from components.account_pool.settings import Partition
from components.config.document import explain, in_print, misspelt
from components.config.field_types import ConfigModel, Moment, ObjectName, PoolType, Text
from components.documents import render_path
from components.errors import Problem
from components.labels import ACCOUNT_ID, EXPIRES_AT, HYPERSCALER_TYPE
from components.naming import config_path
from components.projection.settings import CredentialFrom

_COLUMNS: Final = ("name", "type", "accountId")
_DECLARES: Final[Mapping[str, str]] = {
    "credentialsFrom": "entry",
    "secret": "secret",
    "gcpSecret": "gcpSecret",
}
"""Column → the key of `credentialsFrom` that it sets."""
_PLACE: Final = config_path("accountPool", "membersFrom")
_SEPARATORS: Final = {";": "';'", "\t": "tabs", "|": "'|'"}
_EXPIRES: Final = "expiresAt"
"""The only column that every file can omit."""
_KEYS: Final = {
    "type": f"label {HYPERSCALER_TYPE}",
    "accountId": f"annotation {ACCOUNT_ID}",
    _EXPIRES: f"annotation {EXPIRES_AT}",
}


class ExistingMember(ConfigModel):
    """One row: a Secret that another process made, and the account in it; or one that the stack makes.

    credentials_from: of what the stack makes it; None when it is there already.
    """

    place: str
    at: tuple[str, int, int]
    name: ObjectName
    type: PoolType
    account_id: Text
    partition: Partition
    credentials_from: CredentialFrom = None
    expires_at: Moment | None = None

    @property
    def entry(self) -> dict[str, Any]:
        """Return it as an entry of `members`."""
        return self.model_dump(
            include={"type", "account_id", "partition", "credentials_from", "expires_at"},
            by_alias=True,
            exclude_none=True,
        )

    def declared(self, shared_capacity: int | None = None) -> DeclaredMember:
        """Return it as a declared member; `shared_capacity`: if it is shared, which rows do not state."""
        return DeclaredMember.of(
            self.type,
            self.account_id,
            partition=self.partition,
            shared_capacity=shared_capacity,
            expires_at=self.expires_at,
        )


def read_members(
    path: Path, partition_keys: Sequence[str] | None
) -> tuple[tuple[ExistingMember, ...], tuple[Problem, ...]]:
    """Read the members of a stack: the rows of a file, or of all `*.csv` files of a folder.

    `partition_keys`: as in `read_members_file`.
    """
    is_folder = os.path.isdir(path)
    files = sorted(path.glob("*.csv")) if is_folder else [path]
    if not files:
        problem = f"{path} holds no file that ends in .csv, so no account would be read"
        return (), (Problem(_PLACE, problem, "name a CSV file, or the folder of such"),)
    read = [read_members_file(file, partition_keys, declares=True) for file in files]
    rows = tuple(row for rows, _ in read for row in rows)
    unread = _unread(path) if is_folder else ()
    return rows, (*unread, *(each for _, found in read for each in found))


def _unread(folder: Path) -> Iterator[Problem]:
    """Yield a problem for each file that looks like one of a folder's members but is not read."""
    for each in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in each.relative_to(folder).parts)
        is_meant = each.suffix.lower() == ".csv" and each.is_file() and not is_hidden
        if is_meant and (each.parent != folder or each.suffix != ".csv"):
            problem = "it is not read, so its accounts would count as absent"
            fix = f"move it to {render_path(folder / each.stem)}.csv:"
            fix += " what ends in .csv in the folder itself is read"
            yield Problem(_PLACE, problem, fix, (render_path(each), 1, 1))


def read_members_file(
    path: Path, partition_keys: Sequence[str] | None, *, declares: bool = False
) -> tuple[tuple[ExistingMember, ...], tuple[Problem, ...]]:
    """Return the valid rows, and the problems of all others; a place is `<file>:<line>`.

    `partition_keys`: None if unknown; other columns are then not checked. `declares`: whether rows can have
    columns for the credential of a declared member.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problem = "it is not UTF-8 text from here on, so its accounts cannot be checked"
        at = (render_path(path), line, 1)
        return (), (Problem(f"{path.name}:{line}", problem, "save the file in UTF-8", at),)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no path has such a character"
        problem = f"{in_print(str(path))} cannot be read ({why}), so its accounts cannot be checked"
        return (), (Problem(_PLACE, problem, "give the path of a CSV file, relative to Pulumi.yaml"),)
    rows = csv.DictReader(io.StringIO(text, newline=""), restkey="", restval="", strict=True)
    reading = _Reading(path, text.splitlines(), partition_keys or (), _DECLARES if declares else {})
    last = 0
    try:
        columns = rows.fieldnames or ()
        last = rows.line_num
        problems = reading.header(columns, any_column=partition_keys is None)
        if problems:
            return (), problems
        for row in rows:
            further = sum(str(field).count("\n") for field in row.values())
            reading.row(row, rows.line_num - further, columns)
            last = rows.line_num
    except csv.Error:
        problem = "it is not a row of a CSV file: a quote is not closed, or a field is endless"
        reading.problem(last + 1, "", problem, 'close the quote; a quote in a quoted field is written ""')
    return tuple(reading.members), tuple(reading.problems)


def missing_or_different(
    path: Path, namespace: str, partition_keys: Sequence[str], members: Mapping[str, Member]
) -> Iterator[tuple[str, Problem]]:
    """Yield rows without a member, or with a different one; `members`: of the pool, by name."""
    rows, _ = read_members(path, partition_keys)
    for row in (each for each in rows if each.credentials_from is None):
        if row.name not in members:
            problem = f"{path.name} lists it, and namespace {namespace} has no such account"
            yield row.name, Problem(row.place, problem, "make its Secret; pool import does", row.at)
        else:
            yield from ((row.name, each) for each in differences(row, members[row.name], partition_keys))


def differences(row: ExistingMember, live: Member, partition_keys: Sequence[str]) -> Iterator[Problem]:
    """Yield the differences between a row and the labels and annotations of its Secret."""
    place = live.place(partition_keys)
    said: Mapping[str, tuple[str | None, str | None]] = {
        "type": (row.type, live.type),
        "accountId": (row.account_id, live.account_id),
        **{key: (row.partition.get(key), value) for key, value in place.values},
        **({_EXPIRES: (row.expires_at, live.annotations.get(EXPIRES_AT))} if row.expires_at else {}),
    }
    for column, (here, there) in said.items():
        if here != there:
            yield Problem(
                f"{row.place} {column}",
                f"{row.place} says {column} {here or 'nothing'}, and its Secret {there or 'nothing'}",
                f"correct the row, or {_KEYS.get(column, f'label {column}')} of the Secret",
                row.at,
            )


@dataclass(slots=True)
class _Reading:
    """File with the rows and problems read so far."""

    path: Path
    lines: Sequence[str]
    partition_keys: Sequence[str]
    further: Mapping[str, str]
    members: list[ExistingMember] = field(default_factory=list[ExistingMember])
    problems: list[Problem] = field(default_factory=list[Problem])
    too_long: bool = False
    """Whether a row had too many fields. Only the first one is reported, as often all rows have them."""

    def header(self, columns: Sequence[str], *, any_column: bool) -> tuple[Problem, ...]:
        alone = columns[0] if len(columns) == 1 else ""
        if separator := next((each for each in _SEPARATORS if each in alone), None):
            problem = (
                f"its columns are separated by {_SEPARATORS[separator]}, and must be separated by commas"
            )
            self.problem(1, "", problem, "save the file with commas")
            return tuple(self.problems)
        if not {*_COLUMNS} & {*columns} or any(each != each.strip() for each in columns):
            problem = f"the first line does not name the columns, as {', '.join(_COLUMNS)}, without blanks"
            self.problem(
                1, "", problem, f"write as the first line: {','.join((*_COLUMNS, *self.partition_keys))}"
            )
            return tuple(self.problems)
        known = (*_COLUMNS, _EXPIRES, *self.further, *self.partition_keys)
        for column in columns if not any_column else ():
            if column not in known:
                self.problem(1, column, *misspelt(column, known))
            elif columns.count(column) > 1:
                self.problem(1, column, f"column {column} stands twice", "remove one of the two")
        for column in _COLUMNS:
            meant = [each for each in columns if each not in known]
            if column not in columns and not difflib.get_close_matches(column, meant):
                problem = f"column {column} is missing, so no row has it"
                self.problem(1, "", problem, f"add the column {column}")
        return tuple(dict.fromkeys(self.problems))

    def row(self, row: Mapping[str, Any], line: int, columns: Sequence[str]) -> None:
        if "" in row:
            if not self.too_long:
                problem = f"it has more fields than the {len(columns)} columns, so their columns are unknown"
                self.problem(line, "", problem, "quote a field that holds a comma, or add the column")
            self.too_long = True
            return
        if sum(map(bool, row.values())) == 1:
            problem = f"only one of its fields says something, and a row has {', '.join(_COLUMNS)}"
            self.problem(line, "", problem, "complete it, or remove it; a CSV file has no comments")
            return
        given: dict[str, Any] = {column: row[column] for column in _COLUMNS}
        named = {what: row[column] for column, what in self.further.items() if row.get(column)}
        given |= {"credentialsFrom": named} if named else {}
        given |= {_EXPIRES: row[_EXPIRES]} if row.get(_EXPIRES) else {}
        partition = {key: row[key] for key in self.partition_keys if row.get(key)}
        place = f"{self.path.name}:{line}"
        try:
            self.members.append(
                ExistingMember.model_validate(
                    {**given, "place": place, "at": (render_path(self.path), line, 1), "partition": partition}
                )
            )
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                self.problem(line, str(fault["loc"][-1]), *explain(fault), columns=columns)

    def problem(self, line: int, column: str, problem: str, fix: str, columns: Sequence[str] = ()) -> None:
        """Add a problem with the column where its field starts."""
        place = f"{self.path.name}:{line} {column}".rstrip()
        written = self.lines[line - 1] if line <= len(self.lines) else ""
        fields = written.split(",")
        known = columns if column in columns else fields
        before = known.index(column) if column in known else 0
        begins = 1 if '"' in written else sum(len(each) + 1 for each in fields[:before]) + 1
        self.problems.append(Problem(place, problem, fix, (render_path(self.path), line, begins)))
