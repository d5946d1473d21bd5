"""A stack's configuration file, `Pulumi.STACK.yaml`, as the Pulumi CLI reads it.

A value is whatever YAML holds; a mapping with the single key `secure` is an encrypted text, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.protocol import values

from components.documents import Document, Mark, Step, Unreadable
from components.errors import CredfleetError
from operations.stack.project_file import full_key
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
        """Read a stack's file, whoever encrypts it; one that is not there counts as empty.

        Raises Unreadable, for a file whose `config` is no map or names one key twice, too.
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

    def at(self, key: Step, *inside: Step) -> Mark:
        """Return where a value stands in the file; for what is not there, where it would be looked for."""
        written = next((each for each in self._entries() if self._full(each) == key), key)
        return self._written.at(("config", written, *inside))

    @property
    def respelt(self) -> Iterator[values.Path]:
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

    @property
    def config(self) -> dict[str, Any]:
        """All values by their full keys, encrypted ones as they stand."""
        return {self._full(key): value for key, value in self._entries().items()}

    def _entries(self) -> dict[str, Any]:
        return self._document.get("config") or {}

    def _full(self, key: str) -> str:
        return full_key(self._project, key)
