"""Tokens: what a member carries of a record, so that a left-over can be told from a claim."""

from __future__ import annotations

from dataclasses import dataclass

from components.account_pool.core.keys import CLAIM_TOKEN
from components.errors import Misconfigured


def is_count(text: str) -> bool:
    """Whether a text is a number that a count can be."""
    return text.isdecimal() and len(text) < 10


@dataclass(frozen=True, slots=True)
class Token:
    """What a member carries of a record: its name, the uid the server gave it, and the attempt.

    The uid never comes back, and the attempt rises with every change of member, so a token belongs to one
    member and stays dead once its record is gone or has moved on.
    """

    record: str
    uid: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.record}.{self.uid}.{self.attempt}"

    @classmethod
    def parse(cls, text: str, member: str) -> Token:
        """Read the token in an annotation of `member`; raises Misconfigured when it is none."""
        record, _, rest = text.partition(".")
        uid, _, attempt = rest.rpartition(".")
        if not record or not uid or not is_count(attempt):
            raise Misconfigured(
                place=f"Secret {member}",
                problem=f"{CLAIM_TOKEN} {text!r} is not a token of this protocol",
                fix="restore it, or remove it if the account is not in use",
            )
        return cls(record, uid, int(attempt))
