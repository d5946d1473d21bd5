"""The manifests of deploy/ in a namespace of a test, and kubeconfigs of the ServiceAccounts they make."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.support.noticed import until
from tests.support.stacks import ROOT

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

DEPLOY: Final = ROOT / "deploy"
_GROUP: Final = "rbac.authorization.k8s.io"


def objects(name: str, unique: str, instead_of: str = "account-pool") -> list[dict[str, Any]]:
    """Return the objects of a file with a unique name in place of one of theirs: the pool's namespace."""
    text = (DEPLOY / name).read_text(encoding="utf-8").replace(instead_of, unique)
    return [*yaml.safe_load_all(text)]


def one(name: str, namespace: str, kind: str) -> dict[str, Any]:
    """Return the one object of a kind that a file has."""
    (found,) = [each for each in objects(name, namespace) if each["kind"] == kind]
    return found


def arguments(name: str, namespace: str) -> list[str]:
    """Return the arguments that the container of a file runs the command with."""
    (deployed,) = [each for each in objects(name, namespace) if each["kind"] in ("Deployment", "CronJob")]
    spec = deployed["spec"]
    pod = spec["jobTemplate"]["spec"]["template"] if deployed["kind"] == "CronJob" else spec["template"]
    (container,) = pod["spec"]["containers"]
    return container["args"]


def single_rights(name: str) -> Iterator[dict[str, Any]]:
    """Yield each right that the Role of a file gives, as a rule of one verb and at most one name."""
    for rule in one(name, "account-pool", "Role")["rules"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for named in rule.get("resourceNames", (None,)):
                    bare = {"apiGroups": rule["apiGroups"], "resources": [resource], "verbs": [verb]}
                    yield {**bare, **({} if named is None else {"resourceNames": [named]})}


def words(right: Mapping[str, Any]) -> str:
    """Return a right in words."""
    return " ".join(each for key in ("verbs", "resources", "resourceNames") for each in right.get(key, ()))


class Accounts:
    """Makes ServiceAccounts of a namespace, each with rights of its own and a token to sign in with."""

    def __init__(self, plane: ControlPlane, admin: DynamicClient, namespace: str, folder: Path) -> None:
        self._admin = admin
        self._namespace = namespace
        self._folder = folder
        self._cluster = yaml.safe_load(plane.kubeconfig("admin").read_text())["clusters"]

    def kubeconfig(self, name: str, rights: Sequence[Mapping[str, Any]]) -> Path:
        """Return the kubeconfig of a new one, as JSON, once the API server knows its rights."""
        named = {"metadata": {"name": name, "namespace": self._namespace}}
        self._create("v1", "ServiceAccount", named)
        self._create(f"{_GROUP}/v1", "Role", {**named, "rules": [*rights]})
        bound = {
            "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self._namespace}],
        }
        self._create(f"{_GROUP}/v1", "RoleBinding", {**named, **bound})
        until(lambda: self._may(name, rights[0]))
        return self.signed_in(name)

    def signed_in(self, name: str) -> Path:
        """Return the kubeconfig of one that is there, as JSON."""
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{name}/token"
        token = self._admin.request("POST", path, body={"spec": {"expirationSeconds": 3600}})
        user = {"name": name, "user": {"token": token.to_dict()["status"]["token"]}}
        context = {"name": "c", "context": {"cluster": self._cluster[0]["name"], "user": name}}
        document = {"clusters": self._cluster, "users": [user], "contexts": [context], "current-context": "c"}
        file = self._folder / f"{name}.yaml"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **document}))
        return file

    def _create(self, version: str, kind: str, body: dict[str, Any]) -> None:
        api: Any = self._admin.resources.get(api_version=version, kind=kind)
        api.create(body={"apiVersion": version, "kind": kind, **body}, namespace=self._namespace)

    def _may(self, name: str, right: Mapping[str, Any]) -> bool:
        (group,), (resource,), (verb,) = right["apiGroups"], right["resources"], right["verbs"]
        asked = {"namespace": self._namespace, "group": group, "resource": resource, "verb": verb}
        asked["name"] = "".join(right.get("resourceNames", ()))
        spec = {"user": f"system:serviceaccount:{self._namespace}:{name}", "resourceAttributes": asked}
        api: Any = self._admin.resources.get(
            api_version="authorization.k8s.io/v1", kind="SubjectAccessReview"
        )
        return bool(api.create(body={"spec": spec}).status.allowed)
