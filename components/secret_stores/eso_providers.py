"""What the providers of External Secrets Operator (ESO) can do, kind by kind.

`eso_providers.json` is taken from their code in the version it names; `tests/witness/test_eso.py` asks that
code again. By the key of the embedded block; of a kind of a stack's own code nothing is known here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).with_name("eso_providers.json")


def capability_of(key: str) -> str | None:
    """Return what ESO can do with providers of a kind: ReadOnly, WriteOnly or ReadWrite."""
    return _facts(key).get("can")


def _facts(key: str) -> Mapping[str, Any]:
    return _told()["kinds"].get(key, {})


@cache
def _told() -> Mapping[str, Any]:
    return json.loads(_FILE.read_text(encoding="utf-8"))
