"""The migration of a legacy service in the genuine host, on a real API server."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import grpc
import pytest

from components.service_credentials.provider import ServiceMigrationProvider
from tests.support.cases import table, tabled
from tests.support.dynamic_host import Properties, Provider, provided
from tests.support.secrets import Secrets

SENTINEL = "s3ntinel-of-a-credential"
LEGACY = {"type": "rabbitmq", "password": SENTINEL}
TYPE = "servicebinding.io/rabbitmq"
OWNER = "pulumi/o/p/s/services/queue"


provider = provided(ServiceMigrationProvider)


def migration(namespace: str, **more: Any) -> Properties:
    return {
        "namespace": namespace,
        "instance": "queue",
        "instanceGuid": "guid-1",
        "targetName": "queue-migrated",
        "owner": OWNER,
        "handedOver": False,
        **more,
    }


def environment(namespace: str, **more: Any) -> Properties:
    binding = {"guid": "guid-2", "tags": ["mq"], "label": "user-provided"}
    return migration(namespace, targetName="worker-env", binding=binding, **more)


def test_a_legacy_service_is_adopted_and_no_byte_leaves_the_cluster(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("queue", LEGACY, TYPE)
    before = secrets.live("queue")
    made = provider.create(migration(secrets.namespace))
    assert secrets.data("queue-migrated") == {"credentials": f'{{"password":"{SENTINEL}","type":"rabbitmq"}}'}
    migrated = secrets.live("queue-migrated")
    assert migrated["type"] == "Opaque"
    assert migrated["metadata"]["labels"] == {"korifi.cloudfoundry.org/service-instance-guid": "guid-1"}
    assert secrets.live("queue") == before
    assert made.outputs["reference"] == f"{secrets.namespace}/queue-migrated"
    assert made.outputs["sourceType"] == TYPE
    assert made.outputs["sourceResourceVersion"] == before["metadata"]["resourceVersion"]
    assert SENTINEL not in repr(made)
    assert base64.b64encode(SENTINEL.encode()).decode() not in repr(made)
    assert not provider.is_changed(made, migration(secrets.namespace))


def test_the_environment_of_a_legacy_binding_shows_a_defaulted_type_too(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("queue", {"type": "user-provided", "uri": "a&b"}, "servicebinding.io/user-provided")
    provider.create(environment(secrets.namespace))
    (entry,) = json.loads(secrets.data("worker-env")["VCAP_SERVICES"])["user-provided"]
    assert entry == {
        "label": "user-provided",
        "name": "queue",
        "tags": ["mq"],
        "instance_guid": "guid-1",
        "instance_name": "queue",
        "binding_guid": "guid-2",
        "binding_name": None,
        "credentials": {"type": "user-provided", "uri": "a&b"},
        "syslog_drain_url": None,
        "volume_mounts": [],
    }


def test_a_legacy_secret_changed_by_hand_is_followed(provider: Provider, secrets: Secrets) -> None:
    secrets.put("queue", LEGACY, TYPE)
    made = provider.create(migration(secrets.namespace))
    secrets.change("queue", "password", b"rotated")
    assert provider.is_changed(made, migration(secrets.namespace))
    followed = provider.update(made, migration(secrets.namespace))
    assert secrets.data("queue-migrated") == {"credentials": '{"password":"rotated","type":"rabbitmq"}'}
    assert followed.outputs["digest"] != made.outputs["digest"]


def test_a_refresh_sees_what_was_changed_by_hand_and_an_update_fixes_it(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("queue", LEGACY, TYPE)
    made = provider.create(migration(secrets.namespace))
    untouched = provider.refresh(made)
    assert (untouched.inputs, untouched.outputs) == (made.inputs, made.outputs)
    secrets.change("queue-migrated", "credentials", b"{}")
    seen = provider.refresh(made)
    assert seen.outputs["digest"] != made.outputs["digest"]
    assert provider.is_changed(seen, migration(secrets.namespace))
    provider.update(seen, migration(secrets.namespace))
    assert SENTINEL in secrets.data("queue-migrated")["credentials"]
    secrets.remove("queue-migrated")
    assert provider.refresh(made).id == ""


def test_a_name_that_is_handed_over_is_free_and_never_taken_back(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("queue", LEGACY, TYPE)
    made = provider.create(migration(secrets.namespace))
    handed = provider.update(made, migration(secrets.namespace, handedOver=True))
    assert "queue-migrated" not in secrets.names()
    secrets.put("queue-migrated", {"credentials": "{}"})
    again = provider.update(handed, migration(secrets.namespace, handedOver=True))
    assert not provider.is_changed(again, migration(secrets.namespace, handedOver=True))
    refreshed = provider.refresh(again)
    assert (refreshed.id, refreshed.outputs) == (again.id, again.outputs)
    (said,) = provider.refusals(migration(secrets.namespace), again.inputs)
    assert said.startswith(f"Secret {secrets.namespace}/queue-migrated: its credentials are declared by now")
    provider.delete(again)
    assert secrets.data("queue-migrated") == {"credentials": "{}"}
    assert secrets.data("queue") == LEGACY


def test_what_was_migrated_goes_with_its_instance_and_the_legacy_secret_stays(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("queue", LEGACY, TYPE)
    made = provider.create(migration(secrets.namespace))
    provider.delete(made)
    provider.delete(made)
    assert "queue-migrated" not in secrets.names()
    assert secrets.data("queue") == LEGACY


@tabled("taker, said")
def test_a_taken_name_is_refused_in_a_preview_and_left_alone(
    provider: Provider, secrets: Secrets, taker: Sequence[Any], said: str
) -> None:
    secrets.put("queue", LEGACY, TYPE)
    type_, annotations = taker
    secrets.put("queue-migrated", {"theirs": "x"}, type_, annotations=annotations)
    (reason,) = provider.refusals(migration(secrets.namespace))
    assert reason.startswith(f"Secret {secrets.namespace}/queue-migrated: it exists ")
    assert said in reason
    assert secrets.data("queue-migrated") == {"theirs": "x"}


def test_a_legacy_secret_that_is_gone_is_refused_in_a_preview(provider: Provider, secrets: Secrets) -> None:
    (reason,) = provider.refusals(migration(secrets.namespace))
    assert reason.startswith(f"Secret {secrets.namespace}/queue: it is not there")
    assert "queue-migrated" not in secrets.names()


def test_a_value_that_is_no_text_is_named_by_its_key_and_not_shown(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("queue", LEGACY, TYPE)
    made = provider.create(migration(secrets.namespace))
    secrets.change("queue", "keystore", b"\xff\xfe" + SENTINEL.encode())
    (reason,) = provider.refusals(migration(secrets.namespace))
    assert reason.startswith(f"Secret {secrets.namespace}/queue, key keystore: its value is not UTF-8")
    with pytest.raises(grpc.RpcError) as refused:
        provider.update_unchecked(made, made.inputs)
    said = str(refused.value.details())
    assert f"RunError: value-unfit: Secret {secrets.namespace}/queue, key keystore: " in said
    assert SENTINEL not in reason + said


def test_another_name_is_another_secret_and_the_former_is_removed_first(
    provider: Provider, secrets: Secrets
) -> None:
    secrets.put("queue", LEGACY, TYPE)
    made = provider.create(migration(secrets.namespace))
    answer = provider.diff(made, migration(secrets.namespace, targetName="other"))
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (["targetName"], True)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "none", **spec.pop("container", {})}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


READERS: Any = table(__file__, "READERS")


@pytest.mark.parametrize("reader", READERS)
def test_the_legacy_secret_goes_on_request_once_nothing_refers_to_it(
    provider: Provider, secrets: Secrets, admin: Any, namespace: str, reader: str
) -> None:
    secrets.put("queue", LEGACY, TYPE)
    accounts = admin.resources.get(api_version="v1", kind="ServiceAccount")
    accounts.server_side_apply(
        body={
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        },
        field_manager="tests",
    )
    pods = admin.resources.get(api_version="v1", kind="Pod")
    pods.create(body=READERS[reader], namespace=namespace)
    pods.create(
        body=pod("other", volumes=[{"name": "v", "secret": {"secretName": "queue-2"}}]), namespace=namespace
    )
    made = provider.create(migration(namespace, handedOver=True))
    assert secrets.live("queue")["type"] == TYPE
    going = migration(namespace, handedOver=True, removeLegacy=True)
    (reason,) = provider.refusals(going, made.inputs)
    assert f"Secret {namespace}/queue: it is still read by pods/reader" in reason
    pods.delete(name="reader", namespace=namespace, body={"gracePeriodSeconds": 0})
    assert provider.refusals(going, made.inputs) == []
    gone = provider.update(made, going)
    assert secrets.names() == set()
    assert provider.update(gone, going).outputs == gone.outputs


def test_a_secret_that_is_no_legacy_one_stays(provider: Provider, secrets: Secrets) -> None:
    secrets.put("queue", LEGACY)
    provider.create(migration(secrets.namespace, handedOver=True, removeLegacy=True))
    assert secrets.live("queue")["type"] == "Opaque"
