"""The SDKs of clouds are extras of the package: a stack whose rooms ask for no cloud does without them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import requires
from importlib.util import find_spec
from typing import Final

from components.errors import Problem

_PACKAGES: Final = {"azure": "pulumi-azure-native", "gcp": "pulumi-gcp"}


def review_sdk(extra: str, place: str) -> Iterator[Problem]:
    """Refuse what needs the SDK of a cloud, `azure` or `gcp`, where that is not installed."""
    package = _PACKAGES[extra]
    if find_spec(package.replace("-", "_")) is None:
        pinned = next(each for each in requires("credfleet") or () if each.startswith(package))
        yield Problem(
            place,
            f"it needs the package {package}, which is not installed here",
            f"pip install {pinned.partition(';')[0].strip()}; in requirements.txt: credfleet[{extra}]",
        )
