"""API server of a provider of kind Kubernetes, and its CA.

External Secrets Operator (ESO) does not default to its own server: it requires an address, and without
`https://` it uses plaintext unless it has certificates (docs/compatibility.md). The address of its own server
is therefore always written out for it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from components.errors import Problem, StoreError
from components.secret_stores.model import CaSelector
from components.secret_stores.specs import KubernetesServer, KubernetesSpec

if TYPE_CHECKING:
    from components.secret_stores.stack_cluster import StackCluster

_OWN: Final = re.compile(r"(https://)?kubernetes\.default(\.svc(\.cluster\.local)?)?(:443)?/?", re.IGNORECASE)
"""Addresses of the API server of the cluster in which they are used."""

_HTTPS: Final = "https://"
ROOT_CA: Final = CaSelector(type="ConfigMap", name="kube-root-ca.crt", key="ca.crt")
"""ConfigMap with the CA certificate of the API server, which Kubernetes creates in every namespace."""

_ANY_NAMESPACE: Final = "default"


def is_own(server: KubernetesServer | None) -> bool:
    """Return whether the server is that of the stack's own cluster."""
    return server is None or _OWN.fullmatch(server.url) is not None


def is_foreign(server: KubernetesServer | None) -> TypeGuard[KubernetesServer]:
    """Return whether the server is that of another cluster."""
    return not is_own(server)


def written_out(given: Any, of_all: bool) -> KubernetesSpec:
    """Return a spec with the address and CA of its API server.

    `of_all`: for a ClusterSecretStore, whose certificates require a namespace.
    """
    spec: KubernetesSpec = given
    if spec.auth_ref is not None or is_foreign(spec.server):
        return spec
    server = spec.server or KubernetesServer()
    url = server.url if server.url.startswith(_HTTPS) else f"{_HTTPS}{server.url}"
    known_by = server.ca_bundle or server.ca_provider
    root = ROOT_CA.model_copy(update={"namespace": _ANY_NAMESPACE if of_all else None})
    certificates = {} if known_by else {"ca_provider": root}
    return spec.model_copy(update={"server": server.model_copy(update={"url": url, **certificates})})


def missed_by_eso(given: Any) -> Iterator[Problem]:
    """Yield what ESO lacks in an unmodified spec to reach the API server of its own cluster."""
    spec: KubernetesSpec = given
    if spec.auth_ref is not None or is_foreign(spec.server):
        return
    known_by = spec.server and (spec.server.ca_bundle or spec.server.ca_provider)
    if spec.server is None:
        problem = "there is no server.url, and ESO knows no API server of its own"
    elif known_by:
        return
    elif spec.server.url.startswith(_HTTPS):
        problem = "nothing says what the API server is known by, and ESO trusts public authorities only"
    else:
        problem = "server.url has no https://, so ESO sends the token in plaintext"
    yield Problem(
        "server",
        problem,
        f"write url: {_HTTPS}kubernetes.default and a caProvider for the ConfigMap {ROOT_CA.name}",
    )


def strange_certificates(server: KubernetesServer | None, cluster: StackCluster) -> Problem | None:
    """Return a problem if the named certificates do not verify the stack's own cluster.

    ESO would trust only these, and could not connect. Returns None if the cluster's CA is unknown. Raises
    StoreError for missing certificates.
    """
    if server is None or is_foreign(server):
        return None
    if server.ca_bundle is not None:
        given = base64.b64decode(server.ca_bundle).decode()
    elif server.ca_provider is not None and server.ca_provider.name != ROOT_CA.name:
        given = cluster.certificates(server.ca_provider)
    else:
        return None
    root: Mapping[str, Any] | None = None
    with suppress(StoreError):
        path = f"/api/v1/namespaces/{_ANY_NAMESPACE}/configmaps/{ROOT_CA.name}"
        root = cluster.found(path, f"ConfigMap {_ANY_NAMESPACE}/{ROOT_CA.name}")
    if root is None or _vouches(given, str(root["data"][ROOT_CA.key])):
        return None
    return Problem(
        "server",
        "it is the stack's own cluster, and the certificates it names do not vouch for that, which is known"
        f" by ConfigMap {ROOT_CA.name}",
        f"leave caBundle and caProvider out, or name those of {ROOT_CA.name}",
    )


def _vouches(given: str, own: str) -> bool:
    """Return whether one of the cluster's certificates is among the given ones, or issued by one."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509 import load_pem_x509_certificates

    with suppress(ValueError):
        authorities, ours = (load_pem_x509_certificates(each.encode()) for each in (given, own))
        for authority, each in product(authorities, ours):
            with suppress(ValueError, TypeError, InvalidSignature):
                if each != authority:
                    each.verify_directly_issued_by(authority)
                return True
    return False
