"""What of a provider's spec neither back end can serve: no identity to log in with, or a useless address.

Nor is one served to which a token would travel in plaintext. The place of a fault is its path in the spec.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from components.errors import Problem
from components.naming import is_data_key, is_object_name
from components.secret_stores.kubernetes_server import is_foreign
from components.secret_stores.model import ProviderSpec
from components.secret_stores.specs import GcpSecretManagerSpec, KubernetesSpec

_PROJECT: Final = re.compile(r"([a-z0-9.-]+:)?[a-z0-9][a-z0-9-]*")
"""Its id, behind a domain where it is one's, or its number."""

_SECRET_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,255}")
_VERSION: Final = re.compile(r"[1-9][0-9]*|[A-Za-z][A-Za-z0-9_-]{0,62}")
_LOCATION: Final = re.compile(r"[a-z]+(-[a-z]+)+[0-9]+")


def kubernetes_faults(given: Any) -> Iterator[Problem]:
    """Judge a spec of kind Kubernetes."""
    spec: KubernetesSpec = given
    if spec.auth is None and spec.auth_ref is None:
        yield Problem(
            "auth",
            "it does not say which identity it logs in with",
            "give auth.serviceAccount, auth.token or auth.cert",
        )
    if is_foreign(spec.server):
        yield from _address_faults("server.url", spec.server.url, "write https://, or leave server out")
    if spec.server is not None:
        yield from _bundle_faults("server.caBundle", spec.server.ca_bundle)


def gitlab_faults(given: Any) -> Iterator[Problem]:
    """Judge a spec of kind GitLab."""
    spec = _said(given)
    if not spec["projectID"] and not spec["groupIDs"]:
        yield Problem("projectID", "it does not say whose variables are meant", "add projectID or groupIDs")
    if spec["inheritFromGroups"] and spec["groupIDs"]:
        problem = "inheritFromGroups means the groups of the project, and groupIDs others"
        yield Problem("groupIDs", problem, "leave one of the two out")
    if spec["url"]:
        yield from _address_faults("url", spec["url"], "write https://, or leave url out for gitlab.com")
    yield from _bundle_faults("caBundle", spec["caBundle"])


def azurekv_faults(given: Any) -> Iterator[Problem]:
    """Judge a spec of kind AzureKV."""
    spec = _said(given)
    own_cloud = spec["customCloudConfig"]
    if spec["environmentType"] == "AzureStackCloud" and own_cloud is None:
        problem = "the addresses of an Azure Stack are nowhere else"
        yield Problem("customCloudConfig", problem, "add customCloudConfig")
    if own_cloud and not spec["useAzureSDK"]:
        problem = "only the new Azure SDK takes customCloudConfig"
        yield Problem("useAzureSDK", problem, "add useAzureSDK: true")
    yield from _address_faults("vaultUrl", spec["vaultUrl"], "write such as https://acme.vault.azure.net")


def gcpsm_faults(given: Any) -> Iterator[Problem]:
    """Judge a spec of kind GCPSM."""
    spec: GcpSecretManagerSpec = given
    if spec.project_id and not _PROJECT.fullmatch(spec.project_id):
        yield Problem(
            "projectID", "Google has no project of such an id", "write it such as acme-prod, or its number"
        )
    if spec.location and not _LOCATION.fullmatch(spec.location):
        yield Problem("location", "Google has no region of such a name", "write such as europe-west3")


def kubernetes_names(key: str, name: str | None, _version: str | None) -> Iterator[tuple[str, str]]:
    """Find what no Secret of a cluster is called, and no key of one, with its fix."""
    if not is_object_name(key):
        yield (
            f"Kubernetes takes no Secret of the name {key}",
            "write up to 253 of a-z, 0-9 and, inside, '-' and '.'",
        )
    if name is not None and not is_data_key(name):
        yield f"no Secret has a key {name}", "write letters, digits, '-', '_' and '.'"


def gcpsm_names(key: str, _name: str | None, version: str | None) -> Iterator[tuple[str, str]]:
    """Find what no secret of Google is called, and no version of one, with its fix."""
    if not _SECRET_ID.fullmatch(key):
        yield f"Google has no secret of the name {key}", "write up to 255 letters, digits, '-' and '_'"
    if version is not None and not _VERSION.fullmatch(version):
        yield (
            f"Google has no version {version} of a secret",
            "write a number, the alias of a version, or latest",
        )


def _said(spec: ProviderSpec) -> Mapping[str, Any]:
    """Return the fields of a spec whose model is made of its shape, by the names that ESO gives them."""
    return spec.model_dump(mode="json", by_alias=True)


def is_certificates(pem: str) -> bool:
    """Whether a text is certificates in PEM."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        return False
    return True


def _address_faults(path: str, text: str, fix: str) -> Iterator[Problem]:
    if not text.startswith("https://"):
        problem = "is not an https:// address, so anybody on the way could read the token"
    elif not _is_usable(text):
        problem = "is not an address that anybody could call"
    else:
        return
    yield Problem(path, f"{path} {problem}", fix)


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
