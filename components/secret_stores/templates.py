"""Templates of the Secret of a read, rendered as External Secrets Operator 2.9.0 does.

The language is Go's `text/template` with `missingkey=error`, reduced to `{{ .key }}` and `{{- .key -}}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from components.config.document import nearest
from components.errors import StoreError

_VALUE: Final = r"(?:\s*(?<!\{)\{\{-(?=\s)|(?<!\{)\{\{)\s*\.([A-Za-z_]\w*)\s*(?:(?<=\s)-\}\}\s*|\}\})"
VALUE: Final = re.compile(_VALUE.replace(r"\s", r"[ \t\r\n]"), re.ASCII)
"""Reference to a value in a template; group 1 is the key of the value."""


def is_template(text: str) -> bool:
    """Return whether a string contains only values and no other template syntax."""
    return not any("{{" in each for each in VALUE.split(text)[::2])


def render(template: Mapping[str, str], data: Mapping[str, bytes], place: str) -> dict[str, bytes]:
    """Render the template of each key. Raises StoreError for a missing value."""
    made: dict[str, bytes] = {}
    for key, text in template.items():
        parts = VALUE.split(text)
        if gone := [name for name in parts[1::2] if name not in data]:
            problem, fix = f"none of its keys is {gone[0]}", nearest(gone[0], data)
            raise StoreError(code="absent", place=f"{place}, template.{key}", problem=problem, fix=fix)
        made[key] = b"".join(data[each] if at % 2 else each.encode() for at, each in enumerate(parts))
    return made
