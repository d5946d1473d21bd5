"""What a user-provided service and its bindings register, to the letter."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from components.credentials import Credentials
from components.naming import guid_of
from components.projection.settings import CredentialSource
from components.projection.sources import Source
from components.service_credentials.component import (
    ServiceBinding,
    ServiceBindingArgs,
    UserProvidedService,
    UserProvidedServiceArgs,
)
from components.service_credentials.settings import Binding, Instance, Services
from components.stack_config.stack import Settings
from components.wiring.services import declare_services
from components.wiring.tenants import Declared
from tests.support.cases import table, tabled
from tests.support.recorder import Recorder, Secret, plain, record

SECRET = "kubernetes:core/v1:Secret"
MIGRATION = "pulumi-python:dynamic/credfleet:ServiceMigration"
OWNER = "pulumi/o/p/s/services/orders-db"
GUID, BINDING_GUID = guid_of(OWNER), guid_of(f"{OWNER}/orders-api")
E = b'{"type":"database","port":5432,"user":{"name":"alice"}}'
ENTRY: Any = table(__file__, "ENTRY")


class Nowhere(Declared):
    def source(self, given: CredentialSource, place: str) -> tuple[Source, str]:
        namespace, name, key = given.in_secret or ("", "", None)
        return Source(namespace, name, place, key), "waits" if name == "later" else ""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decoded(data: dict[str, str]) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def declare(
    text: bytes | None = E, *, legacy: bool = False, display_name: str | None = "orders"
) -> Callable[[], ServiceBinding]:
    """An instance with one binding; made inside the program, since outputs live in its event loop."""

    def program() -> ServiceBinding:
        given = {} if text is None else {"credentialsFrom": "db"}
        service = UserProvidedService(
            "orders-db",
            UserProvidedServiceArgs(
                namespace="tenant-acme",
                instance=Instance.model_validate(
                    {"namespace": "tenant-acme", "legacy": legacy, "tags": ["sql"], **given}
                ),
                owner=OWNER,
                credentials=Credentials({} if text is None else {"db": text.decode()}),
            ),
        )
        binding = ServiceBinding(
            "orders-api",
            ServiceBindingArgs(service, "orders-api", Binding.model_validate({"displayName": display_name})),
            pulumi.ResourceOptions(parent=service),
        )
        pulumi.export("source", service.secret_name)
        pulumi.export("type", binding.type)
        pulumi.export("secretName", binding.secret_name)
        pulumi.export("mountPath", binding.mount_path)
        pulumi.export("vcapServices", binding.vcap_services)
        return binding

    return program


def recorded(declared: Callable[[], object], *, preview: bool = False) -> Recorder:
    outputs = {} if preview else {MIGRATION: {"sourceType": "servicebinding.io/rabbitmq"}}

    def program() -> None:
        declared()

    return record(program, preview=preview, outputs=outputs)


def test_one_credentials_object_becomes_the_three_secrets_of_an_instance_and_its_binding() -> None:
    secrets = recorded(declare()).of_type(SECRET)
    assert {name: one.own_inputs for name, one in secrets.items() if name != "orders-api-env"} == {
        "orders-db-source": {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "orders-db",
                "namespace": "tenant-acme",
                "labels": {"korifi.cloudfoundry.org/service-instance-guid": GUID},
            },
            "type": "Opaque",
            "data": Secret(
                {"credentials": encoded('{"port":5432,"type":"database","user":{"name":"alice"}}')}
            ),
        },
        "orders-api-binding": {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "orders-api", "namespace": "tenant-acme"},
            "type": "servicebinding.io/database",
            "data": Secret(
                {
                    "type": encoded("database"),
                    "port": encoded("5432"),
                    "user": encoded('{"name":"alice"}'),
                }
            ),
        },
    }
    env = secrets["orders-api-env"].inputs
    assert (env["type"], env["metadata"]) == (
        "Opaque",
        {"name": "orders-api-env", "namespace": "tenant-acme"},
    )
    assert isinstance(env["data"], Secret)
    vcap = json.loads(decoded(plain(env["data"]))["VCAP_SERVICES"])
    assert vcap == {"user-provided": [ENTRY]}


def test_ids_of_a_binding_are_written_after_the_service_has_them() -> None:
    env = recorded(declare()).named(SECRET, "orders-api-env")
    assert "orders-db-source" in {each.rpartition("::")[2] for each in env.dependencies}


@pytest.mark.parametrize("preview", [True, False])
def test_outputs_say_where_things_are_and_hold_no_credential(*, preview: bool) -> None:
    assert recorded(declare(), preview=preview).stack_outputs == table(__file__, "OUTPUTS")


@tabled("display_name, directory, name, binding_name")
def test_a_display_name_changes_directory_and_vcap_services_but_no_secrets_name(
    display_name: str | None, directory: str, name: str, binding_name: str | None
) -> None:
    recorder = recorded(declare(display_name=display_name))
    env = recorder.named(SECRET, "orders-api-env")
    (entry,) = json.loads(decoded(plain(env.inputs["data"]))["VCAP_SERVICES"])["user-provided"]
    assert (entry["name"], entry["binding_name"]) == (name, binding_name)
    assert recorder.stack_outputs["mountPath"] == f"/bindings/{directory}"
    assert recorder.stack_outputs["secretName"] == "orders-api"


def test_a_legacy_service_is_migrated_by_reference_and_its_bindings_keep_the_old_secret() -> None:
    recorder = recorded(declare(None, legacy=True))
    shared = table(__file__, "LEGACY")
    assert recorder.of_type(SECRET) == {}
    assert {name: one.own_inputs for name, one in recorder.of_type(MIGRATION).items()} == {
        "orders-db-migration": {**shared, "targetName": "orders-db-migrated"},
        "orders-api-env-migration": {
            **shared,
            "targetName": "orders-api-env",
            "binding": {"guid": BINDING_GUID, "name": "orders", "tags": ["sql"], "label": "user-provided"},
        },
    }
    assert recorder.stack_outputs == table(__file__, "LEGACY_OUTPUTS")


def app(file: bool = False, workload: dict[str, object] | None = None) -> Callable[[], None]:
    """A namespace with two services of one application, and another one with a service of the same name."""
    instances = table(__file__, "INSTANCES")
    given = {
        "namespace": "tenant-acme",
        "bindings": ["orders/a", "mail/b"],
        "file": file,
        "workload": workload,
    }
    section = Services.model_validate(
        {"instances": instances, "apps": {"shop": given, "idle": {"namespace": "tenant-acme"}}}
    )
    credentials = Credentials({"db": E.decode(), "mail": '{"uri":"smtp://mail"}'})
    settings = Settings.model_construct(services=section, credentials=credentials)

    def program() -> None:
        services, apps, _ = declare_services(settings, Nowhere(), pulumi.ResourceOptions())
        pulumi.export("services", services)
        pulumi.export("apps", apps)

    return program


def test_vcap_services_of_an_application_are_written_after_its_bindings_and_their_services() -> None:
    recorder = recorded(app())
    needed = recorder.waits_for(recorder.named(SECRET, "shop-vcap-services"))
    assert {"orders-source", "orders/a-env"} <= needed


def test_an_application_has_one_vcap_services_over_all_its_bindings() -> None:
    recorder = recorded(app())
    secret = recorder.named(SECRET, "shop-vcap-services")
    assert secret.inputs["metadata"] == {"name": "shop-vcap-services", "namespace": "tenant-acme"}
    assert isinstance(secret.inputs["data"], Secret)
    told = json.loads(decoded(plain(secret.inputs["data"]))["VCAP_SERVICES"])
    assert [*told] == ["sql", "user-provided"]
    assert [entry["instance_name"] for entries in told.values() for entry in entries] == ["orders", "mail"]
    assert [entry["name"] for entries in told.values() for entry in entries] == ["orders", "post"]
    alone = json.loads(decoded(plain(recorder.named(SECRET, "orders/a-env").inputs["data"]))["VCAP_SERVICES"])
    assert alone["sql"] == told["sql"]
    idle = recorder.named(SECRET, "idle-vcap-services").inputs["data"]
    assert decoded(plain(idle)) == {"VCAP_SERVICES": "{}"}


@pytest.mark.parametrize("file", [True, False])
def test_an_application_is_told_where_everything_is(file: bool) -> None:
    outputs = recorded(app(file)).stack_outputs["apps"]["shop"]
    assert outputs == {
        "vcapServices": {
            "namespace": "tenant-acme",
            "secretName": "shop-vcap-services",
            "key": "VCAP_SERVICES",
        },
        "filePath": "/etc/cf-system/vcap_services" if file else None,
        "bindings": {
            "orders/a": {"secretName": "a", "mountPath": "/bindings/a"},
            "mail/b": {"secretName": "b", "mountPath": "/bindings/post"},
        },
    }


def test_a_workload_is_given_the_files_and_variables_of_its_application_after_their_secrets() -> None:
    recorder = recorded(app(True, {"kind": "StatefulSet", "name": "shop", "restart": True}))
    bound = recorder.named("pulumi-python:dynamic/credfleet:WorkloadBinding", "shop-workload")
    told = bound.own_inputs
    assert isinstance(told.pop("content"), Secret)
    assert told == table(__file__, "WORKLOAD")
    needed = {dependency.rpartition("::")[2] for dependency in bound.dependencies}
    assert {"shop-vcap-services", "orders/a-binding", "mail/b-binding"} <= needed
    assert "pulumi-python:dynamic/credfleet:WorkloadBinding" not in {
        one.type for one in recorded(app()).registrations
    }


def referring(secret: str, *, workload: bool = False) -> Callable[[], None]:
    """One service whose credentials are in the cluster and one of an entry, and an application over both."""
    instances = {
        "orders": {
            "namespace": "tenant-acme",
            "credentialsFrom": {"secret": secret},
            "bindings": {"a": {}},
        },
        "mail": {"namespace": "tenant-acme", "credentialsFrom": "mail", "bindings": {"b": {}}},
    }
    shop: dict[str, Any] = {"namespace": "tenant-acme", "bindings": ["orders/a", "mail/b"]}
    if workload:
        shop["workload"] = {"name": "shop"}
    section = Services.model_validate({"instances": instances, "apps": {"shop": shop}})
    credentials = Credentials({"mail": '{"uri":"smtp://mail"}'})
    settings = Settings.model_construct(services=section, credentials=credentials)

    def program() -> None:
        services, apps, waiting = declare_services(settings, Nowhere(), pulumi.ResourceOptions())
        for name, value in {"services": services, "apps": apps, "waiting": waiting}.items():
            pulumi.export(name, value)

    return program


SERVICE_SECRET = "pulumi-python:dynamic/credfleet:ServiceSecret"


def test_credentials_in_the_cluster_become_the_same_secrets_by_reference_alone() -> None:
    recorder = recorded(referring("tenant-acme/db/uri", workload=True))
    made = recorder.of_type(SERVICE_SECRET)
    source = table(__file__, "SOURCE")
    assert {name: (one.inputs["targetName"], one.inputs["recipe"]["form"]) for name, one in made.items()} == {
        "orders-source": ("orders", "source"),
        "orders/a-binding": ("a", "binding"),
        "orders/a-env": ("a-env", "environment"),
        "shop-vcap-services": ("shop-vcap-services", "application"),
    }
    assert all(one.inputs["sources"][0] == source for one in made.values())
    (_, mail) = made["shop-vcap-services"].inputs["sources"]
    assert (mail["name"], mail["key"], mail["declared"]) == ("mail", "credentials", True)
    assert {*recorder.of_type(SECRET)} == {"mail-source", "mail/b-binding", "mail/b-env"}
    bound = recorder.named("pulumi-python:dynamic/credfleet:WorkloadBinding", "shop-workload")
    needed = {dependency.rpartition("::")[2] for dependency in bound.dependencies}
    assert {"shop-vcap-services", "orders/a-binding"} <= needed
    assert recorder.stack_outputs["services"]["orders"]["bindings"]["a"]["secretName"] == "a"


def test_what_waits_for_credentials_in_the_cluster_is_not_made() -> None:
    recorder = recorded(referring("tenant-acme/later"))
    assert recorder.of_type(SERVICE_SECRET) == {}
    assert recorder.stack_outputs["waiting"] == {"service orders": "waits", "app shop": "waits"}


def test_an_instance_whose_credential_is_not_given_is_refused_with_what_may_be_meant() -> None:
    def program() -> None:
        UserProvidedService(
            "orders-db",
            UserProvidedServiceArgs(
                namespace="tenant-acme",
                instance=Instance.model_validate({"namespace": "tenant-acme", "credentialsFrom": "dbs"}),
                owner=OWNER,
                credentials=Credentials({"db": E.decode()}),
            ),
        )

    with pytest.raises(pulumi.RunError, match=r"no credential has this name\n→ did you mean db\?"):
        record(program)
