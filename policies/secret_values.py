"""Declared secrets: wherever one goes, it goes marked as secret.

The host hands rules every value in plain and unmarked; only remedies see the marks. So this rule has a remedy
that changes nothing and takes down, for each resource, which values are marked. Secrets of the configuration
are known from the start; what another resource marks is known at the end, in whatever order they are
registered. Nothing is kept but digests under a key that dies with the process.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence, Set
from threading import Lock
from typing import Any, Final

from pulumi.runtime.config import get_config_env, get_config_secret_keys_env
from pulumi_policy import EnforcementLevel, Secret
from pulumi_policy.proxy import (
    UNKNOWN_ARCHIVE_VALUE,
    UNKNOWN_ARRAY_VALUE,
    UNKNOWN_ASSET_VALUE,
    UNKNOWN_BOOLEAN_VALUE,
    UNKNOWN_NUMBER_VALUE,
    UNKNOWN_OBJECT_VALUE,
    UNKNOWN_STRING_VALUE,
)
from rule import Resource, resource_rule, stack_rule

from components.seals import COULD_NOT, SEALED

_CREDENTIALS: Final = "credfleet:credentials"
_TELLING_KEY: Final = re.compile(
    r"secret|passw|token|private_?key|auth$|api_?key|certificate|credential", re.IGNORECASE
)
_GUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SHORTEST_DECLARED: Final = 8
_SHORTEST_MARKED: Final = 16
"""Characters. Whole objects are marked, so plain words beside a secret are, too; no secret is so short."""

_MEND: Final = "pass on the Output itself or a reference to its Secret, and rotate what was ever deployed"

_BETWEEN: Final = re.compile(r"[\s\"'=,;:@&?/]+")
_UNKNOWN: Final = frozenset(
    {
        UNKNOWN_ARCHIVE_VALUE,
        UNKNOWN_ARRAY_VALUE,
        UNKNOWN_ASSET_VALUE,
        UNKNOWN_BOOLEAN_VALUE,
        UNKNOWN_NUMBER_VALUE,
        UNKNOWN_OBJECT_VALUE,
        UNKNOWN_STRING_VALUE,
    }
)


class Sightings:
    """Seen so far, by digest: the secrets, and the plain values of each resource by their paths."""

    def __init__(self, declared: Iterator[str]) -> None:
        """Start from the secrets of the configuration."""
        self._key = secrets.token_bytes(32)
        self._lock = Lock()
        self._declared = {self._digest(form) for text in declared for form in _forms_of_secret(text)}
        self._marked: dict[str, set[bytes]] = {}
        self._plain: dict[str, dict[bytes, str]] = {}
        self._marked_anywhere: set[bytes] | None = None

    def see(self, urn: str, inputs: Mapping[str, Any]) -> None:
        """Take down a resource's values, marked and plain."""
        marked: set[bytes] = set()
        plain: dict[bytes, str] = {}
        for path, text, is_secret in _leaves("", inputs, is_secret=False):
            if not is_secret:
                plain.update((self._digest(form), path) for form in _forms_in_plain(text))
            elif len(text) >= _SHORTEST_MARKED and not _GUID.fullmatch(text):
                marked.add(self._digest(text))
        with self._lock:
            self._marked[urn], self._plain[urn] = marked, plain
            self._marked_anywhere = None

    def hits(self, urn: str) -> list[str]:
        """Return the paths at which a secret of the configuration or of the resource itself is in plain."""
        with self._lock:
            return self._paths(urn, self._declared | self._marked.get(urn, set()))

    def hits_of_others(self, urn: str) -> list[str]:
        """Return the paths at which what is marked by other resources seen so far is in plain."""
        with self._lock:
            if self._marked_anywhere is None:
                self._marked_anywhere = set[bytes]().union(*self._marked.values()) - self._declared
            own = self._marked.get(urn, set())
            return self._paths(urn, self._marked_anywhere & self._plain.get(urn, {}).keys() - own)

    def _paths(self, urn: str, known: Set[bytes]) -> list[str]:
        return sorted({path for digest, path in self._plain.get(urn, {}).items() if digest in known})

    def _digest(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=16).digest()


def declared_secrets(config: Mapping[str, str], secret_keys: Sequence[str]) -> Iterator[str]:
    """Find the secrets in a configuration; of an object, the members whose keys tell that they are."""
    for key in {_CREDENTIALS, *secret_keys}:
        if key in config:
            yield from _secret_texts(config[key], are_entries=key == _CREDENTIALS)


def _secret_texts(text: str, *, are_entries: bool = False) -> Iterator[str]:
    yield text
    document = _document(text)
    for key, text_, _ in _leaves("", document, is_secret=True) if document is not None else ():
        if are_entries or _document(text_) is not None:
            yield from _secret_texts(text_)
        elif _TELLING_KEY.search(key.rpartition(".")[2]):
            yield text_


def _document(text: str) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict | list) else None


def _leaves(path: str, value: Any, *, is_secret: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield path, text and mark of every text, the engine's own keys left out."""
    if isinstance(value, Secret):
        yield from _leaves(path, value.value, is_secret=True)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not key.startswith("__"):
                yield from _leaves(f"{path}.{key}" if path else key, item, is_secret=is_secret)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(f"{path}[{index}]", item, is_secret=is_secret)
    elif isinstance(value, str) and value not in _UNKNOWN:
        yield path, value, is_secret


def _forms_of_secret(text: str) -> Iterator[str]:
    if len(text) >= _SHORTEST_DECLARED:
        yield text
        yield base64.b64encode(text.encode()).decode()


def _forms_in_plain(text: str) -> Iterator[str]:
    """Yield a text, what it encodes, and the words in either: a secret may stand inside a URL."""
    decoded = _decoded(text)
    for form in (text, decoded) if decoded else (text,):
        yield form
        yield form.strip()
        yield from _BETWEEN.split(form)


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


_SIGHTINGS: Final = Sightings(declared_secrets(get_config_env(), get_config_secret_keys_env()))


def _take_down(resource: Resource) -> None:
    _SIGHTINGS.see(resource.urn, resource.inputs)


@resource_rule(
    types=["*"],
    level=EnforcementLevel.REMEDIATE,
    description="A declared secret reaches no property that is not marked as secret.",
    mend=_MEND,
    remedy=_take_down,
)
def secrets_stay_marked(resource: Resource) -> Iterator[str]:
    """Refuse a secret in plain: the state, the diff and the log would show it."""
    yield from (f"{path} is a secret in plain" for path in _SIGHTINGS.hits(resource.urn))


@stack_rule(
    types=(),
    description="No resource has in plain what another marks as secret.",
    mend=_MEND,
)
def secrets_stay_marked_everywhere(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Refuse at the end of the preview what cannot be known when a resource is judged alone."""
    for one in resources:
        yield from ((one.urn, f"{path} is a secret in plain") for path in _SIGHTINGS.hits_of_others(one.urn))
    if resources and any(SEALED in text for text in get_config_env().values()):
        yield resources[0].urn, COULD_NOT  # a text in plain could be what a sealed value holds
