"""What `credfleet config` checks in stack files, secrets among it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from components.account_pool.rules import Request
from operations.config.settings import pool_of_plan, settings_of
from operations.folders import stack_here
from operations.main import app
from operations.pool.cleaning import load_commands
from operations.stack.passphrase import PassphraseCrypter
from operations.stack.stack_file import compact
from tests.operations.conftest import PASSPHRASE
from tests.support.cases import tabled
from tests.support.stacks import ROOT

CREDENTIAL = '{"accessKeyID":"AK","secretAccessKey":"sEcrEt"}'


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def configure(project: Path, text: str) -> None:
    (project / "Pulumi.dev.yaml").write_text(text)


def test_an_empty_configuration_is_sound_and_stays_as_it_is(project: Path) -> None:
    before = (project / "Pulumi.dev.yaml").read_text()
    result = run("config", "check", "--output", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"stack": "dev", "problems": [], "warnings": [], "unchecked": []}
    assert (project / "Pulumi.dev.yaml").read_text() == before


@pytest.mark.parametrize(
    "config", ["{}", "{credfleet:tenants: {a: {namespace: a}}, credfleet:cluster: {context: c}}"]
)
def test_check_of_a_sound_stack_answers_its_name_where_names_are_asked_for(
    project: Path, config: str
) -> None:
    configure(project, f"config: {config}\n")
    assert run("config", "check", "-o", "name").stdout == "dev\n"


def test_every_problem_is_told_at_once_with_its_path(project: Path) -> None:
    configure(
        project,
        "config:\n"
        "  credfleet:tenants: {acme: {namespace: kube-system, acounts: {}}}\n"
        "  credfleet:acountPool: {}\n",
    )
    result = run("config", "check", "--output", "json")
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "bad-configuration"
    assert {
        "credfleet:tenants.acme.namespace",
        "credfleet:tenants.acme.acounts",
        "credfleet:acountPool",
    } <= {problem["place"] for problem in error["problems"]}
    assert all(problem["fix"] for problem in error["problems"])


def encrypted(*names: str, **others: str) -> str:
    """Return a stack's file with credentials that the passphrase of these tests encrypts."""
    crypter = PassphraseCrypter.new(PASSPHRASE)
    texts = {**dict.fromkeys(names, CREDENTIAL), **others}
    entries = [f"    {name}:\n      secure: {crypter.encrypt(text)}\n" for name, text in texts.items()]
    head = f"encryptionsalt: {crypter.salt}\nconfig:\n  credfleet:tenants: {{}}\n"
    return f"{head}  credfleet:credentials:\n{''.join(entries)}"


def test_what_an_update_will_warn_of_is_told_and_the_configuration_sound(project: Path) -> None:
    db = '{"port": "s3cr3t", "type": null, "n": 9007199254740993, "apiKey": 1, "apiKey": " x"}'
    pull = '{"auths": {"a.io": {"auth": "dTpw"}, "b.io": {"identitytoken": "s3cr3t"}}}'
    configure(
        project,
        encrypted(db=db, pull=pull)
        + "  credfleet:cluster: {context: c, existingNamespaces: [a]}\n"
        + "  credfleet:services: {instances: {db: {namespace: a, credentialsFrom: db}}}\n"
        + "  credfleet:pullSecrets: {pullSecretFrom: pull, clusters: {cls-1: &c {name: a, generation: 1,"
        + " project: acme-prod}, cls-2: *c}}\n",
    )
    shown, listed = run("config", "check"), json.loads(run("config", "check", "-o", "json").stdout)
    of_db = [f"services.instances.db.credentialsFrom (db: {key})" for key in ("apiKey", "n", "port", "type")]
    places = [f"credfleet:{each}" for each in ('pullSecrets.pullSecretFrom (pull: auths["b.io"])', *of_db)]
    assert sorted({each["place"] for each in listed["warnings"]}) == places
    assert len(listed["warnings"]) == 6
    lines = [line for line in shown.stdout.splitlines() if line.startswith("! Pulumi.dev.yaml:")]
    assert (shown.exit_code, len(lines), "s3cr3t" in shown.output) == (0, 6, False)


def test_a_plain_credential_is_refused_beside_an_encrypted_one_and_not_repeated(project: Path) -> None:
    configure(project, encrypted("aws-1") + '    aws-2: {"key": "pl41n"}\n')
    result = run("config", "check")
    assert result.exit_code == 2
    assert "credfleet:credentials.aws-2" in result.stderr
    assert "aws-1" not in result.stderr
    assert "pl41n" not in result.output


def test_what_pulumi_yaml_forbids_is_a_configuration_error(project: Path) -> None:
    configure(project, "config:\n  credfleet:tenants: acme\n")
    result = run("config", "check")
    assert result.exit_code == 2
    assert "Pulumi.dev.yaml:2:3 credfleet:tenants: it must be a map" in result.stderr


ENCRYPTED_BY = {
    "a passphrase that is not given": "encryptionsalt: v1:abcdefghijk=:v1:x:y",
    "awskms": "secretsprovider: awskms://alias/x?region=eu-central-1\nencryptedkey: eA==",
    "gcpkms": "secretsprovider: gcpkms://projects/p/locations/l/keyRings/k/cryptoKeys/c\nencryptedkey: eA==",
    "azurekeyvault": "secretsprovider: azurekeyvault://vault.vault.azure.net/keys/k\nencryptedkey: eA==",
    "hashivault": "secretsprovider: hashivault://key\nencryptedkey: eA==",
    "the service": "secretsprovider: service",
    "the service, unsaid": "",
}
SEALED = """
config:
  gcp:project: acme-prod
  credfleet:cluster: {context: prod}
  credfleet:credentials: {aws-1: {secure: sealed}, aws-2: {secure: sealed}}
  credfleet:tenants: {acme: {namespace: tenant-acme, accounts: {aws: {type: aws}}}}
  credfleet:accountPool:
    rules: [gcp]
    cleaning: {aws: [cleaner]}
    members: {aws-1: {type: aws, accountId: "111111111111", credentialsFrom: aws-1}}
"""


@pytest.mark.parametrize("how", ENCRYPTED_BY.values(), ids=ENCRYPTED_BY.keys())
def test_a_stack_is_checked_and_its_pool_known_without_its_key_and_what_is_sealed_is_named_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    (project / "Pulumi.prod.yaml").write_text(how + SEALED)

    result = run("config", "check", "--stack", "prod", "--output", "json")

    assert result.exit_code == 0
    unchecked = json.loads(result.stdout)["unchecked"][0]
    assert unchecked["what"] == "what the credentials aws-1, aws-2 hold"
    assert "encrypted" in unchecked["why"]
    shown = run("config", "check", "-s", "prod").stdout
    assert "what the credentials aws-1, aws-2 hold" in shown
    assert settings_of("prod").account_pool is not None
    assert load_commands("prod")[0] == {"aws": ("cleaner",)}
    assert pool_of_plan("prod", Request("gcp", None, None, None))[0].type == "gcp"


def test_passphrase_file_that_is_not_there_is_told_by_its_name(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "/nowhere/passphrase")
    (project / "Pulumi.prod.yaml").write_text(ENCRYPTED_BY["a passphrase that is not given"] + SEALED)
    result = run("config", "check", "--stack", "prod")
    assert (result.exit_code, "✗ /nowhere/passphrase: " in result.stderr) == (1, True)


def test_what_is_wrong_beside_what_is_sealed_is_told_with_its_place_in_the_file(project: Path) -> None:
    (project / "Pulumi.prod.yaml").write_text(
        ENCRYPTED_BY["awskms"] + SEALED.replace("credentialsFrom: aws-1", "credentialsFrom: aws-3")
    )

    result = run("config", "check", "--stack", "prod", "--output", "json")

    assert result.exit_code == 2
    (problem,) = json.loads(result.stdout)["error"]["problems"]
    assert {key: problem[key] for key in ("place", "file", "line", "column")} == {
        "place": "credfleet:accountPool.members.aws-1.credentialsFrom",
        "file": "Pulumi.prod.yaml",
        "line": 11,
        "column": 61,
    }


def test_each_damaged_ciphertext_is_named_by_its_entry_and_the_rest_is_checked(project: Path) -> None:
    text = encrypted("aws-1", "aws-2", "aws-3")
    first, second, _ = re.findall(r"secure: (v1:\S+)", text)
    text = text.replace(first, first[:-8] + "AAAAAAA=").replace(second, "v1:x")
    configure(project, text.replace("config:\n", "config:\n  credfleet:clustr: {}\n", 1))

    result = run("config", "check", "--output", "json")

    assert result.exit_code == 2
    assert [problem["place"] for problem in json.loads(result.stdout)["error"]["problems"]] == [
        "credfleet:clustr",
        "credfleet:credentials.aws-1",
        "credfleet:credentials.aws-2",
    ]


@pytest.mark.parametrize("salt", ["", "encryptionsalt: 5\n", "encryptionsalt: v1:é:v1:x\n"])
def test_a_salt_that_was_lost_is_one_problem_and_the_rest_is_checked(project: Path, salt: str) -> None:
    configure(project, f'{salt}config:\n  credfleet:tenants: 5\n  gcp:accessToken: {{secure: "v1:a:b"}}\n')
    done = run("config", "check", "--output", "json")
    told = [(each["place"], each["line"]) for each in json.loads(done.stdout)["error"]["problems"]]
    assert done.exit_code == 2
    assert told == [("encryptionsalt", 1), ("credfleet:tenants", 3 if salt else 2)]


@tabled("text")
def test_a_file_that_says_nothing_of_this_program_never_counts_as_empty(project: Path, text: str) -> None:
    configure(project, text)
    result = run("config", "check")
    assert result.exit_code == 2
    assert "Pulumi.dev.yaml:1:1" in result.stderr
    assert "config: {}" in result.stderr


def test_what_says_that_it_declares_nothing_is_sound_beside_a_cluster(project: Path) -> None:
    configure(project, "config:\n  credfleet:cluster: {context: mine}\n  credfleet:tenants: {}\n")
    assert run("config", "check").exit_code == 0


@pytest.mark.parametrize(
    ("program", "code"), [("from credfleet import AccountClaim\n", 0), ("from credfleet import Fleet\n", 2)]
)
def test_a_program_needs_no_more_than_a_cluster_unless_it_declares_a_fleet(
    project: Path, program: str, code: int
) -> None:
    (project / "Pulumi.yaml").write_text("name: ours\nruntime: python\n")
    (project / "__main__.py").write_text(program)
    configure(project, "config:\n  credfleet:cluster: {context: mine}\n")
    assert run("config", "check").exit_code == code


def test_a_stack_that_is_not_there_is_named(project: Path) -> None:
    result = run("config", "check", "--stack", "prod")
    assert result.exit_code == 2
    assert "Pulumi.prod.yaml" in result.stderr


@pytest.mark.parametrize(
    ("options", "name"), [((), "stack"), (("--tenant",), "tenant")], ids=["of a stack", "of a tenant"]
)
def test_the_schema_is_the_one_that_editors_are_given(options: tuple[str, ...], name: str) -> None:
    written = json.loads((ROOT / f"docs/schema/{name}.json").read_text(encoding="utf-8"))
    assert json.loads(run("config", "schema", *options).stdout) == written


def test_outside_of_a_project_the_command_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("config", "check")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"✗ {tmp_path}: neither this folder")


def test_in_a_workflow_of_github_each_problem_is_an_annotation_of_its_line(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    configure(
        project,
        "config:\n"
        "  credfleet:tenants:\n"
        "    acme: {namespace: kube-system}\n"
        '    "x%\\n::error::y,z": {namespace: tenant-x}\n',
    )
    said = run("config", "check").stderr.splitlines()
    annotations = [line for line in said if line.startswith("::")]
    assert any(line.startswith("::error file=Pulumi.dev.yaml,line=3,col=") for line in annotations)
    assert len(annotations) == len([line for line in said if line.startswith("✗ ")])
    assert not [line for line in annotations if line.startswith("::error::y")]


def test_the_configuration_of_three_hundred_tenants_is_far_shorter_than_an_environment_string_may_be(
    project: Path,
) -> None:
    (project / "tenants").mkdir()
    for number in range(300):
        (project / "tenants" / f"t{number:04}.yaml").write_text(f"namespace: tenant-t{number:04}\n")
    accounts = "accounts: {aws: {type: aws, deliverTo: account}}\n"
    (project / "tenants" / "_defaults.yaml").write_text(accounts)
    members = "".join(f"aws-{number},aws,{number:012}\n" for number in range(300))
    (project / "members.csv").write_text(f"name,type,accountId\n{members}")
    configure(
        project,
        "config:\n"
        "  credfleet:cluster: {context: test}\n"
        "  credfleet:tenantsFrom: tenants\n"
        "  credfleet:accountPool: {membersFrom: members.csv}\n",
    )
    assert len(settings_of("dev").tenants) == 300
    passed = compact(stack_here("dev").read()[0].values)
    assert len(f"PULUMI_CONFIG={passed}".encode()) < 1024


RENAMED = """
config:
  credfleet:cluster: {context: c}
  credfleet:tenants: {globexinc: {namespace: tenant-globex}, acme: {namespace: tenant-acme}}
"""


def test_rename_that_nobody_declared_is_told_with_the_line_by_what_the_state_here_has(project: Path) -> None:
    configure(project, RENAMED)
    assert "renames and removals: " in run("config", "check").stdout
    labels = {"credfleet.io/tenant": "globex"}
    resource = {
        "urn": "urn:pulumi:dev::p::kubernetes:core/v1:Namespace::globex-namespace",
        "type": "kubernetes:core/v1:Namespace",
        "outputs": {"metadata": {"name": "tenant-globex", "labels": labels}},
    }
    state = stack_here("dev").state_file
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"checkpoint": {"latest": {"resources": [resource]}}}))

    result = run("config", "check")

    assert result.exit_code == 2
    line = "pulumi config set --path 'credfleet:tenants.globexinc.previously[0]' globex"
    assert line in " ".join(result.output.split())
    configure(project, RENAMED.replace("tenant-globex}", "tenant-globex, previously: [globex]}"))
    assert run("config", "check").exit_code == 0


def test_file_of_a_stack_whose_state_is_in_a_bucket_is_checked(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://states?region=eu-central-1")
    configure(project, RENAMED)
    result = run("config", "check")
    assert result.exit_code == 0
    assert "renames and removals: " in result.stdout
    exported = run("review", "export", "--without-cluster")
    assert "pulumi stack export --show-secrets --stack dev" in exported.output
    assert exported.exit_code == 2
