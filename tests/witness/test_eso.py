"""What External Secrets Operator's own providers say of themselves is what the project has of each kind.

Their files, with the commit that they are of, are named in eso-providers.json.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from components.secret_stores.eso_providers import capability_of
from tests.support.proving import PROVES, tried
from tests.support.shapes import SHAPES
from tests.witness.published import published

PUBLISHED: Final[dict[str, Any]] = json.loads(
    Path(__file__).with_name("eso-providers.json").read_text(encoding="utf-8")
)
CAPABILITIES: Final = re.compile(
    r"^func \([^)]*\) Capabilities\(\) esv1\.SecretStoreCapabilities \{\s+return esv1\.SecretStore(\w+)\s+\}",
    re.M,
)


def test_a_file_is_named_for_every_kind() -> None:
    assert PUBLISHED["files"].keys() == SHAPES.keys()


@pytest.mark.built
@pytest.mark.parametrize("key", PUBLISHED["files"])
@pytest.mark.skipif(not PROVES, reason="make prove WHAT=witness fetches what was published")
def test_a_kind_can_do_what_its_provider_says(key: str) -> None:
    named = PUBLISHED["files"][key]
    place = PUBLISHED["source"].removeprefix("github.com/")
    url = f"https://raw.githubusercontent.com/{place}/{PUBLISHED['commit']}/{named['file']}"
    source = published(url, named["sha256"]).decode()
    tried("External Secrets Operator: kinds of provider asked what they can do")
    assert CAPABILITIES.findall(source) == [capability_of(key)]
