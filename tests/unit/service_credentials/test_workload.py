"""Bindings as files of a workload."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.service_credentials.errors import ServiceError
from components.service_credentials.workload import MountedBinding, project_bindings

DATABASE = MountedBinding("orders-db", "orders-api")


def workload(*containers: dict[str, Any], kind: str = "Deployment", **pod: Any) -> dict[str, Any]:
    spec = {**pod, "containers": list(containers)}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "app"},
        "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": "app"}}, "spec": spec}},
    }


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest["spec"]["template"]["spec"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_every_container_can_read_the_files_of_a_binding(kind: str) -> None:
    given_ = workload({"name": "app"}, {"name": "side"}, kind=kind, initContainers=[{"name": "init"}])
    before = copy.deepcopy(given_)
    patched = project_bindings(given_, [DATABASE])
    assert given_ == before
    pod = pod_of(patched)
    (volume,) = pod["volumes"]
    assert volume["secret"] == {"secretName": "orders-api", "defaultMode": 0o644}
    for container in [*pod["containers"], *pod["initContainers"]]:
        assert container["env"] == [{"name": "SERVICE_BINDING_ROOT", "value": "/bindings"}]
        assert container["volumeMounts"] == [
            {"name": volume["name"], "mountPath": "/bindings/orders-db", "readOnly": True}
        ]
    assert patched["spec"]["replicas"] == 2
    assert patched["spec"]["template"]["metadata"] == {"labels": {"app": "app"}}


def test_a_root_that_is_set_is_kept_and_followed_and_only_in_its_container() -> None:
    root = {"name": "SERVICE_BINDING_ROOT", "value": "/etc/services/"}
    pod = pod_of(project_bindings(workload({"name": "app", "env": [root]}, {"name": "side"}), [DATABASE]))
    app, side = pod["containers"]
    assert app["env"] == [root]
    assert app["volumeMounts"][0]["mountPath"] == "/etc/services/orders-db"
    assert side["volumeMounts"][0]["mountPath"] == "/bindings/orders-db"


def test_what_a_container_has_stays() -> None:
    env, mount = {"name": "A", "value": "b"}, {"name": "data", "mountPath": "/data"}
    volume = {"name": "data", "emptyDir": {}}
    manifest = workload({"name": "app", "env": [env], "volumeMounts": [mount]}, volumes=[volume])
    pod = pod_of(project_bindings(manifest, [DATABASE]))
    assert pod["volumes"][0] == volume
    assert pod["containers"][0]["env"][0] == env
    assert pod["containers"][0]["volumeMounts"][0] == mount


def test_without_bindings_nothing_is_changed() -> None:
    assert project_bindings(workload({"name": "app"}), []) == workload({"name": "app"})


def test_a_binding_that_moved_to_another_secret_is_read_from_there() -> None:
    once = project_bindings(workload({"name": "app"}), [MountedBinding("db", "legacy")])
    moved = project_bindings(once, [MountedBinding("db", "own")])
    assert moved == project_bindings(workload({"name": "app"}), [MountedBinding("db", "own")])


DIRECTORIES = st.from_regex(r"[-.a-z0-9]{1,253}", fullmatch=True).filter(lambda name: name not in (".", ".."))
ROOTS = st.sampled_from([None, "/bindings", "/etc/x", "/"])


@given(st.lists(DIRECTORIES, unique=True, max_size=4), ROOTS)
def test_doing_it_again_changes_nothing_and_every_volume_has_a_name_kubernetes_takes(
    directories: list[str], root: str | None
) -> None:
    env = [] if root is None else [{"name": "SERVICE_BINDING_ROOT", "value": root}]
    bindings = [MountedBinding(name, f"secret-{n}") for n, name in enumerate(directories)]
    once = project_bindings(workload({"name": "app", "env": env}), bindings)
    assert project_bindings(once, bindings) == once
    volumes = pod_of(once).get("volumes", [])
    assert [volume["secret"]["secretName"] for volume in volumes] == [one.secret_name for one in bindings]
    assert len({volume["name"] for volume in volumes}) == len(bindings)
    assert all(len(volume["name"]) <= 63 and volume["name"].isascii() for volume in volumes)


@pytest.mark.parametrize(
    ("manifest", "bindings", "said"),
    [
        pytest.param(workload(kind="Pod"), [DATABASE], "Pod app: it has no template", id="kind"),
        pytest.param(workload(), [DATABASE, DATABASE], "2 bindings have this directory", id="twice"),
        pytest.param(workload(), [MountedBinding("..", "x")], "it is no name of a directory", id="parent"),
        pytest.param(workload(), [MountedBinding("A/b", "x")], "it is no name of a directory", id="slash"),
        pytest.param(
            workload({"name": "app", "volumeMounts": [{"name": "data", "mountPath": "/bindings/orders-db"}]}),
            [DATABASE],
            "container app, /bindings/orders-db: volume data is mounted there",
            id="path",
        ),
        *(
            pytest.param(
                workload({"name": "app", "env": [{"name": "SERVICE_BINDING_ROOT", **root}]}),
                [DATABASE],
                "container app, SERVICE_BINDING_ROOT: it is set to what is no plain absolute path",
                id=what,
            )
            for what, root in {
                "root-from-elsewhere": {"valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}},
                "relative-root": {"value": "bindings"},
                "composed-root": {"value": "/x/$(HOME)"},
            }.items()
        ),
    ],
)
def test_what_cannot_be_mounted_is_told(
    manifest: dict[str, Any], bindings: list[MountedBinding], said: str
) -> None:
    with pytest.raises(ServiceError) as refused:
        project_bindings(manifest, bindings)
    assert said in str(refused.value)
