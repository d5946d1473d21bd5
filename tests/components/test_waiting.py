"""What is applied to outputs that a preview does not know."""

import ast
import asyncio
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.output import UNKNOWN

from components.waiting import apply_to_unknowns

ROOT = Path(__file__).parents[2]


def output(value: Any, *, is_known: bool) -> pulumi.Output[Any]:
    """Return an output as the SDK resolves one: what is unknown is UNKNOWN, or None."""

    async def resolve(found: Any) -> Any:
        return found

    return pulumi.Output({*()}, resolve(value), resolve(is_known))


@pytest.mark.parametrize("unknown", [UNKNOWN, None])
@pytest.mark.parametrize("other", [UNKNOWN, None, "known"])
def test_function_gets_each_unknown_by_itself_however_the_sdk_has_it(unknown: Any, other: Any) -> None:
    seen: list[Any] = []

    async def apply() -> None:
        given = output(unknown, is_known=False), output(other, is_known=other == "known")
        await apply_to_unknowns(lambda *values: seen.extend(values), *given).future()

    asyncio.run(apply())
    assert seen == [UNKNOWN, "known" if other == "known" else UNKNOWN]


def test_nothing_else_applies_to_unknowns() -> None:
    sources = [path for path in (ROOT / "components").rglob("*.py") if path.name != "waiting.py"]
    keywords = (
        (path, node.arg)
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.keyword)
    )
    assert [path.name for path, word in keywords if word == "run_with_unknowns"] == []
