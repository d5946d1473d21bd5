"""What the configuration of pull secrets may say, and what it may not."""

import json
from pathlib import Path
from typing import Any

import pytest

from components.errors import Problem
from components.pull_secret.model import Availability, Phase
from components.pull_secret.settings import PullSecretsSection
from tests.support.cases import cases, table, tabled
from tests.support.stacks import problems, settings, stack

CANARY = "canary-5c1d"
SOUND = '{"auths": {"quay.io": {"auth": "dXNlcjpjYW5hcnktNWMxZA=="}}}'
ID = "cls-000000000001"
SECTION = "credfleet:pullSecrets"
PLACE = f"{SECTION}.clusters.{ID}"
SLOT = {"type": "gcp"}
MEMBER = {"type": "gcp", "accountId": "acme-prod-1", "credentialsFrom": "aws-1"}


def cluster(**more: Any) -> dict[str, Any]:
    given = {"name": "east", "generation": 1, "project": "fleet-project", "pullSecretFrom": "quay"}
    return {key: value for key, value in {**given, **more}.items() if value is not None}


def section(
    clusters: dict[str, Any] | None = None, *, credential: str = SOUND, **more: Any
) -> dict[str, str]:
    """The small stack with pull secrets, one cluster unless others are given."""
    given = {ID: cluster()} if clusters is None else clusters
    return stack(credentials__quay=credential, pullSecrets={"clusters": given, **more})


def told(values: dict[str, str], root: Path | None = None) -> Problem:
    (problem,) = problems(values) if root is None else problems(values, root=root)
    assert CANARY not in repr(problem)
    return problem


def read(values: dict[str, str]) -> PullSecretsSection:
    found = settings(values).pull_secrets
    assert found is not None
    return found


def test_an_account_names_the_project_and_counts_as_set() -> None:
    values = stack(
        credentials__quay=SOUND,
        tenants__acme__accounts__gcp=SLOT,
        accountPool__members__gcp={**MEMBER},
        pullSecrets={"clusters": {ID: cluster(project={"account": "acme/gcp"})}},
    )
    assert problems(values) == ()
    assert read(values).cluster(ID, {}).project == "acme/gcp"


@cases(
    "change, place",
    [
        *table(__file__, "test_a_fault_of_a_cluster_is_told_where_it_is"),
        ({"secretId": "a" * 256}, "secretId"),
    ],
)
def test_a_fault_of_a_cluster_is_told_where_it_is(change: dict[str, Any], place: str) -> None:
    assert told(section({ID: cluster(**change)})).place == f"{PLACE}.{place}"


@tabled("bad, words")
def test_an_id_is_told_every_limit_it_breaks(bad: str, words: list[str]) -> None:
    found = problems(section({bad: cluster()}))
    assert {one.place for one in found} == {f"{SECTION}.clusters.{bad}"}
    assert len(found) == len(words)
    assert all(word in one.problem for word, one in zip(words, found, strict=True))


@pytest.mark.parametrize("key", ["namespaceTemplate", "secretNameTemplate"])
@pytest.mark.parametrize("template", ["{name}", "{id}-{id}", "UPPER-{id}"])
def test_a_template_nothing_comes_of_is_told(key: str, template: str) -> None:
    values = stack(credentials__quay=SOUND, pullSecrets={"clusters": {ID: cluster()}, key: template})
    assert told(values).place == f"{SECTION}.{key}"


def test_a_template_of_regions_wants_the_region_of_every_cluster() -> None:
    problem = told(section(namespaceTemplate="{region}-{id}"))
    assert (problem.place, problem.fix) == (f"{PLACE}.region", "give the region of the cluster")


def test_a_namespace_of_many_clusters_is_somebody_elses() -> None:
    problem = told(section(namespaceTemplate="clusters"))
    assert problem.place == f"{SECTION}.namespaceTemplate"
    assert "list it in cluster.existingNamespaces" in problem.fix
    values = stack(
        credentials__quay=SOUND,
        cluster__existingNamespaces=["clusters"],
        pullSecrets={"namespaceTemplate": "clusters", "clusters": {ID: cluster()}},
    )
    assert problems(values) == ()


def test_two_clusters_never_share_a_secret() -> None:
    given = {"cls-1": cluster(region="eu"), "cls-2": cluster(region="eu")}
    values = stack(
        credentials__quay=SOUND,
        cluster__existingNamespaces=["eu-clusters"],
        pullSecrets={
            "namespaceTemplate": "{region}-clusters",
            "secretNameTemplate": "pull-secret",
            "clusters": given,
        },
    )
    problem = told(values)
    assert problem.place == f"{SECTION}.clusters.cls-2"
    assert "eu-clusters/pull-secret is also that of credfleet:pullSecrets.clusters.cls-1" in problem.problem


def test_two_clusters_never_share_an_entry() -> None:
    given = {"cls-1": cluster(), "cls-2": cluster(secretId="hyperfleet-cls-1-pull-secret")}
    assert told(section(given)).place == f"{SECTION}.clusters.cls-2.secretId"
    given["cls-2"]["project"] = "other-project"
    assert problems(section(given)) == ()


def test_the_organisations_pull_secret_and_further_ones_are_behind_the_clusters_own() -> None:
    found = read(
        section(
            {ID: cluster(additionalFrom=["quay", "quay"]), "cls-2": cluster(pullSecretFrom=None)},
            pullSecretFrom="quay",
        )
    )
    further = [f"{PLACE}.additionalFrom[{number}]" for number in (0, 1)]
    assert [*found.pull_secrets(ID)] == [f"{PLACE}.pullSecretFrom", f"{SECTION}.pullSecretFrom", *further]
    assert [*found.pull_secrets("cls-2")] == [f"{SECTION}.pullSecretFrom"]
    assert [found.cluster(id_, {}).pull_secret for id_ in (ID, "cls-2")] == ["quay, quay, quay, quay", "quay"]


def test_a_pull_secret_of_all_clusters_is_told_once_where_it_stands() -> None:
    given = {ID: cluster(pullSecretFrom=None), "cls-2": cluster(pullSecretFrom=None)}
    assert told(section(given, credential="{}", pullSecretFrom="quay")).place == (
        f"{SECTION}.pullSecretFrom (quay: auths)"
    )


def test_entries_and_references_are_not_merged() -> None:
    problem = told(section(pullSecretFrom={"secret": "platform/quay/key"}))
    assert (problem.place, "not merged" in problem.problem) == (PLACE, True)
    a, b = ({"secret": f"platform/{name}/key"} for name in "ab")
    assert problems(section({ID: cluster(pullSecretFrom=a)}, pullSecretFrom=b)) == ()


def test_a_credential_that_is_not_there_is_told_with_the_nearest_one() -> None:
    for elsewhere in ({"account": "acme/gcp"}, {"secret": "account-pool/gcp-1"}):
        refused = told(section({ID: cluster(pullSecretFrom=elsewhere)}))
        assert refused.place == f"{PLACE}.pullSecretFrom"
    problem = told(section({ID: cluster(pullSecretFrom="quai")}))
    assert (problem.place, problem.fix) == (f"{PLACE}.pullSecretFrom", "did you mean quay?")


@cases(
    "payload, what",
    {
        "null": ("null", "auths"),
        "registries": (f'{{"registries": {{"{CANARY}": 1}}}}', "auths"),
        "case": (f'{{"Auths": {{"{CANARY}": 1}}}}', "auths"),
        "no-json": (f"{CANARY}", "payload"),
        "too-large": (f'{{"auths": {{"r": {{"auth": "dTpw", "x": "{CANARY * 6000}"}}}}}}', "payload"),
        "text": (f'{{"auths": {{"quay.io": {{}}, "r": "{CANARY}"}}}}', 'auths["r"]'),
        "unusable": (f'{{"auths": {{"{CANARY}": {{}}}}}}', "auths"),
        "url-safe": (f'{{"auths": {{"r": {{"auth": "{CANARY}"}}}}}}', 'auths["r"]'),
    },
)
def test_a_credential_that_is_no_pull_secret_is_told_and_never_shown(payload: str, what: str) -> None:
    assert told(section(credential=payload)).place == f"{PLACE}.pullSecretFrom (quay: {what})"


@tabled("payload")
def test_what_kubelet_takes_is_taken_and_refused_when_strict(payload: str) -> None:
    assert problems(section(credential=payload)) == ()
    assert problems(section(credential=payload, strict=True))


@tabled("account, fix")
def test_an_account_nobody_claims_names_no_project(account: str, fix: str) -> None:
    problem = told(section({ID: cluster(project={"account": account})}))
    assert (problem.place, problem.fix) == (f"{PLACE}.project.account", fix)


def test_a_tenant_that_is_left_out_for_a_fault_is_no_second_fault() -> None:
    values = stack(
        credentials__quay=SOUND,
        tenants__acme__namespace="kube-system",
        pullSecrets={"clusters": {ID: cluster(project={"account": "acme/gcp"})}},
    )
    assert [one.place for one in problems(values)] == ["credfleet:tenants.acme.namespace"]


@tabled("change")
def test_what_google_takes_of_keys_and_labels_is_taken(change: dict[str, Any]) -> None:
    assert problems(section(**change)) == ()


@tabled("change, place")
def test_a_fault_of_the_section_is_told_where_it_is(change: dict[str, Any], place: str) -> None:
    assert told(section(**change)).place == place


@pytest.mark.parametrize(
    "url", ["https://hyperfleet.example", "http://127.0.0.1:18553", "http://localhost:1"]
)
def test_a_hyperfleet_is_reached_over_https_or_on_this_machine(url: str) -> None:
    assert problems(section(hyperfleet={"apiUrl": url})) == ()


def test_both_forms_of_an_identity_are_taken() -> None:
    workload = {"projectNumber": "12", "project": "fleet-project", "namespace": "ns", "serviceAccount": "sa"}
    found = read(
        section(
            reader={"workload": workload},
            adapter={"serviceAccount": "a@fleet-project.iam.gserviceaccount.com"},
        )
    )
    assert found.reader is not None
    assert found.reader.member.endswith("/subject/ns/ns/sa/sa")
    assert found.adapter is not None
    assert found.adapter.member == "serviceAccount:a@fleet-project.iam.gserviceaccount.com"


def test_what_was_observed_counts_behind_what_the_stack_says(tmp_path: Path) -> None:
    document = {
        "observedAt": "2026-01-01T00:00:00Z",
        "clusters": {ID: {"phase": "Ready", "adapters": {"dns": "False", "validation": "True"}}},
    }
    (tmp_path / "observed.json").write_text(json.dumps(document))
    values = section({ID: cluster(adapters={"dns": "True"})}, adaptersFrom="observed.json")
    found = settings(values, tmp_path).pull_secrets
    assert found is not None
    made = found.cluster(ID, found.observed(tmp_path))
    assert made.adapters == {"dns": Availability.TRUE, "validation": Availability.TRUE}
    assert made.phase is Phase.READY


def test_a_file_of_observations_that_is_none_is_told_with_the_command_that_writes_it(tmp_path: Path) -> None:
    (tmp_path / "observed.json").write_text(f'{{"clusters": "{CANARY}"}}')
    problem = told(section(adaptersFrom="observed.json"), tmp_path)
    assert problem.fix == "write it with: credfleet pull-secret observe"


def test_a_stack_of_pull_secrets_alone_names_its_cluster_too() -> None:
    values = stack(tenants=None, accountPool=None, cluster={}, credentials__quay=SOUND)
    values |= {"credfleet:pullSecrets": json.dumps({"clusters": {ID: cluster()}})}
    assert told(values).place == "credfleet:cluster.context"
