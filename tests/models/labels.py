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
    for path in sorted(ROOM.glob("*.py")):
        source = path.read_text()
        for function in _functions(ast.parse(source)):
            text = "\n".join([ast.get_docstring(function) or "", *_comments(source, function)])
            labels = set(LABEL.findall(text))
            if path.stem == "sweeping":
                labels |= {f"S{number}" for number in PASS.findall(text)}
            if labels:
                found[f"{path.stem}.{function.name}"] = labels
    return found


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _comments(source: str, function: ast.FunctionDef) -> Iterator[str]:
    last = function.end_lineno or function.lineno
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and function.lineno <= token.start[0] <= last:
            yield token.string
