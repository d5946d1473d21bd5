"""Tokens: what a member carries of a record, to distinguish leftovers from claims."""

from __future__ import annotations

from dataclasses import dataclass

from components.account_pool.core.keys import CLAIM_TOKEN
from components.errors import Misconfigured


def is_count(text: str) -> bool:
    """Return whether a string is a valid count."""
    return text.isdecimal() and len(text) < 10


@dataclass(frozen=True, slots=True)
class Token:
    """Reference from a member to a record: its name, its uid, and the attempt.

    A uid is never reused, and the attempt increases with every change of member. A token therefore belongs to
    one member, and stays dead once its record is gone or has moved to another one.
    """

    record: str
    uid: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.record}.{self.uid}.{self.attempt}"

    @classmethod
    def parse(cls, text: str, member: str) -> Token:
        """Parse the token in an annotation of `member`; raises Misconfigured if it is invalid."""
        record, _, rest = text.partition(".")
        uid, _, attempt = rest.rpartition(".")
        if not record or not uid or not is_count(attempt):
            raise Misconfigured(
                place=f"Secret {member}",
                problem=f"{CLAIM_TOKEN} {text!r} is not a token of this protocol",
                fix="restore it, or remove it if the account is not in use",
            )
        return cls(record, uid, int(attempt))
