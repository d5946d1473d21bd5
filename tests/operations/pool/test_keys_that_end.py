"""Keys that end: how bringing and importing say when, and what the age of a key comes to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from components.account_pool.core.calls import Kind
from components.account_pool.core.clock import Clock
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.labels import EXPIRES_AT, HYPERSCALER_TYPE
from tests.operations.pool.test_importing import Connected, connected
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer

__all__ = ["connected"]


def states() -> dict[str, str]:
    return {each["secretName"]: each["state"] for each in answer("status")["accounts"]}


def test_accounts_are_brought_and_imported_with_when_their_keys_end(
    server: MemoryServer, connected: Connected, tmp_path: Path
) -> None:
    (tmp_path / "aws-1.json").write_text('{"key": "x"}')
    (tmp_path / "members.csv").write_text("name,type,accountId,expiresAt\naws-1,gcp,acme-1,2027-01-31\n")
    account = f"-t aws --account-id 222222222222 --values aws-1.json --yes -n {NAMESPACE}".split()
    bring = ("pool", "bring", "--tenant", "acme", *account, "--expires-at")
    assert credfleet("pool", "import", "members.csv", "--values", ".", "-n", NAMESPACE).exit_code == 0
    assert credfleet(*bring, "2027-02-28").exit_code == 0
    ends = [body["metadata"]["annotations"][EXPIRES_AT] for body in connected.sent]
    assert [*dict.fromkeys(ends)] == ["2027-01-31", "2027-02-28"]
    (tmp_path / "members.csv").write_text("name,type,accountId,expiresAt\naws-1,gcp,acme-1,2020-01-31\n")
    late = ("pool", "import", "members.csv", "--values", ".", "-n", NAMESPACE)
    for command in ((*bring, "2020-01-31"), late):
        assert "that time is over" in credfleet(*command).stderr
    for wrong in ("soon", "2027-02-30", "2027-01-31T12:00:00"):
        refused = credfleet(*bring, wrong)
        assert refused.exit_code == 2
        assert "--expires-at: it is not a time" in " ".join((refused.stdout + refused.stderr).split())
    assert len(connected.sent) == len(ends)


def test_key_ends_with_its_greatest_age_and_one_that_nobody_can_date_is_misconfigured(
    server: MemoryServer,
) -> None:
    settings = PoolConfigMap(clock=Clock(key_max_age="2160h", key_notice="24h")).render()
    body = {"metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}, "data": settings}
    server.put(Kind.RECORD, body, "uid")
    for days, note in ((1, {}), (89.5, {}), (100, {}), (1, {EXPIRES_AT: "soon"})):
        written = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
        meta = {
            "name": f"m-{days}{'-odd' if note else ''}",
            "labels": {HYPERSCALER_TYPE: "aws"},
            "annotations": note,
            "managedFields": [{"time": written, "fieldsV1": {"f:data": {}}}],
        }
        server.create(Kind.MEMBER, {"metadata": meta})
    assert states() == {"m-1": "free", "m-89.5": "expiring", "m-100": "expiring", "m-1-odd": "misconfigured"}
    assert answer("claim", "--type", "aws", "--tenant", "acme")["secretName"] == "m-1"
