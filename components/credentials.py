"""The only module that reads credentials in plaintext.

A credential is a string. A JSON object has fields; `base64:` marks bytes; any other string is kept byte for
byte. This module returns only shapes without values, and secret outputs. A keyless review uses placeholders
for the credentials (docs/review.md). One of unknown shape is a JSON object with the field UNSEEN: it is
passed on, and not judged.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

from components.documents import read_json
from components.errors import Problem
from components.naming import config_path
from components.seals import UNSEEN

if TYPE_CHECKING:
    import pulumi

T = TypeVar("T")

KEY: Final = "credentials"
_BINARY: Final = "base64:"


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties of a credential that are not secret.

    `fields`: the names in a JSON object, in order; None if it is none. `unfit`: fields that are repeated, or
    whose value is not a string.
    """

    fields: tuple[str, ...] | None
    unfit: tuple[str, ...] = ()


class Credentials:
    """Credentials of a stack by name. They cannot be printed, pickled or copied."""

    __slots__ = ("_bytes", "_contents")

    def __init__(self, texts: Mapping[str, str], unreadable: Iterable[str] = ()) -> None:
        """Use strings by name; `unreadable`: names of invalid entries.

        Raises ValueError if a string after `base64:` is not base64.
        """
        self._contents = {name: _content(text) for name, text in texts.items()} | dict.fromkeys(unreadable)
        self._bytes = {
            name: f"{UNSEEN} {text}".encode() if self.is_unseen(name) else _bytes(text)
            for name, text in texts.items()
        }

    @property
    def names(self) -> Set[str]:
        """Names that references can use."""
        return self._contents.keys()

    def shape(self, name: str) -> Shape | None:
        """Return the shape of a credential, for validators; None if it is unreadable."""
        content = self._contents[name]
        if content is None or self.is_unseen(name):
            return None
        if isinstance(content, bytes):
            return Shape(fields=None)
        names = tuple(field for field, _ in content)
        unfit = [field for field, value in content if names.count(field) > 1 or not is_text(value)]
        return Shape(tuple(dict.fromkeys(names)), tuple(dict.fromkeys(unfit)))

    def secret_data(self, name: str) -> pulumi.Output[Mapping[str, str]]:
        """Return a JSON object of strings as secret `data` of a Kubernetes Secret, base64-encoded."""
        import pulumi

        content = self._contents[name]
        if not isinstance(content, tuple):
            raise TypeError(f"credential {name} is not a JSON object")
        return pulumi.Output.secret(
            {field: base64.b64encode(value.encode()).decode() for field, value in content}
        )

    def judged(self, name: str, by: Callable[[bytes], T]) -> T | None:
        """Apply a pure function to a credential's bytes; None if it is unreadable.

        The result might be shown, so it must not contain any part of a value.
        """
        content = self._bytes.get(name)
        return None if content is None or self.is_unseen(name) else by(content)

    def judged_together(self, names: Sequence[str], by: Callable[[Sequence[bytes]], T]) -> T | None:
        """Apply a pure function to several credentials; None if one is unreadable."""
        contents = [content for name in names if (content := self.judged(name, bytes)) is not None]
        return by(contents) if len(contents) == len(names) else None

    def is_unseen(self, name: str) -> bool:
        """Return whether the credential is a placeholder of unknown shape."""
        content = self._contents[name]
        return isinstance(content, tuple) and [field for field, _ in content] == [UNSEEN]

    def secret(self, name: str, by: Callable[[bytes], T]) -> pulumi.Output[T]:
        """Return the result of a pure function on a credential's bytes, as a secret output."""
        import pulumi

        try:
            return pulumi.Output.secret(by(self._bytes[name]))
        except Exception:
            if not self.is_unseen(name):
                raise
            return cast("pulumi.Output[T]", self.secret_data(name))

    def __repr__(self) -> str:
        return "[secret]"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("credentials are neither pickled nor copied")


def read_credentials(
    text: str, *, secret: bool, sealed: Collection[str] = ()
) -> tuple[Credentials, tuple[Problem, ...]]:
    """Read the configuration's `credentials`, a JSON object of strings by name, without invalid ones.

    `secret`: whether the configuration marks the key as secret; plaintext credentials are rejected. `sealed`:
    names of credentials that were not decrypted, and are not judged.
    """
    try:
        entries: Any = read_json(text)
    except ValueError:
        entries = None
    if not isinstance(entries, dict):
        return Credentials({}), (
            Problem(
                config_path(KEY),
                "credentials are a map of names, and this is none, so no reference can name one",
                "set each one by its name: pulumi config set --secret --path 'credfleet:credentials.NAME'",
            ),
        )
    problems: list[Problem] = []
    if entries and not secret:
        problems.append(
            Problem(
                config_path(KEY),
                "credentials are plaintext in the stack file: all readers of the repository can use them",
                "set each again with `pulumi config set --secret --path 'credfleet:credentials.NAME'`,"
                " and rotate what lay open",
            )
        )
    texts: dict[str, str] = {}
    for name, entry in entries.items():
        if name in sealed:
            continue
        fault = _fault(entry)
        if fault is None:
            texts[name] = entry
        else:
            problems.append(Problem(config_path(KEY, name), *fault))
    return Credentials(texts, entries.keys() - texts.keys()), tuple(problems)


def _fault(entry: object) -> tuple[str, str] | None:
    """Return why an entry is not a credential, and the fix."""
    if not isinstance(entry, str):
        return (
            "a credential is text: YAML changes numbers and drops repeated keys before they can be checked",
            "give a JSON object as JSON text, encrypted as one `secure:` value",
        )
    if not entry:
        return "the credential is empty, and an empty one opens nothing", "give its text, or remove the entry"
    try:
        _content(entry)
    except ValueError:
        return (
            f"what follows {_BINARY} is not base64, so its bytes are unknown",
            "encode them with: base64 -w0",
        )
    return None


def _content(text: str) -> bytes | tuple[tuple[str, Any], ...]:
    """Parse a credential: a JSON object as its fields in order, anything else as bytes."""
    if text.startswith(_BINARY):
        return _bytes(text)
    try:
        content: Any = read_json(text, object_pairs_hook=tuple)
    except ValueError:
        return _bytes(text)
    return content if isinstance(content, tuple) else _bytes(text)


def _bytes(text: str) -> bytes:
    if text.startswith(_BINARY):
        return base64.b64decode(text.removeprefix(_BINARY), validate=True)
    return text.encode("utf-8", "surrogatepass")


def is_text(value: object) -> bool:
    """Return whether a field's value is a string without unpaired surrogates, so that it has a UTF-8 form."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)
