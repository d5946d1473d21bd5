"""The workflows: what they may do, for whom they run, and that each step calls what exists."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pytest
import yaml

from tests.support.stacks import ROOT

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SIGN_IN: Final = ROOT / ".github" / "actions" / "sign-in" / "action.yml"
TARGETS: Final = frozenset(
    re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)
SCRIPTS: Final = frozenset(
    path.name
    for path in (ROOT / ".github" / "scripts").iterdir()
    if not path.suffix and path.name != "count"  # that is for make check
)
LISTED: Final = 'matrix=$(.github/scripts/stacks) && echo "matrix=$matrix" >> "$GITHUB_OUTPUT"'
Node = Mapping[str, Any]


def load(path: Path) -> dict[str, Any]:
    """Read YAML as GitHub does: `on` is a word, not true."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def workflow(name: str) -> dict[str, Any]:
    return load(ROOT / ".github" / "workflows" / f"{name}.yml")


def steps() -> Iterator[Any]:
    """Return every step of every workflow, and of the action they share."""
    yield from (
        pytest.param(step, id=f"{path.stem}-{name}-{index}")
        for path in WORKFLOWS
        for name, job in load(path)["jobs"].items()
        for index, step in enumerate(job.get("steps", ()))
    )
    yield from (
        pytest.param(step, id=f"sign-in-{index}") for index, step in enumerate(load(SIGN_IN)["runs"]["steps"])
    )


def jobs() -> Iterator[Any]:
    """Return every job that has steps; the others call a workflow that is here too."""
    yield from (
        pytest.param(job, id=f"{path.stem}-{name}")
        for path in WORKFLOWS
        for name, job in load(path)["jobs"].items()
        if "steps" in job
    )


def test_these_are_the_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} == {
        "ci",
        "deploy",
        "deploy-stack",
        "drift",
        "preview",
        "review",
        "review-comment",
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_nothing_unless_a_job_says_so(path: Path) -> None:
    assert load(path)["permissions"] == {}


@pytest.mark.parametrize("job", [*jobs()])
def test_a_job_has_the_least_rights_and_an_end(job: Node) -> None:
    signs_in = any(step.get("uses") == "./.github/actions/sign-in" for step in job["steps"])
    runs = {step.get("run") for step in job["steps"]}
    comments = runs & {".github/scripts/comment", ".github/scripts/review-comments"}
    fetches = runs & {".github/scripts/recorded", ".github/scripts/review-comments"}

    wanted = {"contents": "read"}
    wanted |= {"id-token": "write"} if signs_in else {}
    wanted |= {"pull-requests": "write"} if comments else {}
    wanted |= {"actions": "read"} if fetches else {}
    wanted |= (
        {"issues": "write"}
        if any(step.get("run") == ".github/scripts/drift-issue" for step in job["steps"])
        else {}
    )
    assert job["permissions"] == wanted
    assert int(job["timeout-minutes"]) <= 60


@pytest.mark.parametrize("job", [*jobs()])
def test_a_job_that_signs_in_does_so_under_an_environment(job: Node) -> None:
    assert ("id-token" in job["permissions"]) == ("environment" in job)


@pytest.mark.parametrize("step", [*steps()])
def test_a_step_uses_an_action_by_its_commit_or_runs_one_script_or_make_target(step: Node) -> None:
    if "uses" in step:
        assert re.fullmatch(r"\./\.github/actions/sign-in|[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
    else:
        known = {f".github/scripts/{each}" for each in SCRIPTS} | {f"make {each}" for each in TARGETS}
        assert step["run"] in known | {LISTED}


def test_every_script_is_executable_stops_at_what_fails_and_is_called() -> None:
    called = " ".join(parameter.values[0].get("run", "") for parameter in steps())
    for name in SCRIPTS:
        path = ROOT / ".github" / "scripts" / name
        assert os.access(path, os.X_OK)
        assert path.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n# ")
        assert "\nset -euo pipefail\n" in path.read_text(encoding="utf-8")
        assert re.search(rf"\.github/scripts/{name}(?![\w-])", called), name


@pytest.mark.parametrize("step", [*steps()])
def test_no_text_of_an_event_reaches_a_shell_as_code(step: Node) -> None:
    assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("step", [*steps()])
def test_a_checkout_leaves_no_token_behind(step: Node) -> None:
    if step.get("uses", "").startswith("actions/checkout@"):
        assert step["with"]["persist-credentials"] == "false"


def test_only_the_review_sees_a_pull_request_and_it_has_no_right_but_to_read() -> None:
    """Its rules, its workflow and the environment it is run in are there before the branch is."""
    seen = {
        (path.stem, name): job
        for path in WORKFLOWS
        for name, job in load(path)["jobs"].items()
        if any({"ref", "repository"} & step.get("with", {}).keys() for step in job.get("steps", ()))
    }

    assert seen.keys() == {("review", "review")}
    review = seen["review", "review"]
    assert set(workflow("review")["on"]) == {"pull_request_target"}
    assert review["permissions"] == {"contents": "read"}
    assert "environment" not in review
    *_, base, branch, run, _ = review["steps"]
    assert [base["run"], run["run"]] == [".github/scripts/install", ".github/scripts/review"]
    assert branch["with"]["path"] == review["env"]["CHECKOUT"]
    assert not [step for step in review["steps"] if "GH_TOKEN" in step.get("env", {})]


def test_who_comments_on_a_review_has_nothing_of_the_branch() -> None:
    comment = workflow("review-comment")

    assert comment["on"] == {"workflow_run": {"workflows": ["review"], "types": ["completed"]}}
    (job,) = comment["jobs"].values()
    assert [step.get("run", "checkout") for step in job["steps"]] == [
        "checkout",
        ".github/scripts/review-comments",
    ]
    asked = {part.strip() for part in job["if"].split("&&")}
    assert "github.event.workflow_run.event == 'pull_request_target'" in asked


@pytest.mark.parametrize("path", [*WORKFLOWS, SIGN_IN], ids=lambda path: path.stem)
def test_each_pinned_action_says_its_version_beside(path: Path) -> None:
    pinned = [line for line in path.read_text(encoding="utf-8").splitlines() if re.search(r"uses: .*@", line)]

    assert pinned
    assert [line for line in pinned if not re.search(r"@[0-9a-f]{40} # v\d+(\.\d+)+$", line)] == []


def test_an_action_is_pinned_to_one_commit_everywhere() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*WORKFLOWS, SIGN_IN)]
    commits: dict[str, set[str]] = {}
    for action, commit in re.findall(r"uses: ([\w/-]+)@(\w+)", "\n".join(texts)):
        commits.setdefault(action, set()).add(commit)

    assert {action for action, found in commits.items() if len(found) > 1} == set()


def test_no_workflow_uses_a_stored_key_but_the_token_of_hyperfleet() -> None:
    """An identity is asked for by OIDC; the other token is that of the job."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in (*WORKFLOWS, SIGN_IN))

    assert set(re.findall(r"secrets\.(\w+)", texts)) == {"HYPERFLEET_API_TOKEN"}
    assert set(re.findall(r"github\.token", texts)) == {"github.token"}


def test_previews_are_for_pull_requests_of_the_repository_itself_and_of_people() -> None:
    preview = workflow("preview")

    assert set(preview["on"]) == {"pull_request"}
    asked = {part.strip() for part in preview["jobs"]["stacks"]["if"].split("&&")}
    assert asked == {
        "vars.CREDFLEET_ENVIRONMENTS == 'ready'",
        "github.event.pull_request.head.repo.full_name == github.repository",
        "github.event.pull_request.user.type != 'Bot'",
        "!endsWith(github.actor, '[bot]')",
    }
    assert preview["jobs"]["preview"]["needs"] == "stacks"


@pytest.mark.parametrize("name", ["preview", "drift"])
def test_previews_and_drift_run_for_each_stack_under_an_environment_of_its_own(name: str) -> None:
    job = workflow(name)["jobs"][name]

    assert job["strategy"]["matrix"] == {"include": "${{ fromJSON(needs.stacks.outputs.matrix) }}"}
    assert job["strategy"]["fail-fast"] == "false"
    assert job["environment"] == f"{name}-${{{{ matrix.stack }}}}"
    assert job["env"]["STACK"] == "${{ matrix.stack }}"


def test_what_the_policies_refuse_is_told_in_the_pull_request_too() -> None:
    *_, preview, keep, comment = workflow("preview")["jobs"]["preview"]["steps"]

    assert preview == {"run": ".github/scripts/preview"}
    assert keep["if"] == comment["if"] == "${{ !cancelled() }}"
    assert comment["run"] == ".github/scripts/comment"
    assert keep["with"]["path"] == ".sandbox/reviews/${{ matrix.stack }}.json"


def test_every_environment_is_deployed_after_ci_one_at_a_time() -> None:
    jobs = workflow("deploy")["jobs"]

    assert jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    assert (jobs["stacks"]["needs"], jobs["deploy"]["needs"]) == ("ci", "stacks")
    assert jobs["deploy"]["uses"] == "./.github/workflows/deploy-stack.yml"
    assert jobs["deploy"]["strategy"] == {
        "max-parallel": "1",
        "matrix": {"include": "${{ fromJSON(needs.stacks.outputs.matrix) }}"},
    }


def test_nothing_cuts_a_deployment_short() -> None:
    assert workflow("deploy")["jobs"]["deploy"]["concurrency"] == {
        "group": "deploy-${{ matrix.stack }}",
        "cancel-in-progress": "false",
    }


def test_reviewers_approve_a_plan_and_only_that_is_deployed() -> None:
    jobs = workflow("deploy-stack")["jobs"]
    *_, keep = jobs["plan"]["steps"]
    take = next(step for step in jobs["deploy"]["steps"] if "download-artifact" in step.get("uses", ""))

    assert jobs["plan"]["environment"] == "drift-${{ inputs.stack }}"
    assert jobs["deploy"]["environment"] == "${{ inputs.stack }}"
    assert jobs["deploy"]["needs"] == "plan"
    assert [step["run"] for step in jobs["plan"]["steps"] if "run" in step] == [".github/scripts/preview"]
    assert keep["with"]["path"] == ".sandbox/reviews/${{ inputs.stack }}.md"
    assert take["with"] == {"name": keep["with"]["name"], "path": ".sandbox/approved"}
    runs = [step["run"] for step in jobs["deploy"]["steps"] if "run" in step]
    assert runs == [
        ".github/scripts/preview",
        ".github/scripts/approved",
        ".github/scripts/deploy",
        ".github/scripts/record",
    ]


@pytest.mark.parametrize("name", ["deploy", "drift", "preview"])
def test_a_clone_without_environments_signs_in_nowhere(name: str) -> None:
    assert "vars.CREDFLEET_ENVIRONMENTS == 'ready'" in workflow(name)["jobs"]["stacks"]["if"]


@pytest.mark.parametrize(("name", "event"), [("deploy", "push"), ("preview", "pull_request")])
def test_a_change_of_pages_alone_needs_no_credentials(name: str, event: str) -> None:
    ignored = set(workflow(name)["on"][event]["paths-ignore"])

    assert {"docs/**", "**.md"} <= ignored
    assert not {each for each in ignored if each.split("/")[0] in {"components", "policies", "stacks"}}


def test_drift_is_looked_for_every_night() -> None:
    drift = workflow("drift")

    assert re.fullmatch(r"\d+ \d+ \* \* \*", drift["on"]["schedule"][0]["cron"])
    look, tell = drift["jobs"]["drift"]["steps"][-2:]
    assert look["run"] == ".github/scripts/drift"
    assert tell["run"] == ".github/scripts/drift-issue"
    assert tell["if"] == f"${{{{ failure() && steps.{look['id']}.outcome == 'failure' }}}}"


def test_ci_checks_and_tests_on_a_fresh_runner() -> None:
    runs = [step.get("run") for step in workflow("ci")["jobs"]["check-and-test"]["steps"]]

    assert {"make check", "make test"} <= set(runs)


def test_the_cli_is_of_the_release_of_the_sdk() -> None:
    installed = next(
        step["with"]["pulumi-version"]
        for step in load(SIGN_IN)["runs"]["steps"]
        if step.get("uses", "").startswith("pulumi/actions@")
    )

    assert installed == version("pulumi")


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
def test_a_cloud_is_signed_in_at_for_what_a_stack_writes_and_its_cluster_where_it_is(cloud: str) -> None:
    conditions = [step.get("if") for step in load(SIGN_IN)["runs"]["steps"]]

    assert conditions.count(f"contains(fromJSON(inputs.clouds), '{cloud}')") == 1
    assert f"inputs.cloud == '{cloud}'" in conditions


LOCKS: Final = {"go.mod": "gomod", "uv.lock": "uv"}
"""What keeps a folder's versions, and the ecosystem it is of."""


def test_every_folder_that_keeps_versions_of_others_is_kept_up_to_date() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    paths = [PurePosixPath("/", path) for path in listed.stdout.split("\0")]
    wanted = {(LOCKS[path.name], str(path.parent)) for path in paths if path.name in LOCKS}

    actions = {("github-actions", "/"), ("github-actions", "/.github/actions/sign-in")}
    updates = load(ROOT / ".github" / "dependabot.yml")["updates"]
    kept = {
        (each["package-ecosystem"], folder)
        for each in updates
        for folder in each.get("directories", [each.get("directory")])
    }
    assert kept == wanted | actions


def test_each_variable_of_a_github_environment_is_documented() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in (*WORKFLOWS, SIGN_IN))
    read = set(re.findall(r"(?:vars|fromJSON\(inputs\.variables\))\.([A-Z_]+)", texts))

    page = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    assert read == set(re.findall(r"`((?:AWS|AZURE|CREDFLEET|GCP|PULUMI)_[A-Z_]+|CLUSTER)`", page))
