"""The Roles that `credfleet bootstrap` prints, applied as `kubectl apply` does; and who has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from kubernetes.dynamic.exceptions import NotFoundError

from tests.support.fleet_project import FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

Manifest = dict[str, Any]


def printed(project: FleetProject) -> list[Manifest]:
    """Return the Roles that are printed for a project's stack."""
    text = project.run("bootstrap", "--stack", project.stack, "--format", "yaml").quiet().out
    return [*yaml.safe_load_all(text)]


def apply(
    admin: DynamicClient, documents: list[Manifest], edit: Callable[[Manifest], None] = lambda _: None
) -> int:
    """Apply them, each edited before; return how many were refused for want of their namespace."""
    refused = 0
    for document in documents:
        edit(document)
        metadata = document["metadata"]
        api = admin.resources.get(api_version=document["apiVersion"], kind=document["kind"])
        try:
            api.server_side_apply(
                body=document,
                name=metadata["name"],
                namespace=metadata.get("namespace"),
                field_manager="kubectl",
                force_conflicts=True,
            )
        except NotFoundError:
            refused += 1
    return refused


def workers(admin: DynamicClient, project: FleetProject) -> Mapping[str, FleetProject]:
    """Return the project as each identity has it, by the name of its Role, with an account of its own."""
    base = json.loads(project.kubeconfig.read_text(encoding="utf-8"))
    found: dict[str, FleetProject] = {}
    for identity in ("preview", "drift", "deploy"):
        name = f"credfleet-{project.stack}-{identity}"
        accounts = admin.resources.get(api_version="v1", kind="ServiceAccount")
        accounts.create(body={"metadata": {"name": name}}, namespace="kube-system")
        path = f"/api/v1/namespaces/kube-system/serviceaccounts/{name}/token"
        body = {"spec": {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 36_000}}
        user = {
            "name": base["users"][0]["name"],
            "user": {"token": admin.request("post", path, body=body).status.token},
        }
        file = project.folder / f"{identity}.kubeconfig"
        file.write_text(json.dumps({**base, "users": [user]}), encoding="utf-8")
        found[name] = replace(project, kubeconfig=file)
    return found


def to_accounts(document: Manifest) -> None:
    """Give a Role to the account of `workers` instead of to the group of the same name."""
    for subject in document.get("subjects", ()):
        subject |= {"kind": "ServiceAccount", "namespace": "kube-system", "apiGroup": ""}
