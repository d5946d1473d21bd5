"""An entry that is there already, and who may do what with one."""

from components.pull_secret.settings import list_grants, service_account, workload


def test_the_reader_reads_and_the_adapter_looks_adds_and_reads_back() -> None:
    assert {one.name: (one.role, one.member) for one in list_grants("r", "a")} == {
        "reader-accessor": ("roles/secretmanager.secretAccessor", "r"),
        "adapter-viewer": ("roles/secretmanager.viewer", "a"),
        "adapter-adder": ("roles/secretmanager.secretVersionAdder", "a"),
        "adapter-accessor": ("roles/secretmanager.secretAccessor", "a"),
    }


def test_nobody_gets_rights_by_default() -> None:
    assert [*list_grants(None, None)] == []


def test_both_forms_of_an_identity_are_as_google_cloud_writes_them() -> None:
    pool = "projects/12/locations/global/workloadIdentityPools/fleet.svc.id.goog"
    assert workload("12", "fleet", "hyperfleet-system", "adapter") == (
        f"principal://iam.googleapis.com/{pool}/subject/ns/hyperfleet-system/sa/adapter"
    )
    assert service_account("m@fleet.iam.gserviceaccount.com") == (
        "serviceAccount:m@fleet.iam.gserviceaccount.com"
    )
