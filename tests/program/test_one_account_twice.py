"""An account that a tenant brought, and that the stack is to declare as well: the preview tells it."""

from __future__ import annotations

import pytest

from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject


@pytest.mark.life
def test_new_entry_for_a_brought_account_is_refused_by_preview_and_update(project: FleetProject) -> None:
    tenants = {"acme": tenant_of(project, "acme")}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1))
    project.up().quiet()
    (project.folder / "key.json").write_text('{"accessKeyID": "AKIA9", "secretAccessKey": "sentinel-9"}')
    account = ("--tenant", "globex", "-t", "aws", "--account-id", f"{2:012}", "--values", "key.json")
    brought = project.run("pool", "bring", *account, "-n", project.pool, "--yes", "--output", "json").quiet()
    secret = brought.json["secretName"]
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1, 2))

    preview, update = project.preview().quiet(1), project.up().quiet(1)

    said = f"members.aws-2.accountId: the pool has this account already, as Secret {secret} of tenant globex"
    assert said in preview.said
    assert said in update.said
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1))
    project.up().quiet()
