"""Messages of a preview about its forecast, which the review parses again.

The start of a message tells whether the review can show it: the reason for an invalid request might quote it,
and stays in the log.
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
"""Forecast of one claim, as an input. generation: of its slot, in which it has or gets its account.

skipped: why the update will skip the claim; doomed: why the update will fail at it.
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
    """Forecast of a claim in the preview; `text` is None if it is for the log only.

    `is_skipped`: the update skips it; a bad one that is not skipped fails the update.
    """

    is_bad: bool
    text: str | None
    is_skipped: bool = False


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast reported for a pool. `unseen`: it could not be read. Empty if there were no claims."""

    expected: Mapping[Claim, Shown] = field(default_factory=dict[Claim, Shown])
    vacancies: tuple[Vacancy, ...] = ()
    unseen: bool = False

    @property
    def dooms(self) -> bool:
        """Whether the update is expected to fail at one of the claims."""
        return any(each.is_bad and not each.is_skipped for each in self.expected.values())

    @property
    def skipped(self) -> Mapping[Claim, str]:
        """Skipped claims, with reasons."""
        told = {claim: each for claim, each in self.expected.items() if each.is_skipped}
        return {claim: each.text or "the log says why" for claim, each in told.items()}


def lines(
    expected: Iterable[ClaimForecast], vacancies: Sequence[Vacancy], skipped: Collection[ClaimForecast] = ()
) -> Iterator[str]:
    """Yield messages about forecasts and remaining accounts; present claims are not news.

    `skipped`: claims that the update skips; equal reasons are combined.
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
    """Yield messages about other stacks that use the same slot. `claims`: under their names in the pool."""
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
    """Yield messages about a claim whose pool changed its policy or limit."""
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
    """Yield the message that the pool could not be read."""
    yield f"{namespace}: {_UNSEEN}{why})"


def parse(told: Iterable[str], claims: Collection[Claim]) -> Forecast:
    """Parse the forecasts of these claims, and all skipped ones, from the lines of a preview."""
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
    """Return the text of a forecast; one that might quote a request starts like a rejection."""
    is_quotable = each.member is not None or each.kind is not ForecastKind.REFUSED
    return each.text if is_quotable else f"{_REFUSED}{each.text.removeprefix(_REFUSED)}"
