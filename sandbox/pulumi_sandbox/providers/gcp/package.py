"""The package `gcp` before it is configured: its options and resources."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Final

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Properties, Value, mapping, mappings
from pulumi_sandbox.providers.contract import (
    Package,
    Patience,
    Problem,
    Provider,
    ResourceKind,
    missing_options,
)
from pulumi_sandbox.providers.gcp.resources import Members, Secrets, Versions
from pulumi_sandbox.providers.rest import Rest, Retries

ENDPOINT: Final = "secretManagerCustomEndpoint"
VARIABLE: Final = "GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT"
"""Variable that is read if the option is not set, as in the real provider."""

_REQUIRED: Final = {
    ENDPOINT: "the sandbox reaches no real Google Cloud; set it to an emulator (http://127.0.0.1:…/v1/), "
    "or use the Pulumi CLI",
    "accessToken": "the sandbox looks for no credentials; set any text that is not a real token",
}


def problems(config: Properties) -> list[Problem]:
    """Require endpoint and token: this provider only supports an emulator, without credentials."""
    return missing_options(config, _REQUIRED, {ENDPOINT: endpoint({})})


def endpoint(given: Mapping[str, str]) -> str:
    """Return the address of Secret Manager, from the option or the variable."""
    return given.get(ENDPOINT) or os.environ.get(VARIABLE, "")


def get_secrets(api: Rest, default: str, args: Properties) -> Properties:
    """Return the matching secrets, maybe none. Raises SandboxError if the service rejects the request.

    default: the project of a call without one.
    """
    project = str(args.get("project") or default)
    wanted = str(args.get("filter") or "")
    parent = f"projects/{project}/secrets"
    listed = api.ask("list", parent, "GET", query={"filter": wanted}).get("secrets")
    found = map(shown, mappings(listed))
    return {
        "filter": wanted or None,
        "id": f"{parent}/filter={wanted}" if wanted else parent,
        "project": project,
        "secrets": [*found],
    }


def shown(live: Properties) -> Properties:
    """Return the properties of a secret for programs: project and ID as in its name."""
    name = str(live.get("name", ""))
    _, project, _, secret_id = (*name.split("/"), "", "", "", "")[:4]
    return {
        "createTime": live.get("createTime"),
        "labels": live.get("labels") or {},
        "name": name,
        "project": project,
        "replications": [_replication(live.get("replication"))],
        "secretId": secret_id,
    }


def _replication(replication: Value) -> Properties:
    managed = mapping(replication).get("userManaged")
    if isinstance(managed, dict):
        replicas: list[Value] = [
            {"location": each.get("location"), "customerManagedEncryptions": []}
            for each in mappings(managed.get("replicas"))
        ]
        return {"autos": [], "userManageds": [{"replicas": replicas}]}
    return {"autos": [{"customerManagedEncryptions": []}], "userManageds": []}


GET_SECRETS: Final = "gcp:secretmanager/getSecrets:getSecrets"
SECRET: Final = "gcp:secretmanager/secret:Secret"  # noqa: S105 - the name of a type
_VERSION: Final = "gcp:secretmanager/secretVersion:SecretVersion"
_MEMBER: Final = "gcp:secretmanager/secretIamMember:SecretIamMember"

_RETRIES: Final = Retries(
    delays=(0.5, 1, 2, 4, 8, 10, 10, 10),  # the genuine provider retries for twenty minutes
    statuses=frozenset({429, 500, 502, 503}),
    lost=frozenset({"GET"}),  # otherwise a version might be added without being recorded
)


def package() -> Package:
    """Return the package."""
    return Package(
        title="Google Cloud",
        version="10.2.0",
        served=f"{SECRET}, {_MEMBER}, {_VERSION}",
        problems=problems,
        configure=_configure,
    )


def _configure(given: Mapping[str, str]) -> Provider:
    url, project = endpoint(given), given.get("project", "")
    patience = Patience(lambda: f"Secret Manager at {url}")
    token, root = given.get("accessToken", ""), url.rstrip("/") + "/"
    api = Rest("Secret Manager", lambda: root, token, _RETRIES, patience.wait)
    kinds: dict[str, ResourceKind] = {
        SECRET: Secrets(api, project),
        _VERSION: Versions(api),
        _MEMBER: Members(api, project, patience.wait),
    }
    functions = {GET_SECRETS: partial(get_secrets, api, project)}
    return Provider(lambda urn: kinds.get(urns.parse(urn).type), patience.cancel, functions.get)
