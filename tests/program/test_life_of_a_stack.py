"""A stack from nothing to nothing, as a person at the command line meets it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import CREDFLEET, STACK, FleetProject
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def plain_texts_below(folder: Path) -> list[str]:
    """Name files the project's commands wrote that hold a credential in plaintext."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and b"sentinel-" in path.read_bytes()
    ]


@pytest.mark.life
def test_a_stack_is_brought_up_kept_repaired_changed_and_taken_down(
    project: FleetProject, admin: DynamicClient
):
    project.sandbox_up().quiet()
    first = owned(admin, project)
    assert set(first) == {"acme", "globex"}
    assert Secrets(admin, project.pool).data("aws-1") == {
        "accessKeyID": "AKIA1",
        "secretAccessKey": "sentinel-1",
    }

    again = project.sandbox_up("--expect-no-changes").quiet()
    assert "Nothing changed" in again.out

    secrets = admin.resources.get(api_version="v1", kind="Secret")
    (free,) = set(accounts(admin, project)) - {name for name, _ in first.values()}
    secrets.delete(name=free, namespace=project.pool)
    assert project.refresh("--expect-no-changes").code == 7
    project.up().quiet()
    assert set(accounts(admin, project)) == {"aws-1", "aws-2", "aws-3"}
    for words in (("mark-dirty", free, "--reason", "nobody uses it"), ("clean", "--command", "aws=true")):
        project.run("pool", *words, "-n", project.pool, "--yes").quiet()

    account, _ = first["acme"]
    rotated = {**CREDENTIALS, account: '{"accessKeyID":"AKIA9","secretAccessKey":"sentinel-9"}'}
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex", "initech")}
    project.configure(credentials=rotated, tenants=tenants, pool=pool_of(1, 2, 3))
    project.up().quiet()
    assert Secrets(admin, project.pool).data(account)["secretAccessKey"] == "sentinel-9"
    after = owned(admin, project)
    assert {tenant: after[tenant] for tenant in first} == first
    assert set(after) == {"acme", "globex", "initech"}

    assert plain_texts_below(project.folder) == []

    project.destroy().quiet()
    namespaces = {
        each.metadata.name for each in admin.resources.get(api_version="v1", kind="Namespace").get().items
    }
    assert not [name for name in namespaces if name.startswith(project.pool)]


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
