"""The page of a review, whatever the names are that a branch put into it."""

from dataclasses import replace
from typing import Final

import pytest

from components.errors import Problem
from operations.preview_report.digest import Digest
from operations.preview_report.markdown import LIMIT
from operations.preview_report.review import UNDECIDED, Objection, review, shorten
from operations.review.page import render
from operations.review.record import Record
from operations.review.run import Found
from operations.review.sealed import Sealed, ValueStanding

CALM: Final = Found(review(Digest()), Record.none("prod"), (), (), {}, (), other_code=False)
NASTY: Final = ("@everybody", "<b>", "a\nb", "\x1b[2J", "`", "|", "\u202ereversed", "[a](http://b)")


def _naming(name: str, count: int) -> Found:
    """Return what names a branch chose, wherever it may choose any."""
    names = tuple(f"{index}{name}" for index in range(count))
    return replace(
        CALM,
        problems=tuple(Problem(each, name, name) for each in names),
        sealed=tuple(
            Sealed(each, standing, {})
            for each in names
            for standing in (ValueStanding.NEW, ValueStanding.CHANGED)
        ),
        review=replace(
            CALM.review, policies=tuple(Objection(UNDECIDED, shorten(each), "r") for each in names)
        ),
        may_change=dict.fromkeys(names, "why"),
        record=replace(CALM.record, code="x"),
    )


@pytest.mark.parametrize("name", NASTY)
def test_a_name_is_shown_as_it_is_and_is_nothing_else(name: str) -> None:
    added = render(_naming(name, 1))

    assert f"0{name}" not in added
    assert "&#8238;" not in added
    assert "\u202e" not in added


@pytest.mark.parametrize(
    ("standing", "shaped", "is_named"),
    [
        (ValueStanding.SAME, True, False),
        (ValueStanding.SAME, False, True),
        (ValueStanding.CHANGED, True, True),
    ],
)
def test_a_check_that_nobody_made_is_named(standing: ValueStanding, shaped: bool, is_named: bool) -> None:
    page = render(
        replace(CALM, sealed=(Sealed("credfleet:credentials.a", standing, {} if shaped else None),))
    )

    assert ("Checks of the configuration that read a credential were not made" in page) == is_named


@pytest.mark.parametrize("name", ["@" * 500, "a"])
def test_no_name_makes_the_page_too_long_for_a_comment_and_what_is_left_out_is_counted(name: str) -> None:
    page = render(_naming(name, 600))

    assert len(page) <= LIMIT
    assert page.count(" more") >= 5
    assert "what they would say of each write." in page
