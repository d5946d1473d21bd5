"""Whether a release is in a range, as `pulumi.require_pulumi_version` and `Pulumi.yaml` write ranges."""

from __future__ import annotations

import re
from typing import Final

from semver import Version

_COMPARISON: Final = re.compile(r"(>=|<=|!=|==|>|<|=|!)?\s*(\d+\.\d+\.\d+\S*)(?:\s+|$)")
_SAME: Final = {"": "==", "=": "==", "!": "!="}


def satisfies(release: str, versions: str) -> bool:
    """Whether a release is in a range: comparisons that must all hold, or, after `||`, all others.

    A text that is no such range holds for no release.
    """
    return any(_all_hold(Version.parse(release), each.strip()) for each in versions.split("||"))


def _all_hold(release: Version, comparisons: str) -> bool:
    found = _COMPARISON.findall(comparisons)
    if not found or _COMPARISON.sub("", comparisons):
        return False
    try:
        return all(release.match(f"{_SAME.get(sign, sign)}{version}") for sign, version in found)
    except ValueError:
        return False
