"""The JSON Schema of a stack file, for editors: docs/schema/stack.json is this, written out."""

from __future__ import annotations

from typing import Any

from components.settings.stack import NAMESPACE, Settings


def stack_file_schema() -> dict[str, Any]:
    """Describe `Pulumi.<stack>.yaml`. Keys of other programs pass; misspelt ones of ours do not."""
    settings = Settings.model_json_schema()
    keys: dict[str, Any] = settings["properties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stack file of credfleet",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": {f"{NAMESPACE}{key}": value for key, value in keys.items()},
                "patternProperties": {f"^{NAMESPACE}(?!({'|'.join(keys)})$)": False},
            }
        },
        "$defs": settings["$defs"],
    }
