"""A review of a preview as a comment on a pull request, in GitHub's Markdown.

Whatever a program named is shown as code, each character but the plainest as an entity: it opens no table
cell, no markup, no link and no mention.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from operations.preview_report.review import Action, Change, ClaimChange, Review

LIMIT: Final = 60_000
"""Characters; GitHub refuses comments of more than 65,536, and who posts one may add to it."""

_SAVED: Final = 300
"""Characters kept for what a cut section says of the rest of it."""
_LEFT_OUT: Final = "\n**The rest is left out** of this comment to keep it short enough.\n"
_MOST_PROPERTIES: Final = 8
_SPECIAL: Final = re.compile(r"[^A-Za-z0-9 ./:,;=()'-]|(?i:(?<=www)\.)|:(?=//)")

_TO_DO: Final[Mapping[Action, str]] = {
    Action.REPLACE: "to replace",
    Action.DELETE: "to delete",
    Action.CREATE: "to create",
    Action.UPDATE: "to update",
    Action.IMPORT: "to import",
    Action.OTHER: "in another way",
}
_CLAIMING: Final[Mapping[Action, str]] = {
    Action.REPLACE: "released, and claimed anew",
    Action.DELETE: "released",
    Action.CREATE: "claimed",
    Action.UPDATE: "kept, on other terms",
    Action.IMPORT: "taken over",
    Action.OTHER: "see the log",
}


@dataclass(frozen=True, slots=True)
class _Section:
    """Part of a comment. Rows may be cut, `head` never."""

    head: tuple[str, ...]
    rows: tuple[str, ...] = ()


def render(review: Review, source: str) -> str:
    """Write a review; no section takes more than half of the room that those before it leave.

    source: name of the file that holds the whole preview.
    """
    footer = f"\n<sub>All of it: {code(f'credfleet preview-report {source} --format json')}</sub>"
    return render_sections(review, (), (footer,))


def render_sections(review: Review, before: Sequence[str], after: Sequence[str]) -> str:
    """Write a review with lines before and after it, which are never cut."""
    head, footer = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    written: list[str] = [head]
    room = LIMIT - len(_LEFT_OUT) - len(footer) - len(head)
    left_out = ""
    for section in _sections(review):
        text = _fitted(section, room // 2)
        left_out = left_out if text else _LEFT_OUT
        written.append(text)
        room -= len(text)
    return "".join([*written, left_out, footer])


def code(text: str) -> str:
    """Show a text as it is, whatever is in it; an @ is followed by a space of no width."""
    escaped = _SPECIAL.sub(lambda found: f"&#{ord(found[0])};" + ("&#8203;" * (found[0] == "@")), text)
    return f"<code>{escaped}</code>" if text else ""


def _fitted(section: _Section, room: int) -> str:
    """Write as many rows of a section as fit, and how many do not; nothing when not even its head does."""
    text = "".join(f"{line}\n" for line in section.head)
    if len(text) + _SAVED > room:
        return ""
    for index, row in enumerate(section.rows):
        if len(text) + len(row) + 1 + _SAVED > room:
            rest = len(section.rows) - index
            return f"{text}\n**… and {rest} more**, left out of this comment to keep it short enough.\n"
        text += f"{row}\n"
    return text


def _sections(review: Review) -> Iterator[_Section]:
    yield _Section(tuple(_heading(review)))
    if review.losses:
        yield _losses(review.losses)
    yield _policies(review)
    yield _claims(review)
    yield _vacancies(review)
    if review.skipped_claims:
        yield _skipped_claims(review)
    if review.skipped:
        yield _skipped(review)
    if review.changes:
        yield _by_owner(review)
        for owner, is_tenant, changes in review.by_owner():
            title = f"Tenant {code(owner)}" if is_tenant else owner.capitalize()
            yield _Section(("", f"**{title}**", ""), tuple(map(_change, changes)))
    if review.remarks:
        yield _remarks(review)


def _heading(review: Review) -> Iterator[str]:
    counted = ", ".join(f"{count} {_TO_DO[action]}" for action, count in review.counts.items())
    of = f" of {code(f'{review.project}/{review.stack}')}" if review.stack else ""
    yield f"## Preview{of}: {counted or ('failed' if review.failed else 'nothing to change')}"
    yield ""
    if review.failed:
        yield from ("> [!CAUTION]", "> **The preview failed**: what follows may be a part only.", "")
    if review.losses:
        yield "> [!CAUTION]"
        yield f"> **{_gone(review.counts)}** Read the first table before you approve."
        yield ""
    if review.forecast.dooms:
        yield from (
            "> [!CAUTION]",
            "> **The update is expected to fail**: a claim that is required gets nothing.",
            "",
        )
    if review.doomed:
        yield "> [!WARNING]"
        yield f"> **Claims that can expect no account: {review.doomed}.**"
        yield ""
    yield f"{review.unchanged} unchanged."


def _gone(counts: Mapping[Action, int]) -> str:
    words = {Action.REPLACE: "replaced", Action.DELETE: "deleted"}
    return f"{' and '.join(f'{counts[each]} {word}' for each, word in words.items() if each in counts)}."


def _losses(losses: Sequence[Change]) -> _Section:
    table = ("| | Resource | Type | Whose | Forced by |", "|---|---|---|---|---|")
    return _Section(
        ("", "### Replaced and deleted", "", *table),
        tuple(
            f"| **{each.action.upper()}** | {code(each.name)} | {code(each.type)} | {_whose(each)} |"
            f" {_properties(each.forcing)} |"
            for each in sorted(losses, key=lambda each: each.action is not Action.REPLACE)
        ),
    )


def _whose(change: Change) -> str:
    return code(change.owner) if change.is_tenant else change.owner


def _policies(review: Review) -> _Section:
    head = ("", "### Policies", "")
    if review.objections is None:
        return _Section((*head, "Unknown: this preview does not tell whether policies judged it."))
    if not review.objections:
        return _Section((*head, "✓ No rule objects."))
    table = ("| Level | Rule | Resource |", "|---|---|---|")
    return _Section(
        (*head, "The log has the words of each; docs/policies.md explains the rules.", "", *table),
        tuple(
            f"| {'**MANDATORY**' if each.level == 'mandatory' else each.level} | {code(each.rule)} |"
            f" {code(each.resource) or 'the stack'} |"
            for each in review.objections
        ),
    )


def _claims(review: Review) -> _Section:
    head = ("", "### Claims", "")
    if not review.claims:
        seen = (
            "None came up before the preview failed."
            if review.failed
            else "None is made, changed or released."
        )
        return _Section((*head, seen))
    table = ("| Tenant | Slot | Type | What | Account | Outlook |", "|---|---|---|---|---|---|")
    unseen = review.forecast.unseen
    return _Section((*head, *table), tuple(_claim(each, unseen=unseen) for each in review.claims))


def _claim(claim: ClaimChange, *, unseen: bool) -> str:
    action = _CLAIMING[claim.action]
    forecast = ("**✗** " if claim.is_doomed else "") + code(claim.expected)
    if not forecast and claim.action in (Action.CREATE, Action.REPLACE):
        forecast = "unknown: no cluster in reach" if unseen else "not told"
    return (
        f"| {code(claim.tenant)} | {code(claim.slot)} | {code(claim.type)} | {action} |"
        f" {code(claim.account)} | {forecast} |"
    )


def _vacancies(review: Review) -> _Section:
    head = ("", "### Free accounts", "")
    if review.forecast.unseen:
        return _Section((*head, "Unknown: no cluster was in reach, so nobody looked at the pool."))
    if not review.forecast.vacancies:
        is_news = any(each.action in (Action.CREATE, Action.REPLACE) for each in review.claims)
        told = "Not told." if is_news or review.failed else "As they are: no claim of this preview needs one."
        return _Section((*head, told))
    table = ("| Type | Free now | Expected to be left |", "|---|---|---|")
    return _Section(
        (*head, "A forecast, no guarantee: others claim and release meanwhile.", "", *table),
        tuple(
            f"| {code(each.accounts)} | {each.before} | {each.after or '**0**'} |"
            for each in review.forecast.vacancies
        ),
    )


def _skipped_claims(review: Review) -> _Section:
    head = ("", "### Skipped claims", "", "The update goes on without them; a later one takes each up.", "")
    return _Section(
        (*head, "| Tenant | Slot | Why |", "|---|---|---|"),
        tuple(
            f"| {code(each.tenant)} | {code(each.slot)} | {code(each.reason)} |"
            for each in review.skipped_claims
        ),
    )


def _skipped(review: Review) -> _Section:
    table = ("| What | Waits for |", "|---|---|")
    return _Section(
        (
            "",
            "### Skipped",
            "",
            "No error: each is declared once nothing is left here.",
            "",
            *table,
        ),
        tuple(f"| {code(each.what)} | {'; '.join(map(code, each.reasons))} |" for each in review.skipped),
    )


def _by_owner(review: Review) -> _Section:
    actions = (Action.REPLACE, Action.DELETE, Action.CREATE, Action.UPDATE)
    titles = " | ".join(_TO_DO[each].removeprefix("to ").capitalize() for each in actions)
    head = ("", "### Changes by tenant", "", f"| | {titles} | Other |", f"|---|{'---|' * 5}")
    rows: list[str] = []
    for owner, is_tenant, changes in review.by_owner():
        counts = [sum(each.action is action for each in changes) for action in actions]
        cells = " | ".join(str(count or "") for count in (*counts, len(changes) - sum(counts)))
        rows.append(f"| {code(owner) if is_tenant else owner} | {cells} |")
    return _Section(head, tuple(rows))


def _change(change: Change) -> str:
    properties = f": {_properties(change.properties)}" if change.properties else ""
    return f"- {change.action} {code(change.name)} {code(change.type)}{properties}"


def _properties(names: Sequence[str]) -> str:
    more = len(names) - _MOST_PROPERTIES
    rest = (f"… {more} more",) if more > 0 else ()
    return ", ".join(chain(map(code, names[:_MOST_PROPERTIES]), rest))


def _remarks(review: Review) -> _Section:
    table = ("| | Resource | Times |", "|---|---|---|")
    return _Section(
        ("", "### Errors and warnings", "", "The log has their words.", "", *table),
        tuple(
            f"| {each.severity} | {code(each.resource) or 'the stack'} | {each.times} |"
            for each in review.remarks
        ),
    )
