"""Whether a release is in a range, as `pulumi.require_pulumi_version` and `Pulumi.yaml` write ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from semver import Version

_COMPARISON: Final = re.compile(
    r"(>=|<=|!=|==|>|<|=|!)?\s*(\d+\.(?:x(?:\.x)?|\d+\.x|\d+\.\d+(?:[-+][-+.0-9A-Za-z]+)?))(?:\s+|$)"
)
_OR: Final = re.compile(r"(?:^|\s+)\|\|(?:\s+|$)")
_SAME: Final = {"": "==", "=": "==", "!": "!="}


def is_range(versions: str) -> bool:
    """Whether a text is a range: comparisons that must all hold, or, after `||`, all others.

    A comparison names a whole release, or ends in `x`: `3.x`, `>=3.1.x`.
    """
    return all(map(_is_all_comparisons, _either(versions)))


def satisfies(release: str, versions: str) -> bool:
    """Whether a release is in a range. A text that is none holds for no release."""
    if not is_range(versions):
        return False
    return any(_all_hold(Version.parse(release), each) for each in _either(versions))


def _is_all_comparisons(text: str) -> bool:
    named = [release for _, release in _COMPARISON.findall(text)]
    sound = (_has_wildcard(each) or Version.is_valid(each) for each in named)
    return bool(named) and not _COMPARISON.sub("", text) and all(sound)


def _either(versions: str) -> Iterator[str]:
    return map(str.strip, _OR.split(versions))


def _has_wildcard(named: str) -> bool:
    return named.endswith(".x") and named.count(".") <= 2 and "-" not in named


def _all_hold(release: Version, comparisons: str) -> bool:
    found = (each for sign, named in _COMPARISON.findall(comparisons) for each in _whole(sign, named))
    return all(map(release.match, found))


def _whole(sign: str, named: str) -> Iterator[str]:
    """Yield a comparison by whole releases: `3.x` is what is not below 3.0.0, and below 4.0.0."""
    same = _SAME.get(sign, sign)
    if not _has_wildcard(named):
        yield f"{same}{named}"
        return
    *numbers, _ = named.replace("x.x", "0.x").split(".")
    first = ".".join([*numbers, *"00"][:3])
    after = ".".join([*numbers[:-1], str(int(numbers[-1]) + 1), *"00"][:3])
    match same:
        case ">=" | "<":
            yield f"{same}{first}"
        case ">" | "<=":
            yield f"{'>=' if same == '>' else '<'}{after}"
        case "==":
            yield from (f">={first}", f"<{after}")
        case _:  # both, as the genuine CLI has it, which no release is
            yield from (f"<{first}", f">={after}")
