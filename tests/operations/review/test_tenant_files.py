"""A review of one tenant's new file, without keys: it names that tenant, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml
from pulumi_sandbox import engine
from pulumi_sandbox.engine import Snapshot, StackAtRest
from pulumi_sandbox.protocol import urns

from operations.review.record import Heard, Record, asking_nobody, texts
from tests.support.proving import counted, tried
from tests.support.recorded_stacks import ROOT, document_of, laid_out

STACK: Final = "staging"


def _reviewed(project: Path, record: Record, snapshot: Snapshot) -> engine.Result:
    at_rest = StackAtRest.find(project, STACK, backend_dir=project)
    workspace = engine.without_keys(at_rest, snapshot, texts(record.seals, at_rest), project / "state")
    heard = Heard()
    result = engine.preview(workspace, record.options(ROOT), heard)
    assert (result.exit_code, heard.errors) == (0, [])
    return result


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
    with asking_nobody(record.cluster):
        before = _reviewed(tmp_path, record, record.snapshot)
        (folder / "newcomer.yaml").write_text("namespace: tenant-newcomer\n")
        after = _reviewed(tmp_path, record, record.snapshot)

    known = {(each.step.op, each.step.urn) for each in before.steps}
    new = [each for each in after.steps if (each.step.op, each.step.urn) not in known]
    assert {each.step.op for each in new} == {"create"}
    assert new
    assert all(urns.parse(each.step.urn).name.startswith("newcomer-") for each in new)
    tried("tenants beside the one that a review names", counted(10, 1000))
