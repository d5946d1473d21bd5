"""What a preview says of its forecast: sentences for people, which its review reads back.

How a sentence begins tells what a reader of the review may be shown: why a request makes no sense may quote
it, and stays in the log.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from components.account_pool.core.consumers import stack_of
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast.claims import NONE_FREE, ClaimForecast, ForecastKind, Vacancy
from components.account_pool.forecast.evacuation import slot_and_generation
from components.errors import Misconfigured
from components.skipped_lines import in_lines

Claim: TypeAlias = tuple[str, str]
"""Tenant and slot."""

ForecastInput: TypeAlias = Mapping[str, Any]
"""What one claim can expect, as its input. generation: of its slot, in which it has or gets its account.

skipped: why it gets none, and the update goes on without it; doomed: why the update will fail at it.
"""

_REFUSED: Final = "expected to be refused: "
_PASSED: Final = "; the update goes on without "
_LEFT: Final = "free accounts expected to be left: "
_UNSEEN: Final = "the pool was not looked at, so what it holds is unknown ("
_CLAIM: Final = re.compile(
    r"(?:warning: )?(?P<claims>[^\s/]+/[^\s/:]+(?:, [^\s/]+/[^\s/:]+)*): (?P<text>"
    r"(?P<good>keeps \S+, which is to be left: .+?|(?:leaves \S+: )?expected to (?:get|reuse) .+?)"
    rf"|(?P<unquotable>{_REFUSED}.+?)"
    rf"|(?:{NONE_FREE}|account ).*?)(?P<passed>{_PASSED}(?:it|them))?"
)
_VACANCY: Final = re.compile(r"(?P<accounts>.+) (?P<after>\d+) of (?P<before>\d+)")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a claim was told to expect; no text when its words are for the log only.

    is_skipped: an update goes on without it; a bad one that is not fails the update.
    """

    is_bad: bool
    text: str | None
    is_skipped: bool = False


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was told of a pool. unseen: it could not be looked at. Empty: there was nothing to expect."""

    expected: Mapping[Claim, Shown] = field(default_factory=dict[Claim, Shown])
    vacancies: tuple[Vacancy, ...] = ()
    unseen: bool = False

    @property
    def dooms(self) -> bool:
        """Whether an update is expected to fail at one of the claims."""
        return any(each.is_bad and not each.is_skipped for each in self.expected.values())

    @property
    def skipped(self) -> Mapping[Claim, str]:
        """The claims that an update goes on without, and why."""
        told = {claim: each for claim, each in self.expected.items() if each.is_skipped}
        return {claim: each.text or "the log says why" for claim, each in told.items()}


def lines(
    expected: Iterable[ClaimForecast], vacancies: Sequence[Vacancy], skipped: Collection[ClaimForecast] = ()
) -> Iterator[str]:
    """Say what claims can expect, and what will be left; claims that have their account are no news.

    skipped: those without which an update goes on; alike ones stand together.
    """
    news = [(each, each in skipped) for each in expected if each.kind is not ForecastKind.HELD]
    for part in in_lines(news, alike=lambda one: _text(one[0]) if one[1] else id(one[0])):
        (first, is_skipped), *more = part
        warning = "warning: " if first.refusal else ""
        passed = f"{_PASSED}{'them' if more else 'it'}" if is_skipped else ""
        named = ", ".join(f"{each.tenant}/{each.slot}" for each, _ in part)
        yield f"{warning}{named}: {_text(first)}{passed}"
    if news and vacancies:
        yield _LEFT + "; ".join(f"{each.accounts} {each.after} of {each.before}" for each in vacancies)


def joint_lines(snapshot: PoolSnapshot, claims: Iterable[ClaimRequest], keys: Sequence[str]) -> Iterator[str]:
    """Say which other stacks share an account by being in the same slot. claims: as the pool knows them."""
    records = {record.name: record for record in snapshot.records}
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
    yield f"{namespace}: {_UNSEEN}{why})"


def parse(told: Iterable[str], claims: Collection[Claim]) -> Forecast:
    """Return the forecast of these claims, and of all that are skipped, from all lines of a preview."""
    expected: dict[Claim, Shown] = {}
    vacancies: tuple[Vacancy, ...] = ()
    unseen = False
    for line in map(str.strip, told):
        if found := _CLAIM.fullmatch(line):
            is_skipped, text = found["passed"] is not None, None if found["unquotable"] else found["text"]
            for named in found["claims"].split(", "):
                tenant, _, slot = named.partition("/")
                if is_skipped or (tenant, slot) in claims:
                    expected[tenant, slot] = Shown(found["good"] is None, text, is_skipped)
        elif line.startswith(_LEFT):
            counted = map(_VACANCY.fullmatch, line.removeprefix(_LEFT).split("; "))
            vacancies = tuple(
                Vacancy(each["accounts"], int(each["before"]), int(each["after"])) for each in counted if each
            )
        else:
            unseen = unseen or line.partition(": ")[2].startswith(_UNSEEN)
    return Forecast(expected, vacancies, unseen)


def _text(each: ClaimForecast) -> str:
    """Return what a claim can expect; what may quote a request begins as a refusal."""
    is_quotable = each.member is not None or each.kind is not ForecastKind.REFUSED
    return each.text if is_quotable else f"{_REFUSED}{each.text.removeprefix(_REFUSED)}"
