"""A stack's configuration file, as the Pulumi CLI reads it, and the resulting program configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.protocol.values import Json
from pulumi_sandbox.protocol.values import Path as PropertyPath

from components.documents import Document, Mark, Unreadable
from components.errors import CredfleetError
from operations.stack.project_file import Project, full_key
from operations.stack.yaml_file import load_map

_ENCRYPTED_BY_OTHERS: Final = ("encryptedkey", "environment")


class StackFile:
    """The file of one stack; keys are always `namespace:name`, however the file writes them."""

    READ: Final = ("config", "encryptedkey", "encryptionsalt", "environment", "secretsprovider")
    """Keys of the file that the Pulumi CLI reads."""

    def __init__(self, path: Path, project: str, written: Document) -> None:
        self.path = path
        self._project = project
        self._written = written
        self._document: dict[str, Any] = written.data
        self._check()

    @classmethod
    def load(cls, path: Path, project: str) -> StackFile:
        """Read a stack's file, with any secrets provider; a missing file counts as empty.

        Raises Unreadable, also if `config` is not a map or contains a key twice.
        """
        return cls(path, project, load_map(path) if path.exists() else Document({}, Mark(str(path), 1, 1)))

    def _check(self) -> None:
        entries = self._document.get("config")
        if entries is not None and not isinstance(entries, dict):
            raise Unreadable(
                self._written.at(("config",)),
                "config is not a map of keys, so the stack would count as one without configuration",
                "write its keys below it, or `config: {}` for none",
            )
        known: dict[str, str] = {}
        for key in entries or {}:
            full = self._full(key)
            first = known.setdefault(full, key)
            if full.count(":") > 1:
                problem = f"{key} is not a key of configuration, which is a namespace and a name"
                fix = "write it as NAMESPACE:NAME"
            elif first != key:
                problem = f"{key} and {first} are one key, and one of the two would be ignored"
                fix = "keep one of the two"
            else:
                continue
            raise Unreadable(self._written.at(("config", key)), problem, fix)

    @property
    def is_empty(self) -> bool:
        """Whether the file explicitly contains no configuration: `config: {}`."""
        return self._document.get("config") == {}

    @property
    def provider(self) -> str:
        """The secrets provider: `passphrase`, or that named in the file."""
        return str(self._document.get("secretsprovider") or "passphrase")

    def refuse_unsupported(self) -> None:
        """Raise CredfleetError `stack-unsupported` if only the CLI can get its key, with the reason."""
        others = [f"`{key}`" for key in _ENCRYPTED_BY_OTHERS if key in self._document]
        if self.provider != "passphrase":
            others.append(f"secrets provider {self.provider!r}")
        if others:
            raise CredfleetError(
                code="stack-unsupported",
                place=str(self.path),
                problem=f"what it holds is encrypted by {others[0]}, which only the Pulumi CLI asks",
                fix="run this stack with the Pulumi CLI: pulumi preview, pulumi up",
            )

    @property
    def respelt(self) -> Iterator[PropertyPath]:
        """Full keys and paths of whole numbers that the file writes in another form than digits."""
        for head, *inside in self._written.respelt:
            if head == "config" and inside:
                yield self._full(str(inside[0])), *inside[1:]

    @property
    def unread(self) -> dict[str, Mark]:
        """Keys other than `config` that are not read, and their places."""
        return {key: self._written.at((key,)) for key in self._document if key not in self.READ}

    @property
    def salt_at(self) -> Mark:
        """The place of the salt, or where it would be expected."""
        return self._written.at(("encryptionsalt",))

    @property
    def salt(self) -> str:
        """The text of `encryptionsalt`; empty if nothing was ever encrypted."""
        return str(self._document.get("encryptionsalt") or "")

    @property
    def config(self) -> dict[str, Any]:
        """All values by full key, encrypted ones unchanged."""
        return {self._full(key): value for key, value in (self._document.get("config") or {}).items()}

    def _full(self, key: str) -> str:
        return full_key(self._project, key)


@dataclass(frozen=True, slots=True)
class ProgramConfig:
    """The configuration of a program: texts by full key (objects as compact JSON), and the secret keys.

    `sealed`: paths of values that were not decrypted; `values` has null there.
    """

    values: Mapping[str, str] = field(repr=False)
    secret_keys: tuple[str, ...]
    sealed: tuple[PropertyPath, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one value: its key, and the path inside the value if known."""

    path: PropertyPath
    problem: str
    fix: str = "give it a value: Pulumi.yaml declares it"


def read_config(
    project: Project, stack: StackFile, decrypt: Callable[[str], str] | None
) -> tuple[ProgramConfig, tuple[Fault, ...]]:
    """Return a stack's configuration merged with the project's defaults, and its faults.

    Without `decrypt`, all encrypted values stay sealed, even damaged ones.
    """
    secret_keys, sealed, faults = set[str](), list[PropertyPath](), list[Fault]()

    def read(value: Any, path: PropertyPath) -> Json:
        if isinstance(value, dict):
            if len(value) == 1 and isinstance(value.get("secure"), str):
                return read_secret(value["secure"], path)
            return {str(key): read(item, (*path, str(key))) for key, item in value.items()}
        if isinstance(value, list):
            return [read(item, (*path, index)) for index, item in enumerate(value)]
        return _whole(value)

    def read_secret(ciphertext: str, path: PropertyPath) -> Json:
        secret_keys.add(str(path[0]))
        try:
            if decrypt is not None:
                return decrypt(ciphertext)
        except CredfleetError as error:
            faults.append(Fault(path, error.problem, error.fix))
        sealed.append(path)
        return None

    plain = {key: read(value, (key,)) for key, value in stack.config.items()}
    texts = {key: _text(value) for key, value in plain.items() if (key,) not in sealed}
    for key, default in project.declarations.items():
        if default is not None:
            texts.setdefault(key, _text(_whole(default)))
        elif key not in plain:
            faults.append(Fault((key,), "is missing"))
    config = ProgramConfig(dict(sorted(texts.items())), tuple(sorted(secret_keys)), tuple(sealed))
    return config, tuple(faults)


def compact(value: Any) -> str:
    """Return JSON as in the Pulumi CLI's texts: keys sorted, no spaces, `<`, `>` and `&` escaped."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _whole(value: Any) -> Json:
    """Return plain JSON: whole numbers as integers, a bare date as in the Pulumi CLI."""
    match value:
        case dict():
            return {str(key): _whole(each) for key, each in value.items()}
        case list():
            return [_whole(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case date():
            return f"{value:%Y-%m-%d %H:%M:%S} +0000 UTC"
        case _:
            return value if isinstance(value, bool | int | float) or value is None else str(value)


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)
