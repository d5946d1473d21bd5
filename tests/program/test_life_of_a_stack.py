"""An update that is interrupted, and one that is refused at once; whole lives are in tests/genuine."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.program.accounts import owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import CREDFLEET, STACK, FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


@pytest.mark.life
def test_an_interrupted_update_says_so_saves_what_it_did_and_is_continued(
    project: FleetProject, admin: DynamicClient
):
    words = [
        "sandbox",
        "up",
        "--stack",
        STACK,
        "--kubeconfig",
        str(project.kubeconfig),
        "--yes",
        "--skip-preview",
    ]
    update = subprocess.Popen(
        [str(CREDFLEET), *words],
        cwd=project.folder,
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert update.stdout is not None
    for line in update.stdout:
        if "created" in line:
            update.send_signal(signal.SIGINT)
            break
    rest = update.stdout.read()
    with contextlib.closing(update.stdout):
        assert update.wait() == 8, rest
    assert "Traceback" not in rest
    state = json.loads(
        (project.folder / f".sandbox/backend/.pulumi/stacks/credfleet/{STACK}.json").read_text()
    )
    assert "pending_operations" not in state["checkpoint"]["latest"]

    project.up().quiet()
    assert set(owned(admin, project)) == {"acme", "globex"}


def test_another_context_than_the_configured_one_is_refused_before_anything_is_written(
    project: FleetProject, admin: DynamicClient
):
    project.configure(
        credentials=CREDENTIALS,
        tenants={"acme": tenant_of(project, "acme")},
        pool=pool_of(1),
        context="somewhere-else",
    )
    refused = project.up()
    assert refused.code != 0
    assert "somewhere-else" in refused.said
    assert "Traceback" not in refused.said
    assert "context canceled" not in refused.said
    names = {
        each.metadata.name for each in admin.resources.get(api_version="v1", kind="Namespace").get().items
    }
    assert project.pool not in names
