"""Pull secret format of kubelet: `k8s.io/kubernetes/pkg/credentialprovider` and Go's `encoding/json`.

Kubelet accepts all or nothing: one invalid value makes it reject every registry. In documents, an object is a
tuple of its keys and values in order, including repeated keys.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from components.go_json import without_surrogates

Object: TypeAlias = tuple[tuple[str, Any], ...]

_TEXTS: Final = ("username", "password", "email", "auth")
_BASE64 = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?")


class Refused(ValueError):  # noqa: N818 - what a pull secret is
    """Why kubelet rejects a whole pull secret, without any part of it."""


@dataclass(frozen=True, slots=True)
class Login:
    """Login of kubelet at a registry. `auth`: as in the entry, empty if it has none."""

    user: bytes = field(repr=False)
    password: bytes = field(repr=False)
    auth: str = field(repr=False)


def logins_of(document: Any) -> Mapping[str, Login]:
    """Return kubelet's logins, by registry. Raises Refused."""
    logins: dict[str, Login] = {}
    for headers in fields_of(document, "httpheaders"):
        if not all(value is None or isinstance(value, str) for _, value in _members(headers, "HttpHeaders")):
            raise Refused("HttpHeaders has a value that is not a string")
    for auths in fields_of(document, "auths"):
        if auths is None:
            logins.clear()
        logins.update((without_surrogates(name), login_of(entry)) for name, entry in _members(auths, "auths"))
    return logins


def fields_of(value: Any, name: str) -> Sequence[Any]:
    """Return the values of all spellings of a key, in order; `name`: in lower case. Raises Refused."""
    return [each for key, each in _members(value, "it") if folded(key) == name]


def login_of(entry: Any) -> Login:
    """Parse an entry. Raises Refused."""
    texts = dict.fromkeys(_TEXTS, "")
    for key, value in _members(entry, "it"):
        if (name := folded(key)) in texts and value is not None:
            if not isinstance(value, str):
                raise Refused(f"its {name} is not a string")
            texts[name] = value
    auth = texts["auth"]
    if not auth:
        user, password = (without_surrogates(texts[name]).encode() for name in _TEXTS[:2])
        return Login(user, password, auth)
    bare = auth.replace("\r", "").replace("\n", "")
    if _BASE64.fullmatch(bare) is None:
        raise Refused("its auth is not in the standard alphabet of base64, or is cut off")
    user, colon, password = base64.b64decode(bare + "=" * (-len(bare) % 4)).partition(b":")
    if not colon:
        raise Refused("its auth has no colon between user and password")
    return Login(user, password, auth)


def registry_of(name: str) -> str:
    """Return the key by which kubelet looks up an entry's name."""
    host, _, path = re.sub("^https?://", "", name).partition("/")
    return f"{host}/{path}" if (path := re.sub("^v[12]/", "", path)) else host


def folded(key: str) -> str:
    """Return a key for Go's case-insensitive comparison, which includes the long s and the Kelvin sign."""
    return key.lower().replace("\u017f", "s")


def _members(value: Any, what: str) -> Object:
    if value is not None and not isinstance(value, tuple):
        raise Refused(f"{what} is not a map")
    return value or ()
