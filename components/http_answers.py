"""What the status of an HTTP answer means to whoever asked: said once, for every server that is asked."""

from __future__ import annotations

from enum import StrEnum


class Answer(StrEnum):
    """What came of a call. UNREACHABLE: it passes by itself, and the call may have been carried out."""

    DONE = "done"
    ABSENT = "absent"
    CONFLICT = "conflict"
    NOT_ALLOWED = "not-allowed"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"


def answer_of(status: int) -> Answer:
    """Return what a status means."""
    match status:
        case 401 | 403:
            return Answer.NOT_ALLOWED
        case 404:
            return Answer.ABSENT
        case 409:
            return Answer.CONFLICT
        case _ if status < 300:
            return Answer.DONE
        case _ if status == 429 or status >= 500:
            return Answer.UNREACHABLE
        case _:
            return Answer.REFUSED
