"""The SDKs of clouds are extras of the package: a stack whose rooms ask for no cloud does without them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import requires, version
from importlib.util import find_spec
from typing import Final

from packaging.requirements import Requirement

from components.errors import Problem

_PACKAGES: Final = {"azure": "pulumi-azure-native", "gcp": "pulumi-gcp"}


def review_sdk(extra: str, place: str) -> Iterator[Problem]:
    """Refuse what needs the SDK of a cloud, `azure` or `gcp`, where that is not installed in its versions."""
    package = _PACKAGES[extra]
    required = next(each for each in requires("credfleet") or () if each.startswith(package))
    asked = required.partition(";")[0].strip()
    found = None if find_spec(package.replace("-", "_")) is None else version(package)
    if found is None or found not in Requirement(asked).specifier:
        is_found = f"and {found} is" if found else "which is not"
        yield Problem(
            place,
            f"it needs the package {asked}, {is_found} installed here",
            f"pip install '{asked}'  # and put [{extra}] behind credfleet in requirements.txt",
        )
