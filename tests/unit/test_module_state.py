"""No module of the components carries data between resources: engines start any number of host processes."""

import ast
from collections.abc import Iterator
from pathlib import Path

COMPONENTS = Path(__file__).parents[2] / "components"
OPENED_ONCE = {
    "account_pool/core/pool.py _pools",
    "connection.py _connections",
    "secret_manager.py _opened",
}
"""What a process opens but once, by what names it: each answers the same in every process."""
KNOWN = {"dynamic.py _latest"}
"""What is left: it spares what a replacement made whose object carries no incarnation, in one process."""
MUTABLE = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
CONTAINERS = {"dict", "list", "set", "defaultdict", "deque", "Counter", "OrderedDict", "WeakKeyDictionary"}


def test_components_keep_no_mutable_state_in_modules_or_classes() -> None:
    kept = {
        f"{file.relative_to(COMPONENTS)} {name}"
        for file in COMPONENTS.rglob("*.py")
        for name in _kept(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert kept == OPENED_ONCE | KNOWN


def _kept(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Global):
            yield from node.names
    for scope in ast.walk(module):
        if isinstance(scope, ast.Module | ast.ClassDef):
            yield from (name for each in scope.body for name in _state(each, scope))


def _state(statement: ast.stmt, scope: ast.Module | ast.ClassDef) -> Iterator[str]:
    match statement:
        case ast.AnnAssign(ast.Name(name), annotation, value) if _is_mutable(value):
            said = ast.unparse(annotation)
            if "Final" not in said and (isinstance(scope, ast.Module) or "ClassVar" in said):
                yield name
        case ast.Assign(targets, value) if _is_mutable(value):
            yield from (one.id for one in targets if isinstance(one, ast.Name) and one.id.islower())
        case _:
            pass


def _is_mutable(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(ast.Name(name) | ast.Subscript(ast.Name(name))):
            return name in CONTAINERS
        case _:
            return isinstance(value, MUTABLE)
