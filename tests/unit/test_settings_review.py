"""References between parts of the configuration, and that each key takes what it is declared to be."""

from pathlib import Path
from typing import Any

import pytest

from components.stack_config.stack import Settings
from tests.support.cases import tabled
from tests.support.stacks import SMALL, problems, settings, stack


@tabled("change, place, words")
def test_a_reference_that_leads_nowhere_is_refused(change: dict[str, Any], place: str, words: str) -> None:
    (problem,) = problems(stack(**change))

    assert problem.place == place
    assert words in problem.fix


def test_an_account_another_tenant_brought_serves_nobody_else() -> None:
    values = stack(
        tenants__globex={"namespace": "tenant-globex"}, **{"accountPool__members__aws-1__tenant": "globex"}
    )

    assert [problem.place for problem in problems(values)] == ["credfleet:tenants.acme.accounts.aws"]


def test_an_account_a_tenant_brought_serves_it() -> None:
    assert problems(stack(**{"accountPool__members__aws-1__tenant": "acme"})) == ()


def test_an_account_kept_back_serves_nobody() -> None:
    values = stack(**{"accountPool__members__aws-1__internal": True})

    assert [problem.place for problem in problems(values)] == ["credfleet:tenants.acme.accounts.aws"]


def test_a_plan_of_shared_accounts_is_served_by_shared_members_only() -> None:
    trial = {"plan": "trial", "hyperscaler": "aws"}
    shared = {"accountPool__members__aws-1__sharedCapacity": 2}

    assert problems(stack(tenants__acme__accounts__aws=trial, **shared)) == ()
    assert [problem.place for problem in problems(stack(**shared))] == ["credfleet:tenants.acme.accounts.aws"]


def test_what_the_pool_of_another_stack_has_is_for_its_preview_to_say() -> None:
    asked = {"type": "azure", "partition": {"eu-access": "true"}, "limit": 1, "spill": True}
    values = stack(accountPool={"from": {"namespace": "shared"}}, tenants__acme__accounts__aws=asked)

    assert problems(values) == ()


def test_a_type_without_a_member_may_have_programs_since_accounts_are_imported_and_brought() -> None:
    values = stack(
        accountPool__keys={"azure": ["rotate"]},
        accountPool__cleaning={"gcp_cf-sa30": ["clean"], "vsphere": ["clean"]},
        accountPool__limits={"openstack": 1},
        accountPool__consumers={"ci": {"holders": ["cli"], "quotas": {"vsphere": 1}}},
    )

    assert problems(values) == ()


def test_a_limit_may_name_a_cloud_for_all_its_types() -> None:
    values = stack(
        accountPool__limits={"gcp": 3, "gcp_cf-sa30": 1, "default": 0},
        accountPool__members__gcp={"type": "gcp_cf-sa30", "accountId": "acme-2", "credentialsFrom": "aws-1"},
    )

    assert problems(values) == ()


def members(path: Path, *lines: str) -> Path:
    (path / "members.csv").write_text("\n".join(lines), encoding="utf-8")
    return path


def from_file(path: Path, **changes: Any) -> list[tuple[str, str]]:
    values = stack(accountPool__membersFrom="members.csv", **changes)
    return [(problem.place, problem.fix) for problem in problems(values, root=path)]


def test_members_that_exist_already_serve_tenants_too(tmp_path: Path) -> None:
    members(tmp_path, "name,type,accountId,eu-access", "gcp-1,gcp,acme-2,true")
    account = {"type": "gcp", "partition": {"eu-access": "true"}}

    assert from_file(tmp_path, tenants__acme__accounts__gcp=account) == []


@tabled("lines, place, words")
def test_a_row_that_cannot_stand_is_told_with_its_line(
    tmp_path: Path, lines: list[str], place: str, words: str
) -> None:
    ((found, fix),) = from_file(members(tmp_path, *lines))

    assert found == place
    assert words in fix


def test_a_row_with_credentials_is_declared_as_an_entry_of_members_and_the_others_are_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "members").mkdir()
    header = "name,type,accountId,eu-access,credentialsFrom,secret,gcpSecret"
    version = "projects/p/secrets/s/versions/latest"
    (tmp_path / "members" / "a.csv").write_text(f"{header}\naws-2,aws,222222222222,,aws-1,,\naws-3,x,3,,,,\n")
    (tmp_path / "members" / "b.csv").write_text(
        f"{header}\naws-4,aws,444444444444,true,aws-1,,\naws-5,aws,555555555555,,,,{version}\naws-6,aws,666666666666,,,other/aws-6,\n"
    )
    (tmp_path / "members" / "notes.txt").write_text("no rows")
    read = settings(stack(accountPool__membersFrom="members"), tmp_path)
    row = {"type": "aws", "credentialsFrom": "aws-1"}
    declared = {
        "aws-2": {**row, "accountId": "222222222222"},
        "aws-4": {**row, "accountId": "444444444444", "partition": {"eu-access": "true"}},
        "aws-5": {**row, "accountId": "555555555555", "credentialsFrom": {"gcpSecret": version}},
        "aws-6": {**row, "accountId": "666666666666", "credentialsFrom": {"secret": "other/aws-6"}},
    }
    whole = {**SMALL["accountPool"]["members"], **declared}

    assert read.account_pool is not None
    written = settings(stack(accountPool__members=whole), tmp_path)
    assert written.account_pool is not None
    assert read.account_pool.members == written.account_pool.members
    assert read.files
    assert not written.files


@tabled("row, place")
def test_a_declared_row_that_cannot_stand_is_told_with_its_line(tmp_path: Path, row: str, place: str) -> None:
    (tmp_path / "members").mkdir()
    (tmp_path / "members" / "a.csv").write_text(f"name,type,accountId,credentialsFrom,secret\n{row}\n")

    (problem,) = problems(stack(accountPool__membersFrom="members"), root=tmp_path)

    assert problem.at is not None
    assert (problem.place, problem.at[1]) == (place, 2)


def test_a_name_that_two_files_have_is_told_with_the_row_that_has_it_first(tmp_path: Path) -> None:
    (tmp_path / "members").mkdir()
    for name, row in (("b", "zz,aws,222222222222,aws-1"), ("c", "zz,aws,333333333333,aws-1")):
        (tmp_path / "members" / f"{name}.csv").write_text(f"name,type,accountId,credentialsFrom\n{row}\n")

    (problem,) = problems(stack(accountPool__membersFrom="members"), root=tmp_path)

    assert (problem.place, problem.problem[:28]) == ("c.csv:2 name", "zz is named by b.csv:2 alrea")


@pytest.mark.parametrize("name", ["c.CSV", "europe/c.csv", "europe/west/c.Csv"])
def test_a_file_of_members_that_nobody_would_read_is_refused(tmp_path: Path, name: str) -> None:
    for each in ("b.csv", name, ".hidden.CSV", ".kept/a.csv", "notes.txt"):
        (tmp_path / "members" / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "members" / each).write_text("name,type,accountId\n")

    (problem,) = problems(stack(accountPool__membersFrom="members"), root=tmp_path)

    assert problem.at == (str(tmp_path / "members" / name), 1, 1)
    assert str(tmp_path / "members" / "c.csv") in problem.fix


@pytest.mark.parametrize("column", ["secretAccessKey", "credentials", "credential"])
def test_no_column_holds_a_credential(tmp_path: Path, column: str) -> None:
    ((place, _),) = from_file(members(tmp_path, f"name,type,accountId,{column}", "gcp-2,gcp,acme-2,canary"))

    assert place == f"members.csv:1 {column}"


def test_a_file_that_is_not_there_is_told_at_the_key_that_names_it(tmp_path: Path) -> None:
    ((place, fix),) = from_file(tmp_path)

    assert place == "credfleet:accountPool.membersFrom"
    assert "relative to Pulumi.yaml" in fix


def test_a_file_that_is_no_text_is_told_at_the_line_where_it_is_none(tmp_path: Path) -> None:
    (tmp_path / "members.csv").write_bytes(b"name,type\n\xff\xfe")

    ((place, _),) = from_file(tmp_path)

    assert place == "members.csv:2"


def test_a_spreadsheet_may_begin_the_file_with_its_mark(tmp_path: Path) -> None:
    (tmp_path / "members.csv").write_text("name,type,accountId\r\ng-2,gcp,acme-2\r\n", encoding="utf-8-sig")

    assert from_file(tmp_path) == []


def test_every_number_and_every_flag_is_taken_as_such_and_never_read_from_a_text() -> None:
    found: list[Any] = []

    def look(node: Any) -> None:
        if isinstance(node, dict) and node.get("type") in ("int", "bool"):
            found.append(node)
        parts = node.items() if isinstance(node, dict) else enumerate(node if isinstance(node, list) else ())
        for key, each in parts:
            if key != "choices":  # of any JSON, as it stands in a spec
                look(each)

    look(Settings.__pydantic_core_schema__)
    assert len(found) > 20
    assert [each for each in found if not each.get("strict")] == []
