"""The printed commands, in a shell whose gh, gcloud, aws, az and kubectl are stand-ins that take notes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import hcl2
import pytest
import requests
import yaml
from google.auth.exceptions import RefreshError
from packaging.specifiers import SpecifierSet

from components.errors import CredfleetError
from operations.bootstrap import google
from operations.bootstrap.script import open_bootstrap
from tests.support.cases import tabled
from tests.support.fleet_project import CREDFLEET, ROOT

_IDS: Final = "repo:acme@7/fleet@42"
_STAND_IN: Final = """#!{python}
import json, os, re, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
reads = sys.stdin.read() if words[-1] == "-" else ""
with open(os.environ["NOTES"], "a") as notes:
    notes.write(json.dumps([words, reads]) + "\\n")
line = " ".join(words)
if re.search(os.environ["FAILS"], line):
    sys.exit(7)
answers = {{"--jq .id": "42", "customization/sub --jq": os.environ["SUBJECT"]}}
if not re.search(os.environ["SILENT"], line):
    print(next((answer for asked, answer in answers.items() if asked in line), "made-up"))
"""
_ABSENT: Final = "get-open-id-connect-provider|iam get-role|describe-access-entry|iam .* describe"
"""Questions whether something is there."""
_PROVIDERS: Final = {
    "aws": ("awskms://alias/k?region=eu-west-1", "s3://state?region=eu-west-1"),
    "gcp": ("gcpkms://projects/key-project/locations/l/keyRings/r/cryptoKeys/k", "gs://state"),
    "azure": ("azurekeyvault://vault.vault.azure.net/keys/k", "azblob://state?storage_account=store"),
}
_CONTEXTS: Final = {
    "aws": "arn:aws:eks:eu-west-1:1:cluster/fleet",
    "gcp": "gke_p_europe-west3_fleet",
    "azure": "fleet",
}
_CLUSTERS: Final = {
    "aws": "--cluster-name fleet ",
    "gcp": "GCP_LOCATION --repo acme/fleet --env prod --body europe-west3",
    "azure": "az aks show --name fleet ",
}
"""What of the printed commands goes by the context."""
_SCHEMAS: Final = json.loads(Path(__file__).with_name("providers.json").read_text(encoding="utf-8"))
"""What Terraform's providers take, from the bindings that CDK for Terraform generates of them.

azurerm requires `subscription_id` and `features` since version 4, as its upgrade guide says."""
_META: Final = frozenset({"for_each", "depends_on", "__is_block__"})
_READ: Final = re.compile(
    r"(?:(data)\.)?\b((?:aws|azurerm|github|google|kubernetes)_\w+)\.(\w+)(?:\[[^][]*(?:\[\d\])?\])?(?:\.(\w+))?"
)
_WRITES: Final = ("Encrypt", "PutObject", "objectUser", "Contributor", "secretmanager.admin", "Administrator")


def _project(folder: Path, cloud: str) -> Path:
    text = (ROOT / "Pulumi.prod.yaml").read_text(encoding="utf-8")
    provider = _PROVIDERS[cloud][0]
    text = text.replace("context: fleet-prod", f"context: {_CONTEXTS[cloud]}")
    (folder / "Pulumi.prod.yaml").write_text(
        re.sub("secretsprovider: .*", f"secretsprovider: {provider}", text), encoding="utf-8"
    )
    (folder / "Pulumi.yaml").symlink_to(ROOT / "Pulumi.yaml")
    return folder


def _printed(folder: Path, *words: str, backend: str = "") -> str:
    return subprocess.run(
        [str(CREDFLEET), "bootstrap", "--stack", "prod", *words],
        cwd=folder,
        env={**os.environ, "PULUMI_BACKEND_URL": backend},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _pasted(
    script: str, folder: Path, subject: str = _IDS, fails: str = _ABSENT, silent: str = "branch_policies"
) -> tuple[int, str, Sequence[tuple[list[str], str]]]:
    """Run a script among stand-ins; return its exit code, what it said, and the commands with their input.

    fails, silent: the commands that do, and that say nothing.
    """
    programs, notes = folder / "bin", folder / "notes"
    programs.mkdir()
    notes.touch()
    for name in ("gh", "gcloud", "aws", "az", "kubectl"):
        (programs / name).write_text(_STAND_IN.format(python=sys.executable), encoding="utf-8")
        (programs / name).chmod(0o755)
    given = {"NOTES": str(notes), "SUBJECT": subject, "FAILS": fails, "SILENT": silent}
    given |= {"REVIEWERS": "9", "AZURE_RESOURCE_GROUP": "rg"}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, **given, "PATH": path, "GCP_LOCATION": "l", "AWS_REGION": "r"},
        capture_output=True,
        text=True,
        check=False,
    )
    calls = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]
    return done.returncode, done.stdout + done.stderr, [(words, given) for words, given in calls]


@pytest.mark.parametrize("cloud", _PROVIDERS)
def test_printed_commands_trust_three_subjects_and_let_only_the_deployment_write(
    tmp_path: Path, cloud: str
) -> None:
    folder = _project(tmp_path, cloud)
    script = _printed(folder, "--repo", "acme/fleet", backend=_PROVIDERS[cloud][1])
    code, said, calls = _pasted(script, tmp_path)
    assert code == 0, said
    lines = [" ".join(words) for words, _ in calls]
    for environment in ("preview-prod", "drift-prod", "prod"):
        trusted = [line for line in lines if f"{_IDS}:environment:{environment}" in line]
        clouds = {"aws": {"aws", "gcloud", "az"}, "gcp": {"gcloud", "az"}, "azure": {"az", "gcloud"}}[cloud]
        assert {line.partition(" ")[0] for line in trusted} == clouds
        set_ = {
            words[3] for words, _ in calls if words[:3] == ["gh", "variable", "set"] and environment in words
        }
        assert set_ == _variables(cloud, clouds)
    assert any("assertion.repository_id == '42'" in line for line in lines)
    assert any(_CLUSTERS[cloud] in line for line in lines)
    readers = ("credfleet-prod-preview", "credfleet-prod-drift")
    read_only = [line for line in lines if any(each in line for each in readers)]
    assert read_only
    assert not [line for line in read_only if any(each in line for each in _WRITES)]
    assert any(each in line for line in lines for each in _WRITES)
    applied = "---\n".join(text for words, text in calls if words[0] == "kubectl" and text)
    assert cloud == "azure" or _kinds(applied) == _kinds(_printed(folder, "--format", "yaml"))
    roles = [each for each in yaml.safe_load_all(applied) if "rules" in each]
    assert {each["metadata"]["name"] for each in roles} == {*readers, "credfleet-prod-deploy"}
    environments = [json.loads(text) for words, text in calls if words[-1] == "-" and words[0] == "gh"]
    assert [bool(each["reviewers"]) for each in environments] == [True, False, True]
    assert lines[-1] == "gh variable set CREDFLEET_ENVIRONMENTS --repo acme/fleet --body ready"


@tabled("cloud, fails")
def test_printed_commands_end_at_the_first_that_fails_and_no_workflow_runs(
    tmp_path: Path, cloud: str, fails: str
) -> None:
    script = _printed(_project(tmp_path, cloud), "--repo", "acme/fleet", backend=_PROVIDERS[cloud][1])
    code, _, calls = _pasted(script, tmp_path, fails=f"{_ABSENT}|{fails}")
    assert code != 0
    assert re.search(fails, " ".join(calls[-1][0]))


def test_roles_of_a_namespace_that_the_first_update_makes_are_left_for_later(tmp_path: Path) -> None:
    script = _printed(_project(tmp_path, "aws"), "--repo", "acme/fleet", backend="s3://state")
    code, said, calls = _pasted(script, tmp_path, silent="branch_policies|get namespace")
    applied = "".join(text for words, text in calls if words[0] == "kubectl")
    assert (code, "namespace:" in applied, "ClusterRole" in applied) == (0, False, True)
    assert "· namespace account-pool is not there yet: run this again after the first update" in said
    assert calls[-1][0][-1] == "ready"


def test_printed_commands_that_run_again_make_nothing_twice(tmp_path: Path) -> None:
    script = _printed(_project(tmp_path, "aws"), "--repo", "acme/fleet", backend="s3://state")
    code, said, calls = _pasted(script, tmp_path, fails="^$")
    assert code == 0, said
    made = {words[2] for words, _ in calls if words[0] in ("aws", "gcloud") and "create" in " ".join(words)}
    assert made == set()
    trusted = [words[-1] for words, _ in calls if "update-assume-role-policy" in words]
    assert len([each for each in trusted if "repo:acme" in each]) == 3


@pytest.mark.parametrize("template", ["commands.sh.j2", "commands.tf.j2"])
@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_names_of_aws_are_of_the_clusters_partition(tmp_path: Path, partition: str, template: str) -> None:
    path = _project(tmp_path, "aws") / "Pulumi.prod.yaml"
    path.write_text(path.read_text().replace("arn:aws:eks", f"arn:{partition}:eks"))
    text = open_bootstrap(tmp_path, "prod", "acme/fleet").script(template)
    assert {*re.findall(r"arn:(aws[\w-]*):", text)} == {partition}


@pytest.mark.parametrize(
    ("repository", "problem"), [(None, "it is missing"), ("fleet", "it is not a repository of GitHub")]
)
def test_a_repository_that_is_missing_or_none_is_told_for_what_it_is(
    tmp_path: Path, repository: str | None, problem: str
) -> None:
    with pytest.raises(CredfleetError, match=problem):
        open_bootstrap(_project(tmp_path, "aws"), "prod", repository).script("commands.sh.j2")


def test_a_repository_whose_subjects_have_no_ids_is_trusted_by_nothing(tmp_path: Path) -> None:
    script = _printed(_project(tmp_path, "aws"), "--repo", "acme/fleet", backend="s3://state")
    code, said, calls = _pasted(script, tmp_path, subject="repo:acme/fleet")
    assert code == 1
    assert "use_immutable_subject=true" in said
    assert {words[0] for words, _ in calls} == {"gh"}


@pytest.mark.parametrize("cloud", _PROVIDERS)
def test_terraform_trusts_and_grants_what_the_commands_do(tmp_path: Path, cloud: str) -> None:
    folder = _project(tmp_path, cloud)
    text = _printed(folder, "--repo", "acme/fleet", "--format", "terraform", backend=_PROVIDERS[cloud][1])
    clouds = {"aws": {"aws", "gcloud", "az"}, "gcp": {"gcloud", "az"}, "azure": {"az", "gcloud"}}[cloud]
    assert text.count("${var.subject}:environment:${each.value.environment}") == len(clouds)
    assert "assertion.repository_id == '${local.repository_id}'" in text
    assert set(re.findall(r'"\$\{role\} ([A-Z_]+)" =>', text)) == _variables(cloud, clouds)
    assert re.findall(r'(\w+) = \{ environment = "(.*?)"', text) == [
        ("preview", "preview-prod"),
        ("drift", "drift-prod"),
        ("deploy", "prod"),
    ]
    writes = [line for line in text.splitlines() if any(each in line for each in _WRITES)]
    assert writes
    assert [line for line in writes if '== "deploy" ?' not in line and '"deploy roles' not in line] == []
    named = re.sub(r"local\.id\.(\w+)", r'"$\1"', text)
    roles = [json.loads(each) for each in re.findall(r"^  manifest = (\{.*\})$", named, re.MULTILINE)]
    script = _printed(folder, "--repo", "acme/fleet", backend=_PROVIDERS[cloud][1])
    applied = "---\n".join(re.findall(r"<<'?END'?\n(apiVersion.*?)END$", script, re.DOTALL | re.MULTILINE))
    assert sorted(roles, key=str) == sorted(yaml.safe_load_all(applied), key=str)


@pytest.mark.parametrize("cloud", _PROVIDERS)
def test_terraform_configuration_fits_the_schemas_of_its_providers(tmp_path: Path, cloud: str) -> None:
    folder = _project(tmp_path, cloud)
    text = _printed(folder, "--repo", "acme/fleet", "--format", "terraform", backend=_PROVIDERS[cloud][1])
    file: Any = hcl2.loads(text)
    (required,) = file["terraform"][0]["required_providers"]
    schemas = {key: each for one in _SCHEMAS.values() for key, each in one["schemas"].items()}
    for name in required.keys() - _META:
        given = json.loads(required[name]["version"]).replace("~>", "~=")
        assert _SCHEMAS[name]["version"] in SpecifierSet(given)
    declared = dict[tuple[str, str, str], Any]()
    for kind in ("data", "resource"):
        for block in file[kind]:
            ((type_, named),) = block.items()
            declared |= {(kind, type_.strip('"'), name.strip('"')): body for name, body in named.items()}
    assert len(declared) == sum(len(file[kind]) for kind in ("data", "resource")), "an address is given twice"
    for (kind, type_, name), body in declared.items():
        _fits(schemas[f"{kind} {type_}"], body, f"{type_}.{name}")
    for provider in file["provider"]:
        ((name, body),) = provider.items()
        _fits(schemas[f"provider {json.loads(name)}"], body, name)
        assert json.loads(name) in required
    for kind, type_, name, attribute in _READ.findall(text):
        assert (kind or "resource", type_, name) in declared or f"for role, one in {type_}" in text
        schema = schemas[f"{kind or 'resource'} {type_}"]
        assert attribute in {"", *schema["required"], *schema["optional"], *schema.get("computed", ())}
    variables = {json.loads(name) for each in file["variable"] for name in each}
    locals_ = {name for each in file["locals"] for name in each}
    assert set(re.findall(r"\bvar\.(\w+)", text)) == variables
    assert set(re.findall(r"\blocal\.(\w+)", text)) <= locals_


def _fits(schema: dict[str, Any], body: dict[str, Any], place: str) -> None:
    """Fail unless a block has what its schema requires, and nothing that it does not know."""
    blocks = schema.get("blocks", {})
    inner = [(name, each) for name in blocks for each in body.get(name, ())]
    for dynamic in body.get("dynamic", ()):
        ((name, each),) = dynamic.items()
        inner += [(json.loads(name), content) for content in each["content"]]
    given = body.keys() - _META - blocks.keys() - {"dynamic"}
    assert given <= {*schema["required"], *schema["optional"]}, place
    assert {*schema["required"]} <= given, place
    assert {name for name in blocks if blocks[name].get("is_required")} <= {name for name, _ in inner}, place
    for name, each in inner:
        _fits(blocks[name], each, f"{place}.{name}")


@pytest.mark.parametrize("backend", ["s3://state/of/fleet?region=r", "s3://state?region=r", "s3://state/of"])
def test_a_bucket_is_granted_without_the_folder_in_it(tmp_path: Path, backend: str) -> None:
    folder = _project(tmp_path, "aws")
    code, said, calls = _pasted(_printed(folder, "--repo", "acme/fleet", backend=backend), tmp_path)
    assert code == 0, said
    buckets = {each for words, _ in calls for each in re.findall(r"arn:aws:s3:::(.*?)\"", " ".join(words))}
    assert buckets == {"state", "state/*"}


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_what_a_check_does_not_ask_is_named_with_commands_for_each_identity(
    tmp_path: Path, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", _PROVIDERS[cloud][1])
    found = open_bootstrap(_project(tmp_path, cloud), "prod", None)
    told = [each.partition(": ") for each in found.unasked()]
    _, _, calls = _pasted("\n".join(command for _, _, command in told), tmp_path)
    asked = [" ".join(words) for words, _ in calls]
    simulated = [each for each in asked if "simulate-principal-policy" in each]
    assert len(simulated) == (3 if cloud == "aws" else 0)
    for role in ("preview", "drift", "deploy"):
        assert sum(f"identity list --query [?name=='credfleet-prod-{role}']" in each for each in asked) == 1
        named = f"get-role --role-name credfleet-prod-{role} "
        assert sum(named in each for each in asked) == len(simulated) / 3
    assert sum("az role assignment list" in each for each in asked) == 3
    told_of = [place for place, _, _ in told]
    assert "Azure, where preview is to have Reader alone" in told_of
    of_aws = "kms:Decrypt, s3:ListBucket, s3:GetObject, eks:DescribeCluster"
    assert (f"AWS, where drift is to have {of_aws} alone" in told_of) == (cloud == "aws")
    assert told_of.count("Google Cloud") == {"aws": 1, "gcp": 2}[cloud]


_ROLES: Final = {
    "cloudkms.cryptoKeyDecrypter": "cloudkms.cryptoKeyVersions.useToDecrypt",
    "cloudkms.cryptoKeyEncrypterDecrypter": "cloudkms.cryptoKeyVersions.useTo",
    "container.clusterViewer": "container.clusters.get",
    "secretmanager.admin": "secretmanager",
    "secretmanager.secretAccessor": "secretmanager.versions.access",
    "storage.objectUser": "storage.objects",
    "storage.objectViewer": "storage.objects.get storage.objects.list",
    "owner": "iam resourcemanager",
}
"""Roles of Google Cloud → how the permissions in them begin, of those that a check asks for."""
_Grant = tuple[str, str, str]


@dataclass(frozen=True)
class _Google:
    """A service account's session; grants: resource, account and role."""

    account: str
    grants: Sequence[_Grant]

    def request(self, _method: str, url: str, **given: dict[str, Any]) -> requests.Response:
        place = re.sub(r".*/v1/(?:b/)?|[:/](?:iam/)?test.*", "", url)
        own = [
            role for resource, account, role in self.grants if (resource, account) == (place, self.account)
        ]
        begins = tuple(each for role in own for each in _ROLES.get(role, "none").split())
        reply, (asked,) = requests.Response(), given.values()
        held = [each for each in asked["permissions"] if each.startswith(begins)]
        reply.status_code, reply.raw = 200, BytesIO(json.dumps({"permissions": held}).encode())
        return reply


def _granted(calls: Sequence[tuple[list[str], str]]) -> list[_Grant]:
    """Return what the printed commands bind, but for who may sign in."""
    found: list[_Grant] = []
    for words, _ in calls:
        named = {each.partition("=")[0]: each.partition("=")[2] for each in words}
        if "add-iam-policy-binding" in words and "service-accounts" not in words:
            resource = words[words.index("add-iam-policy-binding") + 1].removeprefix("gs://")
            resource = f"projects/{resource}" if words[1] == "projects" else resource
            account = named["--member"].removeprefix("serviceAccount:")
            found.append((resource, account, named["--role"].removeprefix("roles/")))
    return found


def test_google_answers_for_each_identity_what_a_binding_lacks_or_has_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _project(tmp_path, "gcp")
    provider, backend = _PROVIDERS["gcp"]
    _, _, calls = _pasted(_printed(folder, "--repo", "acme/fleet", backend=backend), tmp_path)
    grants = _granted(calls)
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend)
    found = open_bootstrap(folder, "prod", None)

    def asked(those: Sequence[_Grant]) -> google.GoogleAnswer:
        def sign_in_as(account: str) -> _Google:
            return _Google(account, those)

        monkeypatch.setattr(google, "sign_in_as", sign_in_as)
        return google.ask_google(found)

    assert asked(grants) == google.GoogleAnswer()
    for grant in grants:
        if grant[2] != "secretmanager.viewer":  # which Pulumi's refresh reads with
            lacks = asked([each for each in grants if each != grant])
            assert lacks.lacking, grant
            assert not lacks.excess
    deploy = {resource: role for resource, account, role in grants if "-deploy@" in account}
    preview = f"credfleet-prod-preview@{found.project}.iam.gserviceaccount.com"
    for resource, role in (*deploy.items(), (f"projects/{found.project}", "owner")):
        held = asked([*grants, (resource, preview, role)])
        assert not held.lacking
        assert bool(held.excess) == (role != "container.clusterViewer"), (resource, role)
        assert all(each.startswith("preview can use ") for each in held.excess)
    assert provider.endswith(found.key.key)


def test_google_that_does_not_answer_is_named_as_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: str) -> None:
        raise RefreshError("Permission 'iam.serviceAccounts.getAccessToken' denied")

    monkeypatch.setattr(google, "sign_in_as", refused)
    answer = google.ask_google(open_bootstrap(_project(tmp_path, "gcp"), "prod", None))
    assert answer == google.GoogleAnswer(
        unasked=[
            f"Google Cloud, as {role}: Permission 'iam.serviceAccounts.getAccessToken' denied"
            for role in ("preview", "drift", "deploy")
        ]
    )


def _variables(cloud: str, tools: set[str]) -> set[str]:
    """Return the variables that the action which signs in reads of these clouds."""
    text = (ROOT / ".github/actions/sign-in/action.yml").read_text(encoding="utf-8")
    read = set(re.findall(r"fromJSON\(inputs.variables\)\.(\w+)", text))
    prefixes = {"aws": "AWS_", "gcloud": "GCP_", "az": "AZURE_"}
    wanted = {name for name in read if any(name.startswith(prefixes[tool]) for tool in tools)}
    lacking = set[str]() if cloud == "gcp" else {"GCP_LOCATION"}
    return (wanted - lacking) | {"CLUSTER", "PULUMI_BACKEND_URL"}


def _kinds(text: str) -> list[tuple[Any, ...]]:
    documents = [each for each in yaml.safe_load_all(text) if each]
    return sorted(((each["kind"], each["metadata"], each.get("rules")) for each in documents), key=str)
