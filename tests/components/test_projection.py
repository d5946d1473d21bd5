"""What a tenant's deliveries register, to the letter."""

import pulumi
import pytest

from components.projection.component import DeliveryArgs, TenantDeliveries, TenantDeliveriesArgs
from tests.support.recorder import Recorder, Secret, Unknown, record

COPY = "pulumi-python:dynamic/credfleet:SecretProjection"


def recorded(*, preview: bool = False) -> Recorder:
    def program() -> None:
        deliveries = TenantDeliveries(
            "acme",
            TenantDeliveriesArgs(
                namespace="tenant-acme",
                deliveries={
                    "azure": DeliveryArgs(
                        source_namespace="account-pool",
                        source_name="azure-1",
                        source_labels={"tenant-name": "acme"},
                        owner="pulumi/o/p/s/acme/azure",
                        target_name="aso-credential",
                        aso_credential="servicePrincipalSecret",
                    )
                },
            ),
        )
        pulumi.export("references", deliveries.references)

    outputs = {} if preview else {COPY: {"reference": "tenant-acme/aso-credential"}}
    return record(program, preview=preview, outputs=outputs)


def test_a_delivery_names_source_and_target_and_holds_no_value() -> None:
    copy = recorded().named(COPY, "acme/azure-copy")
    assert copy.own_inputs == {
        "sourceNamespace": "account-pool",
        "sourceName": "azure-1",
        "sourceLabels": {"tenant-name": "acme"},
        "targetNamespace": "tenant-acme",
        "targetName": "aso-credential",
        "owner": "pulumi/o/p/s/acme/azure",
        "keys": {},
        "asoCredential": "servicePrincipalSecret",
    }
    assert isinstance(copy.inputs["__provider"], Secret)


def test_a_copy_is_a_child_of_its_tenants_deliveries() -> None:
    recorder = recorded()
    parent = recorder.named("credfleet:index:TenantDeliveries", "acme")
    assert recorder.named(COPY, "acme/azure-copy").parent == parent.urn


@pytest.mark.parametrize(("preview", "reference"), [(True, Unknown()), (False, "tenant-acme/aso-credential")])
def test_where_a_copy_is_is_known_once_it_is_written(*, preview: bool, reference: object) -> None:
    assert recorded(preview=preview).stack_outputs["references"] == {"azure": reference}
