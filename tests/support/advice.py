"""The commands that the product prints as advice, found in its source.

Docstrings, help texts and examples of commands are no advice; placeholders are written as `{}`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typer.main import get_command

from operations.main import app

ROOT: Final = Path(__file__).parents[2]
_FOLDERS: Final = ("components", "operations", "policies", "sandbox/pulumi_sandbox")
_SUBJECTS: Final = "|".join(map(str, vars(get_command(app))["commands"]))
_TARGETS: Final = "|".join(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
_COMMAND: Final = re.compile(
    rf"(?<![\w./-])(?:credfleet (?:{_SUBJECTS})\b|make (?:{_TARGETS})\b"
    r"|kubectl (?:get|config|create|patch)\b|pulumi (?:import|up|preview|config|stack)\b)[^`\"),;|>]*"
)


def advised() -> dict[str, list[str]]:
    """Return each command that is advised somewhere, with the file of each place that does."""
    found: dict[str, list[str]] = {}
    for path in sorted(file for folder in _FOLDERS for file in (ROOT / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for text in _texts(ast.parse(source)) if _COMMAND.search(source) else ():
            for command in _COMMAND.findall(text):
                found.setdefault(command.strip(" .'"), []).append(str(path.relative_to(ROOT)))
    return found


def _texts(tree: ast.AST) -> Iterator[str]:
    passed_over = {id(inner) for node in ast.walk(tree) for inner in _no_advice(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in passed_over:
            passed_over.update(id(part) for part in node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over:
            yield node.value


def _no_advice(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Expr(value=ast.Constant() as said):
            yield said
        case ast.FunctionDef(decorator_list=decorators):
            for decorator in decorators:
                yield from ast.walk(decorator)
        case (
            ast.Call(func=ast.Name(id="group" | "epilog" | "command" | "optional"))
            | ast.keyword(arg="help" | "description")
        ):
            yield from ast.walk(node)
        case _:
            pass
