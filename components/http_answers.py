"""What the status of an HTTP answer means to whoever asked: said once, for every server that is asked."""

from __future__ import annotations

from enum import StrEnum


class HttpOutcome(StrEnum):
    """What came of a call. UNREACHABLE: it passes by itself, and the call may have been carried out."""

    DONE = "done"
    ABSENT = "absent"
    CONFLICT = "conflict"
    NOT_ALLOWED = "not-allowed"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"


def answer_of(status: int) -> HttpOutcome:
    """Return what a status means."""
    match status:
        case 401 | 403:
            return HttpOutcome.NOT_ALLOWED
        case 404:
            return HttpOutcome.ABSENT
        case 409:
            return HttpOutcome.CONFLICT
        case _ if status < 300:
            return HttpOutcome.DONE
        case _ if status == 429 or status >= 500:
            return HttpOutcome.UNREACHABLE
        case _:
            return HttpOutcome.REFUSED
