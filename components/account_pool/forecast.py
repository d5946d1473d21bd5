"""What a preview says of its outlook: sentences for people, and one line of JSON for its review."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from components.account_pool.census import Census
from components.account_pool.consumers import stack_of
from components.account_pool.evacuation import slot_and_generation
from components.account_pool.model import ClaimRequest, Policy, Record
from components.account_pool.outlook import Expectation, Prospect, Vacancy
from components.errors import Misconfigured
from components.report_lines import report_line, reported

Claim: TypeAlias = tuple[str, str]
"""Tenant and slot."""

_SUBJECT: Final = "account-pool"
_BAD: Final = frozenset({Prospect.EXHAUSTED, Prospect.REFUSED})


@dataclass(frozen=True, slots=True)
class Told:
    """What a claim was told to expect; no text when its words are for the log only.

    is_skipped: an update goes on without it; a bad one that is not fails the update.
    """

    is_bad: bool
    text: str | None
    is_skipped: bool = False


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was told of a pool. unseen: it could not be looked at. Empty: nobody had anything to expect."""

    expected: Mapping[Claim, Told] = field(default_factory=dict[Claim, Told])
    vacancies: tuple[Vacancy, ...] = ()
    unseen: bool = False

    @property
    def dooms(self) -> bool:
        """Whether an update is expected to fail at one of the claims."""
        return any(each.is_bad and not each.is_skipped for each in self.expected.values())


def lines(
    expected: Iterable[Expectation], vacancies: Sequence[Vacancy], skipped: Collection[Expectation] = ()
) -> Iterator[str]:
    """Say what claims can expect, and what will be left; claims that have their account are no news.

    skipped: those without which an update goes on.
    """
    news = [each for each in expected if each.prospect is not Prospect.HELD]
    for each in news:
        warning = "warning: " if each.prospect in _BAD else ""
        passed = "; the update goes on without it" if each in skipped else ""
        yield f"{warning}{each.tenant}/{each.slot}: {each.text}{passed}"
    if not news:
        return
    if vacancies:
        counted = "; ".join(f"{each.accounts} {each.after} of {each.before}" for each in vacancies)
        yield f"free accounts expected to be left: {counted}"
    left = [[each.accounts, each.before, each.after] for each in vacancies]
    yield report_line(_SUBJECT, {"claims": [_claim(each, each in skipped) for each in news], "left": left})


def joint_lines(census: Census, claims: Iterable[ClaimRequest], keys: Sequence[str]) -> Iterator[str]:
    """Say which other stacks share an account by being in the same slot. claims: as the pool knows them."""
    records = {record.name: record for record in census.records}
    for claim in claims:
        with suppress(Misconfigured):
            record = records.get(claim.placed("", keys).record)
            stacks = {stack_of(holder) for holder in (record.holders if record else ())}
            others = sorted(one for one in stacks - {stack_of(claim.holder)} if one is not None)
            if others and not claim.shared:
                named = f"stack {', '.join(others)}"
                slot, _ = slot_and_generation(claim.slot)
                yield f"{claim.tenant}/{slot}: shares its account with {named}: they name this slot too"


def terms_lines(record: Record, policy: Policy, limit: int | None) -> Iterator[str]:
    """Say what becomes of a claim whose pool has another policy or limit now."""
    changed = [
        f"{what} {before or 'none'} becomes {after or 'none'}"
        for what, before, after in (
            ("release policy", record.policy, policy),
            ("limit", record.limit, limit),
        )
        if before != after
    ]
    yield f"{record.tenant}/{record.slot}: as the pool says now, its {' and its '.join(changed)}"
    if limit is not None and len(record.holders) > limit:
        yield (
            f"warning: {record.tenant}/{record.slot}: expected to be refused, since account {record.member}"
            f" is held by {len(record.holders)}: {', '.join(sorted(record.holders))}"
        )


def unseen_lines(namespace: str, why: str) -> Iterator[str]:
    """Say that the pool could not be looked at."""
    yield f"{namespace}: the pool was not looked at, so what it holds is unknown ({why})"
    yield report_line(_SUBJECT, {"unseen": True})


def heard(told: Iterable[str], claims: Collection[Claim]) -> Forecast:
    """Return the outlook of these claims, and of all that are skipped, from all lines of a preview."""
    expected: dict[Claim, Told] = {}
    vacancies: tuple[Vacancy, ...] = ()
    unseen = False
    for content in reported(_SUBJECT, told):
        match content:
            case {"unseen": True}:
                unseen = True
            case {"claims": [*stated], "left": [*left]}:
                known = dict(_told(stated))
                expected |= {claim: it for claim, it in known.items() if claim in claims or it.is_skipped}
                vacancies = tuple(_vacancies(left))
            case _:
                pass
    return Forecast(expected, vacancies, unseen)


def _claim(each: Expectation, skipped: bool) -> dict[str, Any]:
    """Return a claim's outlook as JSON; why a request makes no sense may quote it, and is left to the log."""
    is_quotable = each.member is not None or each.prospect is not Prospect.REFUSED
    return {
        "tenant": each.tenant,
        "slot": each.slot,
        "bad": each.prospect in _BAD,
        "text": each.text if is_quotable else None,
        **({"skipped": True} if skipped else {}),
    }


def _told(stated: Iterable[Any]) -> Iterator[tuple[Claim, Told]]:
    for each in stated:
        match each:
            case {
                "tenant": str(tenant),
                "slot": str(slot),
                "bad": bool(is_bad),
                "text": (str() | None) as text,
            }:
                yield (tenant, slot), Told(is_bad, text, each.get("skipped") is True)
            case _:
                pass


def _vacancies(stated: Iterable[Any]) -> Iterator[Vacancy]:
    for each in stated:
        match each:
            case [str(accounts), int(before), int(after)]:
                yield Vacancy(accounts, before, after)
            case _:
                pass
