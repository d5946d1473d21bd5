"""A review of one tenant's new file, without keys: it names that tenant, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml
from pulumi_sandbox.protocol import urns

from operations.folders import Folders
from operations.review.preview import preview
from operations.review.record import Record, texts
from operations.stack.at_rest import StackAtRest
from tests.support.proving import counted, tried
from tests.support.recorded_stacks import ROOT, document_of, laid_out

STACK: Final = "staging"


def _reviewed(project: Path, record: Record) -> set[tuple[str, str]]:
    at_rest = StackAtRest.find(project, STACK, backend_dir=project)
    digest = preview(at_rest, record, texts(record.seals, at_rest), Folders(ROOT)).digest
    assert not digest.failed
    return {(step.op, step.urn) for step in digest.steps}


@pytest.mark.life
def test_the_review_of_one_tenants_file_names_that_tenant_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = laid_out(tmp_path, STACK, monkeypatch)
    document = document_of(STACK)
    folder = tmp_path / "tenants"
    folder.mkdir()
    for name, tenant in document["config"].pop("credfleet:tenants").items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(tenant))
    for number in range(counted(10, 1000)):
        (folder / f"t{number:04}.yaml").write_text(f"namespace: tenant-t{number:04}\n")
    document["config"]["credfleet:tenantsFrom"] = "tenants"
    (tmp_path / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    before = _reviewed(tmp_path, record)
    (folder / "newcomer.yaml").write_text("namespace: tenant-newcomer\n")
    new = _reviewed(tmp_path, record) - before

    assert {op for op, _ in new} == {"create"}
    assert all(urns.parse(urn).name.startswith("newcomer-") for _, urn in new)
    tried("tenants beside the one that a review names", counted(10, 1000))
