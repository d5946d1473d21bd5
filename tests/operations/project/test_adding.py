"""`credfleet add`: what it writes and keeps of a stack's file, what it refuses, where values never come."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi_sandbox.engine import PassphraseCrypter
from typer.testing import CliRunner, Result

from operations.main import app
from tests.operations.conftest import PASSPHRASE

STACK = """\
# the stack of the team
config:
  credfleet:cluster: {context: sandbox}  # ours
  credfleet:tenants:
    acme: {namespace: tenant-acme}  # the first
  'credfleet:accountPool':
    namespace: pool
    members: {}
  gcp:project:   fleet-dev
"""
GUID = "00000000-0000-4000-8000-0000000000aa"
SECRET = "sentinel-value"
ACCOUNT = json.dumps({"accessKeyID": SECRET})
PULL = json.dumps({"auths": {"quay.io": {"auth": "c2VudGluZWwtdmFsdWU6eA=="}}})
AZURE = ("--subscription", GUID, "--tenant-id", GUID, "--client-id", GUID)
PRINCIPAL = {"subscriptionId": GUID, "tenantId": GUID, "clientId": GUID}

STAND_IN = f"""#!{sys.executable}
import json, sys
from pathlib import Path
Path("called.json").write_text(json.dumps([sys.argv[1:], sys.stdin.read()]))
if Path("fails").exists():
    sys.exit("error: no stack named 'dev' found")
path = Path("Pulumi.dev.yaml")
path.write_text(path.read_text() + "  credfleet:credentials:\\n    aws-9:\\n      secure: AQICAHh\\n")
"""


@pytest.fixture
def stack_file(project: Path) -> Path:
    (project / "Pulumi.dev.yaml").write_text(STACK)
    return project / "Pulumi.dev.yaml"


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["add", *arguments], input=stdin)


def config(stack_file: Path) -> dict[str, Any]:
    return yaml.safe_load(stack_file.read_text())["config"]


@pytest.mark.parametrize(
    ("words", "stdin", "key", "added"),
    [
        (("tenant", "globex"), None, "tenants", {"globex": {"namespace": "tenant-globex"}}),
        (
            ("account", "aws-9", "--type", "aws", "--id", "012345678901", "--tenant", "acme"),
            f"{ACCOUNT}\n",
            "accountPool",
            {
                "members": {
                    "aws-9": {
                        "type": "aws",
                        "accountId": "012345678901",
                        "tenant": "acme",
                        "credentialsFrom": "aws-9",
                    }
                }
            },
        ),
        (
            ("service", "db", "-n", "tenant-acme", "--binding", "shop"),
            ACCOUNT,
            "services",
            {
                "instances": {
                    "db": {"namespace": "tenant-acme", "credentialsFrom": "db", "bindings": {"shop": {}}}
                }
            },
        ),
        (
            ("pull-secret", "cls-000000000009", "--name", "east", "--project", "fleet-east-1"),
            PULL,
            "pullSecrets",
            {
                "clusters": {
                    "cls-000000000009": {
                        "name": "east",
                        "generation": 1,
                        "project": "fleet-east-1",
                        "pullSecretFrom": "east-pull",
                    }
                }
            },
        ),
        (
            ("aso-credential", "tenant-acme", *AZURE),
            SECRET,
            "asoCredentials",
            {
                "namespaces": {
                    "tenant-acme": {"servicePrincipal": {**PRINCIPAL, "secretFrom": "tenant-acme-sp"}}
                }
            },
        ),
        (
            ("store", "ci", "-n", "tenant-acme", "--kind", "GitLab", "--spec", "spec.yaml", "--values", "-"),
            SECRET,
            "secretStores",
            {
                "providers": {
                    "ci": {
                        "kind": "GitLab",
                        "namespace": "tenant-acme",
                        "credentialsFrom": "ci",
                        "spec": {"projectID": "7"},
                    }
                },
                "stores": {"ci": {"namespace": "tenant-acme", "providerRef": "ci"}},
            },
        ),
    ],
    ids=["tenant", "account", "service", "pull-secret", "aso-credential", "store"],
)
def test_what_is_added_is_sound_and_all_that_was_there_stays_as_it_was_written(
    stack_file: Path, words: tuple[str, ...], stdin: str | None, key: str, added: dict[str, Any]
) -> None:
    (stack_file.parent / "spec.yaml").write_text("projectID: '7'\n")

    done = run(*words, stdin=stdin)

    assert done.exit_code == 0, done.output
    here = config(stack_file)[f"credfleet:{key}"]
    assert {name: here[name] for name in added} == added | ({"acme": here["acme"]} if "acme" in added else {})
    kept = [line for line in STACK.splitlines() if line != "    members: {}"]
    lines = iter(stack_file.read_text().splitlines())
    assert all(line in lines for line in kept)
    assert CliRunner().invoke(app, ["config", "check"]).exit_code == 0
    assert "sentinel" not in done.output + stack_file.read_text()
    if stdin is not None:
        (name,) = config(stack_file)["credfleet:credentials"]
        salt = yaml.safe_load(stack_file.read_text())["encryptionsalt"]
        crypter = PassphraseCrypter.open(salt, PASSPHRASE)
        sealed = config(stack_file)["credfleet:credentials"][name]["secure"]
        assert crypter.decrypt(sealed) == stdin.removesuffix("\n")
        assert f"+ credfleet:credentials.{name}: [secret]\n" in done.output


def test_what_is_told_of_the_difference_shows_no_value_however_the_file_is_written(stack_file: Path) -> None:
    stack_file.write_text(
        '{"config": {"credfleet:cluster": {"context": "sandbox"}, "gcp:accessToken": "sentinel-plain",\n'
        '  "gcp:secretManagerCustomEndpoint": "http://127.0.0.1:0/v1/",\n'
        '  "credfleet:tenants": {"acme": {"namespace": "tenant-acme"}}, "credfleet:credentials": {}}}\n'
    )
    done = run("service", "db", "-n", "tenant-acme", stdin=ACCOUNT)
    assert done.exit_code == 0, done.output
    assert done.output == (
        "- credfleet:credentials: {}\n"
        "+ credfleet:credentials.db: [secret]\n"
        '+ credfleet:services.instances.db.namespace: "tenant-acme"\n'
        '+ credfleet:services.instances.db.credentialsFrom: "db"\n'
        "✓ Pulumi.dev.yaml: added credfleet:services.instances.db\n"
    )


def test_bytes_are_kept_as_they_are(stack_file: Path) -> None:
    (stack_file.parent / "key").write_bytes(b"\xff\x00")
    words = ("aso-credential", "tenant-acme", *AZURE, "--certificate", "--values", "key")
    refused = run(*words)
    assert "certificate" in refused.output  # it is none, and was read
    assert "\\xff" not in refused.output
    assert stack_file.read_text() == STACK


@pytest.mark.parametrize(
    ("words", "stdin", "told"),
    [
        (("tenant", "acme"), None, "Pulumi.dev.yaml:5:5 credfleet:tenants.acme: it is in the stack's file"),
        (("tenant", "globex", "--namespace", "kube-system"), None, "credfleet:tenants.globex.namespace"),
        (("tenant", "globex", "--account", "aws"), None, "no member (aws) is there for it"),
        (
            ("tenant", "globex", "--account", "aws", "--account", "gcp"),
            None,
            "slot main is asked for more than once",
        ),
        (("tenant", "globex", "--account", "=aws"), None, "=aws names no slot before its ="),
        (("account", "a-1", "--type", "aws", "--id", "1"), "[1]", "credential a-1 is no JSON object"),
        (("account", "a-1", "--type", "aws", "--id", "1"), "\n", "standard input: it holds no value of a-1"),
        (
            ("account", "a-1", "--type", "aws", "--id", "1", "--values", "none"),
            None,
            "none: it cannot be read",
        ),
        (("service", "db", "-n", "elsewhere"), ACCOUNT, "credfleet:services.instances.db.namespace"),
        (("store", "s", "-n", "tenant-acme", "--kind", "Nowhere"), None, "Nowhere"),
    ],
)
def test_what_config_check_would_refuse_is_refused_before_anything_is_written(
    stack_file: Path, words: tuple[str, ...], stdin: str | None, told: str
) -> None:
    refused = run(*words, stdin=stdin)
    assert refused.exit_code != 0
    assert told in refused.output
    assert stack_file.read_text() == STACK


@pytest.mark.parametrize("fails", [False, True])
def test_a_stack_that_a_cloud_encrypts_has_its_values_from_the_pulumi_cli_alone(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    before = f"secretsprovider: awskms://alias/k\nencryptedkey: AQ==\n{STACK}"
    stack_file.write_text(before)
    (stack_file.parent / "pulumi").write_text(STAND_IN)
    (stack_file.parent / "pulumi").chmod(0o700)
    monkeypatch.setenv("PATH", f"{stack_file.parent}{os.pathsep}{os.environ['PATH']}")
    if fails:
        (stack_file.parent / "fails").touch()

    done = run("account", "aws-9", "--type", "aws", "--id", "9", stdin=ACCOUNT)

    words, given = json.loads((stack_file.parent / "called.json").read_text())
    command = ["config", "set", "--secret", "--path", "--stack", "dev", 'credfleet:credentials["aws-9"]']
    assert (words, given) == (["--non-interactive", *command], f"{ACCOUNT}\n")
    assert "sentinel" not in done.output
    if fails:
        assert "pulumi stack init dev --secrets-provider awskms://alias/k" in done.output
        assert stack_file.read_text() == before
    else:
        assert done.exit_code == 0, done.output
        assert config(stack_file)["credfleet:credentials"] == {"aws-9": {"secure": "AQICAHh"}}
        assert "aws-9" in config(stack_file)["credfleet:accountPool"]["members"]


def test_without_the_pulumi_cli_nothing_is_written(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stack_file.write_text(f"secretsprovider: awskms://alias/k\n{STACK}")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("account", "aws-9", "--type", "aws", "--id", "9", stdin=ACCOUNT)
    assert "is not there or failed; nothing was written" in done.output
    assert "aws-9" not in stack_file.read_text()
