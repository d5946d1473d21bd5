"""An update that is killed is continued by the next one, wherever it was."""

from __future__ import annotations

import signal
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.program.accounts import accounts, owned
from tests.support.fleet_project import FleetProject
from tests.support.proving import counted

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


@pytest.mark.life
def test_updates_killed_after_ever_more_writes_end_in_one_that_finds_everything_done_once(
    project: FleetProject, admin: DynamicClient
):
    for writes in count(1, counted(12, 1)):
        code = project.up_until(writes)
        if code == 0:
            break
        assert code == -signal.SIGKILL

    project.preview("--expect-no-changes").quiet()
    assert set(accounts(admin, project)) == {"aws-1", "aws-2", "aws-3"}
    assert set(owned(admin, project)) == {"acme", "globex"}
    records = (
        admin.resources.get(api_version="v1", kind="ConfigMap")
        .get(namespace=project.pool, label_selector="credfleet.io/pool-record")
        .items
    )
    assert sorted((record.data.tenant, record.data.phase) for record in records) == [
        ("acme", "Bound"),
        ("globex", "Bound"),
    ]
