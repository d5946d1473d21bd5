"""Reduces the CustomResourceDefinition of SecretStore to what this project keeps of it.

`python -m tests.witness.eso_shapes secretstores.yaml` prints it: components/secret_stores/eso_shapes.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

Schema: TypeAlias = Mapping[str, Any]

_SCALARS: Final = {
    "string": "text",
    "boolean": "flag",
    "integer": "whole",
    "number": "number",
    "object": "any",
}
_SELECTORS: Final = {
    frozenset({"name", "namespace", "key"}): "secret",
    frozenset({"name", "namespace", "audiences"}): "account",
    frozenset({"name", "namespace", "key", "type"}): "certificates",
    frozenset({"name", "namespace"}): "object",
}
"""By their fields. Rules of `crd` have names and namespaces as well, and are regular expressions."""


def providers(definition: Schema) -> Schema:
    """Return the schema of each embedded block, by its key."""
    (version,) = (each for each in definition["spec"]["versions"] if each["name"] == "v1")
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec["properties"]["provider"]["properties"]


def reduced(schema: Schema) -> Any:
    """Return the shape: a word for a scalar or a selector, else a list, a map, a choice or an object."""
    fields = schema.get("properties")
    if fields is not None:
        if word := _SELECTORS.get(frozenset(fields)):
            return word
        needed = {*schema.get("required", ())} - {name for name, each in fields.items() if "default" in each}
        return {f"{name}{'!' if name in needed else ''}": reduced(each) for name, each in fields.items()}
    if "enum" in schema:
        return ["one of", *schema["enum"]]
    if "items" in schema:
        return ["list", reduced(schema["items"])]
    if isinstance(schema.get("additionalProperties"), Mapping):
        return ["map", reduced(schema["additionalProperties"])]
    return _SCALARS.get(schema.get("type", ""), "any")


if __name__ == "__main__":
    blocks = providers(next(yaml.safe_load_all(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    lines = (
        f"{json.dumps(key)}: {json.dumps(reduced(each), sort_keys=True)}"
        for key, each in sorted(blocks.items())
    )
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
