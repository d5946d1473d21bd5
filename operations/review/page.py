"""A keyless review for a pull request: what would change, what is unknown, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from components.errors import Problem
from operations.cli.answer import as_documents
from operations.preview_report.markdown import LIMIT, Section, code, sections, write
from operations.preview_report.review import shorten
from operations.review.run import Found, unmade_checks
from operations.review.sealed import ValueStanding

_ROOM: Final = 15_000
"""Characters for branch-controlled text, before and after the preview: a quarter of the page each."""
_LONGEST: Final = 400
_STALE_HOURS: Final = 48


def render(found: Found) -> str:
    """Return a review as Markdown: the record first, then the preview, then what is unknown."""
    problems = Section((), tuple(map(_problem, found.problems)))
    before = write([Section((*_preface(found),)), problems], _ROOM) + "\n"
    after = write(_unknown(found), _ROOM)
    return before + write(sections(found.review), LIMIT - len(before) - len(after)) + after


def as_document(found: Found) -> dict[str, Any]:
    """Return a review as a JSON document."""
    return {
        "stack": found.record.stack,
        "recorded": found.record.at.isoformat(timespec="seconds") if found.record.code else None,
        "failed": found.review.failed,
        "otherCode": found.other_code,
        "problems": as_documents(found.problems),
        "sealed": {each.name: str(each.standing) for each in found.sealed},
        "unchecked": unmade_checks(found),
        "undecided": found.review.undecided,
        "mayChange": found.may_change,
        "preview": found.review.document(),
    }


def _preface(found: Found) -> Iterator[str]:
    yield f"# Review without keys: {code(found.record.stack)}"
    yield ""
    if found.record.code:
        days, hours = divmod(found.age_hours, 24)
        age = f"{days} days" if days else f"{hours} hours"
        stale = ", **which is long ago**" if found.age_hours > _STALE_HOURS else ""
        yield f"Against the deployment recorded {found.record.at:%Y-%m-%d %H:%M} UTC, {age} ago{stale}."
    else:
        yield "**No deployment was recorded, so everything shows as new.**"
    yield "No secret was decrypted, no cluster and no cloud asked; claims are forecast from the record."
    yield ""
    if found.other_code:
        yield "> [!IMPORTANT]"
        yield "> **This branch has other code than what is deployed.** A program can tell that it is reviewed"
        yield "> without keys: read its changes, too. The keyed preview shows what this one cannot."
        yield ""


def _problem(found: Problem) -> str:
    place, problem, fix = (code(shorten(each, _LONGEST)) for each in (found.place, found.problem, found.fix))
    return f"- **✗ {place}**: {problem} → {fix}"


def _unknown(found: Found) -> Iterator[Section]:
    by = {
        standing: [each.name for each in found.sealed if each.standing is standing]
        for standing in ValueStanding
    }
    held = f"- What the {len(found.sealed)} encrypted values hold: they cannot be decrypted here."
    since = "- What changed in cluster or cloud since it was recorded, and what they would say of each write."
    nothing = "Nothing: this stack has no encrypted value."
    yield Section(("", "## What is unknown, and why", "", held if found.sealed else nothing, since))
    changed = "Whether a value changed or was only encrypted again, and its form"
    shown = "what is made of it is shown as changed, by the names of keys that it had before"
    for what, names in (
        (f"{changed}; {shown}", by[ValueStanding.CHANGED]),
        ("What is in values that are new", by[ValueStanding.NEW] if found.record.code else ()),
        ("Checks of the configuration that read a credential were not made", unmade_checks(found)),
        ("Rules that **could not decide**, because a value is sealed", found.review.undecided),
        ("**May change**, made of sealed values by another program", found.may_change),
    ):
        if names:
            yield Section((f"- {what}:",), tuple(f"  - {code(shorten(each))}" for each in names))
