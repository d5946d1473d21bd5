"""A review without keys, for a pull request: what would change, what is unknown, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from components.errors import Problem
from operations.cli.answer import as_documents
from operations.preview_report.markdown import code, render_sections
from operations.preview_report.review import review, shorten
from operations.review.run import Found, unmade_checks
from operations.review.sealed import ValueStanding

_ROOM: Final = 10_000
"""Characters for what a branch may make long; the whole page has six times as many."""
_LONGEST: Final = 400
_STALE_HOURS: Final = 48


def render(found: Found) -> str:
    """Write a review: first what it is made against, then the preview, then what it could not tell."""
    return render_sections(review(found.digest), [*_preface(found)], [*_untold(found)])


def as_document(found: Found) -> dict[str, Any]:
    """Return a review for machines."""
    return {
        "stack": found.record.stack,
        "recorded": found.record.at.isoformat(timespec="seconds") if found.record.code else None,
        "failed": found.failed,
        "otherCode": found.other_code,
        "problems": as_documents(found.problems),
        "sealed": {each.name: str(each.standing) for each in found.sealed},
        "unchecked": unmade_checks(found),
        "undecided": found.undecided,
        "mayChange": found.may_change,
        "preview": review(found.digest).document(),
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
        yield ""
        yield "> [!IMPORTANT]"
        yield "> **This branch has other code than what is deployed.** A program can tell that it is reviewed"
        yield "> without keys: read its changes, too. The keyed preview shows what this one cannot."
        yield ""
    yield _fitted([_problem(each) for each in found.problems], _ROOM, "\n", "- … and {} more")
    yield ""


def _problem(found: Problem) -> str:
    place, problem, fix = (code(shorten(each, _LONGEST)) for each in (found.place, found.problem, found.fix))
    return f"- **✗ {place}**: {problem} → {fix}"


def _untold(found: Found) -> Iterator[str]:
    yield from ("", "## What is unknown, and why", "")
    changed = [each.name for each in found.sealed if each.standing is ValueStanding.CHANGED]
    new = [each.name for each in found.sealed if each.standing is ValueStanding.NEW and found.record.code]
    if not found.sealed:
        yield "Nothing: this stack has no encrypted value."
    else:
        yield f"- What the {len(found.sealed)} encrypted values hold: they cannot be decrypted here."
    if changed:
        yield f"- Whether a value changed or was only encrypted again, and its form: {_named(changed)}."
        yield "  What is made of them is shown as changed, by the names of keys that they had before."
    if new:
        yield f"- What is in values that are new: {_named(new)}."
    if unchecked := unmade_checks(found):
        yield f"- Checks of the configuration that read a credential were not made: {_named(unchecked)}."
    rules = [
        f"- Rule {code(rule)} **could not decide** for {_named(resources)}: a value is sealed."
        for rule, resources in found.undecided.items()
    ]
    if rules:
        yield _fitted(rules, 2 * _ROOM, "\n", "- … and {} more rules")
    if found.may_change:
        yield f"- **May change**, made of sealed values by another program: {_named([*found.may_change])}."
    yield "- What changed in cluster or cloud since it was recorded, and what they would say of each write."


def _named(names: Sequence[str]) -> str:
    return _fitted([code(shorten(each)) for each in names], _ROOM // 5, ", ", "and {} more")


def _fitted(texts: Sequence[str], room: int, between: str, more: str) -> str:
    """Join texts, and say how many do not fit; the first is there in any case."""
    ends = accumulate(len(each) + len(between) for each in texts)
    fit = max(1, sum(end <= room for end in ends))
    rest = (more.format(len(texts) - fit),) if len(texts) > fit else ()
    return between.join((*texts[:fit], *rest))
