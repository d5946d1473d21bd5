"""What is wrong with a pull secret or its cluster, told without any value of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong.

    place: where, inside of what was judged. cause: what is wrong and why it matters. mend: what to do about
    it.
    """

    place: str
    cause: str
    mend: str

    def __str__(self) -> str:
        return f"{self.place}: {self.cause} → {self.mend}"
