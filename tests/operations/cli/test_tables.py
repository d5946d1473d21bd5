"""How tables fit a terminal: which columns leave, where sentences fold, and that no word is ever broken."""

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from operations.cli.tables import Column, Commands, Table
from tests.support.cases import tabled

WORDS = st.text("abcdefgh-é漢", min_size=1, max_size=30)
CELLS = st.lists(WORDS, max_size=6).map(" ".join)


def lines(table: Table | Commands, width: int | None) -> list[str]:
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in table.lines(width)]


def accounts(*more: Column) -> Table:
    columns = (
        Column("Account", names=True),
        "Type",
        Column("Since", leaves=1),
        Column("Holders", leaves=2),
        *more,
    )
    row = ("aws-1", "aws", "2026-11-22T10:24:41Z", "pulumi/organization/credfleet/dev/acme/aws")
    return Table("Accounts", columns, [(*row, *("wiped by hand, ticket 4711, see there" for _ in more))])


@tabled("width, shown")
def test_columns_leave_in_the_order_that_is_stated(width: int | None, shown: list[str]) -> None:
    assert lines(accounts(), width) == ["Accounts", *shown]


def test_a_sentence_folds_between_words_before_a_column_leaves() -> None:
    assert lines(accounts(Column("Reason", folds=True)), 105)[2:] == [
        "aws-1    aws   2026-11-22T10:24:41Z  pulumi/organization/credfleet/dev/acme/aws"
        "  wiped by hand, ticket",
        " " * 81 + "4711, see there",
    ]
    assert lines(accounts(Column("Reason", folds=True)), 66)[2:4] == [
        "aws-1    aws   2026-11-22T10:24:41Z  wiped by hand, ticket 4711,",
        "                                     see there",
    ]


def test_what_is_indented_stays_so_where_it_folds() -> None:
    value = '{\n  "members": [\n    "aws-1 of the tenant acme, held"'
    assert lines(Table("Outputs", ("Name", Column("Value", folds=True)), [("pool", value)]), 30)[2:] == [
        "pool  {",
        '        "members": [',
        '          "aws-1 of the tenant',
        '          acme, held"',
    ]


def test_a_column_without_any_cell_is_shown_to_programs_only() -> None:
    table = Table("Pool", ("Account", "Reason"), [("aws-1", "")])
    assert lines(table, 80)[1] == "Account"
    assert lines(table, None)[1] == "Account  Reason"


@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=4),
    folds=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    leaves=st.tuples(*[st.integers(0, 2)] * 3),
    width=st.integers(1, 120),
)
def test_no_width_breaks_a_word_and_none_but_leaving_columns_lose_one(
    rows: Sequence[tuple[str, str, str]],
    folds: tuple[bool, bool, bool],
    leaves: tuple[int, int, int],
    width: int,
) -> None:
    columns = [Column(f"c{i}", leaves[i], folds[i]) for i in range(3)]
    words = [word for line in lines(Table("t", columns, rows), width) for word in line.split()]
    given_words = {word for row in rows for cell in row for word in cell.split()}
    assert {word for row in rows for i in range(3) if not leaves[i] for word in row[i].split()} <= {*words}
    if "·" not in words:
        assert given_words <= {*words}


@given(folds=st.booleans())
def test_no_line_is_of_thousands_of_characters_where_there_is_no_terminal(folds: bool) -> None:
    names = [f"tenant-{number:03}" for number in range(400)]
    shown = lines(
        Table("t", ("", Column("Which", folds=folds)), [("a", ", ".join(names)), ("b", "c d")]), None
    )
    assert max(map(len, shown)) <= 310
    assert re.findall(r"tenant-\d+", " ".join(shown)) == names
    assert shown[-1] == "b  c d"


def test_commands_stay_whole_with_what_they_are_for_behind_or_beneath_them() -> None:
    listed = Commands("Next", (("credfleet pool status", "who has what"), ("make down", "stop")))
    assert lines(listed, 30) == [
        "Next",
        "  credfleet pool status",
        "    # who has what",
        "  make down  # stop",
    ]
