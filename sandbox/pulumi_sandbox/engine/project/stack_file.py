"""A stack's configuration file, `Pulumi.STACK.yaml`: read, changed and written as the genuine CLI does.

A value is whatever YAML holds; a mapping with the single key `secure` is an encrypted text, at any depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.documents import Document, Mark, Step, Unreadable
from pulumi_sandbox.engine.project.config_types import full_key
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.yaml_file import load_editable, load_map, save_yaml
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import paths

_ENCRYPTED_BY_OTHERS: Final = ("encryptedkey", "environment")


class StackFile:
    """One stack's file; keys are `namespace:name` throughout, whatever the file writes.

    With `path=True` a key may go on into its value: `ns:map.key`, `ns:list[0]`.
    """

    READ: Final = ("config", "encryptedkey", "encryptionsalt", "environment", "secretsprovider")
    """The keys of the file that the genuine CLI reads."""

    def __init__(self, path: Path, project: str, written: Document) -> None:
        self.path = path
        self._project = project
        self._written = written
        self._document: dict[str, Any] = written.data
        self._editable = False
        self._check()

    @classmethod
    def load(cls, path: Path, project: str) -> StackFile:
        """Read a stack's file, whoever encrypts it; one that is not there counts as empty.

        Raises SandboxError `yaml-invalid`, for a file whose `config` is no map or names one key twice, too.
        """
        return cls(path, project, load_map(path) if path.exists() else Document({}, Mark(str(path), 1, 1)))

    def _check(self) -> None:
        entries = self._document.get("config")
        if entries is not None and not isinstance(entries, dict):
            raise Unreadable(
                self._written.at(("config",)),
                "config is no map of keys, so the stack would count as one without configuration",
                "write its keys below it, or `config: {}` for none",
            )
        known: dict[str, str] = {}
        for key in entries or {}:
            full = self._full(key)
            if full.count(":") > 1:
                raise Unreadable(
                    self._written.at(("config", key)),
                    f"{key} is no key of configuration, which is a namespace and a name",
                    "write it as NAMESPACE:NAME",
                )
            first = known.setdefault(full, key)
            if first != key:
                raise Unreadable(
                    self._written.at(("config", key)),
                    f"{key} and {first} are one key, and one of the two would be ignored",
                    "keep one of the two",
                )

    @property
    def is_empty(self) -> bool:
        """Whether the file says that there is no configuration: `config: {}`."""
        return self._document.get("config") == {}

    @property
    def provider(self) -> str:
        """Who encrypts its values: `passphrase`, or as the file names it."""
        return str(self._document.get("secretsprovider") or "passphrase")

    def refuse_unsupported(self) -> None:
        """Raise SandboxError `stack-unsupported` for what only the genuine CLI does, naming it."""
        for key in _ENCRYPTED_BY_OTHERS:
            if key in self._document:
                raise self._unsupported(f"`{key}`")
        if self.provider != "passphrase":
            raise self._unsupported(f"secrets provider {self.provider!r}")

    def _unsupported(self, what: str) -> SandboxError:
        return SandboxError(
            code="stack-unsupported",
            place=str(self.path),
            cause=f"the embedded engine does not know {what}, so it can deploy no such stack",
            mend="run this stack with the Pulumi CLI: pulumi preview, pulumi up",
        )

    def at(self, key: Step, *inside: Step) -> Mark:
        """Return where a value stands in the file; for what is not there, where it would be looked for."""
        written = next((each for each in self._entries() if self._full(each) == key), key)
        return self._written.at(("config", written, *inside))

    @property
    def respelt(self) -> Iterator[paths.Path]:
        """Full keys and paths of the whole numbers that the file does not write in digits alone."""
        for head, *inside in self._written.respelt:
            if head == "config" and inside:
                yield self._full(str(inside[0])), *inside[1:]

    @property
    def unread(self) -> dict[str, Mark]:
        """The keys beside `config` that nobody reads, and where they stand."""
        return {key: self._written.at((key,)) for key in self._document if key not in self.READ}

    @property
    def salt_at(self) -> Mark:
        """Where the salt stands, or where it would be looked for."""
        return self._written.at(("encryptionsalt",))

    @property
    def salt(self) -> str:
        """The text of `encryptionsalt`; empty while nothing was ever encrypted."""
        return str(self._document.get("encryptionsalt") or "")

    @salt.setter
    def salt(self, salt: str) -> None:
        self._edit()["encryptionsalt"] = salt

    @property
    def config(self) -> dict[str, Any]:
        """All values by their full keys, encrypted ones as they stand."""
        return {self._full(key): value for key, value in self._entries().items()}

    def set(
        self, key: str, value: str, *, path: bool = False, crypter: PassphraseCrypter | None = None
    ) -> None:
        """Set a text, encrypted if a crypter is given; mappings and lists on the way are made.

        Inside a value, `true`, `false` and whole numbers become such, as the genuine CLI has it.
        Raises SandboxError `config-path`, when the path leads through something that is no mapping or list.
        """
        elements = self._elements(key, path=path)
        above = elements[:-1]
        new: Any = value
        if crypter:
            new = {"secure": crypter.encrypt(value, place=paths.render(elements))}
        elif above:
            new = _coerced(value)
        self._insert(elements, new, key)

    def put(self, path: paths.Path, value: Any) -> None:
        """Set a value of any shape at a full key and the path inside of it; raises as `set`."""
        key, *inside = path
        written = next((each for each in self._entries() if self._full(each) == key), key)
        self._insert((written, *inside), value, str(key))

    def _insert(self, elements: paths.Path, value: Any, key: str) -> None:
        container: Any = _filled(self._edit())
        for element, following in pairwise(elements):
            if not paths.get(container, (element,))[0]:
                _put(container, element, [] if isinstance(following, int) else {}, key)
            container = container[element]
        _put(container, elements[-1], value, key)

    def save(self) -> None:
        """Write the file, with its comments."""
        save_yaml(self.path, self._edit())

    def _edit(self) -> dict[str, Any]:
        """Return the document with its comments, which takes longer to read."""
        if not self._editable and self.path.exists():
            self._document = load_editable(self.path)
        self._editable = True
        return self._document

    def _entries(self) -> dict[str, Any]:
        return self._document.get("config") or {}

    def _full(self, key: str) -> str:
        return full_key(self._project, key)

    def _elements(self, key: str, *, path: bool) -> paths.Path:
        """Return a key as the path from the file's `config` on, spelled as the file spells it."""
        namespace, _, name = self._full(key).partition(":")
        head, *rest = paths.parse(name) if path else (name,)
        full = f"{namespace}:{head}"
        written = next((each for each in self._entries() if self._full(each) == full), full)
        return (written, *rest)


def _filled(document: dict[str, Any]) -> Any:
    if document.get("config") is None:
        document["config"] = {}
    return document["config"]


def _put(container: Any, element: str | int, value: Any, key: str) -> None:
    match container, element:
        case dict(), str():
            container[element] = value
        case list(), int() if element < len(container):
            container[element] = value
        case list(), int() if element == len(container):
            container.append(value)
        case _:
            raise SandboxError(
                code="config-path",
                place=f"configuration key {key}",
                cause=f"there is nothing that could hold {element!r} on the way",
                mend="name mappings by key and lists by index, at most one behind the last",
            )


def _coerced(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"0|-?[1-9]\d{0,18}", text) else text
