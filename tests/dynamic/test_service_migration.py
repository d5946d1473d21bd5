"""The migration of a legacy service in the genuine host, on a real API server."""

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from components.service_credentials.provider import ServiceMigrationProvider
from tests.support.dynamic_host import UNKNOWN, Host, Properties, Provider

if TYPE_CHECKING:
    pass

SENTINEL = "s3ntinel-of-a-credential"
LEGACY = {"type": "rabbitmq", "password": SENTINEL}
TYPE = "servicebinding.io/rabbitmq"
OWNER = "pulumi/o/p/s/services/queue"


@pytest.fixture
def provider(host: Host) -> Provider:
    return host.provider(ServiceMigrationProvider())


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


def put(api: Any, namespace: str, name: str, values: Mapping[str, str], type_: str, **metadata: Any) -> None:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    body = {"metadata": {"name": name, **metadata}, "type": type_, "data": data}
    api.create(body=body, namespace=namespace)


def rotate(api: Any, namespace: str, name: str, key: str, value: bytes) -> None:
    body = {"data": {key: base64.b64encode(value).decode()}}
    api.patch(name=name, namespace=namespace, body=body, content_type="application/merge-patch+json")


def live(api: Any, namespace: str, name: str = "queue-migrated") -> dict[str, Any]:
    return api.get(name=name, namespace=namespace).to_dict()


def content(api: Any, namespace: str, name: str = "queue-migrated") -> dict[str, str]:
    data = live(api, namespace, name)["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def exists(api: Any, namespace: str, name: str = "queue-migrated") -> bool:
    return name in {item.metadata.name for item in api.get(namespace=namespace).items}


def test_a_legacy_service_is_adopted_and_no_byte_leaves_the_cluster(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    before = live(api, namespace, "queue")
    made = provider.create(migration(namespace))
    assert content(api, namespace) == {"credentials": f'{{"password":"{SENTINEL}","type":"rabbitmq"}}'}
    migrated = live(api, namespace)
    assert migrated["type"] == "Opaque"
    assert migrated["metadata"]["labels"] == {"korifi.cloudfoundry.org/service-instance-guid": "guid-1"}
    assert live(api, namespace, "queue") == before
    assert made.outputs["reference"] == f"{namespace}/queue-migrated"
    assert made.outputs["sourceType"] == TYPE
    assert made.outputs["sourceResourceVersion"] == before["metadata"]["resourceVersion"]
    assert SENTINEL not in repr(made)
    assert base64.b64encode(SENTINEL.encode()).decode() not in repr(made)
    assert not provider.is_changed(made, migration(namespace))


def test_the_environment_of_a_legacy_binding_shows_a_defaulted_type_too(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", {"type": "user-provided", "uri": "a&b"}, "servicebinding.io/user-provided")
    provider.create(environment(namespace))
    (entry,) = json.loads(content(api, namespace, "worker-env")["VCAP_SERVICES"])["user-provided"]
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


def test_a_second_run_after_a_lost_checkpoint_finds_what_the_first_one_made(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    first = provider.create(migration(namespace))
    version = live(api, namespace)["metadata"]["resourceVersion"]
    assert provider.create(migration(namespace)) == first
    assert live(api, namespace)["metadata"]["resourceVersion"] == version


def test_a_legacy_secret_changed_by_hand_is_followed(provider: Provider, api: Any, namespace: str) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    made = provider.create(migration(namespace))
    rotate(api, namespace, "queue", "password", b"rotated")
    assert provider.is_changed(made, migration(namespace))
    followed = provider.update(made, migration(namespace))
    assert content(api, namespace) == {"credentials": '{"password":"rotated","type":"rabbitmq"}'}
    assert followed.outputs["digest"] != made.outputs["digest"]


def test_a_refresh_sees_what_was_changed_by_hand_and_an_update_mends_it(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    made = provider.create(migration(namespace))
    untouched = provider.refresh(made)
    assert (untouched.inputs, untouched.outputs) == (made.inputs, made.outputs)
    rotate(api, namespace, "queue-migrated", "credentials", b"{}")
    seen = provider.refresh(made)
    assert seen.outputs["digest"] != made.outputs["digest"]
    assert provider.is_changed(seen, migration(namespace))
    provider.update(seen, migration(namespace))
    assert SENTINEL in content(api, namespace)["credentials"]
    api.delete(name="queue-migrated", namespace=namespace)
    assert provider.refresh(made).id == ""


def test_a_name_that_is_handed_over_is_free_and_never_taken_back(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    made = provider.create(migration(namespace))
    handed = provider.update(made, migration(namespace, handedOver=True))
    assert not exists(api, namespace)
    put(api, namespace, "queue-migrated", {"credentials": "{}"}, "Opaque")
    again = provider.update(handed, migration(namespace, handedOver=True))
    assert not provider.is_changed(again, migration(namespace, handedOver=True))
    refreshed = provider.refresh(again)
    assert (refreshed.id, refreshed.outputs) == (again.id, again.outputs)
    (said,) = provider.refusals(migration(namespace), again.inputs)
    assert said.startswith(f"Secret {namespace}/queue-migrated: its credentials are declared by now")
    provider.delete(again)
    assert content(api, namespace) == {"credentials": "{}"}
    assert exists(api, namespace, "queue")


def test_what_was_migrated_goes_with_its_instance_and_the_legacy_secret_stays(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    made = provider.create(migration(namespace))
    provider.delete(made)
    provider.delete(made)
    assert not exists(api, namespace)
    assert exists(api, namespace, "queue")


@pytest.mark.parametrize(
    ("taker", "said"),
    [
        pytest.param(
            ("servicebinding.io/x", {}), "with type servicebinding.io/x, not Opaque", id="another-type"
        ),
        pytest.param(("Opaque", {}), f"is of somebody else, not of {OWNER}", id="nobodys"),
        pytest.param(
            ("Opaque", {"credfleet.io/projected-by": "other"}),
            f"is of other, not of {OWNER}",
            id="another-owners",
        ),
    ],
)
def test_a_taken_name_is_refused_in_a_preview_and_left_alone(
    provider: Provider, api: Any, namespace: str, taker: tuple[str, Mapping[str, str]], said: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    type_, annotations = taker
    put(api, namespace, "queue-migrated", {"theirs": "x"}, type_, annotations=annotations)
    (reason,) = provider.refusals(migration(namespace))
    assert reason.startswith(f"Secret {namespace}/queue-migrated: it exists ")
    assert said in reason
    assert content(api, namespace) == {"theirs": "x"}


def test_a_service_that_is_not_legacy_is_refused_in_a_preview(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", {"credentials": "{}"}, "Opaque")
    (reason,) = provider.refusals(migration(namespace))
    assert reason.startswith(f"Secret {namespace}/queue: its type is Opaque, and a legacy instance")
    assert "leave out `legacy: true`" in reason


def test_a_legacy_secret_that_is_gone_is_refused_in_a_preview(
    provider: Provider, api: Any, namespace: str
) -> None:
    (reason,) = provider.refusals(migration(namespace))
    assert reason.startswith(f"Secret {namespace}/queue: it is not there")
    assert not exists(api, namespace)


def test_a_value_that_is_no_text_is_named_by_its_key_and_not_shown(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    made = provider.create(migration(namespace))
    rotate(api, namespace, "queue", "keystore", b"\xff\xfe" + SENTINEL.encode())
    (reason,) = provider.refusals(migration(namespace))
    assert reason.startswith(f"Secret {namespace}/queue, key keystore: its value is no UTF-8")
    with pytest.raises(grpc.RpcError) as refused:
        provider.update_unchecked(made, made.inputs)
    said = str(refused.value.details())
    assert f"RunError: value-unfit: Secret {namespace}/queue, key keystore: " in said
    assert SENTINEL not in reason + said


def test_another_name_is_another_secret_and_the_former_is_removed_first(
    provider: Provider, api: Any, namespace: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
    made = provider.create(migration(namespace))
    answer = provider.diff(made, migration(namespace, targetName="other"))
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (["targetName"], True)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"namespace": "a/b"}, "it is no namespace"),
        ({"instance": "No Name"}, "it is no name of a Secret"),
        ({"targetName": ""}, "it is no name of a Secret"),
        ({"owner": ""}, "nobody could tell whose"),
        ({"instanceGuid": ""}, "nobody could tell whose"),
    ],
)
def test_what_can_never_be_written_is_refused_in_a_preview(
    provider: Provider, wrong: Properties, said: str
) -> None:
    (reason,) = provider.refusals({**migration("acme"), **wrong})
    assert said in reason


def test_a_namespace_that_is_not_known_yet_passes_a_preview(provider: Provider) -> None:
    provider.check(migration(UNKNOWN))


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "none", **spec.pop("container", {})}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


READERS = {
    "a volume": pod("reader", volumes=[{"name": "v", "secret": {"secretName": "queue"}}]),
    "a projected volume": pod(
        "reader", volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "queue"}}]}}]
    ),
    "a variable": pod(
        "reader",
        container={
            "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "queue", "key": "password"}}}]
        },
    ),
    "all variables": pod("reader", container={"envFrom": [{"secretRef": {"name": "queue"}}]}),
}


@pytest.mark.parametrize("reader", READERS)
def test_the_legacy_secret_goes_on_request_once_nothing_refers_to_it(
    provider: Provider, api: Any, admin: Any, namespace: str, reader: str
) -> None:
    put(api, namespace, "queue", LEGACY, TYPE)
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
    assert live(api, namespace, "queue")["type"] == TYPE
    going = migration(namespace, handedOver=True, removeLegacy=True)
    (reason,) = provider.refusals(going, made.inputs)
    assert f"Secret {namespace}/queue is still read by pods/reader" in reason
    pods.delete(name="reader", namespace=namespace, body={"gracePeriodSeconds": 0})
    assert provider.refusals(going, made.inputs) == []
    gone = provider.update(made, going)
    assert [each.metadata.name for each in api.get(namespace=namespace).items] == []
    assert provider.update(gone, going).outputs == gone.outputs


def test_a_secret_that_is_no_legacy_one_stays(provider: Provider, api: Any, namespace: str) -> None:
    put(api, namespace, "queue", LEGACY, "Opaque")
    provider.create(migration(namespace, handedOver=True, removeLegacy=True))
    assert live(api, namespace, "queue")["type"] == "Opaque"
