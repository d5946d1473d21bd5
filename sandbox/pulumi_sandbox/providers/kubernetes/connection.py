"""The connection to an API server: the official client's configuration and connections, plain requests.

The client's own request methods copy every body and wrap every response, and its discovery reads all groups
and stores a file in the shared temporary folder. Here a request is one call on its kept-alive connections,
and discovery is one request for each used group and version, repeated while a kind is missing.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from logging.handlers import BufferingHandler
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import urlencode

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.kubernetes import objects
from pulumi_sandbox.providers.kubernetes.errors import ApiRefusedError
from pulumi_sandbox.providers.kubernetes.objects import KubernetesKind
from pulumi_sandbox.providers.rest import NO_QUERY, Method, Query

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

Pause: TypeAlias = Callable[[float], None]
"""Waits this many seconds; raises SandboxError `cancelled` if the run is being stopped."""

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
PASSPHRASES: Final = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """The options of one provider; empty texts mean the values of the kubeconfig."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    secrets_mutable: bool = False
    config_maps_mutable: bool = False


_IMPORTING: Final = threading.Lock()
"""The client's modules have import cycles: a second thread could find a partially initialized module."""
_CONNECTIONS: Final = 64
_CONNECT_SECONDS: Final = 5
_ANSWER_SECONDS: Final = 60


def import_client() -> None:
    """Import the official client early, as that takes half a second."""
    with _IMPORTING:
        import_module("kubernetes.config")


class Connection:
    """The cluster given by options; connects at the first request."""

    def __init__(self, options: KubernetesOptions) -> None:
        """Store the options, without reading files or connecting."""
        self._options = options
        self._opening = threading.Lock()
        self._opened: tuple[ApiClient, str] | None = None
        self._discovering = threading.Lock()
        self._kinds: dict[tuple[str, str], KubernetesKind] = {}

    @property
    def place(self) -> str:
        """The address of the cluster, as a place for errors."""
        return f"Kubernetes API {self._open()[0].configuration.host}"

    @property
    def default_namespace(self) -> str:
        """The default namespace of objects: the option's, otherwise the context's."""
        return self._open()[1]

    def find(self, api_version: str, kind: str) -> KubernetesKind | None:
        """Return how the server serves a kind; None if it currently does not."""
        wanted = (api_version, kind)
        with self._discovering:
            if wanted not in self._kinds:
                self._kinds.update(self._discover(api_version))
            return self._kinds.get(wanted)

    def send(
        self,
        method: Method,
        path: str,
        *,
        query: Query = NO_QUERY,
        body: Value = None,
        content_type: str = JSON,
    ) -> Properties:
        """Send a request on a kept-alive connection and return the response's JSON object.

        A busy server (429 or 503 with Retry-After) is retried, and so is one that closed the connection:
        every request of this provider can safely be repeated. Raises ApiRefusedError if the server responds
        with an error; SandboxError `cluster-unreachable` if it does not respond, `kubeconfig-invalid` if the
        user's token cannot be sent.
        """
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        client, _ = self._open()
        headers = {"Accept": JSON, "Content-Type": content_type, "User-Agent": "pulumi-sandbox"}
        client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        # A token read from a file often ends in a newline.
        headers = {name: text.strip() for name, text in headers.items()}
        url = f"{client.configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        pool = cast(Any, client.rest_client.pool_manager)
        try:
            answer = pool.request(
                method,
                url,
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=Timeout(connect=_CONNECT_SECONDS, read=_ANSWER_SECONDS),
            )
        except HTTPError as error:
            cause = getattr(error, "reason", None) or error
            raise SandboxError(
                code="cluster-unreachable",
                place=self.place,
                problem=f"it does not answer ({type(cause).__name__})",
                fix="start the cluster (the sandbox's `status` shows what runs), or fix address and "
                "certificate in the kubeconfig",
            ) from error
        except ValueError:
            raise SandboxError(
                code="kubeconfig-invalid",
                place=self.place,
                problem="the user's token has characters that are invalid in a header",
                fix="give the token on one line of printable characters, or sign in again",
            ) from None
        return _read(answer.status, answer.data)

    def _open(self) -> tuple[ApiClient, str]:
        with self._opening:
            if self._opened is None:
                self._opened = _connect(self._options)
            return self._opened

    def _discover(self, api_version: str) -> dict[tuple[str, str], KubernetesKind]:
        try:
            listed = self.send("GET", objects.group_path(api_version)).get("resources")
        except ApiRefusedError as refusal:
            if refusal.status == 404:
                return {}
            raise
        resources = cast(list[Properties], listed or [])
        return {
            (api_version, str(resource["kind"])): KubernetesKind(
                api_version, str(resource["name"]), resource.get("namespaced") is True
            )
            for resource in resources
            if "/" not in str(resource["name"])
        }


def _connect(options: KubernetesOptions) -> tuple[ApiClient, str]:
    import_client()
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
    from urllib3 import Retry
    from yaml import YAMLError

    for name in PASSPHRASES:
        os.environ.pop(name, None)  # a credential plugin inherits all others
    given = options.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    is_text = "\n" in given or given.lstrip().startswith("{")
    place = "kubeconfig (given as text)" if is_text else f"kubeconfig {given}"
    configuration = Configuration()
    configuration.connection_pool_maxsize = _CONNECTIONS
    configuration.retries = Retry(
        total=6, connect=1, read=1, status=5, redirect=0, other=0, allowed_methods=None, raise_on_status=False
    )
    complaints = BufferingHandler(sys.maxsize)
    complaints.setLevel(logging.ERROR)
    logging.root.addHandler(complaints)  # the client only logs errors of a credential plugin, and continues
    try:
        content: Any = KubeConfigMerger(io.StringIO(given) if is_text else given).config
        loader: Any = KubeConfigLoader(content, options.context or None, config_base_path=cast(Any, None))
        loader.load_and_set(configuration)
    except ConfigException as error:
        raise _invalid(place, f"the official client does not take it ({error})") from error
    except (OSError, YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _invalid(place, f"it is no kubeconfig ({type(error).__name__})") from None
    finally:
        logging.root.removeHandler(complaints)
    if complaints.buffer:
        raise SandboxError(
            code="kubeconfig-invalid",
            place=place,
            problem="its plugin for credentials failed, so there is no login",
            fix="sign in again, or run the command under users.exec of the file to see why it fails",
        )
    namespace = options.namespace or loader.current_context["context"].get("namespace") or "default"
    return ApiClient(configuration), namespace


def _invalid(place: str, problem: str) -> SandboxError:
    return SandboxError(
        code="kubeconfig-invalid",
        place=place,
        problem=problem,
        fix="give the provider a kubeconfig that kubectl can use, or start the sandbox's own cluster",
    )


def _read(status: int, data: bytes) -> Properties:
    content: Properties = {"message": data[:500].decode(errors="replace")}
    with suppress(ValueError):
        content = cast(Properties, json.loads(data))
    if not 200 <= status < 300:
        raise ApiRefusedError(status, content)
    return content
