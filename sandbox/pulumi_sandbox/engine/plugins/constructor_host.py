"""Writes the code that declares a resource; started as a script in the program's own environment.

It reads from standard input what the resource is, and prints the code: names of Python are those of the SDK
of its package that is installed there. A secret is no part of what it reads; the code takes it from the
stack's configuration. Nothing of this package may be imported here.
"""

from __future__ import annotations

import importlib
import json
import keyword
import re
import sys
import typing
from collections.abc import Iterator
from types import UnionType
from typing import Any, Final

_INDENT: Final = "    "
_BETWEEN_OPTIONS: Final = f",\n{_INDENT * 2}"
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""The key by which what is no plain object is known."""


def main() -> int:
    """Print the code for what standard input describes; 1, and why, when there is none."""
    asked: dict[str, Any] = json.load(sys.stdin)
    package = asked["type"].partition(":")[0]
    module = f"pulumi_{package.replace('-', '_')}"
    try:
        importlib.import_module(module)
    except ImportError:
        sys.stderr.write(f"the environment of the program has no package {module}")
        return 1
    found = _class_of(asked["type"])
    if found is None:
        sys.stderr.write(f"the installed {module} has no class for {asked['type']}")
        return 1
    path, arguments = found
    alias = module.removeprefix("pulumi_")
    sys.stdout.write(f"import pulumi\nimport {module} as {alias}\n\n")
    sys.stdout.write(_declaration(asked, f"{alias}{path.removeprefix(module)}", arguments))
    return 0


def _class_of(type_: str) -> tuple[str, type | None] | None:
    """Return where the class of a type is, and the class of its arguments, if the package has one."""
    registered: Any = importlib.import_module("pulumi.runtime.rpc")
    for module in (each for all_ in registered._RESOURCE_MODULES.values() for each in all_):
        told = getattr(module, "mod_info", {})
        name = told.get("classes", {}).get(type_)
        if name:
            members = vars(importlib.import_module(told["fqn"]))
            arguments = members.get(f"{name}InitArgs") or members.get(f"{name}Args")
            return f"{told['fqn']}.{name}", arguments
    return None


def _declaration(asked: dict[str, Any], class_: str, arguments: type | None) -> str:
    lines = [f"{_variable(asked['name'])} = {class_}({_text(asked['name'])}"]
    lines += [
        f"{_INDENT}{name}={_expression(value, kind, _INDENT)}"
        for name, value, kind in _members(asked["inputs"], arguments)
    ]
    options = [f"{option}={value}" for option, value in asked["options"].items()]
    if options:
        lines.append(f"{_INDENT}opts = pulumi.ResourceOptions({_BETWEEN_OPTIONS.join(options)})")
    return ",\n".join(lines) + ")\n"


def _members(inputs: dict[str, Any], kind: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the members of an object: the name in Python, the value, and the type where the SDK says it.

    What a provider keeps for itself beside them, as `__defaults`, is none of a class of the SDK.
    """
    types: Any = importlib.import_module("pulumi._types")
    names: dict[str, str] = {}
    kinds: dict[str, Any] = {}
    if kind is not None:
        names = {wire: name for name, wire in types.input_type_py_to_pulumi_names(kind).items()}
        kinds = types.input_type_types(kind)
    for key, value in sorted(inputs.items()):
        if value is not None and (kind is None or not key.startswith("__")):
            yield names.get(key, key), value, kinds.get(key)


def _expression(value: Any, kind: Any, indent: str) -> str:
    deeper = indent + _INDENT
    if isinstance(value, dict) and _SIGNATURE in value:
        read = "require_secret" if value["isText"] else "require_secret_object"
        return f"pulumi.Config().{read}({_text(value['key'])})"
    if isinstance(value, dict):
        parts = list(_alternatives(kind))
        members = next(filter(_is_input_type, parts), None)
        items = _members(value, members)
        of_all = None if members else _element(parts)
        written = [
            f"{deeper}{_text(name)}: {_expression(item, of_each or of_all, deeper)},\n"
            for name, item, of_each in items
        ]
        return f"{{\n{''.join(written)}{indent}}}" if written else "{}"
    if isinstance(value, list):
        element = _element(list(_alternatives(kind)))
        items = [f"{deeper}{_expression(item, element, deeper)},\n" for item in value]
        return f"[\n{''.join(items)}{indent}]" if items else "[]"
    return _text(value) if isinstance(value, str) else repr(value)


def _alternatives(kind: Any) -> Iterator[Any]:
    """Yield the types that a value may have, unions opened."""
    if typing.get_origin(kind) in (typing.Union, UnionType):
        for each in typing.get_args(kind):
            yield from _alternatives(each)
    elif kind is not None:
        yield kind


def _is_input_type(kind: Any) -> bool:
    types: Any = importlib.import_module("pulumi._types")
    return isinstance(kind, type) and types.is_input_type(kind)


def _element(kinds: list[Any]) -> Any:
    """Return the type of what a list or a map of any keys holds, where one of these types says it."""
    return next((arguments[-1] for each in kinds if (arguments := typing.get_args(each))), None)


def _variable(name: str) -> str:
    """Return a name of Python for a resource."""
    plain = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
    return f"_{plain}" if not plain.isidentifier() or keyword.iskeyword(plain) else plain


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
