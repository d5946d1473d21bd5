"""No command is run for an account that is protected, nor for one that its credential does not open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import POOL_STATE, STATE_REASON
from components.labels import ACCOUNT_ID
from tests.support.cases import tabled
from tests.support.memory_cluster import NAMESPACE, credfleet
from tests.support.memory_pool import MemoryServer
from tests.support.pool import settle

ID = "111111111111"
SAYS = """echo '{"accountId": "%s", "keyId": "k1"}'"""
STACK = """config:
  credfleet:cluster: {context: here}
  credfleet:accountPool: %s
"""


@pytest.fixture
def server(server: MemoryServer) -> MemoryServer:
    """A pool with one dirty account."""
    server.add_member("m0", {POOL_STATE: "dirty"}, {ACCOUNT_ID: ID})
    return server


def configure(project: Path, **more: Any) -> None:
    """Have a stack whose cleaner makes a file."""
    (project / "members.csv").write_text(f"name,type,accountId\nm0,aws,{ID}\n")
    cleaning = {"aws": ["sh", "-c", 'touch "wiped.$0"']}
    pool = {"namespace": NAMESPACE, "membersFrom": "members.csv", "cleaning": cleaning, **more}
    (project / "Pulumi.dev.yaml").write_text(STACK % json.dumps(pool))


def clean(*words: str) -> tuple[int, str]:
    done = credfleet("pool", "clean", "--yes", "-n", NAMESPACE, *words)
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize("words", [(), ("--command", "aws=touch wiped.by")], ids=["stack's", "typed"])
def test_protected_account_is_never_wiped(server: MemoryServer, project: Path, words: Sequence[str]) -> None:
    configure(project)
    settle(server, PoolConfigMap(protected=(ID,)))

    code, said = clean(*words)

    assert (code, "m0" in said, "accountPool.protected" in said) == (1, True, True)
    assert not [*project.glob("wiped.*")]
    assert server.member("m0").state == "dirty"


def test_protected_account_is_no_member_and_is_neither_brought_nor_imported(
    server: MemoryServer, project: Path
) -> None:
    configure(project, protected=[ID])
    checked = credfleet("config", "check")
    assert (checked.exit_code, "accountPool.protected" in checked.output) == (2, True)
    settle(server, PoolConfigMap(protected=("222222222222",)))
    (project / "n.json").write_text('{"key": "x"}')
    (project / "more.csv").write_text("name,type,accountId\nn,aws,222222222222\n")

    imported = credfleet("pool", "import", "more.csv", "--values", ".", "--yes", "-n", NAMESPACE)
    account = ("-t", "aws", "--account-id", "222222222222", "--values", "n.json")
    brought = credfleet("pool", "bring", "--tenant", "acme", *account, "--yes", "-n", NAMESPACE)

    for refused in (imported, brought):
        assert refused.exit_code in (2, 4)
        assert "accountPool.protected" in refused.output
    assert [member.name for member in server.members] == ["m0"]


@tabled("identify, outcome, why")
def test_account_is_wiped_only_if_its_credential_opens_it(
    server: MemoryServer, project: Path, identify: str, outcome: str, why: str | None
) -> None:
    configure(project, keys={"aws": ["sh", "-c", identify]})

    code, said = clean("--timeout", "1s", "--output", "json")

    assert code == int(why is not None)
    assert f'"outcome": "{outcome}"' in said
    assert [*project.glob("wiped.*")] == ([project / "wiped.m0"] if why is None else [])
    assert "sentinel" not in said
    if why is not None:
        assert why in server.member("m0").annotations[STATE_REASON]


def test_program_that_an_interpreter_runs_is_called_by_its_own_name(
    server: MemoryServer, project: Path
) -> None:
    (project / "keys.sh").write_text("exit 3")
    configure(project, keys={"aws": ["sh", "keys.sh"]})
    clean()
    assert "keys.sh identify ended with exit code 3" in server.member("m0").annotations[STATE_REASON]
