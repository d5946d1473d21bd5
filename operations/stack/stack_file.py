"""A stack's configuration file, as the Pulumi CLI reads it, and the configuration that a program is given."""

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
    """One stack's file; keys are `namespace:name` throughout, whatever the file writes."""

    READ: Final = ("config", "encryptedkey", "encryptionsalt", "environment", "secretsprovider")
    """The keys of the file that the Pulumi CLI reads."""

    def __init__(self, path: Path, project: str, written: Document) -> None:
        self.path = path
        self._project = project
        self._written = written
        self._document: dict[str, Any] = written.data
        self._check()

    @classmethod
    def load(cls, path: Path, project: str) -> StackFile:
        """Read a stack's file, by any secrets provider; one that is not there counts as empty.

        Raises Unreadable, for a file whose `config` is not a map or names one key twice, too.
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
        """Whether the file says that there is no configuration: `config: {}`."""
        return self._document.get("config") == {}

    @property
    def provider(self) -> str:
        """Who encrypts its values: `passphrase`, or as the file names it."""
        return str(self._document.get("secretsprovider") or "passphrase")

    def refuse_unsupported(self) -> None:
        """Raise CredfleetError `stack-unsupported` for what only the CLI asks for a key, naming it."""
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
        """Full keys and paths of the whole numbers that the file does not write in digits alone."""
        for head, *inside in self._written.respelt:
            if head == "config" and inside:
                yield self._full(str(inside[0])), *inside[1:]

    @property
    def unread(self) -> dict[str, Mark]:
        """The keys beside `config` that are not read, and where they stand."""
        return {key: self._written.at((key,)) for key in self._document if key not in self.READ}

    @property
    def salt_at(self) -> Mark:
        """Where the salt stands, or where it would be looked for."""
        return self._written.at(("encryptionsalt",))

    @property
    def salt(self) -> str:
        """The text of `encryptionsalt`; empty while nothing was ever encrypted."""
        return str(self._document.get("encryptionsalt") or "")

    @property
    def config(self) -> dict[str, Any]:
        """All values by their full keys, encrypted ones as they stand."""
        return {self._full(key): value for key, value in (self._document.get("config") or {}).items()}

    def _full(self, key: str) -> str:
        return full_key(self._project, key)


@dataclass(frozen=True, slots=True)
class ProgramConfig:
    """What a program sees: texts by full keys (objects as compact JSON), and which keys hold a secret.

    `sealed`: where texts stand that were not decrypted; `values` has null in their place.
    """

    values: Mapping[str, str] = field(repr=False)
    secret_keys: tuple[str, ...]
    sealed: tuple[PropertyPath, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one value: its key, and the path inside of it where it is known."""

    path: PropertyPath
    problem: str
    fix: str = "give it a value: Pulumi.yaml declares it"


def read_config(
    project: Project, stack: StackFile, decrypt: Callable[[str], str] | None
) -> tuple[ProgramConfig, tuple[Fault, ...]]:
    """Return a stack's configuration over the project's defaults, and what is wrong with it.

    Without a way to decrypt all that is encrypted stays sealed, and so does what is damaged.
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
    """Return JSON as the Pulumi CLI puts it into texts: keys sorted, no spaces, `<`, `>` and `&` escaped."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _whole(value: Any) -> Json:
    """Return plain JSON: whole numbers as integers, a bare date as the Pulumi CLI has it."""
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
