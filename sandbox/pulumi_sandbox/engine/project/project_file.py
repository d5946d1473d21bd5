"""What `Pulumi.yaml` says of a program: name, runtime, declared configuration, providers of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.documents import Document, Step, Unreadable
from pulumi_sandbox.engine.project.config_types import TYPES, fits, full_key, type_name
from pulumi_sandbox.engine.project.entries import entry, folder
from pulumi_sandbox.engine.project.version_range import is_range, satisfies
from pulumi_sandbox.engine.project.yaml_file import load_map
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.paths import render
from pulumi_sandbox.protocol.values import Json

NAME: Final = re.compile(r"(?!\.+$)[A-Za-z0-9_.-]{1,100}")
_LOCAL: Final = ("./", "../", "/")


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
    """A project: `directory` holds Pulumi.yaml, `program` is run, `stack_files` holds the stacks' files.

    `runtime` is `python`, `nodejs` or `go`. `virtualenv` is None when the program runs with this interpreter;
    in Node `typescript` says whether its sources are compiled; in Go `binary` is the program, or else
    `build_target` where it is built, if not empty. `providers` maps a package to the folder of the provider
    that serves it, `packages` to the one whose source serves it. `refreshes` says whether each run is to read
    first what is there.
    """

    name: str
    directory: Path
    program: Path
    stack_files: Path
    runtime: str
    virtualenv: Path | None
    typescript: bool
    binary: str
    build_target: str
    declarations: tuple[Declaration, ...]
    providers: Mapping[str, Path]
    packages: Mapping[str, Path]
    refreshes: bool = False

    @classmethod
    def load(cls, directory: Path) -> Project:
        """Read a project.

        Raises SandboxError `file-missing` or `yaml-invalid`; `project-invalid`, for what is wrong; or
        `project-unsupported`, naming what only the genuine CLI does.
        """
        path = directory / "Pulumi.yaml"
        written = load_map(path)
        document: dict[str, Any] = written.data
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise _invalid(str(path), "it has no name", "add `name: …`")
        if not NAME.fullmatch(name):
            raise _invalid(str(path), "its name is no part of a path", "use letters, digits, -, _ and . only")
        if "backend" in document:
            raise _unsupported(path, "`backend`")
        entry(written, "", "description")
        required, release = document.get("requiredPulumiVersion"), version("pulumi")
        if required not in (None, "") and not is_range(str(required)):
            mend = "write comparisons with releases, such as >=3.100.0 or 3.x"
            raise _invalid(str(path), f"requiredPulumiVersion {required} is no range of releases", mend)
        if required not in (None, "") and not satisfies(release, str(required)):
            cause = f"it wants Pulumi {required}, and the embedded engine acts as {release}"
            raise _invalid(
                str(path), cause, "widen requiredPulumiVersion, or install that release of the SDK"
            )
        options = ("runtime", "options")
        return cls(
            name=name,
            directory=directory,
            program=folder(written, directory, ".", "main"),
            stack_files=folder(written, directory, ".", "stackConfigDir"),
            runtime=_runtime(path, written),
            virtualenv=(
                folder(written, directory, "", *options, "virtualenv")
                if entry(written, "", *options, "virtualenv")
                else None
            ),
            typescript=entry(written, True, *options, "typescript"),
            binary=entry(written, "", *options, "binary"),
            build_target=entry(written, "", *options, "buildTarget"),
            declarations=tuple(
                _declaration(str(written.at(("config", key))), name, key, value)
                for key, value in entry(written, dict[str, Any](), "config").items()
            ),
            providers=_providers(path, directory, written),
            packages={
                name: _package(path, directory, name, given)
                for name, given in entry(written, dict[str, Any](), "packages").items()
            },
            refreshes=_refreshes(path, entry(written, dict[str, Any](), "options")),
        )

    @property
    def python(self) -> Path:
        """The interpreter of the program's environment."""
        return self.virtualenv / "bin" / "python" if self.virtualenv else Path(sys.executable)

    def key(self, name: str) -> str:
        """Return a configuration key with its namespace, the project's if it has none."""
        return full_key(self.name, name)


def _refreshes(path: Path, options: Mapping[str, Any]) -> bool:
    """Whether every run begins with a refresh."""
    for option, value in options.items():
        if (option, value) != ("refresh", "always"):
            raise _unsupported(path, f"`options: {{{option}: {value}}}`")
    return bool(options)


_OPTIONS: Final = {
    "python": ("toolchain", "virtualenv", "typechecker"),
    "nodejs": ("packagemanager", "typescript"),
    "go": ("binary", "buildTarget"),
}
"""The runtimes, and their options that change nothing of a run, or are followed."""


def _runtime(path: Path, written: Document) -> str:
    is_map = isinstance(written.data.get("runtime"), dict)
    name = entry(written, "", "runtime", *(["name"] if is_map else []))
    options = entry(written, dict[str, Any](), "runtime", "options")
    if name not in _OPTIONS:
        raise _unsupported(path, f"runtime {name!r}")
    for option in options:
        if option not in _OPTIONS[name]:
            raise _unsupported(path, f"runtime option `{option}`")
    if options.keys() >= {"binary", "buildTarget"}:
        raise _invalid(str(path), "its runtime has both a binary and a buildTarget", "leave one of them out")
    if options.get("toolchain", "pip") != "pip":
        raise _unsupported(path, f"toolchain {options['toolchain']!r}")
    return name


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
    if value.get("type") and value["type"] not in TYPES:
        return f"has a type that there is not; there are {', '.join(TYPES)}"
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


def _providers(path: Path, directory: Path, written: Document) -> dict[str, Path]:
    for kind in entry(written, dict[str, Any](), "plugins"):
        if kind != "providers":
            raise _unsupported(path, f"`plugins.{kind}`")
    listed = entry(written, list[Any](), "plugins", "providers")
    return dict(_provider(directory, written, "plugins", "providers", index) for index in range(len(listed)))


def _provider(directory: Path, written: Document, *path: Step) -> tuple[str, Path]:
    name = entry(written, "", *path, "name")
    if not name or not entry(written, "", *path, "path"):
        raise Unreadable(
            written.at(path),
            f"{render(path)} does not say which provider is where",
            "write {name: …, path: …}",
        )
    return name, folder(written, directory, "", *path, "path")


def _package(path: Path, directory: Path, name: str, given: Any) -> Path:
    """Return the folder of a package, given as its path, or as `{source: PATH}`."""
    source = given.get("source") if isinstance(given, dict) else given
    if not isinstance(source, str) or not source.startswith(_LOCAL):
        raise _unsupported(
            path, f"`packages.{name}`, which is no path that begins with {' or '.join(_LOCAL)}"
        )
    if isinstance(given, dict) and given.keys() - {"source"}:
        raise _unsupported(path, f"`packages.{name}.{min(given.keys() - {'source'})}`")
    return directory / source


def _invalid(place: str, cause: str, mend: str) -> SandboxError:
    return SandboxError(code="project-invalid", place=place, cause=cause, mend=mend)


def _unsupported(path: Path, what: str) -> SandboxError:
    return SandboxError(
        code="project-unsupported",
        place=str(path),
        cause=f"the embedded engine does not know {what}",
        mend="remove it, or run this project with the Pulumi CLI",
    )
