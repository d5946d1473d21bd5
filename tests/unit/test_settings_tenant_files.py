"""Tenants in files of their own: what they make of a configuration, and what they may not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator

from components.errors import ConfigurationError, Problem
from components.stack_config.schema import tenant_file_schema
from components.stack_config.stack import Settings
from tests.support.cases import table, tabled
from tests.support.stacks import SECRET_KEYS, stack

ACME: Final[dict[str, Any]] = table(__file__, "ACME")
CREDENTIALS: Final = json.dumps(
    {
        "aws-1": '{"accessKeyID": "id"}',
        "acme-db": '{"user": "u"}',
        "acme-corp-db": '{"user": "u"}',
        "acme-pull": '{"auths": {"quay.io": {"auth": "YTpi", "email": "a@example.com"}}}',
    }
)


def written(root: Path, **files: Any) -> dict[str, str]:
    """Return the configuration of a stack whose tenants lie in these files."""
    folder = root / "tenants"
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        text = data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return {
        **stack(tenants=None, credentials=None),
        "credfleet:tenantsFrom": "tenants",
        "credfleet:credentials": CREDENTIALS,
    }


def read(root: Path, **files: Any) -> Settings:
    return Settings.parse(written(root, **files), SECRET_KEYS, root)


def told(root: Path, values: dict[str, str], stack: str = "") -> tuple[Problem, ...]:
    with pytest.raises(ConfigurationError) as refused:
        Settings.parse(values, SECRET_KEYS, root, stack=stack)
    return refused.value.problems


def test_a_tenants_file_is_what_the_same_entries_of_the_stacks_file_would_be(tmp_path: Path) -> None:
    of_files = read(tmp_path, acme=ACME)
    namespace = {"namespace": "tenant-acme"}
    in_one = stack(
        credentials=None,
        tenants={"acme": {key: ACME[key] for key in ("namespace", "accounts")}},
        services={
            part: {name: {**namespace, **entry} for name, entry in ACME["services"][part].items()}
            for part in ("instances", "apps")
        },
        secretStores={
            part: {name: {**namespace, **entry} for name, entry in ACME["secretStores"][part].items()}
            for part in ("providers", "stores")
        },
    )
    in_one["credfleet:credentials"] = CREDENTIALS
    whole = Settings.parse(in_one, SECRET_KEYS, tmp_path)
    for each in ("tenants", "services", "secret_stores"):
        assert getattr(of_files, each) == getattr(whole, each)


@tabled("data, is_sound")
def test_an_editor_is_told_by_the_schema(data: dict[str, Any], *, is_sound: bool) -> None:
    assert Draft202012Validator(tenant_file_schema()).is_valid(data) == is_sound


def test_a_file_says_over_its_class_and_that_over_what_all_have(tmp_path: Path) -> None:
    defaults = {
        "accounts": {"aws": {"type": "aws", "limit": 1, "required": True}},
        "classes": {"gold": {"accounts": {"aws": {"limit": 5}}}},
    }
    acme = {"class": "gold", "namespace": "tenant-acme", "accounts": {"aws": {"required": False}}}
    slot = read(tmp_path, _defaults=defaults, acme=acme).tenants["acme"].accounts["aws"]
    assert (slot.type, slot.limit, slot.required) == ("aws", 5, False)


GUID: Final = "00000000-0000-4000-8000-0000000000e1"
GROUP: Final = {"acme-rg": {"location": "westeurope", "subscriptionId": GUID}}
MANIFEST: Final = """
apiVersion: storage.azure.com/v1api20230101
kind: StorageAccount
metadata: {name: acmedata, namespace: %s}
spec:
  location: westeurope
  kind: StorageV2
  sku: {name: Standard_LRS}
  owner: {armId: /subscriptions/00000000-0000-4000-8000-0000000000e1/resourceGroups/acme-rg}
"""
SHARED: Final = {
    "providers": {"all": {"kind": "Fake", "spec": {"data": [{"key": "a", "value": "b"}]}}},
    "stores": {"all": {"cluster": True, "providerRef": "all"}},
}


@tabled("more")
def test_whatever_is_a_tenants_may_stand_in_its_file(tmp_path: Path, more: dict[str, Any]) -> None:
    (tmp_path / "tenants/acme").mkdir(parents=True)
    (tmp_path / "tenants/acme/data.yaml").write_text(MANIFEST % "tenant-acme")
    acme = {"namespace": "tenant-acme", "accounts": {"aws": {"type": "aws", "deliverTo": "aws"}}, **more}
    values = written(tmp_path, acme=acme)
    values["credfleet:secretStores"] = json.dumps(SHARED)
    values["credfleet:asoCredentials"] = json.dumps({"operator": {"issuer": "https://a.example/"}})
    assert Draft202012Validator(tenant_file_schema()).is_valid(acme)
    found = Settings.parse(values, SECRET_KEYS, tmp_path).model_dump(by_alias=True, exclude_unset=True)
    for section, parts in more.items():
        for part, entries in parts.items():
            assert section == "accounts" or entries.keys() <= found[section][part].keys()


@tabled("more, line, words")
def test_what_is_not_the_tenants_own_is_refused_where_it_stands(
    tmp_path: Path, more: dict[str, Any], line: int, words: str
) -> None:
    values = written(
        tmp_path,
        acme={"namespace": "tenant-acme", "accounts": {}, **more},
        **{"acme-corp": {"namespace": "tenant-acme-corp"}},
    )
    values["credfleet:credentials"] = json.dumps(
        {**json.loads(CREDENTIALS), "acme-1": '{"accessKeyID": "id"}', "acme-2": '{"accessKeyID": "id"}'}
    )
    member = {"type": "aws", "accountId": "111111111111", "credentialsFrom": "acme-1"}
    values["credfleet:accountPool"] = json.dumps({"members": {"m-1": member}, "membersFrom": "members.csv"})
    (tmp_path / "members.csv").write_text("name,type,accountId,credentialsFrom\nm-2,gcp,acme-2,acme-2\n")
    google = {"kind": "GCPSM", "spec": {"projectID": "p"}}
    values["credfleet:secretStores"] = json.dumps({"providers": {"google": google}})
    found = [each for each in told(tmp_path, values) if words in each.problem]
    problem = found[0]
    assert problem.at is not None
    assert problem.at[:2] == (str(tmp_path / "tenants/acme.yaml"), line)


@tabled("provider, is_its_own")
def test_a_login_is_named_by_each_way_to_log_in(
    tmp_path: Path, provider: dict[str, Any], *, is_its_own: bool
) -> None:
    acme = {"namespace": "tenant-acme", "secretStores": {"stores": {"x": {"provider": provider}}}}
    other = {"namespace": "tenant-globex", "accounts": []}
    found = told(tmp_path, written(tmp_path, acme=acme, globex=other))
    assert any("no login of its own" in each.problem for each in found) != is_its_own


@tabled("source")
def test_what_was_written_in_place_of_a_reference_is_in_no_message(tmp_path: Path, source: object) -> None:
    instances = {"acme-db": {"credentialsFrom": source, "bindings": {"orders": {}}}}
    values = written(tmp_path, acme={"namespace": "tenant-acme", "services": {"instances": instances}})
    problems = told(tmp_path, values)
    assert any("instances.acme-db" in each.place for each in problems)
    assert "hunter" not in str(problems).lower()


STACKS: Final = {"fleets": {"prod": {"stacks": {"prod": {}, "prod-2": {"since": "globex"}}}}}


@tabled("acme, place, words")
@pytest.mark.parametrize("stack_", ["prod", "prod-2"])
def test_tenants_of_other_stacks_of_the_folder_keep_what_is_theirs(
    tmp_path: Path, acme: dict[str, Any], place: str, words: str, stack_: str
) -> None:
    (tmp_path / "stacks.yaml").write_text(yaml.safe_dump(STACKS, sort_keys=False))
    globex = {"namespace": "tenant-globex", "asoCredentials": {"resourceGroups": GROUP}}
    values = written(tmp_path, acme=acme, globex=globex)
    problems = told(tmp_path, values, stack_)
    found = {each.place.removeprefix("credfleet:"): each.problem for each in problems}
    theirs = place.replace(".acme.", ".globex.") if stack_ == "prod-2" else place
    assert words.replace("globex", "acme" if stack_ == "prod-2" else "globex") in found[theirs]


@pytest.mark.parametrize("theirs", ["namespace: [", "- a list", "namespace: tenant-acme-corp"])
def test_a_credential_of_a_tenant_with_a_longer_name_is_that_ones_in_another_stack_too(
    tmp_path: Path, theirs: str
) -> None:
    stacks = {"fleets": {"prod": {"stacks": {"prod": {}, "prod-2": {"since": "acme-corp"}}}}}
    (tmp_path / "stacks.yaml").write_text(yaml.safe_dump(stacks, sort_keys=False))
    instances = {"x": {"credentialsFrom": "acme-corp-db", "bindings": {"orders": {}}}}
    acme = {"namespace": "tenant-acme", "services": {"instances": instances}}
    values = written(tmp_path, acme=acme, **{"acme-corp": theirs})
    problems = told(tmp_path, values, "prod")
    (problem,) = problems
    assert problem.problem.startswith("credentialsFrom acme-corp-db is not tenant acme's")


@pytest.mark.parametrize("said", [["a"], {"a": "b"}, 5, None])
@pytest.mark.parametrize("stack_", ["prod", "prod-2"])
def test_a_namespace_that_is_no_text_is_told_by_the_stack_of_its_tenant_alone(
    tmp_path: Path, said: object, stack_: str
) -> None:
    (tmp_path / "stacks.yaml").write_text(yaml.safe_dump(STACKS, sort_keys=False))
    values = written(tmp_path, acme={"namespace": "tenant-acme"}, globex={"namespace": said})
    if stack_ == "prod":
        assert {*Settings.parse(values, SECRET_KEYS, tmp_path, stack=stack_).tenants} == {"acme"}
        return
    problems = told(tmp_path, values, stack_)
    assert {each.place for each in problems} == {"credfleet:tenants.globex.namespace"}


@pytest.mark.parametrize("theirs", ["namespace: [", "accounts: {}"])
def test_a_file_without_a_namespace_has_that_of_nobody(tmp_path: Path, theirs: str) -> None:
    (tmp_path / "stacks.yaml").write_text(yaml.safe_dump(STACKS, sort_keys=False))
    values = written(tmp_path, acme={"accounts": {}}, globex=theirs)
    problems = told(tmp_path, values, "prod")
    assert "globex" not in str(problems)


def test_a_stack_without_tenants_is_so_whatever_the_files_of_other_stacks_say(tmp_path: Path) -> None:
    (tmp_path / "stacks.yaml").write_text(yaml.safe_dump(STACKS, sort_keys=False))
    values = written(tmp_path, globex="namespace: [")
    assert not Settings.parse(values, SECRET_KEYS, tmp_path, stack="prod").tenants


def test_what_is_wrong_in_the_file_of_another_stacks_tenant_is_told_by_that_stack(tmp_path: Path) -> None:
    (tmp_path / "stacks.yaml").write_text(yaml.safe_dump(STACKS, sort_keys=False))
    values = written(tmp_path, acme={"namespace": "tenant-acme"}, globex="namespace: [", initech="- a list")
    assert {*Settings.parse(values, SECRET_KEYS, tmp_path, stack="prod").tenants} == {"acme"}
    problems = told(tmp_path, values, "prod-2")
    assert {each.place for each in problems} >= {
        "credfleet:tenants.globex",
        "credfleet:tenants.initech",
    }


@tabled("link, target")
def test_a_file_that_is_a_link_to_anothers_is_no_tenants_own(tmp_path: Path, link: str, target: str) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "ca.pem").write_text("-----BEGIN PRIVATE KEY-----\n")
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(target)
    spec = {"caBundle": {"file": "tenants/acme/ca.pem"}}
    acme = {
        "namespace": "tenant-acme",
        "secretStores": {"providers": {"x": {"kind": "GitLab", "spec": spec}}},
    }
    causes = [each.problem for each in told(tmp_path, written(tmp_path, acme=acme))]
    assert "file tenants/acme/ca.pem is not tenant acme's, and its file names only what is" in causes


def test_a_mistake_in_a_tenants_file_is_told_at_its_line_there(tmp_path: Path) -> None:
    accounts = {"namespace": "tenant-acme", "accounts": {"aws": {"type": "aws", "partitions": {}}}}
    (problem,) = told(tmp_path, written(tmp_path, acme=accounts))
    assert problem.place == "credfleet:tenants.acme.accounts.aws.partitions"
    assert problem.at == (str(tmp_path / "tenants/acme.yaml"), 5, 5)


def test_what_two_files_say_is_told_and_neither_wins(tmp_path: Path) -> None:
    values = written(tmp_path, acme=ACME, globex={**ACME, "namespace": "tenant-globex", "accounts": {}})
    said = [each.problem for each in told(tmp_path, values)]
    assert "credfleet:services.instances.acme-db is also set by another file" in said


@tabled("text, words")
def test_a_file_that_says_nothing_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (problem,) = told(tmp_path, written(tmp_path, acme=text))
    assert words in problem.problem
    assert problem.at is not None
    assert problem.at[0] == str(tmp_path / "tenants/acme.yaml")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    values = {**stack(tenants=None), "credfleet:tenantsFrom": "tenant"}
    (problem,) = told(tmp_path, values)
    assert problem.place == "credfleet:tenantsFrom"


def test_a_folder_that_may_not_be_listed_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> list[Path]:
        raise PermissionError(13, "Permission denied", str(path))

    values = written(tmp_path, acme=ACME)
    monkeypatch.setattr(Path, "iterdir", denied)
    problem = told(tmp_path, values)[0]
    assert (problem.place, problem.problem) == (
        "credfleet:tenantsFrom",
        "tenants is not a folder that can be read here",
    )


@tabled("more, place")
def test_what_would_count_as_absent_without_a_word_is_refused(
    tmp_path: Path, more: dict[str, Any], place: str
) -> None:
    values = written(tmp_path, acme={**ACME, **more}, _defaults={"classes": {"silver": {}}})
    assert f"credfleet:{place}" in [each.place for each in told(tmp_path, values)]


@tabled("name, fix")
def test_a_file_that_nobody_would_read_for_its_name_is_refused(tmp_path: Path, name: str, fix: str) -> None:
    values = written(tmp_path, acme=ACME)
    folder = tmp_path / "tenants"
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("namespace: tenant-umbrella\n")
    (problem,) = told(tmp_path, values)
    assert problem.fix == fix.format(folder=folder)


def test_what_else_lies_beside_tenants_files_is_nobodys_business(tmp_path: Path) -> None:
    values = written(tmp_path, acme=ACME)
    for name in ("README.md", ".acme.yml", "acme.yaml~", "acme/kustomization.yaml", "shared/data.yaml"):
        (tmp_path / "tenants" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "tenants" / name).write_text(MANIFEST % "tenant-acme")
    (tmp_path / "tenants/acme/kustomization.yaml").write_text("namespace: tenant-acme\n")
    assert {*Settings.parse(values, SECRET_KEYS, tmp_path).tenants} == {"acme"}


@pytest.mark.parametrize("files", [{}, {"_defaults": {"accounts": {}}}], ids=["no file", "what all have"])
def test_a_folder_without_any_tenant_never_counts_as_a_fleet_without_tenants(
    tmp_path: Path, files: dict[str, Any]
) -> None:
    (problem,) = told(tmp_path, written(tmp_path, **files))
    assert problem.place == "credfleet:tenantsFrom"
    assert "would be deleted" in problem.problem


@pytest.mark.parametrize("namespace", ["kube-system", "default"])
def test_a_namespace_of_the_cluster_itself_is_no_tenants(tmp_path: Path, namespace: str) -> None:
    causes = [each.problem for each in told(tmp_path, written(tmp_path, acme={"namespace": namespace}))]
    assert f"namespace {namespace} is not tenant acme's, and its file names only what is" in causes


_CI: Final = {"kind": "ServiceAccount", "name": "ci", "namespace": "ci"}


@tabled("section, given, namespace, whose")
def test_a_namespace_that_somebody_else_has_is_no_tenants(
    tmp_path: Path, section: str, given: dict[str, Any], namespace: str, whose: str
) -> None:
    values = written(tmp_path, acme={"namespace": namespace}) | {f"credfleet:{section}": json.dumps(given)}
    found = [each for each in told(tmp_path, values) if each.place == "credfleet:tenants.acme.namespace"]
    assert [whose in each.problem for each in found] == [True]
    assert found[0].at == (str(tmp_path / "tenants/acme.yaml"), 1, 1)


def test_a_tenant_may_bring_accounts_by_a_service_account_of_its_own_namespace(tmp_path: Path) -> None:
    pool = {"admissionPolicy": True, "bringers": {"acme": [_CI]}}
    values = written(tmp_path, acme={"namespace": "ci"}) | {"credfleet:accountPool": json.dumps(pool)}
    assert Settings.parse(values, SECRET_KEYS, tmp_path).tenants["acme"].namespace == "ci"


def test_a_manifest_of_a_tenant_is_of_its_namespace(tmp_path: Path) -> None:
    (tmp_path / "tenants/acme").mkdir(parents=True)
    (tmp_path / "tenants/acme/data.yaml").write_text(MANIFEST % "tenant-globex")
    resources = {"asoCredentials": {"resources": {"acme": {"file": "tenants/acme/data.yaml"}}}}
    values = written(
        tmp_path, acme={"namespace": "tenant-acme", **resources}, globex={"namespace": "tenant-globex"}
    )
    problem = told(tmp_path, values)[0]
    assert problem.problem == "it is in namespace tenant-globex, and its tenant's is tenant-acme"
    assert problem.at == (str(tmp_path / "tenants/acme/data.yaml"), 4, 28)


@tabled("defaults, line")
def test_a_fault_of_the_defaults_is_told_once_and_where_it_stands(
    tmp_path: Path, defaults: dict[str, Any], line: int
) -> None:
    names = ("acme", "globex", "initech")
    tenants = {
        name: {"namespace": f"tenant-{name}", **({"class": "gold"} if "classes" in defaults else {})}
        for name in names
    }
    values = written(tmp_path, _defaults=defaults, **tenants)
    found = [
        each.at[1]
        for each in told(tmp_path, values)
        if each.at and each.at[0].endswith("tenants/_defaults.yaml")
    ]
    assert found == [line]


_CLUSTER: Final = {"name": "prod", "generation": 1, "project": "acme-project"}


@tabled("template, id_, words")
@pytest.mark.parametrize("is_of_the_stack", [False, True])
def test_the_pull_secret_of_a_cluster_is_in_no_namespace_of_another_tenants_file(
    tmp_path: Path, template: str, id_: str, words: str | None, *, is_of_the_stack: bool
) -> None:
    if is_of_the_stack and id_ == "acme":
        words = "which belongs to another tenant"
    clusters = {id_: _CLUSTER}
    of_acme = {} if is_of_the_stack else {"pullSecrets": {"clusters": clusters}}
    acme = {"namespace": "tenant-acme", **of_acme}
    values = written(
        tmp_path,
        acme=acme,
        globex={"namespace": "tenant-globex"},
        evil={"namespace": "clusters-prod", "pullSecrets": []},
    )
    of_the_stack = {"clusters": clusters} if is_of_the_stack else {}
    values["credfleet:pullSecrets"] = json.dumps({"namespaceTemplate": template, **of_the_stack})
    values["credfleet:accountPool"] = json.dumps({"namespace": "account-pool"})
    said = [each.problem for each in told(tmp_path, values) if "Secret would be in" in each.problem]
    assert [words in each for each in said if words] == [True] * bool(words)


def test_a_tenants_manifest_is_not_served_by_the_credential_of_the_whole_operator(tmp_path: Path) -> None:
    group = {
        "apiVersion": "resources.azure.com/v1api20200601",
        "kind": "ResourceGroup",
        "metadata": {"name": "rg", "namespace": "tenant-acme"},
        "spec": {"location": "westeurope"},
    }
    acme = {
        "namespace": "tenant-acme",
        "asoCredentials": {"resources": {"rg": {"file": "tenants/acme/rg.yaml"}}},
    }
    values = written(tmp_path, acme=acme)
    (tmp_path / "tenants/acme").mkdir()
    (tmp_path / "tenants/acme/rg.yaml").write_text(yaml.safe_dump(group))
    guid = "00000000-0000-4000-8000-0000000000e1"
    principal = {"subscriptionId": guid, "tenantId": guid, "clientId": guid, "secretFrom": "acme-db"}
    values["credfleet:asoCredentials"] = json.dumps(
        {"globalSettings": {"credential": {"servicePrincipal": principal}}}
    )
    found = [each for each in told(tmp_path, values) if "the operator's own credential" in each.problem]
    assert [each.at and each.at[0] for each in found] == [str(tmp_path / "tenants/acme/rg.yaml")]


def test_what_is_named_with_ends_of_lines_is_told_on_one_line(tmp_path: Path) -> None:
    bad = {"x\n::error::y": 1, "class": "g\n::error::c", "services": {"instances": {"q\n::error::z": {}}}}
    values = written(tmp_path, acme={"namespace": "tenant-acme", **bad})
    found = told(tmp_path, values)
    assert len(found) > 2
    assert [text for each in found for text in (each.place, each.problem, each.fix) if "\n" in text] == []


def test_a_class_is_taken_only_by_who_names_it(tmp_path: Path) -> None:
    classes = {"None": {"accounts": {"aws": {"type": "aws"}}}}
    settings = read(tmp_path, _defaults={"classes": classes}, acme={"namespace": "tenant-acme"})
    assert not settings.tenants["acme"].accounts


def test_class_that_no_tenant_has_is_judged_but_for_what_its_tenants_would_say(tmp_path: Path) -> None:
    silver: dict[str, Any] = {"accounts": {"aws": {"limit": "5", "spil": True, "deliverTo": {"shape": {}}}}}
    silver["secretStores"] = {"stores": {"x": {"cluster": True, "refreshInterval": 5}}}
    defaults = {"classes": {"gold": {}, "silver": silver}}
    acme = {"namespace": "tenant-acme", "class": "gold"}
    problems = told(tmp_path, written(tmp_path, acme=acme, _defaults=defaults))
    lines = (tmp_path / "tenants/_defaults.yaml").read_text().splitlines()
    found = [lines[each.at[1] - 1].split()[0] for each in problems if each.at]
    assert found == ["limit:", "spil:", "refreshInterval:"]


def test_a_tenants_file_is_no_link_out_of_the_folder(tmp_path: Path) -> None:
    values = written(tmp_path, acme={"namespace": "tenant-acme"})
    (tmp_path / "outside.yaml").write_text("hunter2: 1\n")
    (tmp_path / "tenants/evil.yaml").symlink_to(tmp_path / "outside.yaml")
    (only,) = told(tmp_path, values)
    assert only.problem.startswith("it is a link to a file outside of the folder")


@pytest.mark.parametrize("given", ["a" * 300, "a\0b"])
@pytest.mark.parametrize("key", ["tenantsFrom", "membersFrom"])
def test_what_is_no_path_is_refused_in_words(tmp_path: Path, key: str, given: str) -> None:
    values = written(tmp_path, acme={"namespace": "tenant-acme"})
    if key == "tenantsFrom":
        values["credfleet:tenantsFrom"] = given
    else:
        values["credfleet:accountPool"] = json.dumps({"membersFrom": given})
    assert key in "".join(each.place for each in told(tmp_path, values))
