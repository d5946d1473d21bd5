"""A review of a preview as a comment on a pull request, in GitHub's Markdown.

Names from a program are shown as code with special characters as entities, so that they cannot create table
cells, markup, links or mentions.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from operations.preview_report.review import Action, Change, ClaimChange, Review

LIMIT: Final = 60_000
"""Maximum length in characters. GitHub's is 65,536; the rest is for text that the poster adds."""

_SAVED: Final = 300
"""Characters reserved for the note about the omitted rest of a section."""
_LEFT_OUT: Final = "\n**The rest is left out** of this comment to keep it short enough.\n"
_MOST_SHOWN: Final = 8
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
    Action.REPLACE: "released, and claimed again",
    Action.DELETE: "released",
    Action.CREATE: "claimed",
    Action.UPDATE: "kept, on other terms",
    Action.IMPORT: "taken over",
    Action.OTHER: "see the log",
}


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a comment. Rows can be cut, `head` cannot."""

    head: tuple[str, ...]
    rows: tuple[str, ...] = ()


def render(review: Review, source: str) -> str:
    """Return a review as Markdown. source: name of the file with the whole preview."""
    footer = f"\n<sub>All of it: {code(f'credfleet preview-report {source} --format json')}</sub>\n"
    return write(sections(review), LIMIT - len(footer)) + footer


def write(parts: Iterable[Section], room: int) -> str:
    """Write sections into `room` characters, each into at most half of the remaining space."""
    written, left_out = "", ""
    room -= len(_LEFT_OUT)
    for part in parts:
        text = _fitted(part, (room - len(written)) // 2)
        left_out = left_out if text else _LEFT_OUT
        written += text
    return written + left_out


def code(text: str) -> str:
    """Return a text as code, whatever it contains; @ is followed by a zero-width space."""
    escaped = _SPECIAL.sub(lambda found: f"&#{ord(found[0])};" + ("&#8203;" * (found[0] == "@")), text)
    return f"<code>{escaped}</code>" if text else ""


def _fitted(section: Section, room: int) -> str:
    """Return the rows of a section that fit, and how many do not; empty if even its head does not fit."""
    text = "".join(f"{line}\n" for line in section.head)
    if len(text) + _SAVED > room:
        return ""
    for index, row in enumerate(section.rows):
        if len(text) + len(row) + 1 + _SAVED > room:
            rest = len(section.rows) - index
            return f"{text}\n**… and {rest} more**, left out of this comment to keep it short enough.\n"
        text += f"{row}\n"
    return text


def sections(review: Review) -> Iterator[Section]:
    """Yield the sections of a comment, most important first."""
    yield Section(tuple(_heading(review)))
    if review.losses:
        yield _losses(review.losses)
    yield _policies(review)
    yield _claims(review)
    yield _vacancies(review)
    if review.skipped_claims:
        rows = (tuple(map(code, each.values())) for each in review.skipped_claims)
        note = "The update goes on without them; a later one takes each up."
        yield _table("Skipped claims", ("Tenant", "Slot", "Why"), rows, note)
    if review.skipped:
        rows = ((code(each.what), "; ".join(map(code, each.reasons))) for each in review.skipped)
        note = "No error: each is declared once nothing is left here."
        yield _table("Skipped", ("What", "Waits for"), rows, note)
    if review.changes:
        yield _by_owner(review)
        for changes in review.by_owner():
            first = changes[0]
            title = f"Tenant {_whose(first)}" if first.tenant else first.owner.capitalize()
            yield Section(("", f"**{title}**", ""), tuple(map(_change, changes)))
    if review.remarks:
        rows = (
            (each.severity, code(each.resource) or "the stack", str(each.times)) for each in review.remarks
        )
        yield _table("Errors and warnings", ("", "Resource", "Times"), rows, "The log has their messages.")


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> Section:
    head = ("", f"### {title}", "", *((note, "") if note else ()))
    return Section((*head, _row(columns), f"|{'---|' * len(columns)}"), tuple(map(_row, rows)))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(title: str, text: str) -> Section:
    return Section(("", f"### {title}", "", text))


def _heading(review: Review) -> Iterator[str]:
    counted = ", ".join(f"{count} {_TO_DO[action]}" for action, count in review.counts.items())
    of = f" of {code(f'{review.project}/{review.stack}')}" if review.stack else ""
    yield f"## Preview{of}: {counted or ('failed' if review.failed else 'nothing to change')}"
    yield ""
    if review.failed:
        yield from _alert("CAUTION", "**The preview failed**: what follows may be a part only.")
    if review.losses:
        yield from _alert("CAUTION", f"**{_gone(review.counts)}** Read the first table before you approve.")
    if review.forecast.dooms:
        yield from _alert(
            "CAUTION", "**The update is expected to fail**: a claim that is required gets nothing."
        )
    if review.doomed:
        yield from _alert("WARNING", f"**Claims that can expect no account: {review.doomed}.**")
    yield f"{review.unchanged} unchanged."


def _alert(kind: str, text: str) -> tuple[str, ...]:
    return f"> [!{kind}]", f"> {text}", ""


def _gone(counts: Mapping[Action, int]) -> str:
    words = {Action.REPLACE: "replaced", Action.DELETE: "deleted"}
    return f"{' and '.join(f'{counts[each]} {word}' for each, word in words.items() if each in counts)}."


def _losses(losses: Sequence[Change]) -> Section:
    ordered = sorted(losses, key=lambda each: each.action is not Action.REPLACE)
    rows = (
        (
            f"**{each.action.upper()}**",
            code(each.name),
            code(each.type),
            _whose(each),
            _properties(each.forcing),
        )
        for each in ordered
    )
    return _table("Replaced and deleted", ("", "Resource", "Type", "Whose", "Forced by"), rows)


def _whose(change: Change) -> str:
    return code(change.tenant) if change.tenant else change.owner


def _policies(review: Review) -> Section:
    if review.policies is None:
        return _text("Policies", "Unknown: this preview does not tell whether policies judged it.")
    if not review.policies:
        return _text("Policies", "✓ No rule objects.")
    by_rule: dict[tuple[str, str], list[str]] = {}
    for each in review.policies:
        by_rule.setdefault((each.level, each.rule), []).append(code(each.resource) or "the stack")
    rows = (
        ("**MANDATORY**" if level == "mandatory" else level, code(rule), _some_of(resources))
        for (level, rule), resources in by_rule.items()
    )
    note = "The log has each message; docs/policies.md explains the rules."
    return _table("Policies", ("Level", "Rule", "Resources"), rows, note)


def _claims(review: Review) -> Section:
    if not review.claims:
        came = "came up before the preview failed" if review.failed else "is made, changed or released"
        return _text("Claims", f"None {came}.")
    columns = ("Tenant", "Slot", "Type", "What", "Account", "Outlook")
    unseen = review.forecast.unseen
    return _table("Claims", columns, (_claim(each, unseen=unseen) for each in review.claims))


def _claim(claim: ClaimChange, *, unseen: bool) -> tuple[str, ...]:
    forecast = ("**✗** " if claim.doomed else "") + code(claim.expected or "")
    if not forecast and claim.is_made:
        forecast = "unknown: no cluster in reach" if unseen else "not reported"
    named = (code(claim.tenant), code(claim.slot), code(claim.type))
    return (*named, _CLAIMING[claim.action], code(claim.account or ""), forecast)


def _vacancies(review: Review) -> Section:
    title, found = "Free accounts", review.forecast.vacancies
    if found and not review.forecast.unseen:
        rows = [(code(each.accounts), str(each.before), str(each.after or "**0**")) for each in found]
        note = "A forecast, no guarantee: others claim and release meanwhile."
        return _table(title, ("Type", "Free now", "Expected to be left"), rows, note)
    if review.forecast.unseen:
        return _text(title, "Unknown: no cluster was in reach, so the pool was not looked at.")
    is_news = review.failed or any(each.is_made for each in review.claims)
    unknown, known = (
        "Unknown: the preview does not report them.",
        "As they are: no claim of this preview needs one.",
    )
    return _text(title, unknown if is_news else known)


def _by_owner(review: Review) -> Section:
    actions = (Action.REPLACE, Action.DELETE, Action.CREATE, Action.UPDATE)
    rows: list[Sequence[str]] = []
    for changes in review.by_owner():
        counts = [sum(each.action is action for each in changes) for action in actions]
        cells = (str(count or "") for count in (*counts, len(changes) - sum(counts)))
        rows.append((_whose(changes[0]), *cells))
    titles = (_TO_DO[each].removeprefix("to ").capitalize() for each in actions)
    return _table("Changes by tenant", ("", *titles, "Other"), rows)


def _change(change: Change) -> str:
    properties = f": {_properties(change.properties)}" if change.properties else ""
    return f"- {change.action} {code(change.name)} {code(change.type)}{properties}"


def _properties(names: Sequence[str]) -> str:
    return _some_of([*map(code, names)])


def _some_of(shown: Sequence[str]) -> str:
    more = len(shown) - _MOST_SHOWN
    rest = (f"… {more} more",) if more > 0 else ()
    return ", ".join((*shown[:_MOST_SHOWN], *rest))
