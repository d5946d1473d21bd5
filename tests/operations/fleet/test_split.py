"""Which stack gets which tenants, and what of a state is whose; the move itself is in `tests/program`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol import urns
from typer.testing import CliRunner

from components.config.shards import Shards
from components.stack_config.tenant_files import PARTS, read_tenants
from operations.fleet.plan import Split, propose
from operations.main import app
from operations.review.record import Record
from sandbox.tests.support import cli_folder
from tests.support.recorded_stacks import document_of, exported_of

ONE: Final = Shards.model_validate({"stacks": {"prod": {}}})
SHARED: Final = {
    *("AccountPool", "OperatorPin", "AsoGlobalSettings", "SecretStores", "EsoLookout"),
    *("kubernetes", "gcp", "azure-native"),
}
"""What is right below a fleet or its stores and no tenant's."""
REFUSED: Final = {"ServiceAccount"}
"""What keeps a tenant where it is: rights in a pool of the stack's own."""


@given(
    tenants=st.lists(st.from_regex("[a-z]{1,4}", fullmatch=True), unique=True, max_size=40).map(sorted),
    most=st.integers(1, 9),
    again=st.integers(1, 9),
)
def test_stacks_are_as_many_as_needed_and_even_and_those_that_are_there_stay(
    tenants: list[str], most: int, again: int
) -> None:
    first = propose("prod", ONE, tenants, most)
    then = propose("prod", first, tenants, again)
    assert [*then.stacks][: len(first.stacks)] == [*first.stacks]
    assert propose("prod", then, tenants, again) == then
    for shards, size in ((first, most), (then, again)):
        had = [[tenant for tenant in tenants if shards.stack_of(tenant) == stack] for stack in shards.stacks]
        counts = {len(each) for each in had}
        assert max(counts) <= size
        assert max(counts) - min(counts) <= 1
        assert all(before[-1] < after[0] for before, after in pairwise(had))


def test_all_of_every_room_is_known_as_a_tenants_or_as_what_all_share(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_bytes(exported_of("dev"))
    config: dict[str, Any] = document_of("dev")["config"]
    sections = {
        section: {part: config[f"credfleet:{section}"].get(part, {}) for part in parts}
        for section, parts in PARTS.items()
    }
    folder = tmp_path / "tenants"
    folder.mkdir()
    for name, tenant in config["credfleet:tenants"].items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({**tenant, **sections}))
        sections = {}
    found = Split("dev", ONE, ONE, read_tenants("tenants", tmp_path))
    owned, others = 0, set[str]()
    for each in Record.read(record, "dev").snapshot.resources:
        chain = urns.parse(each.urn).qualified_type.rpartition("$")[0]
        if chain.endswith((":Fleet", ":SecretStores")):
            owned += found.home_of(each) is not None
            others |= set() if found.home_of(each) else {each.type.rpartition(":")[2].rpartition("/")[2]}
    assert owned > 20
    assert others == SHARED | REFUSED


def test_no_split_is_proposed_while_a_tenants_file_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (tmp_path / "stacks.yaml").write_text("fleets: {f: {stacks: {prod: {}, prod-2: {since: b}}}}\n")
    config = {
        "credfleet:accountPool": {"from": {"namespace": "pool"}},
        "credfleet:cluster": {"context": "prod"},
        "credfleet:tenantsFrom": "tenants",
    }
    (tmp_path / "Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": config}))
    (tmp_path / "tenants").mkdir()
    for name in ("acme", "beta", "corp"):
        (tmp_path / "tenants" / f"{name}.yaml").write_text(f"namespace: tenant-{name}\n")
    monkeypatch.chdir(tmp_path)
    for name, text in cli_folder.environment(cli_folder.furnish(tmp_path / "bin"), tmp_path).items():
        monkeypatch.setenv(name, text)
    command = ["fleet", "split", "--stack", "prod", "--by", "1"]
    assert "of 3 would move" in CliRunner().invoke(app, command).output
    (tmp_path / "tenants" / "corp.yaml").write_text("namespace: [")
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 2
    assert "tenants/corp.yaml" in told.output
