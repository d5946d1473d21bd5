"""`gcp:secretmanager/getSecrets:getSecrets`: the secrets of a project that match a filter."""

from typing import cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.gcp.options import GoogleOptions
from pulumi_sandbox.providers.inputs import Input, problems
from pulumi_sandbox.providers.rest import Rest, ask


def get_secrets(api: Rest, options: GoogleOptions, args: Properties) -> Properties:
    """List secrets; none that matches is an empty list.

    Raises SandboxError when an argument is unknown, or the service refuses.
    """
    for problem in problems(args, {"filter": Input(), "project": Input()}):
        raise SandboxError(
            code="invalid",
            place=f"gcp:secretmanager/getSecrets:getSecrets {problem.place}",
            problem=problem.reason,
            fix="pass filter and project only, both as texts",
        )
    project = str(args.get("project") or options.project)
    wanted = str(args.get("filter") or "")
    parent = f"projects/{project}/secrets"
    listed = ask(api, "list", parent, "GET", parent, query={"filter": wanted}).get("secrets")
    found = [shown(each) for each in (listed if isinstance(listed, list) else []) if isinstance(each, dict)]
    return {
        "filter": wanted or None,
        "id": f"{parent}/filter={wanted}" if wanted else parent,
        "project": project,
        "secrets": cast("list[Value]", found),
    }


def shown(live: Properties) -> Properties:
    """Return one secret as the function's result has it: project and id as its name spells them."""
    name = str(live.get("name", ""))
    _, project, _, secret_id = (*name.split("/"), "", "", "", "")[:4]
    labels, annotations = live.get("labels") or {}, live.get("annotations") or {}
    return {
        "annotations": annotations,
        "createTime": live.get("createTime"),
        "deletionPolicy": "DELETE",
        "deletionProtection": False,
        "effectiveAnnotations": annotations,
        "effectiveLabels": labels,
        "expireTime": live.get("expireTime") or "",
        "labels": labels,
        "name": name,
        "project": project,
        "pulumiLabels": labels,
        "replications": [_replication(live.get("replication"))],
        "rotations": [],
        "secretId": secret_id,
        "secretType": "",
        "tags": {},
        "topics": [],
        "ttl": live.get("ttl") or "",
        "versionAliases": live.get("versionAliases") or {},
        "versionDestroyTtl": live.get("versionDestroyTtl") or "",
    }


def _replication(replication: Value) -> Properties:
    live = replication if isinstance(replication, dict) else {}
    managed = live.get("userManaged")
    if isinstance(managed, dict):
        listed = managed.get("replicas")
        replicas: list[Value] = [
            {"location": each.get("location"), "customerManagedEncryptions": []}
            for each in (listed if isinstance(listed, list) else [])
            if isinstance(each, dict)
        ]
        return {"autos": [], "userManageds": [{"replicas": replicas}]}
    return {"autos": [{"customerManagedEncryptions": []}], "userManageds": []}
