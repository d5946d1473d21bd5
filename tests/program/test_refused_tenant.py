"""A tenant that is refused: a preview tells it, and with --continue-on-error the others get theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

NAMES = ("acme", "globex")


def configure(project: FleetProject, **delivered: str) -> None:
    tenants: dict[str, Any] = {name: tenant_of(project, name) for name in NAMES}
    for tenant in tenants.values():
        tenant["accounts"]["aws"] |= delivered
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1, 2, 3))


@pytest.mark.life
def test_refused_copy_of_one_tenant_leaves_the_others_theirs(
    project: FleetProject, admin: DynamicClient
) -> None:
    acme, globex = (Secrets(admin, str(tenant_of(project, name)["namespace"])) for name in NAMES)
    configure(project)
    project.pulumi("up", "--yes", "--skip-preview").quiet()
    acme.put("copy", {"of": "another owner"})
    configure(project, deliverTo="copy")
    refusal = f"Secret {acme.namespace}/copy: it exists and this claim did not write it"

    preview = project.pulumi("preview")
    update = project.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")

    assert preview.code
    assert refusal in preview.out
    assert update.code
    assert refusal in update.out
    assert globex.data("copy").keys() == {"accessKeyID", "secretAccessKey"}
    assert acme.data("copy") == {"of": "another owner"}
