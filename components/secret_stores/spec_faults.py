"""Parts of a provider's spec that no back end can serve: a missing identity, or an invalid address.

An address that would send a token in plaintext is rejected too. The place of a fault is its path in the spec.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from components.errors import Problem
from components.naming import is_data_key, is_object_name
from components.secret_stores.clients.client import SpecLimits
from components.secret_stores.eso_providers import Scope, unmet
from components.secret_stores.kubernetes_server import is_foreign
from components.secret_stores.model import as_document
from components.secret_stores.specs import KubernetesSpec

_SECRET_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,255}")
_VERSION: Final = re.compile(r"[1-9][0-9]*|[A-Za-z][A-Za-z0-9_-]{0,62}")


def kubernetes_faults(given: Any) -> Iterator[Problem]:
    """Check a spec of kind Kubernetes."""
    spec: KubernetesSpec = given
    if spec.auth is None and spec.auth_ref is None:
        yield Problem(
            "auth",
            "it does not say which identity it logs in with",
            "give auth.serviceAccount, auth.token or auth.cert",
        )
    if is_foreign(spec.server):
        fix = "write https://, or leave server out"
        if not spec.server.url.startswith("https://"):
            problem = "is not an https:// address, so anybody on the way could read the token"
            yield Problem("server.url", f"server.url {problem}", fix)
        elif not _is_usable(spec.server.url):
            yield Problem("server.url", "server.url is not an address that anybody could call", fix)
    if spec.server is not None:
        yield from _bundle_faults("server.caBundle", spec.server.ca_bundle)


def eso_faults(key: str) -> SpecLimits:
    """Return a check for a kind's requirements that apply to both back ends."""
    return lambda spec: unmet(key, as_document(spec), Scope.ALWAYS)


def gitlab_faults(given: Any) -> Iterator[Problem]:
    """Check a spec of kind GitLab."""
    yield from eso_faults("gitlab")(given)
    yield from _bundle_faults("caBundle", as_document(given).get("caBundle"))


def kubernetes_names(key: str, name: str | None, _version: str | None) -> Iterator[tuple[str, str]]:
    """Yield problems of the names of a Secret and its key, each with a fix."""
    if not is_object_name(key):
        yield (
            f"Kubernetes takes no Secret of the name {key}",
            "write up to 253 of a-z, 0-9 and, inside, '-' and '.'",
        )
    if name is not None and not is_data_key(name):
        yield f"no Secret has a key {name}", "write letters, digits, '-', '_' and '.'"


def gcpsm_names(key: str, _name: str | None, version: str | None) -> Iterator[tuple[str, str]]:
    """Yield problems of a Google secret's name and version, each with a fix."""
    if not _SECRET_ID.fullmatch(key):
        yield f"Google has no secret of the name {key}", "write up to 255 letters, digits, '-' and '_'"
    if version is not None and not _VERSION.fullmatch(version):
        yield (
            f"Google has no version {version} of a secret",
            "write a number, the alias of a version, or latest",
        )


def is_certificates(pem: str) -> bool:
    """Return whether a string contains PEM certificates."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        return False
    return True


def _is_usable(text: str) -> bool:
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and not {*' "<>\\^`{|}'} & {*text}
    return plain and bool(url.hostname) and not (url.username or url.query or url.fragment)


def _bundle_faults(path: str, bundle: str | None) -> Iterator[Problem]:
    if bundle is not None and not is_certificates(base64.b64decode(bundle).decode()):
        yield Problem(
            path, f"{path} holds no certificates in PEM", "encode the file of certificates with: base64 -w0"
        )
