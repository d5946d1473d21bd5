"""The lines in which a preview tells its outlook, and how a report of that preview reads them back.

A provider can tell a person nothing but lines, so both ends of that wire are here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from components.account_pool.outlook import Expectation, Prospect, Vacancy

Claim: TypeAlias = tuple[str, str]
"""Tenant and slot."""

_BAD: Final = frozenset({Prospect.EXHAUSTED, Prospect.REFUSED})
_WARNING: Final = "warning: "
_UNSEEN: Final = ": the pool was not looked at, so what it holds is unknown"
_LEFT: Final = "free accounts expected to be left: "
_VACANCY: Final = re.compile(r"([a-z0-9][^;]{0,300}) (\d{1,9}) of (\d{1,9})")
_OPENINGS: Final = ("expected to ", "account ")
"""What the outlook's own sentences begin with. Any other reason for a refusal may quote what it found."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a claim was told to expect; no text when its words are for the log only."""

    is_bad: bool
    text: str | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was told of a pool. unseen: it could not be looked at. Empty: nobody had anything to expect."""

    expected: Mapping[Claim, Told] = field(default_factory=dict[Claim, Told])
    vacancies: tuple[Vacancy, ...] = ()
    unseen: bool = False


def lines(expected: Iterable[Expectation], vacancies: Sequence[Vacancy]) -> Iterator[str]:
    """Tell what claims can expect, and what will be left; claims that have their account are no news."""
    news = [each for each in expected if each.prospect is not Prospect.HELD]
    for each in news:
        yield f"{_WARNING if each.prospect in _BAD else ''}{each.tenant}/{each.slot}: {each.text}"
    if news and vacancies:
        counted = "; ".join(f"{each.accounts} {each.after} of {each.before}" for each in vacancies)
        yield f"{_LEFT}{counted}"


def unseen_line(namespace: str, why: str) -> str:
    """Tell that the pool could not be looked at."""
    return f"{namespace}{_UNSEEN} ({why})"


def heard(told: Iterable[str], claims: Collection[Claim]) -> Forecast:
    """Find the outlook of these claims among all lines of a preview; other lines are passed over."""
    openings = {f"{tenant}/{slot}: ": (tenant, slot) for tenant, slot in claims}
    expected: dict[Claim, Told] = {}
    vacancies: tuple[Vacancy, ...] = ()
    unseen = False
    for line in told:
        if line.startswith(_LEFT):
            vacancies = tuple(_vacancies(line.removeprefix(_LEFT)))
        unseen |= _UNSEEN in line
        opening, separator, text = line.removeprefix(_WARNING).partition(": ")
        claim = openings.get(opening + separator)
        if claim is not None:
            expected[claim] = Told(line.startswith(_WARNING), text if text.startswith(_OPENINGS) else None)
    return Forecast(expected, vacancies, unseen)


def _vacancies(text: str) -> Iterator[Vacancy]:
    for part in text.split("; "):
        if match := _VACANCY.fullmatch(part):
            accounts, after, before = match.groups()
            yield Vacancy(accounts, int(before), int(after))
