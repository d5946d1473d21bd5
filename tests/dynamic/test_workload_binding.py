"""What a workload is given of its application's Secrets: in the genuine host, on a real API server."""

import base64
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from components.service_credentials.provider import WorkloadBindingProvider
from tests.support.cases import tabled
from tests.support.dynamic_host import Properties, Provider, provided

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

POD: dict[str, Any] = {
    "containers": [
        {"name": "app", "image": "none", "env": [{"name": "OWN", "value": "1"}]},
        {"name": "sidecar", "image": "none"},
    ],
    "initContainers": [{"name": "migrate", "image": "none"}],
}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "shop"}}, "spec": POD}
SELECTED: dict[str, Any] = {"selector": {"matchLabels": {"app": "shop"}}, "template": TEMPLATE}
JOB: dict[str, Any] = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Deployment": ("apps/v1", "Deployment", SELECTED),
    "StatefulSet": ("apps/v1", "StatefulSet", {**SELECTED, "serviceName": "shop"}),
    "DaemonSet": ("apps/v1", "DaemonSet", SELECTED),
    "CronJob": ("batch/v1", "CronJob", {"schedule": "0 0 * * *", "jobTemplate": {"spec": JOB}}),
}


provider = provided(WorkloadBindingProvider)


class Workload:
    """An object that others made, by its kind."""

    def __init__(self, admin: "DynamicClient", namespace: str, kind: str) -> None:
        self.version, self.kind, spec = KINDS[kind]
        self._api = admin.resources.get(api_version=self.version, kind=self.kind)
        self._secrets = admin.resources.get(api_version="v1", kind="Secret")
        self._namespace = namespace
        self._body = {"metadata": {"name": "shop"}, "spec": spec}
        self.create()

    def create(self) -> None:
        self._api.create(body=self._body, namespace=self._namespace)

    def delete(self) -> None:
        self._api.delete(name="shop", namespace=self._namespace)

    def replace(self) -> None:
        """Put it as its manifest has it, as `kubectl replace` does."""
        self._api.replace(name="shop", namespace=self._namespace, body=self._body)

    def template(self) -> dict[str, Any]:
        spec = self._api.get(name="shop", namespace=self._namespace).to_dict()["spec"]
        return spec["jobTemplate"]["spec"]["template"] if self.kind == "CronJob" else spec["template"]

    def container(self, name: str = "app") -> dict[str, Any]:
        spec = self.template()["spec"]
        (found,) = [one for one in (*spec["containers"], *spec["initContainers"]) if one["name"] == name]
        return found

    def set_variable(self, name: str, value: str) -> None:
        body = {
            "spec": {
                "template": {
                    "spec": {"containers": [{"name": "app", "env": [{"name": name, "value": value}]}]}
                }
            }
        }
        self._api.patch(
            name="shop",
            namespace=self._namespace,
            body=body,
            content_type="application/strategic-merge-patch+json",
        )

    def write_secret(self, name: str, text: str) -> None:
        metadata = {"name": name, "namespace": self._namespace}
        data = {"key": base64.b64encode(text.encode()).decode()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        self._secrets.server_side_apply(body=body, field_manager="tests", force_conflicts=True)

    def given(self, **more: Any) -> Properties:
        return {
            "namespace": self._namespace,
            "apiVersion": self.version,
            "kind": self.kind,
            "name": "shop",
            "vcapSecret": "shop-vcap-services",
            "takesFile": False,
            "directories": {"db": "orders-api", "mail": "post"},
            "containers": [],
            "restart": False,
            "content": "1",
            **more,
        }


@pytest.mark.parametrize("kind", KINDS)
def test_a_workload_of_any_kind_is_given_files_and_vcap_services_and_gives_them_back(
    provider: Provider, admin: "DynamicClient", namespace: str, kind: str
) -> None:
    workload = Workload(admin, namespace, kind)
    before = workload.template()
    made = provider.create(workload.given())
    for name in ("app", "sidecar", "migrate"):
        container = workload.container(name)
        env = {one["name"]: one for one in container["env"]}
        assert env["SERVICE_BINDING_ROOT"]["value"] == "/bindings"
        assert env["VCAP_SERVICES"]["valueFrom"] == {
            "secretKeyRef": {"name": "shop-vcap-services", "key": "VCAP_SERVICES"}
        }
        mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
        volumes = {one["name"]: one["secret"] for one in workload.template()["spec"]["volumes"]}
        found = {path: volumes[mount["name"]]["secretName"] for path, mount in mounts.items()}
        assert found == {"/bindings/db": "orders-api", "/bindings/mail": "post"}
        assert all(mount["readOnly"] for mount in mounts.values())
    assert {"name": "OWN", "value": "1"} in workload.container()["env"]
    provider.delete(made)
    assert workload.template() == before


def test_a_file_takes_the_place_of_the_variable_and_a_binding_that_is_gone_goes(
    provider: Provider, admin: "DynamicClient", namespace: str
) -> None:
    workload = Workload(admin, namespace, "Deployment")
    made = provider.create(workload.given())
    provider.update(
        made, workload.given(takesFile=True, directories={"db": "orders-api"}, containers=["app"])
    )
    container = workload.container()
    env = {one["name"]: one.get("value") for one in container["env"]}
    assert env == {
        "OWN": "1",
        "SERVICE_BINDING_ROOT": "/bindings",
        "VCAP_SERVICES_FILE_PATH": "/etc/cf-system/vcap_services",
    }
    assert {one["mountPath"] for one in container["volumeMounts"]} == {"/bindings/db", "/etc/cf-system"}
    (file,) = [one["secret"] for one in workload.template()["spec"]["volumes"] if "items" in one["secret"]]
    assert file["items"] == [{"key": "VCAP_SERVICES", "path": "vcap_services"}]
    assert "env" not in workload.container("sidecar")


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_workload_that_lost_what_it_was_given_is_told_and_given_it_again(
    provider: Provider, admin: "DynamicClient", namespace: str, kind: str
) -> None:
    workload = Workload(admin, namespace, kind)
    made = provider.create(workload.given())
    before = workload.template()
    assert not provider.is_changed(made, workload.given())
    assert provider.refresh(made).id == made.id

    workload.replace()
    assert provider.is_changed(made, workload.given())
    assert provider.refresh(made).id == ""
    made = provider.update(made, workload.given())
    assert workload.template() == before

    workload.delete()
    assert provider.refresh(made).id == ""
    workload.create()
    assert provider.is_changed(made, workload.given())
    provider.update(made, workload.given())
    assert workload.template() == before


def test_a_root_that_is_set_is_kept(provider: Provider, admin: "DynamicClient", namespace: str) -> None:
    workload = Workload(admin, namespace, "Deployment")
    workload.set_variable("SERVICE_BINDING_ROOT", "/own")
    provider.create(workload.given())
    assert {one["mountPath"] for one in workload.container()["volumeMounts"]} == {"/own/db", "/own/mail"}
    assert {"name": "SERVICE_BINDING_ROOT", "value": "/own"} in workload.container()["env"]


def test_pods_are_started_anew_for_other_secrets_only_where_that_is_asked_for(
    provider: Provider, admin: "DynamicClient", namespace: str
) -> None:
    workload = Workload(admin, namespace, "Deployment")
    workload.write_secret("orders-api", "a")
    made = provider.create(workload.given())
    quiet = workload.template()
    workload.write_secret("orders-api", "b")
    made = provider.update(made, workload.given(content="2"))
    assert workload.template() == quiet
    made = provider.update(made, workload.given(restart=True, content="2"))
    started = workload.template()
    assert started != quiet
    again = provider.update(made, workload.given(restart=True, content="2"))
    assert workload.template() == started
    workload.write_secret("orders-api", "c")
    provider.update(again, workload.given(restart=True, content="3"))
    assert workload.template() != started


def test_a_variable_of_others_is_not_taken_over(
    provider: Provider, admin: "DynamicClient", namespace: str
) -> None:
    workload = Workload(admin, namespace, "Deployment")
    workload.set_variable("VCAP_SERVICES", "{}")
    with pytest.raises(grpc.RpcError, match="only one owner set the same"):
        provider.create(workload.given())
    assert {"name": "VCAP_SERVICES", "value": "{}"} in workload.container()["env"]


@tabled("more, words")
def test_what_can_be_given_nothing_is_refused_in_the_preview(
    provider: Provider, admin: "DynamicClient", namespace: str, more: dict[str, Any], words: str
) -> None:
    workload = Workload(admin, namespace, "Deployment")
    maps = admin.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body={"metadata": {"name": "plain"}}, namespace=namespace)
    assert provider.refusals(workload.given()) == []
    (reason,) = provider.refusals(workload.given(**more))
    assert words in reason
