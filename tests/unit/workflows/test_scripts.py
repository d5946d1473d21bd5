"""The scripts of the workflows, with stand-ins that write down how they are called; the caps on sizes."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.cases import tabled
from tests.support.stacks import ROOT

RECORD: Final = f"""#!{sys.executable}
import json, os, sys
from pathlib import Path
here = Path(os.environ["STAND_INS"])
name = Path(sys.argv[0]).name
with (here / "calls").open("a") as calls:
    calls.write(json.dumps([name, *sys.argv[1:]]) + "\\n")
said = here / f"{{name}}.says"
print(said.read_text() if said.exists() else "", end="")
failing = here / f"{{name}}.fails"
sys.exit(int(failing.read_text()) if failing.exists() else 0)
"""
PULL_REQUEST: Final = {
    "STACK": "prod",
    "PULL_REQUEST": "7",
    "GITHUB_REPOSITORY": "acme/fleet",
    "GITHUB_RUN_ID": "99",
    "GITHUB_SERVER_URL": "https://github.example",
}
PULUMI: Final = ["pulumi", "--non-interactive", "--stack"]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout whose environment is ready, with stand-ins of the programs its scripts call."""

    root: Path

    def says(self, program: str, text: str) -> None:
        (self.root / "stand-ins" / f"{program}.says").write_text(text)

    def fails(self, program: str, code: int) -> None:
        (self.root / "stand-ins" / f"{program}.fails").write_text(str(code))

    def make(self, target: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self._run("make", "-s", target, **variables)

    def script(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self._run(f".github/scripts/{name}", **variables)

    def _run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.root / 'stand-ins'}{os.pathsep}/usr/bin{os.pathsep}/bin"
        environment = {"PATH": path, "STAND_INS": str(self.root / "stand-ins"), **variables}
        return subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )

    @property
    def calls(self) -> list[list[str]]:
        book = self.root / "stand-ins" / "calls"
        return [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []

    @property
    def review(self) -> Path:
        return self.root / ".sandbox" / "reviews" / "prod.md"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    for path in ROOT.glob("Pulumi.*.yaml"):
        shutil.copy(path, tmp_path)
    for name in ("pyproject.toml", "uv.lock", "uv.txt"):
        (tmp_path / name).touch()
    (tmp_path / "stand-ins").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / ".ready").touch()
    for program in (
        "stand-ins/pulumi",
        "stand-ins/gh",
        "stand-ins/aws",
        ".venv/bin/credfleet",
        ".venv/bin/pytest",
    ):
        (tmp_path / program).write_text(RECORD)
        (tmp_path / program).chmod(0o755)
    return Checkout(tmp_path)


@pytest.mark.parametrize("target", ["test", "test-fast"])
def test_the_tests_of_one_room_are_chosen_by_its_name(checkout: Checkout, target: str) -> None:
    (checkout.root / ".venv/bin/python").symlink_to(sys.executable)
    chosen = {}
    for variables in ({}, {"ROOM": "account_pool"}):
        checkout.make(target, **variables)
        chosen[len(variables)] = checkout.calls[-1]
    assert [each for each in chosen[0] if each.startswith("--room")] == []
    assert [each for each in chosen[1] if each.startswith("--room")] == ["--room=account_pool"]


def test_what_the_fast_tests_pass_over_is_there(checkout: Checkout) -> None:
    checkout.make("test-fast")
    passed_over = [each.removeprefix("--ignore=") for each in checkout.calls[-1] if "--ignore=" in each]
    assert passed_over
    assert [path for path in passed_over if not (ROOT / path).exists()] == []


def listed(checkout: Checkout) -> list[Mapping[str, object]]:
    return json.loads(checkout.script("stacks").stdout)


def test_the_stacks_are_those_that_a_cloud_encrypts_production_last_with_all_they_write_to(
    checkout: Checkout,
) -> None:
    assert listed(checkout) == [
        {"stack": "staging", "cloud": "gcp", "clouds": ["gcp"]},
        {"stack": "prod", "cloud": "aws", "clouds": ["aws", "azure", "gcp"]},
    ]


def test_a_new_stack_file_is_a_new_stack(checkout: Checkout) -> None:
    url = "azurekeyvault://example.vault.azure.net/keys/credfleet"
    (checkout.root / "Pulumi.eu.west-1.yaml").write_text(f'secretsprovider: "{url}"\nconfig: {{}}\n')
    (checkout.root / "Pulumi.mine.yaml").write_text("secretsprovider: passphrase\n")

    assert {"stack": "eu.west-1", "cloud": "azure", "clouds": ["azure"]} in listed(checkout)
    assert len(listed(checkout)) == 3


@tabled("declared, cloud")
def test_what_is_declared_at_a_cloud_is_signed_in_for_without_a_key_of_its_provider(
    checkout: Checkout, declared: str, cloud: str
) -> None:
    file = checkout.root / "Pulumi.mine.yaml"
    file.write_text(f"secretsprovider: awskms://alias/mine\nconfig:\n{declared}  credfleet:x: {{}}\n")
    assert {"stack": "mine", "cloud": "aws", "clouds": ["aws", cloud]} in listed(checkout)


def test_the_list_is_one_line_for_the_output_of_a_step(checkout: Checkout) -> None:
    assert checkout.script("stacks").stdout.count("\n") == 1


def test_a_stack_no_cloud_is_known_for_is_refused_rather_than_left_out(checkout: Checkout) -> None:
    (checkout.root / "Pulumi.lab.yaml").write_text("secretsprovider: hashivault://key\n")

    run = checkout.script("stacks")

    assert run.returncode != 0
    assert run.stdout == ""
    assert run.stderr.startswith(
        "✗ Pulumi.lab.yaml: no cloud is known for secrets provider hashivault\n→ use awskms,"
    )


def test_a_stack_whose_name_is_a_command_is_refused(checkout: Checkout) -> None:
    (checkout.root / "Pulumi.$(touch ran).yaml").write_text("secretsprovider: awskms://alias/x\n")

    run = checkout.script("stacks")

    assert run.returncode != 0
    assert "rename the file" in run.stderr
    assert not (checkout.root / "ran").exists()


def test_a_preview_runs_the_policies_and_leaves_a_review_with_its_mark(checkout: Checkout) -> None:
    checkout.says("pulumi", '{"steps": []}')
    checkout.says("credfleet", "# calm\n")

    run = checkout.script("preview", STACK="prod")

    assert run.returncode == 0
    assert checkout.calls == [
        [*PULUMI, "prod", "preview", "--json", "--policy-pack", "policies"],
        ["credfleet", "preview-report", ".sandbox/reviews/prod.json", "--format", "markdown"],
    ]
    assert checkout.review.with_suffix(".json").read_text() == '{"steps": []}'
    assert checkout.review.read_text() == "<!-- credfleet preview of prod -->\n# calm\n"


def test_the_limits_of_an_environment_go_to_the_policies(checkout: Checkout) -> None:
    limits = checkout.root / "policies" / "config" / "prod.json"
    limits.parent.mkdir(parents=True)
    limits.write_text("{}")

    checkout.script("preview", STACK="prod")
    checkout.script("preview", STACK="staging")

    flag = "--policy-pack-config=policies/config/prod.json"
    assert [flag in call for call in checkout.calls if call[0] == "pulumi"] == [True, False]


def test_a_preview_the_policies_refuse_fails_and_is_reviewed_all_the_same(checkout: Checkout) -> None:
    checkout.fails("pulumi", 1)
    checkout.says("credfleet", "# refused\n")

    run = checkout.script("preview", STACK="prod")

    assert run.returncode != 0
    assert "# refused" in run.stdout
    assert "# refused" in checkout.review.read_text()


def test_what_a_review_leaves_to_the_log_is_there(checkout: Checkout) -> None:
    (checkout.root / ".venv/bin/credfleet").write_text("#!/bin/sh\necho said >&2\n")
    checkout.fails("pulumi", 255)
    run = checkout.script("preview", STACK="prod")
    assert (run.returncode, run.stderr) == (255, "said\n")


def test_a_preview_nobody_can_read_leaves_no_review_of_an_earlier_one(checkout: Checkout) -> None:
    checkout.script("preview", STACK="prod")
    checkout.fails("credfleet", 2)

    run = checkout.script("preview", STACK="prod")

    assert run.returncode != 0
    assert not checkout.review.exists()
    checkout.says("credfleet", "no preview")
    checkout.fails("pulumi", 5)
    run = checkout.script("preview", STACK="prod")
    assert (run.returncode, run.stdout, run.stderr) == (5, "", "")


def test_the_first_review_becomes_a_comment(checkout: Checkout) -> None:
    checkout.script("preview", STACK="prod")

    run = checkout.script("comment", **PULL_REQUEST)

    assert run.returncode == 0
    look, write = [call for call in checkout.calls if call[0] == "gh"]
    assert look[:4] == ["gh", "api", "--paginate", "repos/acme/fleet/issues/7/comments"]
    assert '"github-actions[bot]"' in look[5]
    assert 'startswith("<!-- credfleet preview of prod -->")' in look[5]
    assert write[1:5] == ["api", "--method", "POST", "repos/acme/fleet/issues/7/comments"]
    assert write[5:7] == ["--field", "body=@.sandbox/reviews/prod.md"]
    assert checkout.review.read_text().splitlines()[-1] == (
        "<sub>prod.json is kept with https://github.example/acme/fleet/actions/runs/99</sub>"
    )


def test_a_later_review_is_written_over_the_comment_that_is_there(checkout: Checkout) -> None:
    checkout.script("preview", STACK="prod")
    checkout.says("gh", "4711\n")

    checkout.script("comment", **PULL_REQUEST)

    assert checkout.calls[-1][1:5] == ["api", "--method", "PATCH", "repos/acme/fleet/issues/comments/4711"]


def test_what_a_run_found_becomes_one_comment_for_each_stack(checkout: Checkout) -> None:
    for stack in ("prod", "staging"):
        found = checkout.root / ".sandbox" / "found" / f"review-{stack}"
        found.mkdir(parents=True)
        (found / f"{stack}.md").write_text(f"<!-- credfleet review of {stack} -->\n")
        (found / f"{stack}.pull-request").write_text("8\n")

    assert checkout.script("review-comments", **PULL_REQUEST, REVIEW_RUN="12").returncode == 0

    fetch, *comments = checkout.calls
    assert fetch[:4] == ["gh", "run", "download", "12"]
    assert [(call[3], call[4]) for call in comments if "POST" in call] == [
        ("POST", "repos/acme/fleet/issues/8/comments")
    ] * 2
    for stack, call in zip(("prod", "staging"), comments[::2], strict=True):
        assert f'startswith("<!-- credfleet review of {stack} -->")' in call[5]
        assert (checkout.root / f".sandbox/reviews/{stack}.md").read_text().endswith("/runs/12</sub>\n")


def test_without_a_review_nothing_is_written_to_the_pull_request(checkout: Checkout) -> None:
    run = checkout.script("comment", **PULL_REQUEST)

    assert run.returncode != 0
    assert "there is no review" in run.stderr
    assert checkout.calls == []


def _reviewed(checkout: Checkout) -> str:
    """Review a branch that two commits were merged into; return the page."""
    branch = checkout.root / "branch"
    branch.mkdir()
    _git(branch, "init", "--quiet")
    tree = _git(branch, "write-tree")
    base, head = (_git(branch, "commit-tree", tree, "-m", f"{each}\n\nparent 0000") for each in "ab")
    merge = _git(branch, "commit-tree", tree, "-p", base, "-p", head, "-m", "merge\n\nparent 0000")
    _git(branch, "update-ref", "HEAD", merge)
    checkout.script("review", CHECKOUT="branch", **PULL_REQUEST)
    assert (checkout.review.with_suffix(".pull-request")).read_text() == "7\n"
    page = checkout.review.read_text()
    assert page.endswith(f"\n<sub>Reviewed: {head}</sub>\n")
    return page.removesuffix(f"\n<sub>Reviewed: {head}</sub>\n")


def _git(folder: Path, *arguments: str) -> str:
    who = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(
        command, env={**os.environ, **who}, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_review_says_of_which_commit_it_is(checkout: Checkout) -> None:
    checkout.says("credfleet", "# calm\n")

    assert _reviewed(checkout) == "<!-- credfleet review of prod -->\n# calm\n"


def test_where_no_review_could_be_made_the_comment_says_so_and_none_of_an_earlier_commit_stays(
    checkout: Checkout,
) -> None:
    checkout.fails("credfleet", 2)

    assert "**No review of prod could be made**" in _reviewed(checkout)


@pytest.mark.parametrize(("runs", "taken"), [("12\n", "12"), ("", None)])
def test_a_record_is_taken_of_a_run_that_no_pull_request_started(
    checkout: Checkout, runs: str, taken: str | None
) -> None:
    checkout.says("gh", runs)

    assert checkout.script("recorded", **PULL_REQUEST).returncode == 0

    *looked, last = checkout.calls if taken else (*checkout.calls, [])
    events = [call[call.index("--event") + 1] for call in looked]
    assert events == ["push", "workflow_dispatch"]
    assert all("deploy.yml" in call for call in looked)
    assert (last[:4] == ["gh", "run", "download", taken]) == (taken is not None)


def test_a_deployment_updates_under_the_policies_and_then_expects_no_changes(checkout: Checkout) -> None:
    run = checkout.script("deploy", STACK="prod")

    assert run.returncode == 0
    pack = ["--suppress-outputs", "--policy-pack", "policies"]
    assert checkout.calls == [
        [*PULUMI, "prod", "up", "--yes", "--skip-preview", "--continue-on-error", *pack],
        [*PULUMI, "prod", "preview", "--expect-no-changes", *pack],
        [*PULUMI, "prod", "stack", "export"],
    ]


def test_a_deployment_that_skipped_something_says_what_and_fails(checkout: Checkout) -> None:
    skipped = {"claim acme/aws": "exhausted: no free account", "pull secret east": "not ready"}
    fleet = {"type": "credfleet:index:Fleet", "outputs": {"skipped": skipped}}
    checkout.says("pulumi", json.dumps({"deployment": {"resources": [fleet]}}, indent=4))
    run = checkout.script("deploy", STACK="prod")
    assert run.returncode != 0
    assert "✗ claim acme/aws: exhausted: no free account\n" in run.stdout
    assert "✗ pull secret east: not ready\n" in run.stdout


def test_a_failed_update_ends_the_deployment(checkout: Checkout) -> None:
    checkout.fails("pulumi", 1)

    assert checkout.script("deploy", STACK="prod").returncode != 0
    assert len(checkout.calls) == 1


@pytest.mark.parametrize("changed", [False, True])
def test_only_what_was_approved_is_still_what_would_happen(checkout: Checkout, changed: bool) -> None:
    checkout.says("credfleet", "# one Secret changes\n")
    checkout.script("preview", STACK="prod")
    approved = checkout.root / ".sandbox" / "approved" / "prod.md"
    approved.parent.mkdir()
    shutil.copy(checkout.review, approved)
    if changed:
        checkout.says("credfleet", "# two Secrets change\n")
        checkout.script("preview", STACK="prod")

    run = checkout.script("approved", STACK="prod")

    assert (run.returncode != 0) == changed
    assert ("+# two Secrets change" in run.stdout) == changed
    assert ("✗ prod: an update would no longer do what was approved" in run.stdout) == changed


def test_drift_is_looked_for_without_writing(checkout: Checkout) -> None:
    checkout.script("drift", STACK="prod")

    flags = ["--preview-only", "--expect-no-changes", "--diff", "--suppress-outputs", "--color", "never"]
    assert checkout.calls == [[*PULUMI, "prod", "refresh", *flags]]


@pytest.mark.parametrize(("open_already", "method"), [("", "POST"), ("12\n", "PATCH")])
def test_drift_fails_the_night_and_is_told_in_one_issue(
    checkout: Checkout, open_already: str, method: str
) -> None:
    checkout.fails("pulumi", 7)
    checkout.says("pulumi", "~ kubernetes:core/v1:ConfigMap changed\n")
    checkout.says("gh", open_already)

    assert checkout.script("drift", STACK="prod").returncode != 0
    checkout.script("drift-issue", **PULL_REQUEST)

    write = checkout.calls[-1]
    assert write[:4] == ["gh", "api", "--method", method]
    assert ("title=Drift of prod" in write) == (method == "POST")
    body = next(each for each in write if each.startswith("body=@")).removeprefix("body=@")
    assert "~ kubernetes:core/v1:ConfigMap changed" in (checkout.root / body).read_text()


@pytest.mark.parametrize(
    "context",
    ["fleet-prod", "gke_my-project_europe-west3_fleet-prod", "arn:aws:eks:eu-1:1:cluster/fleet-prod"],
)
def test_a_cluster_is_known_by_its_name_whichever_tool_named_the_context(
    checkout: Checkout, context: str
) -> None:
    outputs = checkout.root / "outputs"
    checkout.script("cluster", CONTEXT=context, GITHUB_OUTPUT=str(outputs))
    assert outputs.read_text() == "name=fleet-prod\n"
    checkout.script("kubeconfig", CONTEXT=context)
    if "_" not in context:
        named = ["--name", "fleet-prod", "--alias", context]
        assert checkout.calls == [["aws", "eks", "update-kubeconfig", *named]]


@pytest.mark.parametrize(
    ("code", "fix"), [(3, "export PULUMI_BACKEND_URL"), (6, "pulumi stack init prod --s")]
)
def test_without_a_backend_or_a_stack_what_pulumi_says_is_followed_by_the_fix(
    checkout: Checkout, code: int, fix: str
) -> None:
    checkout.fails("pulumi", code)
    run = checkout.script("preview", STACK="prod")
    assert run.returncode == code
    assert run.stderr.startswith(f"→ {fix}")
    assert [call[0] for call in checkout.calls] == ["pulumi"]


@pytest.mark.parametrize("script", ["preview", "deploy", "drift", "record"])
def test_without_the_cli_a_script_says_how_to_get_it(checkout: Checkout, script: str) -> None:
    (checkout.root / "stand-ins" / "pulumi").unlink()

    run = checkout.script(script, STACK="prod")

    assert run.returncode != 0
    assert run.stderr.splitlines()[0] == "✗ PATH: no Pulumi CLI"
    assert run.stderr.splitlines()[1].startswith("→ ")


def test_the_help_lists_nine_targets_and_what_they_stand_on(checkout: Checkout) -> None:
    shown = {line.split()[1] for line in checkout.make("help").stdout.splitlines()}

    nine = {"up", "down", "test", "check", "format", "package", "docs", "bench", "prove"}
    assert shown == nine | {"env", "genuine", "help", "test-fast"}


SIZES: Final = {
    "components/a.py": ["lines of product"],
    "tests/test_a.py": ["lines of tests"],
    "page.md": ["words of pages"],
    "benchmarks/a.py": [],
}
"""A file, and the caps that it counts towards."""


@pytest.mark.parametrize("large", SIZES)
def test_a_file_of_three_thousand_lines_goes_above_the_cap_it_counts_towards(
    checkout: Checkout, large: str
) -> None:
    _git(checkout.root, "init", "--quiet")
    makefile = checkout.root / "Makefile"
    makefile.write_text(re.sub(r"(_LINES|_WORDS) := \d+", r"\1 := 2999", makefile.read_text()))
    for name in SIZES:
        (checkout.root / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout.root / name).write_text("word\n" * (3000 if name == large else 2999))

    run = checkout.script("count")

    above = re.findall(r"^✗ 3000 ([a-z ]+)\tcap 2999$", run.stdout, re.MULTILINE)
    assert (run.returncode, above) == (len(SIZES[large]), SIZES[large])
    assert len(run.stdout.splitlines()) == len(SIZES)
