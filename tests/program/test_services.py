"""Services of a stack on the real API server: one input, two Secrets; and a migration that is interrupted."""

from __future__ import annotations

import base64
import json
import signal
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.conftest import tenant_of
from tests.support.fleet_project import FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

LEGACY = {"type": "rabbitmq", "host": "queue", "password": "sentinel-old"}


class Stack:
    """A project of one tenant, its services, and the Secrets it has in the cluster."""

    def __init__(self, project: FleetProject, admin: DynamicClient, namespace: str) -> None:
        self.project = project
        self.namespace = namespace
        self.home = f"{project.pool}-acme"
        self._secrets = admin.resources.get(api_version="v1", kind="Secret")

    def configure(self, credentials: dict[str, Any] | None, **instance: Any) -> None:
        """Declare the one service `it`, bound as `app`, with these credentials or none."""
        given = {} if credentials is None else {"credentialsFrom": "it"}
        self.project.configure(
            credentials={} if credentials is None else {"it": json.dumps(credentials)},
            tenants={"acme": {**tenant_of(self.project, "acme"), "accounts": {}}},
            pool={"allowDestroy": True},
            existing_namespaces=[self.namespace],
            services={"it": {"namespace": self.home, "bindings": {"app": {}}, **given, **instance}},
        )

    def up(self) -> None:
        done = self.project.up()
        assert done.code == 0, done.out + done.err
        assert "sentinel-" not in done.out + done.err

    def put(self, name: str, type_: str, data: dict[str, str]) -> None:
        body = {"metadata": {"name": name}, "type": type_, "stringData": data}
        self._secrets.create(body, namespace=self.namespace)

    def secret(self, namespace: str, name: str) -> Any:
        return self._secrets.get(name=name, namespace=namespace)

    def names(self, namespace: str) -> set[str]:
        return {one.metadata.name for one in self._secrets.get(namespace=namespace).items}

    def data(self, namespace: str, name: str) -> dict[str, str]:
        data = self.secret(namespace, name).data.to_dict()
        return {key: base64.b64decode(value).decode() for key, value in data.items()}


@pytest.fixture
def stack(project: FleetProject, admin: DynamicClient, namespace: str) -> Stack:
    return Stack(project, admin, namespace)


def test_one_input_becomes_two_secrets_that_follow_it(stack: Stack) -> None:
    stack.configure({"type": "database", "port": 5.0, "user": {"name": "a&b", "password": "sentinel-1"}})
    stack.up()
    home = stack.home
    nested = '{"name":"a\\u0026b","password":"sentinel-1"}'
    assert stack.data(home, "it") == {"credentials": f'{{"port":5,"type":"database","user":{nested}}}'}
    assert stack.data(home, "app") == {"type": "database", "port": "5", "user": nested}
    assert stack.secret(home, "app").type == "servicebinding.io/database"
    (entry,) = json.loads(stack.data(home, "app-env")["VCAP_SERVICES"])["user-provided"]
    assert entry["credentials"]["user"]["password"] == "sentinel-1"
    before = {name: stack.secret(home, name).metadata.uid for name in ("it", "app")}

    stack.configure({"type": "database", "password": "sentinel-2"})
    stack.up()
    assert stack.data(home, "app") == {"type": "database", "password": "sentinel-2"}
    assert {name: stack.secret(home, name).metadata.uid for name in ("it", "app")} == before

    stack.configure({"type": "cache", "password": "sentinel-2"})
    stack.up()
    assert stack.secret(home, "app").type == "servicebinding.io/cache"
    assert stack.secret(home, "app").metadata.uid != before["app"]
    assert stack.secret(home, "it").metadata.uid == before["it"]
    assert stack.project.sandbox("preview", "--expect-no-changes").code == 0


def test_a_migration_that_is_killed_is_finished_by_the_next_update_and_moves_once(stack: Stack) -> None:
    stack.put("it", "servicebinding.io/rabbitmq", LEGACY)
    legacy = {"legacy": True, "namespace": stack.namespace}
    stack.configure(None, **legacy)
    for writes in count(1):
        code = stack.project.up_until(writes)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    here = stack.namespace
    assert stack.names(here) == {"it", "it-migrated", "app-env"}
    assert json.loads(stack.data(here, "it-migrated")["credentials"]) == LEGACY
    assert stack.data(here, "it") == LEGACY

    stack.configure({"type": "rabbitmq", "password": "sentinel-new"}, **legacy)
    stack.up()
    assert stack.names(here) == {"it", "it-migrated", "app", "app-env"}
    assert json.loads(stack.data(here, "it-migrated")["credentials"])["password"] == "sentinel-new"
    assert stack.data(here, "app")["password"] == "sentinel-new"
    assert stack.data(here, "it") == LEGACY

    state = (stack.project.folder / ".sandbox").rglob("*.json")
    assert not any(b"sentinel-old" in path.read_bytes() for path in state)
    assert stack.project.sandbox("destroy").code == 0
    assert stack.names(here) == {"it"}


def test_a_legacy_service_without_its_secret_is_told_at_preview_and_nothing_is_written(stack: Stack) -> None:
    stack.configure(None, legacy=True, namespace=stack.namespace)

    refused = stack.project.sandbox("up")

    assert refused.code != 0
    assert f"{stack.namespace}/it" in refused.out + refused.err
    assert "it is not there" in refused.out + refused.err
    assert stack.names(stack.namespace) == set()


def test_a_migrated_secret_of_another_type_is_named_and_left_as_it_is(stack: Stack) -> None:
    stack.put("it", "servicebinding.io/rabbitmq", LEGACY)
    stack.put("it-migrated", "example.com/other", {"a": "b"})
    stack.configure(None, legacy=True, namespace=stack.namespace)

    refused = stack.project.sandbox("up")

    assert refused.code != 0
    assert "it exists with type example.com/other" in refused.out + refused.err
    assert stack.data(stack.namespace, "it-migrated") == {"a": "b"}
