"""The CSV of members that exist already: `name,type,accountId` and one column per partition key.

Its rows are validated and never declared, so ten thousand of them are fine.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from components.account_pool.settings import Partition
from components.errors import Problem
from components.naming import config_path
from components.settings.document import explain, unknown_key
from components.settings.noun import Noun
from components.settings.words import ObjectName, PoolType, Text

_COLUMNS: Final = ("name", "type", "accountId")


class ExistingMember(Noun):
    """One row: a Secret somebody else made, and the account in it."""

    place: str
    name: ObjectName
    type: PoolType
    account_id: Text
    partition: Partition


def read_members_file(
    path: Path, partition_keys: Sequence[str]
) -> tuple[tuple[ExistingMember, ...], tuple[Problem, ...]]:
    """Read the rows that are well formed, and list what is not; a place is `<file>:<line>`."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return (), (
            Problem(
                config_path("accountPool", "membersFrom"),
                f"{path} cannot be read ({reason}), so its accounts cannot be checked",
                "give the path of a CSV file, relative to Pulumi.yaml",
            ),
        )
    rows = csv.DictReader(lines, restkey="", restval="")
    columns = rows.fieldnames or ()
    known = (*_COLUMNS, *partition_keys)
    problems = [unknown_key(f"{path.name}:1", column, known) for column in columns if column not in known]
    for column in _COLUMNS:
        if column not in columns:
            cause = f"column {column} is missing, so no row says it"
            problems.append(Problem(f"{path.name}:1", cause, f"add the column {column}"))
    if problems:
        return (), tuple(problems)
    members: list[ExistingMember] = []
    for row in rows:
        place = f"{path.name}:{rows.line_num}"
        partition = {key: row[key] for key in partition_keys if row.get(key)}
        try:
            members.append(
                ExistingMember.model_validate(
                    {**{column: row[column] for column in _COLUMNS}, "place": place, "partition": partition}
                )
            )
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                column = str(fault["loc"][-1])
                problems.append(Problem(f"{place} {column}", *explain(fault)))
        if "" in row:
            cause = f"it has more fields than the {len(columns)} columns, so they cannot be told apart"
            problems.append(Problem(place, cause, "quote a field that holds a comma"))
    return tuple(members), tuple(problems)
