"""An entry that is there already, and who may do what with one."""

import shlex
from typing import Final

from components.import_command import Importer
from components.pull_secret.component import Existing
from components.pull_secret.grants import grants, service_account, workload

ENTRY: Final = Importer(
    stack="o/p/s",
    is_preview=False,
    type="gcp:secretmanager/secret:Secret",
    name="east-entry",
    parent="urn:a$b::c",
    provider="urn:d$e",
)


def test_a_refusal_names_the_owners_labels_and_the_command_that_makes_it_ours() -> None:
    refusal = Existing("p", "s", {"team": "platform", "env": "prod"}).refusal(ENTRY)
    assert refusal.place == "projects/p/secrets/s"
    assert refusal.problem.endswith("so it is not overwritten; its labels: env=prod, team=platform")
    assert shlex.split(refusal.fix.partition("make it this stack's: ")[2]) == [
        *(
            "pulumi",
            "import",
            "--stack",
            "o/p/s",
            "--parent",
            "parent=urn:a$b::c",
            "--provider",
            "provider=urn:d$e",
        ),
        *("--protect=false", "--generate-code=false"),
        *("gcp:secretmanager/secret:Secret", "east-entry", "projects/p/secrets/s"),
    ]


def test_one_without_labels_is_refused_too() -> None:
    assert "its labels: none" in Existing("p", "s", {}).refusal(ENTRY).problem


def test_the_reader_reads_and_the_adapter_looks_adds_and_reads_back() -> None:
    assert {one.name: (one.role, one.member) for one in grants("r", "a")} == {
        "reader-accessor": ("roles/secretmanager.secretAccessor", "r"),
        "adapter-viewer": ("roles/secretmanager.viewer", "a"),
        "adapter-adder": ("roles/secretmanager.secretVersionAdder", "a"),
        "adapter-accessor": ("roles/secretmanager.secretAccessor", "a"),
    }


def test_nobody_gets_rights_by_default() -> None:
    assert [*grants(None, None)] == []


def test_both_forms_of_an_identity_are_as_google_cloud_writes_them() -> None:
    pool = "projects/12/locations/global/workloadIdentityPools/fleet.svc.id.goog"
    assert workload("12", "fleet", "hyperfleet-system", "adapter") == (
        f"principal://iam.googleapis.com/{pool}/subject/ns/hyperfleet-system/sa/adapter"
    )
    assert service_account("m@fleet.iam.gserviceaccount.com") == (
        "serviceAccount:m@fleet.iam.gserviceaccount.com"
    )
