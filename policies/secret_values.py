"""Policies that keep declared secrets marked as secret wherever they are used.

The marked values of each resource are recorded when it is judged. Secrets of the configuration are known from
the start; those marked by other resources are known at the end, in any order of registration. Only digests
under a key of this process are kept.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Final

from late_reading import UNKNOWN_TEXTS
from pulumi import Archive, Asset
from pulumi_policy import Secret
from rule import Resource, resource_rule, stack_rule
from secret_texts import Digests, Trace, Traces, decode, is_ordinary, is_public
from stack_config import STACK_CONFIG

from components.documents import json_within
from components.naming import is_guid
from components.seals import COULD_NOT, SEALED
from components.stack_config.cloud_keys import plain_logins

_CREDENTIALS: Final = "credfleet:credentials"
_TELLING_KEY: Final = re.compile(
    r"secret|passw|token|private_?key|auth$|api_?key|certificate|credential", re.IGNORECASE
)
_SHORTEST_DECLARED: Final = 8
_SHORTEST_MARKED: Final = 16
"""In characters. Marking covers whole objects, so also plain words beside a secret; secrets are longer."""

_FIX: Final = "pass on the Output itself or a reference to its Secret, and rotate what was ever deployed"


class Sightings:
    """Digests recorded so far: the secrets, and the plain values of each resource with their paths."""

    def __init__(self, declared: Iterable[str]) -> None:
        """Start with the secrets of the configuration."""
        self._digests = Digests()
        self._lock = Lock()
        forms = {form for text in declared for form in _forms_of_declared(text)}
        self._declared = Traces(self._traces(forms, is_public))
        self._marked: dict[str, frozenset[Trace]] = {}
        self._plain: dict[str, list[tuple[str, bytes]]] = {}
        self._marked_anywhere: Traces | None = None

    def see(self, urn: str, inputs: Mapping[str, Any]) -> None:
        """Record a resource's values, both secret and plain."""
        marked, plain = self._taken_down(inputs)
        with self._lock:
            self._marked[urn], self._plain[urn] = self._traces(marked, is_ordinary), plain
            self._marked_anywhere = None

    def hits(self, urn: str) -> list[str]:
        """Return the paths at which a secret of the configuration or of the resource is in plaintext."""
        with self._lock:
            seen, own = self._plain.get(urn, ()), Traces(self._marked.get(urn, frozenset()))
            return sorted({*_paths(seen, self._declared), *_paths(seen, own)})

    def hits_of_others(self, urn: str) -> list[str]:
        """Return the remaining paths at which a secret of any resource recorded so far is in plaintext."""
        told = self.hits(urn)
        with self._lock:
            return sorted({*_paths(self._plain.get(urn, ()), self._anywhere())}.difference(told))

    def hits_in_outputs(self, urn: str, outputs: Mapping[str, Any]) -> list[str]:
        """Return the paths at which outputs, unlike the inputs, contain any known secret in plaintext.

        Secrets in outputs are not recorded: outputs are marked as a whole if a part is secret.
        """
        _, plain = self._taken_down(outputs)
        told = self.hits(urn)
        with self._lock:
            told += _paths(self._plain.get(urn, ()), self._anywhere())
            found = {*_paths(plain, self._declared), *_paths(plain, self._anywhere())}
        return sorted(found.difference(told))

    def _anywhere(self) -> Traces:
        if self._marked_anywhere is None:
            self._marked_anywhere = Traces(frozenset[Trace]().union(*self._marked.values()))
        return self._marked_anywhere

    def _taken_down(self, properties: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, bytes]]]:
        """Return the secret values and the rows of the plain ones, except Pulumi's internal properties."""
        marked: list[str] = []
        plain: list[tuple[str, bytes]] = []
        declared = {key: value for key, value in properties.items() if not key.startswith("__")}
        for path, text, is_secret in _leaves("", declared, is_secret=False, named=self._named):
            if is_secret:
                marked += _forms_of_marked(path, text)
            else:
                plain += ((path, row) for row in self._digests.rows(text))
        return marked, plain

    def _named(self, key: str) -> str:
        """Return a key as it appears in paths: `*` if it contains a secret of the configuration."""
        rows = self._digests.rows(key) if len(key) >= _SHORTEST_DECLARED else ()
        return "*" if any(map(self._declared.stand_in, rows)) else key

    def _traces(self, texts: Iterable[str], is_found_whole: Callable[[str], bool]) -> frozenset[Trace]:
        return frozenset(
            filter(None, (self._digests.trace(text, whole=is_found_whole(text)) for text in texts))
        )


def _paths(seen: Iterable[tuple[str, bytes]], known: Traces) -> Iterator[str]:
    return (path for path, row in seen if known.stand_in(row))


def declared_secrets(config: Mapping[str, str], secret_keys: Sequence[str]) -> Iterator[str]:
    """Yield the secrets of a configuration; of an object, the members whose keys indicate secrets."""
    for key in {_CREDENTIALS, *secret_keys}:
        if key in config:
            yield from _secret_texts(config[key], are_entries=key == _CREDENTIALS)


def _secret_texts(text: str, *, are_entries: bool = False) -> Iterator[str]:
    yield text
    document = json_within(text)
    for path, text_, _ in _leaves("", document, is_secret=True) if document is not None else ():
        if are_entries or json_within(text_) is not None:
            yield from _secret_texts(text_)
        elif _tells(path) and not is_public(text_):
            yield text_


def _leaves(
    path: str, value: Any, *, is_secret: bool, named: Callable[[str], str] = str
) -> Iterator[tuple[str, str, bool]]:
    """Yield path, text and secrecy of every text, and of every key that a path must not show.

    named: returns a key as it appears in paths.
    """
    if isinstance(value, Secret):
        yield from _leaves(path, value.value, is_secret=True, named=named)
    elif isinstance(value, Asset | Archive):
        yield from _leaves(path, vars(value), is_secret=is_secret, named=named)
    elif isinstance(value, dict):
        for key, item in value.items():
            name = named(key)
            inner = f"{path}.{name}" if path else name
            if name != key:
                yield inner, key, is_secret
            yield from _leaves(inner, item, is_secret=is_secret, named=named)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(f"{path}[{index}]", item, is_secret=is_secret, named=named)
    elif isinstance(value, str) and value not in UNKNOWN_TEXTS:
        yield path, value, is_secret


def _forms_of_declared(secret: str) -> Iterator[str]:
    encoded = base64.b64encode(secret.encode(errors="surrogatepass")).decode().rstrip("=")
    for form in (secret, encoded, decode(secret) or ""):
        if len(form) >= _SHORTEST_DECLARED:
            yield form


def _forms_of_marked(path: str, text: str) -> Iterator[str]:
    """Yield a text and what it encodes, without names and addresses, which Secrets contain as well."""
    inner = decode(text) or ""
    is_meant = not is_ordinary(inner) or (_tells(path) and not is_public(inner))
    for form in (text, inner) if is_meant else (text,):
        if len(form) >= _SHORTEST_MARKED and not is_guid(form):
            yield form


def _tells(path: str) -> bool:
    return _TELLING_KEY.search(path.rpartition(".")[2]) is not None


class _OfTheStack:
    """The values recorded so far, and the secrets in the stack's configuration, which the CLI sends first."""

    def __init__(self) -> None:
        self.begin()
        STACK_CONFIG.listeners.append(self.begin)

    def begin(self) -> None:
        self.sightings = Sightings(declared_secrets(STACK_CONFIG.values, STACK_CONFIG.secret_keys))


_OF_THE_STACK: Final = _OfTheStack()


@resource_rule(
    types=["*"],
    description="A declared secret must not be in a property that is not marked as secret.",
    fix=_FIX,
    marks=True,
)
def secrets_stay_marked(resource: Resource) -> Iterator[str]:
    """Reject a secret in plaintext, which state, diff and logs would show."""
    _OF_THE_STACK.sightings.see(resource.urn, resource.inputs)
    yield from (f"{path} is a secret in plaintext" for path in _OF_THE_STACK.sightings.hits(resource.urn))


@stack_rule(
    types=(),
    components=True,
    description="No resource and no output must show in plaintext what a resource marks as secret.",
    fix=_FIX,
)
def secrets_stay_marked_everywhere(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Reject at the end of a preview the plaintext secrets that no resource alone reveals."""
    for one in resources:
        put_out = _OF_THE_STACK.sightings.hits_in_outputs(one.urn, one.inputs) if one.inputs else []
        for path in (*_OF_THE_STACK.sightings.hits_of_others(one.urn), *put_out):
            yield one.urn, f"{path} is a secret in plaintext"
    for key in plain_logins(STACK_CONFIG.values, STACK_CONFIG.secret_keys) if resources else ():
        yield resources[0].urn, f"{key} of the configuration is a secret in plaintext"
    if resources and any(SEALED in text for text in STACK_CONFIG.values.values()):
        yield resources[0].urn, COULD_NOT  # plaintext could equal the content of a sealed value
