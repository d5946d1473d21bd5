"""docs/configuration.md: its table is what the settings read, and its example is a stack that works."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import yaml

from components.settings.schema import stack_file_schema
from components.settings.stack import SIZE_LIMIT
from tests.support.stacks import ROOT, as_passed, problems

PAGE: Final = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
SCHEMA: Final = stack_file_schema()
KEYS: Final[Mapping[str, Any]] = SCHEMA["properties"]["config"]["properties"]
Row = tuple[str, str, str, str]
"""Path, type, default and whether it is secret, as the table has them."""


def choices(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Look up what a node may be, without null."""
    for choice in node.get("anyOf", [node]):
        if choice.get("type") != "null":
            yield looked_up(choice)


def looked_up(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    return SCHEMA["$defs"][choice["$ref"].rpartition("/")[2]] if "$ref" in choice else choice


def type_of(node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return " ".join(f"`{word}`" for word in node["enum"])
    if node["type"] == "object":
        return "object" if "properties" in node else "map"
    words = {"string": "text", "boolean": "`true` `false`", "array": "list"}
    return words.get(node["type"]) or f"number from {node['minimum']}"


def rows(
    path: str, node: Mapping[str, Any], told: dict[int, str], *, required: bool
) -> Iterator[tuple[Row, str]]:
    """Return the rows of a key and of all below it, each with the description the settings have for it.

    told: where an object of some kind is told already. Further keys of the kind refer to that place.
    """
    kinds = list(choices(node))
    default = node.get("default")
    has_default = isinstance(default, str | bool | int)
    shown = "required" if required else f"`{default}`".replace("`False`", "`false`") if has_default else "-"
    row = path, " or ".join(map(type_of, kinds)), shown, "no"
    elsewhere = next((told[id(kind)] for kind in kinds if id(kind) in told), None)
    if elsewhere is not None:
        yield row, f"{node.get('description', '')} As `{elsewhere}`.".strip()
        return
    yield row, node.get("description", "")
    for kind in kinds:
        yield from entries(path, kind, told)


def entries(path: str, kind: Mapping[str, Any], told: dict[int, str]) -> Iterator[tuple[Row, str]]:
    if "properties" in kind:
        told[id(kind)] = path
    for name, child in kind.get("properties", {}).items():
        yield from rows(f"{path}.{name}", child, told, required=name in kind.get("required", ()))
    for step, each in ((".*", kind.get("additionalProperties")), ("[]", kind.get("items"))):
        for entry in choices(each) if each else ():
            if list(entry.get("properties", ())) == ["secure"]:
                yield (f"{path}{step}", "text", "-", "yes"), ""
            else:
                yield from entries(f"{path}{step}", entry, told)


def expected(told: dict[int, str]) -> Iterator[tuple[Row, str]]:
    for key, node in KEYS.items():
        yield from rows(key.removeprefix("credfleet:"), node, told, required=False)


EXPECTED: Final = [*expected({})]


def shown_rows() -> list[tuple[Row, str]]:
    cells = (line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| `"))
    table = [[cell.strip() for cell in line] for line in cells if len(line) == 5]
    return [((path.strip("`"), *rest), meaning) for path, *rest, meaning in table]  # pyright: ignore[reportReturnType] - five cells, as filtered


def test_the_table_has_every_key_with_its_type_default_and_secrecy_and_no_other() -> None:
    assert [row for row, _ in shown_rows()] == [row for row, _ in EXPECTED]


def test_each_key_means_what_the_settings_say_of_it() -> None:
    meanings = dict(shown_rows())

    assert [row for row, said in EXPECTED if not meanings[row] or said not in meanings[row]] == []


def test_the_size_limit_of_the_page_is_the_one_that_is_enforced() -> None:
    assert f"{SIZE_LIMIT // 1024} KiB ({SIZE_LIMIT:,} bytes)" in PAGE


@pytest.mark.parametrize("number", range(len(re.findall(r"```yaml\n", PAGE))))
def test_an_example_is_a_stack_with_nothing_wrong(number: int) -> None:
    text = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[number]
    config = {key.removeprefix("credfleet:"): value for key, value in yaml.safe_load(text)["config"].items()}
    config["credentials"] = {name: json.dumps({"key": "value"}) for name in config["credentials"]}

    assert problems(as_passed(config)) == ()
