"""Reduces the CustomResourceDefinition of SecretStore to what this project keeps of it.

`python -m tests.witness.eso_shapes secretstores.yaml` prints it: components/secret_stores/eso_shapes.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

Schema: TypeAlias = Mapping[str, Any]

_SCALARS: Final = {
    "byte": "bytes",
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

_RULES: Final = "x-kubernetes-validations"
_BOUNDS: Final = {
    "minLength": ("size(self) >= {}", "it has to have {} characters or more"),
    "maxLength": ("size(self) <= {}", "it may have {} characters"),
    "pattern": ("self.matches({})", "it has to be like {}"),
    "minimum": ("self >= {}", "it has to be {} or more"),
    "minProperties": ("size(self) >= {}", "it has to say {} thing or more"),
    "maxProperties": ("size(self) <= {}", "it may say {} thing"),
}
"""What bounds a value → how CEL says it, and we."""

_SAID: Final = {
    *("description", "example", "type", "format", "properties", "required", "items", "additionalProperties"),
    *("enum", "default", _RULES, *_BOUNDS),
}


def providers(definition: Schema) -> Schema:
    """Return the schema of each embedded block, by its key."""
    (version,) = (each for each in definition["spec"]["versions"] if each["name"] == "v1")
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec["properties"]["provider"]["properties"]


def reduced(schema: Schema) -> Any:
    """Return the shape: a word for a scalar or a selector, else a list, a map, a choice or an object.

    Around it stand its default and what the server demands of it: rules in CEL, with what they say.
    Raises ValueError for what a schema says and a shape does not.
    """
    unknown = schema.keys() - _SAID
    if unknown:
        raise ValueError(f"no shape says {sorted(unknown)}")
    rules = [*_bounds(schema), *([each["rule"], each["message"]] for each in schema.get(_RULES, ()))]
    shape = ["where", _shape(schema), *rules] if rules else _shape(schema)
    return ["default", shape, schema["default"]] if "default" in schema else shape


def _shape(schema: Schema) -> Any:
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
    return _SCALARS.get(schema.get("format", "")) or _SCALARS.get(schema.get("type", ""), "any")


def _bounds(schema: Schema) -> Iterator[Sequence[str]]:
    for name, (rule, said) in _BOUNDS.items():
        if name in schema:
            yield [rule.format(json.dumps(schema[name])), said.format(schema[name])]


if __name__ == "__main__":
    blocks = providers(next(yaml.safe_load_all(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    lines = (
        f"{json.dumps(key)}: {json.dumps(reduced(each), sort_keys=True)}"
        for key, each in sorted(blocks.items())
    )
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
