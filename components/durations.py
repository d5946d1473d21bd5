"""Times and durations; durations have Go's format, as in settings and Kubernetes objects."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

_UNITS: Final = {
    "ns": Decimal(1),
    "us": Decimal(10) ** 3,
    "µs": Decimal(10) ** 3,
    "ms": Decimal(10) ** 6,
    "s": Decimal(10) ** 9,
    "m": 60 * Decimal(10) ** 9,
    "h": 3600 * Decimal(10) ** 9,
}
"""Unit → nanoseconds."""

DURATION: Final = re.compile(r"0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")
_PART: Final = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")


def nanoseconds(duration: str) -> int:
    """Parse a duration; fractions of a nanosecond are dropped."""
    return sum(int(Decimal(amount) * _UNITS[unit]) for amount, unit in _PART.findall(duration))


def period(duration: str) -> timedelta:
    """Parse a duration to whole seconds, at most about thirty years."""
    return timedelta(seconds=min(nanoseconds(duration) // 10**9, 10**9))


def now() -> str:
    """Return the present time in RFC 3339, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """Parse a date, which means midnight UTC, or a time with its zone; raises ValueError."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None and len(text) > len("2027-01-31"):
        raise ValueError(text)
    return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)


def has_ended(time: str | None) -> bool:
    """Return whether a time is in the past; False for None."""
    return time is not None and moment(time) < datetime.now(UTC)


def as_go_writes(duration: str) -> str:
    """Format a duration as Go's `time.Duration` does: `1h` is `1h0m0s`, `1500ms` is `1.5s`."""
    whole = nanoseconds(duration)
    if 0 < whole < _UNITS["s"]:
        unit = next(unit for unit in ("ms", "µs", "ns") if whole >= _UNITS[unit])
        return f"{_plain(whole / _UNITS[unit])}{unit}"
    minutes, rest = divmod(whole, int(_UNITS["m"]))
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_plain(rest / _UNITS['s'])}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
