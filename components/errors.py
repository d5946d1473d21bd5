"""The errors a user can meet: each says what is wrong, where, why, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class CredfleetError(Exception):
    """A foreseeable mistake or state, told in two lines.

    code: stable kebab-case word for machines. place: configuration path or object.
    cause: what is wrong and why it matters. mend: what to do about it.
    No field ever carries a credential.
    """

    def __init__(self, *, code: str, place: str, cause: str, mend: str) -> None:
        super().__init__(code, place, cause, mend)
        self.code = code
        self.place = place
        self.cause = cause
        self.mend = mend

    def __str__(self) -> str:
        return f"{self.place}: {self.cause}\n→ {self.mend}"


class ClusterError(CredfleetError):
    """The cluster that is meant cannot be found, or another one answers; nothing was written."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: where, what and why, and how to mend it. No field holds a value of a credential."""

    place: str
    cause: str
    mend: str

    def __str__(self) -> str:
        return f"{self.place}: {self.cause} → {self.mend}"

    def within(self, place: str) -> Problem:
        """Return the same problem at another place: where what was judged is written."""
        return Problem(place, self.cause, self.mend)


class ConfigurationError(CredfleetError):
    """Everything wrong with the configuration of a stack, reported at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            code="bad-configuration",
            place="configuration",
            cause=f"{count} problem{'s' if count != 1 else ''} found, nothing was written",
            mend="mend what is listed and run again",
        )

    def __str__(self) -> str:
        listed = "\n".join(f"{p.place}: {p.cause}\n→ {p.mend}" for p in self.problems)
        return f"{listed}\n{self.cause}"
