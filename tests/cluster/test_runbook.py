"""The runbook of the empty pool, followed as it is printed: every command of it, until accounts are free.

Commands are run in this process. What a person reads of it is for people.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.testing import CliRunner

from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.keys import CLEANING_TOKEN, POOL_STATE
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.status import AccountUse
from components.connection import ClusterTarget
from components.labels import HYPERSCALER_TYPE
from components.naming import stack_holder
from operations.main import app
from tests.support.guarded_pool import MERGE
from tests.support.stacks import ROOT
from tests.tutorial import blocks, typed

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

PAGE: Final = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")
SECTION: Final = PAGE.partition("## Exhausted\n")[2].partition("\n## ")[0]
CUT: Final = "…"
"""What the page ends a line with that goes on."""


@pytest.fixture
def pool(
    control_plane: ControlPlane,
    admin: DynamicClient,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> PoolOperator:
    """A pool of six accounts none of which is free, each for another reason."""
    secret: Any = admin.resources.get(api_version="v1", kind="Secret")
    settings = {"metadata": {"name": CONFIG_MAP}, "data": PoolConfigMap().render()}
    admin.resources.get(api_version="v1", kind="ConfigMap").create(body=settings, namespace=namespace)
    kubeconfig = str(control_plane.kubeconfig("admin"))
    pool = PoolOperator.open(ClusterTarget(kubeconfig=kubeconfig), namespace)

    def add(name: str) -> None:
        metadata = {"name": name, "labels": {HYPERSCALER_TYPE: "aws"}}
        secret.create(body={"metadata": metadata}, namespace=namespace)

    def claim(name: str, tenant: str, holder: str, policy: Policy = Policy.CLEAN) -> str:
        add(name)
        return pool.claim(ClaimRequest(tenant, "aws", "main", holder=holder, policy=policy)).record

    def held_by(stack: str, tenant: str) -> str:
        return stack_holder("organization", "fleet", stack, tenant, "main")

    pool.release(claim("aws-3", "acme", "cli"), "cli")
    pool.clean("nightly", lambda _: "the bucket is locked")
    for name in ("aws-1", "aws-2"):
        pool.release(claim(name, "acme", "cli"), "cli")
    begun = {"labels": {POOL_STATE: "cleaning"}, "annotations": {CLEANING_TOKEN: "nightly/1"}}
    secret.patch(name="aws-2", namespace=namespace, body={"metadata": begun}, content_type=MERGE)
    pool.release(claim("aws-4", "globex", "cli", Policy.RETAIN), "cli")
    claim("aws-5", "initech", held_by("retired", "initech"))
    claim("aws-6", "hooli", held_by("prod", "hooli"))
    cleaner = tmp_path / "cleaners" / "aws.sh"
    cleaner.parent.mkdir()
    cleaner.write_text("#!/bin/sh\n")
    cleaner.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    return pool


def test_the_runbook_of_the_empty_pool_ends_with_free_accounts(pool: PoolOperator) -> None:
    for _, block in blocks(
        re.sub(r"^   ", "", SECTION.replace("account-pool", pool.namespace), flags=re.MULTILINE)
    ):
        for each in typed(block):
            words = [*shlex.split(each.command)[1:], "--kubeconfig", os.environ["KUBECONFIG"]]
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, result.output
            shown = [line.split() for line in result.output.splitlines()]
            for line in each.printed:
                wanted = line.removesuffix(CUT).split()
                assert wanted in [words[: len(wanted)] for words in shown], result.output
    free = [each for each in pool.status().accounts if each.standing is AccountUse.FREE]
    assert len(free) == 4
