"""JSON Schemas of a stack's and a tenant's file, for editors; docs/schema has the generated files."""

from __future__ import annotations

from typing import Any

from components.stack_config.stack import NAMESPACE, Settings
from components.stack_config.tenant_file import PARTS
from components.stack_config.tenant_files import CLASS, CLASSES


def stack_file_schema() -> dict[str, Any]:
    """Return the schema of `Pulumi.<stack>.yaml`, which allows other programs' keys."""
    settings = _without_nothing(Settings.model_json_schema())
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


def tenant_file_schema() -> dict[str, Any]:
    """Return the schema of a tenant's file, and of the defaults; the namespace is optional."""
    settings = _without_nothing(Settings.model_json_schema())
    defs: dict[str, Any] = settings["$defs"]
    sections: dict[str, Any] = {}
    for section, parts in PARTS.items():
        own = _named(defs, settings["properties"][section])["properties"]
        sections[section] = _object({part: own[part] for part in parts})
        for part in parts:
            entry = _named(defs, own[part]["additionalProperties"])
            entry["required"] = [key for key in entry.get("required", ()) if key != "namespace"]
    one = {CLASS: {"type": "string"}, **defs["Tenant"]["properties"], **sections}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tenant's file of credfleet",
        **_object({**one, CLASSES: {"type": "object", "additionalProperties": {"$ref": "#"}}}),
        "$defs": defs,
    }


def _without_nothing(schema: Any) -> Any:
    """Return a schema without null: a key without a value is a mistake, and rejected."""
    if isinstance(schema, list):
        return [_without_nothing(each) for each in schema if each != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: _without_nothing(value) for key, value in schema.items() if (key, value) != ("default", None)
    }
    choices = found.get("anyOf", ())
    return {**choices[0], **{k: v for k, v in found.items() if k != "anyOf"}} if len(choices) == 1 else found


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _named(defs: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return defs[schema["$ref"].rpartition("/")[2]]
