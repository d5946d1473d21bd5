"""The keys of a stack file as docs/configuration.md has them: a table for each model, from the schema."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from components.stack_config.schema import stack_file_schema
from tests.support.cases import table
from tests.support.stacks import ROOT

PAGE: Final = ROOT / "docs" / "configuration.md"
NOTES: Final[Mapping[str, str]] = table(__file__, "NOTES")
"""Path → what the schema does not say of a key: rules between keys, and links."""

_SCHEMA: Final = stack_file_schema()
_FEW: Final = 3
"""A model with no more keys that is used once stands in the table of the model that uses it."""

_HEAD: Final = "\n| Key | Type | Meaning |\n|---|---|---|\n"
_WORDS: Final = {"boolean": "boolean", "array": "list", "object": "map", "string": "string"}

Node = Mapping[str, Any]


def _choices(node: Node) -> Iterator[Node]:
    for choice in node.get("anyOf", [node]):
        yield _SCHEMA["$defs"][choice["$ref"].rpartition("/")[2]] if "$ref" in choice else choice


def _model(node: Node) -> tuple[str, Node] | None:
    """Return the model that a node leads to, with the steps there: `.*` of a map, `[]` of a list."""
    for choice in _choices(node):
        if list(choice.get("properties", ())) == ["secure"]:
            continue
        if "properties" in choice:
            return "", choice
        for step, entry in ((".*", choice.get("additionalProperties")), ("[]", choice.get("items"))):
            found = _model(entry) if entry else None
            if found is not None:
                return step + found[0], found[1]
    return None


def _uses() -> Counter[int]:
    """Count for each model how many keys lead to it."""
    uses, seen = Counter[int](), set[int]()
    left = [_SCHEMA["properties"]["config"]]
    while left:
        for node in left.pop()["properties"].values():
            found = _model(node)
            if found is not None:
                uses[id(found[1])] += 1
                if id(found[1]) not in seen:
                    seen.add(id(found[1]))
                    left.append(found[1])
    return uses


def _type(node: Node, anchor: str) -> str:
    kinds = list[str]()
    for choice in _choices(node):
        if "enum" in choice:
            kinds.append(" ".join(f"`{word}`" for word in choice["enum"]))
        elif choice["type"] == "integer":
            kinds.append(f"number from {choice['minimum']}")
        else:
            word = "object" if "properties" in choice else _WORDS[choice["type"]]
            kinds.append(f"[{word}](#{anchor})" if anchor and word not in {"string", "boolean"} else word)
    return " or ".join(kinds)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w-]", "", title.lower())


class _Tables:
    """Draws one table for each model, behind that of the model which leads to it."""

    def __init__(self) -> None:
        self._uses = _uses()
        self._titles = dict[int, str]()
        self._met = list[tuple[str, Node]]()
        self._drawn = list[Node]()

    def drawn(self) -> str:
        """Return all tables."""
        text = _HEAD + self._rows("", {"properties": self._top()}, "")
        left, self._met = self._met, []
        while left:
            title, model = left.pop(0)
            text += f"\n### `{title}`\n" + self._table(title, model)
            left, self._met = [*self._met, *left], []
        return text

    def _top(self) -> Node:
        keys: Node = _SCHEMA["properties"]["config"]["properties"]
        return {key.removeprefix("credfleet:"): node for key, node in keys.items()}

    def _table(self, title: str, model: Node) -> str:
        own: dict[str, Node] = dict(model["properties"])
        base = next((each for each in self._drawn if each["properties"].items() <= own.items()), None)
        self._drawn.append(model)
        head = _HEAD
        if base is not None:
            own = {name: node for name, node in own.items() if name not in base["properties"]}
            above = self._titles[id(base)]
            head = f"\nAll keys of [`{above}`](#{_anchor(above)})"
            head += (", and:\n" + _HEAD) if own else ".\n"
        return head + self._rows(title, {**model, "properties": own}, "")

    def _rows(self, path: str, model: Node, before: str) -> str:
        text = ""
        for name, node in model["properties"].items():
            key = f"{path}.{name}" if path else name
            steps, nested = _model(node) or ("", None)
            anchor = "" if nested is None else self._anchor_of(f"{key}{steps}", nested)
            default = node.get("default")
            type_ = _type(node, anchor)
            if name in model.get("required", ()):
                type_ += " (required)"
            elif isinstance(default, str | int):
                type_ += f" (`{str(default).lower() if isinstance(default, bool) else default}`)"
            said = f"{node.get('description', '')} {NOTES.get(key, '')}".strip()
            text += f"| `{before}{name}` | {type_} | {said} |\n"
            if nested is not None and not anchor:
                text += self._rows(f"{key}{steps}", nested, f"{before}{name}{steps}.")
        return text

    def _anchor_of(self, title: str, model: Node) -> str:
        """Return where a model is told; nothing where its keys follow at once."""
        if id(model) not in self._titles:
            leads_on = any(_model(node) for node in model["properties"].values())
            if self._uses[id(model)] == 1 and len(model["properties"]) <= _FEW and not leads_on:
                return ""
            self._titles[id(model)] = title
            self._met.append((title, model))
        return _anchor(self._titles[id(model)])


def tables() -> str:
    return _Tables().drawn().strip()
