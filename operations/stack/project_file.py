"""The content of `Pulumi.yaml`: the project's name, locations of program and stack files, configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pulumi_sandbox.protocol.values import Json

from components.documents import Document, Unreadable
from components.errors import CredfleetError
from operations.stack.yaml_file import load_map

NAME: Final = re.compile(r"(?!\.+$)[A-Za-z0-9_.-]{1,100}")
_KINDS: Final = {str: "a text", dict: "a map"}

_T = TypeVar("_T", str, dict[str, Any])


@dataclass(frozen=True, slots=True)
class Project:
    """A project: `directory` contains Pulumi.yaml, `program` is run, `stack_files` contains stack files.

    declarations: configuration keys that it declares, `namespace:name` → `default` or `value` in the file,
    which only differ in where they are allowed; types are checked by the Pulumi CLI.
    """

    name: str
    directory: Path
    program: Path
    stack_files: Path
    declarations: Mapping[str, Json]

    def stack_file(self, stack: str) -> Path:
        """Return the path of a stack's file, which might not exist."""
        return self.stack_files / f"Pulumi.{stack}.yaml"

    def stacks(self) -> dict[str, Path]:
        """Return the stacks with files, sorted by name, and their files."""
        files = sorted(self.stack_files.glob("Pulumi.*.yaml"))
        return {path.name[len("Pulumi.") : -len(".yaml")]: path for path in files}

    @classmethod
    def load(cls, directory: Path) -> Project:
        """Read a project.

        Raises Unreadable as `load_map`; CredfleetError `project-invalid`.
        """
        path = directory / "Pulumi.yaml"
        written = load_map(path)
        name = written.data.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise CredfleetError(
                code="project-invalid",
                place=str(path),
                problem="its name is not a part of a path" if name else "it has no name",
                fix="write `name: …`, of letters, digits, -, _ and . only",
            )
        return cls(
            name=name,
            directory=directory,
            program=directory / _entry(written, "main", "."),
            stack_files=directory / _entry(written, "stackConfigDir", "."),
            declarations={
                full_key(name, key): value.get("default", value.get("value"))
                if isinstance(value, dict)
                else value  # a bare value is a default
                for key, value in _entry(written, "config", dict[str, Any]()).items()
            },
        )


def _entry(written: Document, key: str, default: _T) -> _T:
    """Return the value of a key, or the default, which determines its type. Raises Unreadable."""
    value = written.data.get(key)
    if value is None:
        return default
    if type(value) is not type(default):
        kind = _KINDS[type(default)]
        raise Unreadable(written.at((key,)), f"{key} is not {kind}", f"write {kind} there, or remove it")
    return value


def full_key(project: str, key: str) -> str:
    """Return a key with its namespace, by default the project; `NAMESPACE:config:NAME` is obsolete."""
    namespace, _, name = key.partition(":config:")
    if name and ":" not in namespace + name:
        return f"{namespace}:{name}"
    return key if ":" in key else f"{project}:{key}"
