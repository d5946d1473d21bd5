"""Which steps of the claim protocol the code of the account pool names, in comments and docstrings."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOM = Path(__file__).parents[2] / "components" / "account_pool"
LABEL = re.compile(r"\b[CRXKQ]\d\b")
PASS = re.compile(r"\((\d)\)")


def labels_by_function() -> dict[str, set[str]]:
    """Map `module.function` to the steps it names; the passes (1), (2) … of the sweep are S1, S2 …"""
    found: dict[str, set[str]] = {}
    for path in sorted(ROOM.rglob("*.py")):
        source = path.read_text()
        comments = [*_comments(source)]
        for function in _functions(ast.parse(source)):
            lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
            own = (comment for line, comment in comments if line in lines)
            text = "\n".join([ast.get_docstring(function) or "", *own])
            labels = set(LABEL.findall(text))
            if path.stem == "sweeping":
                labels |= {f"S{number}" for number in PASS.findall(text)}
            if labels:
                found[f"{path.stem}.{function.name}"] = labels
    return found


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
