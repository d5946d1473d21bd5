"""Services of a stack on the real API server: one input, two Secrets; and a migration that is interrupted."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from components.secret_manager import (
    LATEST,
    SecretManagerTarget,
    open_secret_manager,
    secret_name,
    version_name,
)
from tests.support.fleet_project import FleetProject
from tests.support.proving import counted
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

LEGACY = {"type": "rabbitmq", "host": "queue", "password": "sentinel-old"}


class Stack:
    """A project of one tenant, its services, and the Secrets it has in the cluster."""

    def __init__(self, project: FleetProject, admin: DynamicClient, namespace: str) -> None:
        self.project = project
        self.here = Secrets(admin, namespace)
        self.home = Secrets(admin, f"{project.pool}-acme")

    def configure(self, credentials: dict[str, Any] | None, **instance: Any) -> None:
        """Declare the one service `it`, bound as `app`, with these credentials or none."""
        given = {} if credentials is None else {"credentialsFrom": "it"}
        it = {"namespace": self.home.namespace, "bindings": {"app": {}}, **given, **instance}
        self.declare({} if credentials is None else credentials, services={"it": it})

    def declare(self, credentials: dict[str, Any], **sections: Any) -> None:
        """Declare a tenant without accounts, and these sections; credentials: those called `it`, if any."""
        self.project.configure(
            credentials={"it": json.dumps(credentials)} if credentials else {},
            tenants={"acme": {"namespace": self.home.namespace}},
            pool={"allowDestroy": True},
            existing_namespaces=[self.here.namespace],
            **sections,
        )

    def up(self) -> None:
        self.project.up().quiet()


@pytest.fixture
def stack(project: FleetProject, admin: DynamicClient, namespace: str) -> Stack:
    return Stack(project, admin, namespace)


@pytest.mark.life
def test_one_input_becomes_two_secrets_that_follow_it(stack: Stack) -> None:
    stack.configure({"type": "database", "port": 5.0, "user": {"name": "a&b", "password": "sentinel-1"}})
    stack.up()
    home = stack.home
    nested = '{"name":"a\\u0026b","password":"sentinel-1"}'
    assert home.data("it") == {"credentials": f'{{"port":5,"type":"database","user":{nested}}}'}
    assert home.data("app") == {"type": "database", "port": "5", "user": nested}
    assert home.live("app")["type"] == "servicebinding.io/database"
    (entry,) = json.loads(home.data("app-env")["VCAP_SERVICES"])["user-provided"]
    assert entry["credentials"]["user"]["password"] == "sentinel-1"
    before = {name: home.live(name)["metadata"]["uid"] for name in ("it", "app")}

    stack.configure({"type": "database", "password": "sentinel-2"})
    stack.up()
    assert home.data("app") == {"type": "database", "password": "sentinel-2"}
    assert {name: home.live(name)["metadata"]["uid"] for name in ("it", "app")} == before

    stack.configure({"type": "cache", "password": "sentinel-2"})
    stack.up()
    assert home.live("app")["type"] == "servicebinding.io/cache"
    assert home.live("app")["metadata"]["uid"] != before["app"]
    assert home.live("it")["metadata"]["uid"] == before["it"]
    stack.project.preview("--expect-no-changes").quiet()


@pytest.mark.life
def test_credentials_in_secret_manager_become_secrets_that_follow_their_newest_version(
    stack: Stack, google: str
) -> None:
    manager, name = (
        open_secret_manager(SecretManagerTarget(google, "any")),
        secret_name("test-project", "orders"),
    )
    manager.create(name, {})
    manager.add(name, b'{"type": "database", "password": "sentinel-1"}')
    namespace = stack.home.namespace
    given = {"credentialsFrom": {"gcpSecret": version_name(name, LATEST)}}
    stack.declare(
        {},
        services={"it": {"namespace": namespace, "bindings": {"app": {}}, **given}},
        further={"gcp:secretManagerCustomEndpoint": google, "gcp:accessToken": "any"},
    )
    stack.up()
    assert stack.home.data("app") == {"type": "database", "password": "sentinel-1"}
    assert stack.home.live("app")["type"] == "servicebinding.io/database"

    manager.add(name, b'{"type": "database", "password": "sentinel-2"}')
    stack.up()
    assert stack.home.data("app") == {"type": "database", "password": "sentinel-2"}
    assert json.loads(stack.home.data("it")["credentials"])["password"] == "sentinel-2"
    stack.project.preview("--expect-no-changes").quiet()


@pytest.mark.life
def test_a_migration_that_is_killed_is_finished_by_the_next_update_and_moves_once(stack: Stack) -> None:
    stack.here.put("it", LEGACY, "servicebinding.io/rabbitmq")
    legacy = {"legacy": True, "namespace": stack.here.namespace}
    stack.configure(None, **legacy)
    for writes in count(1, counted(12, 1)):
        code = stack.project.up_until(writes)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    here = stack.here
    assert here.names() == {"it", "it-migrated", "app-env"}
    assert json.loads(here.data("it-migrated")["credentials"]) == LEGACY
    assert here.data("it") == LEGACY

    stack.configure({"type": "rabbitmq", "password": "sentinel-new"}, **legacy)
    stack.up()
    assert here.names() == {"it", "it-migrated", "app", "app-env"}
    assert json.loads(here.data("it-migrated")["credentials"])["password"] == "sentinel-new"
    assert here.data("app")["password"] == "sentinel-new"
    assert here.data("it") == LEGACY

    state = (stack.project.folder / ".sandbox").rglob("*.json")
    assert not any(b"sentinel-old" in path.read_bytes() for path in state)
    stack.project.destroy().quiet()
    assert here.names() == {"it"}


@pytest.mark.life
def test_what_is_wrong_with_secrets_in_the_cluster_is_told_at_preview_and_they_stay_as_they_are(
    stack: Stack,
) -> None:
    here = stack.here
    here.put("moved", LEGACY, "servicebinding.io/rabbitmq")
    here.put("moved-migrated", {"a": "b"}, "example.com/other")
    here.put("theirs", {"theirs": "x"})

    def refused(**services: Mapping[str, Any]) -> str:
        stack.declare(
            {"a": "1"},
            services={
                name: {"namespace": here.namespace, "bindings": {f"{name}-app": {}}, **said}
                for name, said in services.items()
            },
        )
        preview = stack.project.preview()
        assert preview.code != 0
        return preview.said

    said = refused(gone={"legacy": True})
    assert f"{here.namespace}/gone" in said
    assert "it is not there" in said
    assert "it exists with type example.com/other" in refused(moved={"legacy": True})
    said = refused(theirs={"credentialsFrom": "it"})
    assert f"Secret {here.namespace}/theirs exists, and no stack has written it" in said
    assert f"kubernetes:core/v1:Secret theirs-source {here.namespace}/theirs" in said
    assert here.names() == {"moved", "moved-migrated", "theirs"}
    assert here.data("moved-migrated") == {"a": "b"}


@pytest.mark.life
def test_credentials_that_are_in_the_cluster_are_moved_there_and_followed_by_a_plain_up(
    stack: Stack,
) -> None:
    home, place = stack.home, "credfleet:services.instances.it.credentialsFrom"
    there = {"credentialsFrom": {"secret": f"{home.namespace}/db"}}
    stack.configure(None, namespace=stack.here.namespace, **there)
    refused = stack.project.preview()
    assert refused.code != 0
    assert f"{place} (Secret {home.namespace}/db): it is not there, or not shared" in refused.said
    stack.configure(
        None, namespace=stack.here.namespace, credentialsFrom={"secret": f"{stack.here.namespace}/db"}
    )
    stack.here.put("db", {"type": "postgresql", "password": "sentinel-1"})
    stack.up()
    assert stack.here.data("app") == {"type": "postgresql", "password": "sentinel-1"}
    assert stack.here.live("app")["type"] == "servicebinding.io/postgresql"
    assert json.loads(stack.here.data("it")["credentials"])["password"] == "sentinel-1"
    stack.project.preview("--expect-no-changes").quiet()
    stack.here.change("db", "password", "sentinel-2")
    stack.up()
    assert stack.here.data("app")["password"] == "sentinel-2"
    state = [path.read_bytes() for path in (stack.project.folder / ".sandbox").rglob("*") if path.is_file()]
    assert state
    assert not any(b"sentinel-" in content for content in state)
    stack.project.destroy().quiet()
    assert stack.here.names() == {"db"}


@pytest.mark.life
def test_a_service_goes_from_an_entry_to_a_reference_with_its_secrets_there_all_the_time(
    stack: Stack, admin: DynamicClient
) -> None:
    here, names = stack.here, ("it", "app", "app-env", "shop-vcap-services")
    content = {"type": "postgresql", "password": "sentinel-1"}

    def update(**instance: Any) -> None:
        services = {
            "instances": {"it": {"namespace": here.namespace, "bindings": {"app": {}}, **instance}},
            "apps": {"shop": {"namespace": here.namespace, "bindings": ["it/app"]}},
        }
        stack.declare(content, further={"credfleet:services": services})
        stack.up()

    update(credentialsFrom="it", handOver=True)
    before = {name: here.live(name)["metadata"]["uid"] for name in names}
    here.put("db", {**content, "password": "sentinel-2"})
    since = here.version("db")
    update(credentialsFrom={"secret": f"{here.namespace}/db"})

    assert here.data("app") == {"type": "postgresql", "password": "sentinel-2"}
    assert all("sentinel-2" in str(here.data(name)) for name in names)
    assert {name: here.live(name)["metadata"]["uid"] for name in names} == before
    api = admin.resources.get(api_version="v1", kind="Secret")
    here.put("last", {})
    seen: list[tuple[str, str]] = []
    for event in api.watch(namespace=here.namespace, resource_version=since, timeout=60):
        if event["object"].metadata.name == "last":
            break
        seen.append((event["object"].metadata.name, event["type"]))
    assert {name for name, _ in seen} == {*names}
    assert {change for _, change in seen} == {"MODIFIED"}
    stack.project.preview("--expect-no-changes").quiet()
    stack.project.destroy().quiet()
    assert here.names() == {"db", "last"}


@pytest.mark.life
def test_workload_that_was_applied_again_is_told_by_a_preview_and_bound_by_the_next_update(
    stack: Stack, admin: DynamicClient
) -> None:
    namespace = stack.here.namespace
    deployments = admin.resources.get(api_version="apps/v1", kind="Deployment")
    pod = {
        "containers": [{"name": "app", "image": "none"}],
        "initContainers": [{"name": "m", "image": "none"}],
    }
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod},
    }
    manifest = {"metadata": {"name": "shop"}, "spec": spec}

    def bound() -> list[bool]:
        live = deployments.get(name="shop", namespace=namespace).to_dict()["spec"]["template"]["spec"]
        return ["VCAP_SERVICES" in str(each) for each in (*live["containers"], *live["initContainers"])]

    def foreseen(*words: str) -> dict[str, str]:
        steps = stack.project.preview("--json", *words).quiet().json["steps"]
        return {
            step["urn"].rpartition("::")[2]: step["op"]
            for step in steps
            if step["op"] not in ("same", "refresh")
        }

    def apply_again() -> None:
        deployments.delete(name="shop", namespace=namespace)
        deployments.create(body=manifest, namespace=namespace)
        assert bound() == [False, False]

    deployments.create(body=manifest, namespace=namespace)
    services = {
        "instances": {"it": {"namespace": namespace, "bindings": {"app": {}}, "credentialsFrom": "it"}},
        "apps": {
            "shop": {
                "namespace": namespace,
                "bindings": ["it/app"],
                "workload": {"kind": "Deployment", "name": "shop"},
            }
        },
    }
    stack.declare(LEGACY, further={"credfleet:services": services})
    stack.up()
    assert bound() == [True, True]
    assert foreseen() == {}

    apply_again()
    assert foreseen() == {"shop-workload": "update"}
    assert foreseen("--refresh") == {"shop-workload": "create"}
    stack.up()
    assert bound() == [True, True]
    apply_again()
    stack.project.up("--refresh").quiet()
    assert bound() == [True, True]
    assert foreseen("--refresh") == {}
