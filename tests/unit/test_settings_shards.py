"""`stacks.yaml`: which stack has which of the tenants in files, and what of such a file is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.config.shards import STACKS, Shards, Stacks
from components.errors import ConfigurationError
from components.stack_config.stack import Settings
from tests.support.cases import tabled
from tests.support.stacks import SECRET_KEYS, stack

NAMES: Final = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?", fullmatch=True)
TWO: Final[dict[str, Any]] = {"prod": {"pool": "pool", "stacks": {"prod": {}, "prod-2": {"since": "globex"}}}}


def written(root: Path, fleets: Any) -> Stacks:
    (root / STACKS).write_text(yaml.safe_dump({"fleets": fleets}, sort_keys=False), encoding="utf-8")
    return Stacks.read(root)


@given(firsts=st.lists(NAMES, unique=True, max_size=4).map(sorted), tenant=NAMES)
def test_each_tenant_has_the_last_stack_that_begins_no_later_than_it(firsts: list[str], tenant: str) -> None:
    stacks = {"s0": {}, **{f"s{number}": {"since": since} for number, since in enumerate(firsts, 1)}}
    number = sum(since <= tenant for since in firsts)
    assert Shards.model_validate({"stacks": stacks}).stack_of(tenant) == f"s{number}"


def test_a_stack_reads_the_files_of_its_own_tenants_only(tmp_path: Path) -> None:
    written(tmp_path, TWO)
    (tmp_path / "tenants").mkdir()
    for name in ("acme", "globex", "initech"):
        (tmp_path / "tenants" / f"{name}.yaml").write_text(f"namespace: tenant-{name}\n", encoding="utf-8")
    (tmp_path / "tenants" / "zeta.yaml").write_text("namespace: [", encoding="utf-8")
    values = {**stack(tenants=None), "credfleet:tenantsFrom": "tenants"}

    def tenants(name: str) -> set[str]:
        return {*Settings.parse(values, SECRET_KEYS, tmp_path, stack=name).tenants}

    assert tenants("prod") == {"acme"}
    with pytest.raises(ConfigurationError, match=r"zeta\.yaml"):
        tenants("prod-2")
    (tmp_path / "tenants" / "zeta.yaml").unlink()
    assert tenants("prod-2") == {"globex", "initech"}
    assert tenants("dev") == {"acme", "globex", "initech"}


def test_what_another_stacks_tenant_owns_by_its_name_is_not_for_one_with_a_shorter_name(
    tmp_path: Path,
) -> None:
    written(tmp_path, {"prod": {"stacks": {"prod": {}, "prod-2": {"since": "acme-corp"}}}})
    (tmp_path / "tenants").mkdir()
    service = {"credentialsFrom": "acme-corp-db"}
    files = {"acme": {"services": {"instances": {"db": service}}}, "acme-corp": {}}
    for name, file in files.items():
        text = json.dumps({"namespace": f"tenant-{name}", **file})
        (tmp_path / "tenants" / f"{name}.yaml").write_text(text, encoding="utf-8")
    credentials = {"credfleet:credentials": json.dumps({"acme-corp-db": '{"user": "u"}'})}
    pool = {"from": {"namespace": "pool"}}
    values = {**stack(tenants=None, credentials=None, accountPool=pool), **credentials}
    with pytest.raises(ConfigurationError, match="acme-corp-db is not tenant acme's"):
        Settings.parse({**values, "credfleet:tenantsFrom": "tenants"}, SECRET_KEYS, tmp_path, stack="prod")


_GROUP: Final = {"location": "westeurope", "subscriptionId": "00000000-0000-4000-8000-0000000000e1"}


@tabled("of_acme, words")
def test_what_is_another_stacks_tenants_is_not_for_this_ones(
    tmp_path: Path, of_acme: dict[str, Any], words: str
) -> None:
    written(tmp_path, TWO)
    (tmp_path / "tenants").mkdir()
    globex = {"namespace": "clusters-globex", "asoCredentials": {"resourceGroups": {"globex-rg": _GROUP}}}
    for name, file in {"acme": {"namespace": "tenant-acme", **of_acme}, "globex": globex}.items():
        (tmp_path / "tenants" / f"{name}.yaml").write_text(json.dumps(file), encoding="utf-8")
    values = {**stack(tenants=None, pullSecrets={}), "credfleet:tenantsFrom": "tenants"}
    with pytest.raises(ConfigurationError, match=words):
        Settings.parse(values, SECRET_KEYS, tmp_path, stack="prod")


@tabled("fleets, place, problem, line")
def test_a_file_that_leaves_a_tenant_without_one_stack_is_refused(
    tmp_path: Path, fleets: Any, place: str, problem: str, line: int
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        written(tmp_path, fleets)
    assert [each.place for each in refused.value.problems] == [f"{STACKS} {place}"]
    assert problem in refused.value.problems[0].problem
    assert [each.at and each.at[:2] for each in refused.value.problems] == [(str(tmp_path / STACKS), line)]


def test_without_the_file_a_stack_has_all_tenants_of_its_folder(tmp_path: Path) -> None:
    assert Stacks.read(tmp_path).tenants_of("dev")("acme")


def test_tenant_that_its_new_name_would_take_to_another_stack_is_refused_there(tmp_path: Path) -> None:
    written(tmp_path, TWO)
    (tmp_path / "tenants").mkdir()
    text = "namespace: tenant-acme\npreviously: [acme]\n"
    (tmp_path / "tenants" / "zeta.yaml").write_text(text, encoding="utf-8")
    values = {**stack(tenants=None), "credfleet:tenantsFrom": "tenants"}
    with pytest.raises(ConfigurationError, match="tenant acme was another stack's"):
        Settings.parse(values, SECRET_KEYS, tmp_path, stack="prod-2")
    (tmp_path / "tenants" / "zeta.yaml").rename(tmp_path / "tenants" / "acne.yaml")
    assert {*Settings.parse(values, SECRET_KEYS, tmp_path, stack="prod").tenants} == {"acne"}
