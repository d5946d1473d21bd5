"""The package `gcp` as the engine meets it, before it is configured."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pulumi_sandbox.protocol.values import Properties, Value, mapping, mappings
from pulumi_sandbox.providers.contract import Package, Provider
from pulumi_sandbox.providers.dispatch import Dispatcher, Patience
from pulumi_sandbox.providers.gcp import options
from pulumi_sandbox.providers.gcp.options import GoogleOptions
from pulumi_sandbox.providers.gcp.resources import Members, Secrets, Versions
from pulumi_sandbox.providers.rest import Rest, Retries, Service, ask


def get_secrets(api: Rest, options: GoogleOptions, args: Properties) -> Properties:
    """List secrets; none that matches is an empty list. Raises SandboxError when the service refuses."""
    project = str(args.get("project") or options.project)
    wanted = str(args.get("filter") or "")
    parent = f"projects/{project}/secrets"
    listed = ask(api, "list", parent, "GET", parent, query={"filter": wanted}).get("secrets")
    found = map(shown, mappings(listed))
    return {
        "filter": wanted or None,
        "id": f"{parent}/filter={wanted}" if wanted else parent,
        "project": project,
        "secrets": [*found],
    }


def shown(live: Properties) -> Properties:
    """Return what programs read of one secret: project and id as its name spells them."""
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


_STATUSES: Final = frozenset({429, 500, 502, 503})
_DELAYS: Final = (0.5, 1, 2, 4, 8, 10, 10, 10)
"""The genuine provider's steps; it goes on for twenty minutes, too long for a sandbox."""


_RETRIES: Final = Retries(
    lambda refusal: _DELAYS if refusal.status in _STATUSES else (),
    lambda method: _DELAYS if method == "GET" else (),
)
"""Only readings are repeated after a lost answer: a version may have been added that is not recorded."""

_TITLE: Final = "Google Cloud"


def package(pause: Callable[[float], None] | None = None) -> Package:
    """Return the package; `pause` stands in for waiting between attempts."""
    return Package(
        title=_TITLE,
        version="10.2.0",
        problems=options.problems,
        configure=partial(_configure, pause),
    )


def _configure(pause: Callable[[float], None] | None, given: Mapping[str, str]) -> Provider:
    chosen = options.read(given)
    patience = Patience(lambda: f"Secret Manager at {chosen.endpoint}")
    wait = pause or patience.wait
    service = Service(
        title="Secret Manager",
        find=lambda: chosen.endpoint.rstrip("/") + "/",
        headers={"Authorization": f"Bearer {chosen.token}", "User-Agent": "pulumi-sandbox"},
    )
    api = Rest(service, _RETRIES, wait)
    return Dispatcher(
        _TITLE,
        {
            "gcp:secretmanager/secret:Secret": Secrets(api, chosen),
            "gcp:secretmanager/secretVersion:SecretVersion": Versions(api),
            "gcp:secretmanager/secretIamMember:SecretIamMember": Members(api, chosen, wait),
        },
        {"gcp:secretmanager/getSecrets:getSecrets": partial(get_secrets, api, chosen)},
        patience,
    )
