"""What a record keeps of a cluster and a program, and when none is made.

Not proved: that a state is what a stack file made (the record is exported right after an update).
"""

import json
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pytest

from components.connection import Connection, RecordedCluster, Recording, Reply
from components.errors import ClusterError, CredfleetError
from components.stack_config.stack import Settings
from operations.config.settings import read_settings
from operations.review.preview import installed_providers
from operations.review.record import Record, code_of, make_record
from operations.stack.at_rest import StackAtRest
from operations.stack.state import Resource, Snapshot
from tests.support.cases import tabled

LIST: Final = "/api/v1/namespaces/pool/secrets?labelSelector=x"
RECORDS: Final = "/api/v1/namespaces/pool/configmaps?labelSelector=y"
APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
SECRET: Final = {
    "kind": "Secret",
    "metadata": {"name": "aws-1", "labels": {"a": "b"}, "annotations": {APPLIED: "canary", "c": "d"}},
    "data": {"key": "canary"},
}
CLAIM: Final = {"kind": "ConfigMap", "metadata": {"name": "claim-1"}, "data": {"holder": "x"}}
PROVIDER: Final = "pulumi:providers:pulumi-python"


class _Cluster(Connection):
    def __init__(self) -> None:
        """Need no client."""

    def call(self, method: str, path: str, **_given: Any) -> Reply:
        """Answer each kind of list."""
        assert method == "GET"
        items = [SECRET] if "secrets" in path else [CLAIM]
        return Reply(200, {"kind": "List", "metadata": {"resourceVersion": "7"}, "items": items})


@pytest.fixture
def recording() -> Recording:
    recorded = Recording(_Cluster())
    for path in (LIST, RECORDS):
        assert recorded.call("GET", path).body["items"]
    return recorded


def test_of_a_secret_nothing_is_kept_but_metadata_without_copies_of_it(recording: Recording) -> None:
    (kept,) = recording.answers[LIST]["body"]["items"]

    assert kept == {
        "kind": "Secret",
        "metadata": {"name": "aws-1", "labels": {"a": "b"}, "annotations": {"c": "d"}},
    }


def test_what_was_asked_is_answered_again_and_a_claim_is_found_by_its_name(recording: Recording) -> None:
    again = RecordedCluster(recording.answers)

    assert again.call("GET", RECORDS).body["items"][0]["data"] == {"holder": "x"}
    assert again.call("GET", "/api/v1/namespaces/pool/configmaps/claim-1").body["data"] == {"holder": "x"}
    assert again.call("GET", "/api/v1/namespaces/pool/configmaps/another").status == 404


@pytest.mark.parametrize(
    ("method", "path"), [("POST", LIST), ("GET", "/api/v1/namespaces/others/secrets/x"), ("GET", "/apis")]
)
def test_what_nobody_asked_is_not_answered(recording: Recording, method: str, path: str) -> None:
    with pytest.raises(ClusterError, match="no cluster is asked"):
        RecordedCluster(recording.answers).call(method, path)


def test_no_record_is_made_of_a_state_that_another_stack_file_made(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: credfleet\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {credfleet:tenants: {acme: {namespace: acme}}}\n")
    at_rest = StackAtRest.find(tmp_path, "dev", backend_dir=tmp_path)
    urn = f"urn:pulumi:dev::credfleet::{PROVIDER}::default"
    provider = Resource(urn, PROVIDER, custom=True, id="x", inputs={"credfleet:tenants": "{}"})

    with pytest.raises(CredfleetError) as refused:
        make_record(at_rest, Snapshot((provider,)), Settings())

    assert refused.value.code == "not-deployed"


def test_no_record_is_made_of_a_state_that_other_files_of_tenants_made(tmp_path: Path) -> None:
    _write(tmp_path / "Pulumi.yaml", "name: credfleet\nruntime: python\n")
    config = {"credfleet:cluster": {"context": "c"}, "credfleet:tenantsFrom": "tenants"}
    _write(tmp_path / "Pulumi.dev.yaml", json.dumps({"config": config}))
    _write(tmp_path / "tenants" / "acme.yaml", "namespace: acme\n")
    at_rest = StackAtRest.find(tmp_path, "dev", backend_dir=tmp_path)
    deployed = read_settings(at_rest).files
    _write(tmp_path / "tenants" / "acme.yaml", "{namespace: acme} # as before\n")
    assert read_settings(at_rest).files == deployed
    fleet = Resource("urn:fleet", "credfleet:index:Fleet", custom=False, inputs={"files": deployed})
    _write(tmp_path / "tenants" / "globex.yaml", "namespace: globex\n")

    with pytest.raises(CredfleetError) as refused:
        make_record(at_rest, Snapshot((fleet,)), read_settings(at_rest))

    assert (refused.value.code, refused.value.place) == ("not-deployed", "tenants")


@tabled("path")
def test_whatever_the_program_could_import_or_read_makes_it_another(tmp_path: Path, path: str) -> None:
    before = code_of(_program(tmp_path))
    _write(tmp_path / path, "another")

    assert code_of(tmp_path) != before


@pytest.mark.parametrize(
    "path", ["README.md", "components/page.md", "docs/a.py", "tests/a.py", "Pulumi.dev.yaml", ".git/config"]
)
def test_what_it_does_not_run_makes_it_no_other(tmp_path: Path, path: str) -> None:
    before = code_of(_program(tmp_path))
    _write(tmp_path / path, "another")
    _write(tmp_path / "components" / "__pycache__" / "a.cpython-311.pyc", "another")

    assert code_of(tmp_path) == before


def test_a_link_is_what_it_leads_to_and_no_file_is_told_by_the_end_of_another(tmp_path: Path) -> None:
    before = code_of(_program(tmp_path))
    file = tmp_path / "components" / "a.py"
    file.unlink()
    file.symlink_to("/dev/zero")
    assert code_of(tmp_path) != before
    file.unlink()
    (tmp_path / "components" / "b.py").unlink()
    _write(file, "one\0components/b.py\0two")
    assert code_of(tmp_path) != before


@tabled("path, is_code")
def test_what_a_tenants_file_says_or_names_is_configuration_and_what_lies_beside_it_is_not(
    tmp_path: Path, path: str, is_code: bool
) -> None:
    config = {"credfleet:tenantsFrom": "tenants"}
    before = code_of(_program(tmp_path), config)
    _write(tmp_path / path, "another")
    assert (code_of(tmp_path, config) != before) is is_code
    assert code_of(tmp_path) != before
    (tmp_path / path).unlink()
    (tmp_path / path).symlink_to("/dev/zero")
    assert code_of(tmp_path, config) != before


def _program(folder: Path) -> Path:
    _write(folder / "components" / "a.py", "one")
    _write(folder / "components" / "b.py", "two")
    return folder


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1, "stack": "prod"}', "[]"])
def test_what_is_no_record_of_the_stack_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "record.json"
    file.write_text(text)

    with pytest.raises(CredfleetError) as refused:
        Record.read(file, "dev")

    assert refused.value.code == "record-unreadable"


def test_a_provider_whose_sdk_is_not_installed_is_in_no_review(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "pulumi-azure-native":
            raise metadata.PackageNotFoundError(name)
        return "1.0.0"

    monkeypatch.setattr(metadata, "version", version)
    assert dict(installed_providers()) == {"gcp": "1.0.0", "kubernetes": "1.0.0"}
