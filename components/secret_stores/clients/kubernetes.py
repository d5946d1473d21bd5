"""Client of kind Kubernetes: Secrets of one namespace, read and written with the provider's identity.

A key is the name of a Secret, and a property is one of its keys. The cluster is the stack's own unless the
provider sets a server address.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from components.cluster_target import configuration_of
from components.connection import Connection, NoReply, Reply, Untrusted
from components.errors import Problem, StoreError
from components.go_json import write_texts
from components.http_answers import HttpOutcome
from components.importing import IMPORT_LOCK
from components.labels import PREFIX
from components.projection.kubernetes_secrets import KubernetesSecrets, collection_of
from components.projection.model import JsonObject, SecretRef, annotations_of, data_of
from components.secret_stores.clients.client import (
    ClientRequest,
    Gathered,
    GatheringClient,
    Kept,
    SecretsClient,
    Value,
    gather,
    matches,
)
from components.secret_stores.json_fields import field_of
from components.secret_stores.kubernetes_server import is_foreign, strange_certificates
from components.secret_stores.spec_faults import is_certificates

if TYPE_CHECKING:
    from kubernetes.client import Configuration

    from components.secret_stores.consumers import Find, Place, RemoteRef
    from components.secret_stores.specs import KubernetesServer, KubernetesSpec
    from components.secret_stores.stack_cluster import StackCluster

PUSHED_BY: Final = f"{PREFIX}pushed-by"
"""Annotation of a Secret that a push wrote. Without it, a Secret has another owner and is never changed."""


class KubernetesClient(KubernetesSecrets, GatheringClient):
    """Secrets of one namespace through a connection.

    `namespace`: of the Secrets to read. `foreign`: whether the server is not the stack's own. Its messages
    are then never shown, because they might contain secret values.
    """

    MANAGER = "credfleet-stores"

    def __init__(self, title: str, connection: Connection, namespace: str, *, foreign: bool) -> None:
        super().__init__(connection)
        self._title = title
        self.namespace = namespace
        self._foreign = foreign

    def read(self, ref: RemoteRef) -> Value | None:
        """Read a key of a Secret; without a property all keys, as a JSON object of strings."""
        secret = self.get(SecretRef(self.namespace, ref.key))
        if secret is None:
            return None
        data = _data(secret)
        content = write_texts(data) if ref.property_name is None else _value(data, ref.property_name)
        return None if content is None else Value(content, _version(secret))

    def extract(self, ref: RemoteRef) -> Gathered | None:
        """Read all keys of a Secret."""
        secret = self.get(SecretRef(self.namespace, ref.key))
        return None if secret is None else Gathered(_data(secret), _version(secret))

    def find(self, wanted: Find) -> Gathered:
        """Read every Secret with a matching name or labels, each as a JSON object of strings."""
        labels = ",".join(f"{key}={value}" for key, value in (wanted.tags or {}).items())
        selector = f"?labelSelector={quote(labels, safe='')}" if labels else ""
        meant = SecretRef(self.namespace, f"(labels {labels})" if labels else "(all)")
        reply = self._call("GET", collection_of(self.namespace) + selector, meant)
        items: list[dict[str, Any]] = reply.body.get("items") or []
        return gather(
            {
                each["metadata"]["name"]: Value(write_texts(_data(each)), _version(each))
                for each in items
                if matches(wanted, each["metadata"]["name"])
            }
        )

    def look(self, place: Place, owner: str) -> Kept | None:
        """Read the present value."""
        secret = self.get(SecretRef(place.namespace or self.namespace, place.key))
        if secret is None:
            return None
        owned = annotations_of(secret).get(PUSHED_BY) == owner
        found = data_of(secret).get(place.property_name or "")
        return Kept(None if found is None else base64.b64decode(found), owned=owned, edition=secret)

    def write(self, place: Place, content: bytes, owner: str, over: Kept | None) -> bool:
        """Write one key; the other keys of the Secret stay."""
        if over is None:
            metadata: JsonObject = {"name": place.key, "namespace": place.namespace or self.namespace}
            secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque"}
        else:
            secret, metadata = over.edition, over.edition["metadata"]
        annotations = {**(metadata.get("annotations") or {}), PUSHED_BY: owner}
        data = {**data_of(secret), str(place.property_name): base64.b64encode(content).decode()}
        body = {**secret, "metadata": {**metadata, "annotations": annotations}, "data": data}
        return (self.create(body) if over is None else self.replace(body)) is not None

    def remove(self, place: Place, seen: Kept) -> bool:
        """Remove one key; with the last one, delete the Secret."""
        secret: JsonObject = seen.edition
        rest = {key: value for key, value in data_of(secret).items() if key != place.property_name}
        if rest:
            return self.replace({**secret, "data": rest}) is not None
        return self.delete(secret)

    def _call(self, method: str, path: str, ref: SecretRef, body: JsonObject | None = None) -> Reply:
        try:
            reply = self._connection.call(method, path, body=body)
        except Untrusted:
            problem = "no authority that the provider trusts signed the API server's certificate"
            fix = "give server.caBundle or server.caProvider with the certificates of its authority"
            raise self._failed("misconfigured", ref, problem, fix) from None
        except NoReply as silence:
            said = "" if self._foreign else f" ({silence})"
            problem = f"the API server does not answer{said}"
            raise self._failed("unreachable", ref, problem, "run again once it does") from None
        if method == "POST" and reply.lacks_namespace:
            problem = f"there is no namespace {ref.namespace}, or it is being deleted"
            raise self._failed("absent", ref, problem, "create it, or correct remoteNamespace")
        said = f"HTTP {reply.status}" if self._foreign else reply.text
        refused = f"the API server refused to {method} it: {said if self._foreign else reply.reason}"
        match reply.answer:
            case HttpOutcome.NOT_ALLOWED if reply.status == HTTPStatus.UNAUTHORIZED:
                problem = (
                    f"the API server rejects the token or certificate of the provider's identity: {said}"
                )
                raise self._failed("not-allowed", ref, problem, "put a valid one where its auth names it")
            case HttpOutcome.NOT_ALLOWED:
                problem = f"the API server does not let the provider's identity {method} it: {said}"
                raise self._failed(
                    "not-allowed", ref, problem, "grant it by a Role there, or read what it may"
                )
            case HttpOutcome.UNREACHABLE:
                raise self._failed("unreachable", ref, refused, "run again")
            case HttpOutcome.REFUSED:
                raise self._failed("refused", ref, refused, "see what is there and what its server takes")
            case _:
                return reply

    def _failed(self, code: str, ref: SecretRef, problem: str, fix: str) -> StoreError:
        return StoreError(code=code, place=f"{self._title}: {ref.place}", problem=problem, fix=fix)


def _data(secret: JsonObject) -> Mapping[str, bytes]:
    return {key: base64.b64decode(value) for key, value in data_of(secret).items()}


def _version(secret: Mapping[str, Any]) -> str:
    return str(secret["metadata"]["resourceVersion"])


def _value(data: Mapping[str, bytes], name: str) -> bytes | None:
    """Return the value of a key; if none has a dotted name, the JSON field below its first part."""
    if name in data:
        return data[name]
    key, _, path = name.partition(".")
    return field_of(data[key], *path.split(".")) if path and key in data else None


def kubernetes_limits(given: Any) -> Iterator[Problem]:
    """Yield the parts of a spec that this client does not support."""
    spec: KubernetesSpec = given
    if spec.auth_ref is not None:
        yield Problem(
            "authRef",
            "the direct back end takes no authRef: a kubeconfig can name programs to run",
            "give auth.serviceAccount, auth.token or auth.cert instead, or choose backend: eso",
        )


def open_kubernetes(request: ClientRequest) -> SecretsClient:
    """Log in only in the way that the provider's spec says."""
    with IMPORT_LOCK:
        from kubernetes.client import ApiClient

    spec: KubernetesSpec = request.spec
    auth, cluster = spec.auth, request.cluster
    configuration = _address(spec.server, cluster, request.title)
    pair = None
    if auth is None:
        raise TypeError(f"{request.title} was admitted without a login")
    if auth.service_account is not None:
        _bear(configuration, cluster.token(auth.service_account))
    elif auth.token is not None:
        _bear(configuration, cluster.secret(auth.token.bearer_token).decode().strip())
    elif auth.cert is not None:
        pair = cluster.secret(auth.cert.client_cert), cluster.secret(auth.cert.client_key)
    client = ApiClient(configuration)
    if pair is not None:
        client.rest_client.pool_manager.connection_pool_kw["ssl_context"] = _context(*pair, request.title)
    return KubernetesClient(
        request.title,
        Connection(client).patient,
        spec.remote_namespace,
        foreign=is_foreign(spec.server),
    )


def _address(server: KubernetesServer | None, cluster: StackCluster, title: str) -> Configuration:
    """Return the address and CA of the API server, without credentials."""
    with IMPORT_LOCK:
        from kubernetes.client import Configuration

    configuration = Configuration()
    if not is_foreign(server):
        if (strange := strange_certificates(server, cluster)) is not None:
            raise StoreError.of(strange, "misconfigured", f"{title}: {strange.place}")
        own = configuration_of(cluster.target)
        for name in ("host", "ssl_ca_cert", "ca_cert_data", "verify_ssl", "tls_server_name", "proxy"):
            setattr(configuration, name, getattr(own, name))
        return configuration
    configuration.host = server.url
    if server.ca_bundle is not None:
        configuration.ca_cert_data = base64.b64decode(server.ca_bundle).decode()
    elif server.ca_provider is not None:
        configuration.ca_cert_data = cluster.certificates(server.ca_provider)
        if not is_certificates(configuration.ca_cert_data):
            raise StoreError(
                code="misconfigured",
                place=title,
                problem="what server.caProvider names holds no certificates in PEM",
                fix="put the certificates of the server's authority there",
            )
    return configuration


def _bear(configuration: Configuration, token: str) -> None:
    configuration.api_key, configuration.api_key_prefix = {"BearerToken": token}, {"BearerToken": "Bearer"}


def _context(certificate: bytes, key: bytes, title: str) -> ssl.SSLContext:
    """Load a certificate and its key; `ssl` requires a file, so they are passed as an in-memory one."""
    context = ssl.create_default_context()
    with os.fdopen(os.memfd_create("certificate"), "wb") as pair:
        pair.write(certificate + b"\n" + key)
        pair.flush()
        try:
            context.load_cert_chain(f"/proc/self/fd/{pair.fileno()}")
        except ssl.SSLError:
            raise StoreError(
                code="misconfigured",
                place=title,
                problem="what auth.cert names is not a certificate in PEM with its key",
                fix="correct the Secrets it names",
            ) from None
    return context
