"""Tenants in files of their own: what they make of a configuration, and what they may not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator

from components.errors import ConfigurationError, Problem
from components.settings.schema import tenant_file_schema
from components.settings.stack import Settings
from tests.support.stacks import SECRET_KEYS, stack

ACME: Final[dict[str, Any]] = {
    "namespace": "tenant-acme",
    "accounts": {"aws": {"type": "aws", "deliverTo": "aws-account"}},
    "services": {
        "instances": {"acme-db": {"credentialsFrom": "acme-db", "bindings": {"orders": {}}}},
        "apps": {"shop": {"bindings": ["acme-db/orders"]}},
    },
    "secretStores": {
        "providers": {"acme-fake": {"kind": "Fake", "spec": {"data": [{"key": "a", "value": "b"}]}}},
        "stores": {"acme": {"providerRef": "acme-fake"}},
    },
}
CREDENTIALS: Final = json.dumps(
    {"aws-1": '{"accessKeyID": "id"}', "acme-db": '{"user": "u"}', "acme-corp-db": '{"user": "u"}'}
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


def told(root: Path, values: dict[str, str]) -> tuple[Problem, ...]:
    with pytest.raises(ConfigurationError) as refused:
        Settings.parse(values, SECRET_KEYS, root)
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


@pytest.mark.parametrize(
    ("data", "is_sound"),
    [
        (ACME, True),
        ({"accounts": {}, "classes": {"gold": {"accounts": {"aws": {"limit": 5}}}}}, True),
        ({**ACME, "service": {}}, False),
        ({"services": {"instances": {"acme-db": {"credentials": "x"}}}}, False),
        ({"asoCredentials": {"operator": {}}}, False),
    ],
    ids=["a tenant", "what all have", "a section that nobody reads", "a key too", "what is for all"],
)
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


STRANGE: Final[dict[str, tuple[dict[str, Any], int, str]]] = {
    "another's namespace": (
        {"services": {"instances": {"x": {"namespace": "tenant-globex"}}}},
        6,
        "namespace",
    ),
    "another's account": (
        {"services": {"instances": {"x": {"credentialsFrom": {"account": "globex/aws"}}}}},
        7,
        "account globex/aws",
    ),
    "another's Secret": (
        {"services": {"instances": {"x": {"credentialsFrom": {"secret": "tenant-globex/s"}}}}},
        7,
        "secret tenant-globex/s",
    ),
    "a credential of one with a longer name": (
        {"services": {"instances": {"x": {"credentialsFrom": "acme-corp-db"}}}},
        6,
        "credentialsFrom acme-corp-db",
    ),
    "the pool's credential": (
        {"services": {"instances": {"x": {"credentialsFrom": "aws-1"}}}},
        6,
        "credentialsFrom aws-1",
    ),
    "another's identity": (
        {"asoCredentials": {"named": {"x": {"workloadIdentity": {"identity": "globex"}}}}},
        7,
        "identity globex",
    ),
    "the credential of another namespace": (
        {"asoCredentials": {"namespaces": {"tenant-globex": {}}}},
        5,
        "namespace tenant-globex",
    ),
    "what is for all": ({"asoCredentials": {"operator": {"issuer": "https://a.example/"}}}, 4, "operator of"),
    "a key that nobody reads": ({"service": {}}, 3, "service is not a known key"),
}


@pytest.mark.parametrize(("more", "line", "words"), STRANGE.values(), ids=STRANGE.keys())
def test_what_is_not_the_tenants_own_is_refused_where_it_stands(
    tmp_path: Path, more: dict[str, Any], line: int, words: str
) -> None:
    values = written(
        tmp_path,
        acme={"namespace": "tenant-acme", "accounts": {}, **more},
        **{"acme-corp": {"namespace": "tenant-acme-corp"}},
    )
    found = [each for each in told(tmp_path, values) if words in each.cause]
    (problem,) = found
    assert problem.at is not None
    assert problem.at[:2] == (str(tmp_path / "tenants/acme.yaml"), line)


def test_a_mistake_in_a_tenants_file_is_told_at_its_line_there(tmp_path: Path) -> None:
    accounts = {"namespace": "tenant-acme", "accounts": {"aws": {"type": "aws", "partitions": {}}}}
    (problem,) = told(tmp_path, written(tmp_path, acme=accounts))
    assert problem.place == "credfleet:tenants.acme.accounts.aws.partitions"
    assert problem.at == (str(tmp_path / "tenants/acme.yaml"), 5, 5)


def test_what_two_files_say_is_told_and_neither_wins(tmp_path: Path) -> None:
    values = written(tmp_path, acme=ACME, globex={**ACME, "namespace": "tenant-globex", "accounts": {}})
    said = [each.cause for each in told(tmp_path, values)]
    assert "credfleet:services.instances.acme-db is said by another file as well" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [("- a list", "holds no map"), ("a: b: c", ""), ("", "holds no map")],
    ids=["a list", "no YAML", "nothing"],
)
def test_a_file_that_says_nothing_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (problem,) = told(tmp_path, written(tmp_path, acme=text))
    assert words in problem.cause
    assert problem.at is not None
    assert problem.at[0] == str(tmp_path / "tenants/acme.yaml")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    values = {**stack(tenants=None), "credfleet:tenantsFrom": "tenant"}
    (problem,) = told(tmp_path, values)
    assert problem.place == "credfleet:tenantsFrom"


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"class": "gold"}, "tenants.acme.class"),
        ({"class": ["gold"]}, "tenants.acme.class"),
        ({"services": []}, "tenants.acme.services"),
    ],
    ids=["an unknown class", "a list of classes", "a section that is no map"],
)
def test_what_would_count_as_absent_without_a_word_is_refused(
    tmp_path: Path, more: dict[str, Any], place: str
) -> None:
    values = written(tmp_path, acme={**ACME, **more}, _defaults={"classes": {"silver": {}}})
    assert f"credfleet:{place}" in [each.place for each in told(tmp_path, values)]


def test_a_file_that_nobody_would_read_for_its_name_is_refused(tmp_path: Path) -> None:
    values = written(tmp_path, acme=ACME)
    (tmp_path / "tenants" / "umbrella.yml").write_text("namespace: tenant-umbrella\n")
    (problem,) = told(tmp_path, values)
    assert problem.mend == "rename it to umbrella.yaml"
