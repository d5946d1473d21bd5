"""A stack's configuration file, `Pulumi.STACK.yaml`: read, changed and written as the genuine CLI does.

A value is whatever YAML holds; a mapping with the single key `secure` is an encrypted text, at any depth.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.yaml_file import load_yaml, save_yaml
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import paths

_UNSUPPORTED: Final = ("encryptedkey", "environment")


class StackFile:
    """One stack's file; keys are `namespace:name` throughout, whatever the file writes.

    With `path=True` a key may go on into its value: `ns:map.key`, `ns:list[0]`.
    """

    def __init__(self, path: Path, project: str, document: dict[str, Any]) -> None:
        self.path = path
        self._project = project
        self._document = document

    @classmethod
    def load(cls, path: Path, project: str) -> StackFile:
        """Read a stack's file; one that is not there counts as empty.

        Raises SandboxError `yaml-invalid`; or `stack-unsupported`, naming what only the genuine CLI does.
        """
        document = load_yaml(path) if path.exists() else {}
        for key in _UNSUPPORTED:
            if key in document:
                raise _unsupported(path, f"`{key}`")
        if document.get("secretsprovider", "passphrase") not in ("", "passphrase"):
            raise _unsupported(path, f"secrets provider {document['secretsprovider']!r}")
        return cls(path, project, document)

    @property
    def salt(self) -> str:
        """The text of `encryptionsalt`; empty while nothing was ever encrypted."""
        return str(self._document.get("encryptionsalt") or "")

    @salt.setter
    def salt(self, salt: str) -> None:
        self._document["encryptionsalt"] = salt

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
        *above, last = elements
        new: Any = value
        if crypter:
            new = {"secure": crypter.encrypt(value, place=paths.render(elements))}
        elif above:
            new = _coerced(value)
        container: Any = self._document.setdefault("config", {})
        for element, following in pairwise(elements):
            if not paths.get(container, (element,))[0]:
                _put(container, element, [] if isinstance(following, int) else {}, key)
            container = container[element]
        _put(container, last, new, key)

    def save(self) -> None:
        """Write the file, with its comments."""
        save_yaml(self.path, self._document)

    def _entries(self) -> dict[str, Any]:
        return self._document.get("config") or {}

    def _full(self, key: str) -> str:
        return key if ":" in key else f"{self._project}:{key}"

    def _elements(self, key: str, *, path: bool) -> paths.Path:
        """Return a key as the path from the file's `config` on, spelled as the file spells it."""
        namespace, _, name = self._full(key).partition(":")
        head, *rest = paths.parse(name) if path else (name,)
        full = f"{namespace}:{head}"
        written = next((each for each in self._entries() if self._full(each) == full), full)
        return (written, *rest)


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


def _unsupported(path: Path, what: str) -> SandboxError:
    return SandboxError(
        code="stack-unsupported",
        place=str(path),
        cause=f"the embedded engine does not know {what}",
        mend="remove it, or run this stack with the Pulumi CLI",
    )
