"""Identifies the cluster to which a command will write, and checks that it answers, before any write."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pulumi_sandbox.errors import SandboxError

_SECONDS = 10.0
"""Timeout of one request to a cluster."""


@dataclass(frozen=True, slots=True)
class Contact:
    """A cluster that answered. `uid` is that of namespace kube-system, None if we cannot read it."""

    kubeconfig: Path
    context: str
    server: str
    uid: str | None


def contact(kubeconfig: Path, context: str | None, context_from: str = "--context") -> Contact:
    """Return the cluster of a context (None: the kubeconfig's current one).

    context_from: what named the context, for the error. Raises SandboxError `kubeconfig-missing`,
    `kubeconfig-broken`, `wrong-context`, `cluster-unreachable` or `not-allowed`.
    """
    from kubernetes import client, config
    from kubernetes.config.config_exception import ConfigException
    from urllib3.exceptions import HTTPError
    from yaml import YAMLError

    path = kubeconfig.expanduser().resolve()
    if not path.is_file():
        raise SandboxError(
            code="kubeconfig-missing",
            place=str(path),
            problem="there is no such kubeconfig file",
            fix="name the file of your cluster, or leave --kubeconfig out to use the sandbox's own",
        )
    try:
        contexts, active = cast("tuple[Any, Any]", config.list_kube_config_contexts(config_file=str(path)))
        name = str(active["name"] if context is None else context)
        known = [str(each["name"]) for each in contexts]
        if name not in known:
            raise SandboxError(
                code="wrong-context",
                place=context_from,
                problem=f"the stack means context {name}, {path} has {', '.join(known)}; nothing was written",
                fix=f"give --kubeconfig with the file that has it, or change {context_from}",
            )
        api = config.new_client_from_config(config_file=str(path), context=name, persist_config=False)
    except (ConfigException, YAMLError, TypeError, KeyError, ValueError, AttributeError) as error:
        raise SandboxError(
            code="kubeconfig-broken",
            place=str(path),
            problem=f"this kubeconfig cannot be used ({type(error).__name__})",
            fix="see `kubectl config view`; a current context is needed: `kubectl config use-context`",
        ) from None
    server = str(api.configuration.host)
    try:
        request = api.param_serialize("GET", "/api/v1/namespaces/kube-system", auth_settings=["BearerToken"])
        answer = api.call_api(*request, _request_timeout=_SECONDS)
        body = answer.read()
    except (HTTPError, client.ApiException, OSError) as error:
        raise SandboxError(
            code="cluster-unreachable",
            place=server,
            problem=f"the API server of context {name} does not answer ({_innermost(error)})",
            fix="start it or choose another context, then run the same command again; nothing was written",
        ) from None
    if answer.status == 401:
        raise SandboxError(
            code="not-allowed",
            place=server,
            problem=f"the API server does not let the user of context {name} in (HTTP 401)",
            fix="log in again or choose a context of a user with rights; nothing was written",
        )
    uid = json.loads(body)["metadata"]["uid"] if answer.status == 200 else None
    return Contact(kubeconfig=path, context=name, server=server, uid=uid)


def _innermost(error: BaseException) -> str:
    """Return the name of the innermost error of the HTTP client, without addresses or bodies."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _innermost(reason)
    return type(error).__name__
