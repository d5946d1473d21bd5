"""What `Pulumi.yaml` says of a project: its name, where its program and stacks lie, what is configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeVar

from pulumi_sandbox.protocol.values import Json

from components.documents import Document, Unreadable
from components.errors import CredfleetError
from operations.stack.yaml_file import load_map

NAME: Final = re.compile(r"(?!\.+$)[A-Za-z0-9_.-]{1,100}")
_TYPES: Final = ("string", "integer", "boolean", "array", "object")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_KINDS: Final = {str: "a text", dict: "a map"}

_T = TypeVar("_T", str, dict[str, Any])


@dataclass(frozen=True, slots=True)
class Declaration:
    """One configuration key a project declares; `key` is `namespace:name`.

    `type` is empty when untyped, `items` the type of an array's elements (itself `{type, items}`);
    `default` is what the file calls `default` or `value`, which only differ in where they may be written.
    """

    key: str
    type: str = ""
    items: Mapping[str, Any] | None = None
    default: Json = None
    has_default: bool = False
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Project:
    """A project: `directory` holds Pulumi.yaml, `program` is run, `stack_files` holds the stacks' files."""

    name: str
    directory: Path
    program: Path
    stack_files: Path
    declarations: tuple[Declaration, ...]

    def stack_file(self, stack: str) -> Path:
        """Return where the file of a stack is, or would be."""
        return self.stack_files / f"Pulumi.{stack}.yaml"

    @classmethod
    def load(cls, directory: Path) -> Project:
        """Read a project.

        Raises:
            Unreadable: as `load_map`.
            CredfleetError: code `project-invalid`.
        """
        path = directory / "Pulumi.yaml"
        written = load_map(path)
        name = written.data.get("name")
        if not isinstance(name, str) or not name:
            raise _invalid(str(path), "it has no name", "add `name: …`")
        if not NAME.fullmatch(name):
            raise _invalid(str(path), "its name is no part of a path", "use letters, digits, -, _ and . only")
        return cls(
            name=name,
            directory=directory,
            program=_folder(written, directory, "main"),
            stack_files=_folder(written, directory, "stackConfigDir"),
            declarations=tuple(
                _declaration(str(written.at(("config", key))), name, key, value)
                for key, value in _entry(written, "config", dict[str, Any]()).items()
            ),
        )


def _entry(written: Document, key: str, default: _T) -> _T:
    """Return what the file says of a key, or the default, of whose type it has to be. Raises Unreadable."""
    value = written.data.get(key)
    if value is None:
        return default
    if type(value) is not type(default):
        kind = _KINDS[type(default)]
        raise Unreadable(written.at((key,)), f"{key} is not {kind}", f"write {kind} there, or remove it")
    return value


def _folder(written: Document, directory: Path, key: str) -> Path:
    """Return the folder that an entry names, whether it is there or not. Raises Unreadable."""
    named = directory / _entry(written, key, ".")
    try:
        named.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError):
        problem, fix = f"{key} names no folder that could be looked for", "name a folder there"
        raise Unreadable(written.at((key,)), problem, fix) from None
    return named


def _declaration(place: str, project: str, key: str, value: Any) -> Declaration:
    """Read one entry of `config`; a bare value is a default."""
    full = full_key(project, key)
    if full.count(":") > 1:
        raise _invalid(
            place, f"config {key} is no key, which is a namespace and a name", "write NAMESPACE:NAME"
        )
    own = full.startswith(f"{project}:")
    if isinstance(value, str | int | list):
        value = {"default" if own else "value": value}
    wrong = _wrong(value, own=own)
    if wrong:
        raise _invalid(place, f"config {key} {wrong}", "correct it as the Pulumi CLI would have it")
    default = value.get("default", value.get("value"))
    return Declaration(
        key=full,
        type=value.get("type") or "",
        items=value.get("items"),
        default=default,
        has_default=default is not None,
        secret=bool(value.get("secret")),
    )


def _wrong(value: Any, *, own: bool) -> str:
    """Return what the genuine CLI would not accept in a declaration; an empty text if all is well."""
    if not isinstance(value, dict):
        return "is no text, whole number, truth value, list or declaration"
    unknown = value.keys() - {"type", "items", "description", "secret", "default", "value"}
    if unknown:
        return f"has unknown keys: {', '.join(sorted(map(str, unknown)))}"
    if "default" in value and "value" in value:
        return "has both a default and a value"
    if not own and ("type" in value or "default" in value):
        return "is of another namespace, so it can have nothing but a value"
    if not isinstance(value.get("secret"), bool | None):
        return "has a `secret` that is not true or false"
    has_date = _has_date(value.get("default", value.get("value")))
    return "has a date, which belongs in quotes" if has_date else _wrong_type(value) or _wrong_default(value)


def _wrong_type(value: Any) -> str:
    """Return what is wrong with a type, or with that of an array's items."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str | None):
        return "has a type that is no text"
    if value.get("type") and value["type"] not in _TYPES:
        return f"has a type that there is not; there are {', '.join(_TYPES)}"
    if value.get("type") != "array":
        return ""
    items = value.get("items")
    if not items or (isinstance(items, dict) and "type" not in items):
        return "is an array without `items: {type: …}`"
    return _wrong_type(items)


def _wrong_default(value: Mapping[str, Any]) -> str:
    """Return what is wrong with the default of a declaration whose type is sound."""
    type_, items, default = (value.get(key) for key in ("type", "items", "default"))
    if not type_ or default is None or fits(type_, items, default):
        return ""
    return f"has a default that is not of its type, {type_name(type_, items)}"


def _has_date(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_date, value.values() if isinstance(value, dict) else value))
    return isinstance(value, date)


def full_key(project: str, key: str) -> str:
    """Return a key with its namespace, by default the project's; `NAMESPACE:config:NAME` is of old."""
    namespace, _, name = key.partition(":config:")
    if name and ":" not in namespace + name:
        return f"{namespace}:{name}"
    return key if ":" in key else f"{project}:{key}"


def fits(type_: str, items: Mapping[str, Any] | None, value: Json) -> bool:
    """Whether a value is of a type; items: the type of an array's elements, itself `{type, items}`."""
    match type_, value:
        case ("string", str()) | ("object", dict()) | ("boolean", bool() | "true" | "false"):
            return True
        case "integer", str():
            return _INTEGER.fullmatch(value) is not None and -(2**63) <= int(value) < 2**63
        case "integer", int() | float():
            return not isinstance(value, bool) and (isinstance(value, int) or value.is_integer())
        case "array", list() if items:
            return all(fits(items["type"], items.get("items"), item) for item in value)
        case _:
            return False


def type_name(type_: str, items: Mapping[str, Any] | None) -> str:
    """Return how a person reads a type."""
    return f"array<{type_name(items['type'], items.get('items'))}>" if type_ == "array" and items else type_


def _invalid(place: str, problem: str, fix: str) -> CredfleetError:
    return CredfleetError(code="project-invalid", place=place, problem=problem, fix=fix)
