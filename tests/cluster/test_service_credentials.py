"""Secrets of services on the real API server: what a change does to them, and a migration that breaks off."""

from __future__ import annotations

import signal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from components.connection import ClusterTarget, connect
from components.errors import ProjectionError
from components.projection.kubernetes_secrets import KubernetesSecrets
from components.projection.model import SecretRef, WrittenCopy
from components.projection.projector import Projector
from components.service_credentials.binding import binding_data, binding_type, read_credentials_object
from components.service_credentials.migration import Migration, encode
from sandbox.tests.support.kubernetes_provider import provider_at
from sandbox.tests.support.provider_engine import urn
from tests.support.claim_process import Mortal, processes
from tests.support.fault_proxy import Fault, Once, running
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

LEGACY = {"type": "rabbitmq", "password": "old"}
MIGRATED = {"credentials": '{"password":"old","type":"rabbitmq"}'}
FAULTS = (Fault.REFUSED, Fault.LOST, Fault.LATE, Fault.CONFLICT, Fault.BROKEN_AFTER)


@pytest.fixture
def secrets(admin: DynamicClient, namespace: str) -> Secrets:
    return Secrets(admin, namespace)


@pytest.fixture
def kubeconfig(control_plane: ControlPlane) -> Path:
    return control_plane.kubeconfig("admin")


@pytest.fixture
def legacy(secrets: Secrets, namespace: str) -> Migration:
    """A migration whose legacy Secret is there."""
    secrets.put("queue", LEGACY, "servicebinding.io/rabbitmq")
    return Migration(
        source=SecretRef(namespace, "queue"),
        target=SecretRef(namespace, "queue-migrated"),
        owner="pulumi/o/p/s/queue",
        instance_guid="guid-1",
    )


def projector(kubeconfig: Path) -> Projector:
    return Projector(KubernetesSecrets(connect(ClusterTarget(kubeconfig=str(kubeconfig)))))


# What a migration does when it breaks off.


def die(kubeconfig: Path, wanted: Migration, what: str, calls: int) -> None:
    mortal = Mortal(connect(ClusterTarget(kubeconfig=str(kubeconfig))), calls)
    run = Projector(KubernetesSecrets(mortal))
    getattr(run, what)(wanted)


def was_killed(kubeconfig: Path, wanted: Migration, what: str, calls: int) -> bool:
    """Run a step in a process that SIGKILLs itself after so many calls; whether it did."""
    worker = processes().Process(target=die, args=(kubeconfig, wanted, what, calls))
    worker.start()
    worker.join()
    assert worker.exitcode in (0, -signal.SIGKILL)
    return worker.exitcode != 0


def test_a_migration_killed_after_any_call_is_finished_by_the_next_run(
    secrets: Secrets, kubeconfig: Path, legacy: Migration
) -> None:
    before = secrets.live("queue")
    calls = 1
    while was_killed(kubeconfig, legacy, "write", calls):
        written = projector(kubeconfig).write(legacy)
        assert secrets.data("queue-migrated") == MIGRATED
        assert projector(kubeconfig).is_current(legacy, written.digest)
        projector(kubeconfig).remove(legacy)
        calls += 1
    assert calls > 3
    assert secrets.live("queue") == before


def test_handing_the_name_over_can_be_killed_after_any_call_and_done_again(
    secrets: Secrets, kubeconfig: Path, legacy: Migration
) -> None:
    calls = 1
    projector(kubeconfig).write(legacy)
    while was_killed(kubeconfig, legacy, "remove", calls):
        projector(kubeconfig).remove(legacy)
        assert secrets.names() == {"queue"}
        projector(kubeconfig).write(legacy)
        calls += 1
    assert calls > 2


def migrate(wanted: Migration, kubeconfig: Path) -> WrittenCopy | ProjectionError:
    try:
        return projector(kubeconfig).write(wanted)
    except ProjectionError as error:
        return error


@pytest.mark.parametrize("broken", [*product((0, 2), FAULTS)])
def test_a_call_that_fails_leaves_nothing_that_a_second_run_does_not_fix(
    secrets: Secrets, kubeconfig: Path, legacy: Migration, tmp_path: Path, broken: tuple[int, Fault]
) -> None:
    with running(kubeconfig, tmp_path, Once(*broken)) as proxy:
        first = migrate(legacy, proxy.kubeconfig)
        proxy.settle()
    assert isinstance(first, WrittenCopy) or "old" not in str(first)
    second = projector(kubeconfig).write(legacy)
    assert secrets.data("queue-migrated") == MIGRATED
    assert first == second or isinstance(first, ProjectionError)


# What a change of the credentials does to the binding Secret.


def bound(namespace: str, text: bytes) -> dict[str, Any]:
    """Draw a binding Secret as the component declares it."""
    credentials = read_credentials_object(text)
    return {
        "metadata": {"name": "orders-api", "namespace": namespace},
        "type": binding_type(credentials),
        "data": encode(binding_data(credentials)),
    }


def test_changed_and_removed_credentials_change_the_binding_secret_in_place(
    secrets: Secrets, kubeconfig: Path, namespace: str
) -> None:
    name = urn("kubernetes:core/v1:Secret", "orders-api")
    with provider_at(kubeconfig, enableSecretMutable="true") as provider:
        made = provider.create(name, bound(namespace, b'{"type":"database","user":{"name":"a"},"port":5}'))
        uid = secrets.live("orders-api")["metadata"]["uid"]
        assert secrets.data("orders-api") == {"type": "database", "user": '{"name":"a"}', "port": "5"}
        changed = bound(namespace, b'{"type":"database","user":{"name":"b"}}')
        assert not provider.diff(made, changed).replaces
        provider.update(made, changed)
    assert secrets.data("orders-api") == {"type": "database", "user": '{"name":"b"}'}
    assert secrets.live("orders-api")["metadata"]["uid"] == uid


def test_another_type_is_a_reason_to_replace_the_binding_secret_and_the_only_one(
    secrets: Secrets, kubeconfig: Path, namespace: str
) -> None:
    name = urn("kubernetes:core/v1:Secret", "orders-api")
    with provider_at(kubeconfig, enableSecretMutable="true") as provider:
        made = provider.create(name, bound(namespace, b'{"type":"database"}'))
        answer = provider.diff(made, bound(namespace, b'{"type":"cache"}'))
        assert list(answer.replaces) == ["type"]
        provider.delete(made)
        provider.create(name, bound(namespace, b'{"type":"cache"}'))
    assert secrets.live("orders-api")["type"] == "servicebinding.io/cache"
