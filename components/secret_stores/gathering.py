"""Keys that a read gathers without naming them: fields of one secret, or whole secrets by name.

Follows `GetSecretMap` and `GetAllSecrets` of External Secrets Operator 2.9.0.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

from components.errors import Problem, StoreError
from components.naming import is_data_key
from components.secret_stores.conditions import regex_objections
from components.secret_stores.consumers import DecodingStrategy, ExternalSecret, RemoteRef
from components.secret_stores.registry import ProviderKind

_BASE64: Final = re.compile(rb"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def read_objections(read: ExternalSecret, kind: ProviderKind) -> Iterator[Problem]:
    """Yield values and sources that this kind of provider does not support, and invalid patterns."""
    for key, remote in read.data.items():
        yield from _remote_objections(read, f"data.{key}", remote, kind)
    for index, source in enumerate(read.data_from):
        place = f"dataFrom[{index}]"
        if source.way not in kind.gathers and not kind.by_shape:
            can = ", ".join(kind.gathers) or "nothing"
            problem = f"{place}: providers of kind {kind.name} cannot gather keys by {source.way}"
            yield Problem(read.title, problem, f"name each value in data; known for the kind are: {can}")
        elif source.find is not None and source.find.name is not None:
            for fault in regex_objections(f"{place}.find.name", source.find.name.regexp):
                yield Problem(read.title, fault.problem, fault.fix)
        if source.find is not None and source.find.path is not None:
            if "path" in kind.gathers or kind.facts.get("findsPath"):
                faults = kind.names(source.find.path, None, None)
            else:
                faults = [(f"providers of kind {kind.name} find nothing by a path", "leave path out")]
            yield from (Problem(read.title, f"{place}.find.path: {problem}", fix) for problem, fix in faults)
        if source.extract is not None:
            yield from _remote_objections(read, place, source.extract, kind)
            if source.extract.property_name is not None and kind.has_properties:
                name = source.extract.property_name
                problem = f"{place} names property {name}, and what is gathered is all keys of a Secret"
                yield Problem(read.title, problem, "leave property out")


def as_keys(found: Mapping[str, bytes], place: str) -> Mapping[str, bytes]:
    """Return values with valid Secret keys: characters that keys cannot contain become underscores.

    Empty names are dropped. Raises StoreError if two names become equal, or one becomes an invalid key.
    """
    made: dict[str, bytes] = {}
    for name, content in found.items():
        key = "".join(each if _fits(each) else "_" for each in name)
        if key in made:
            raise _refused(place, f"two of its names become one key, {key}", "name each value in data")
        if key and not is_data_key(key):
            raise _refused(place, f"its name {key} is not a key of a Secret", "name each value in data")
        made[key] = content
    made.pop("", None)
    return made


def decode(content: bytes, strategy: DecodingStrategy | None, place: str) -> bytes:
    """Decode a value as ESO's `Decode` does: padding is required, and line breaks are ignored.

    Raises StoreError, without the value.
    """
    if strategy in {None, DecodingStrategy.NONE}:
        return content
    text = content.translate(None, b"\r\n")
    if strategy is not DecodingStrategy.BASE64_URL and _BASE64.fullmatch(text):
        return base64.b64decode(text)
    standard = text.translate(bytes.maketrans(b"-_+/", b"+/-_"))
    if strategy is not DecodingStrategy.BASE64 and _BASE64.fullmatch(standard):
        return base64.b64decode(standard)
    if strategy is DecodingStrategy.AUTO:
        return content
    raise _refused(place, f"its value is not {strategy}", "correct decodingStrategy, or leave it out")


def _fits(character: str) -> bool:
    return character in "-._" or unicodedata.category(character)[0] in "LN"


def _remote_objections(
    read: ExternalSecret, place: str, ref: RemoteRef, kind: ProviderKind
) -> Iterator[Problem]:
    if ref.version is not None and not kind.has_versions:
        problem = (
            f"{place} asks for version {ref.version} of {ref.key}, and in a provider of kind {kind.name}"
            " a value has no versions"
        )
        yield Problem(read.title, problem, "leave version out")
    for problem, fix in kind.names(ref.key, ref.property_name, ref.version):
        yield Problem(read.title, f"{place}: {problem}", fix)


def _refused(place: str, problem: str, fix: str) -> StoreError:
    return StoreError(code="refused", place=place, problem=problem, fix=fix)
