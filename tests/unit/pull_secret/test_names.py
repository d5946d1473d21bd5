"""What is named after a cluster, how long its id may be for it, and the labels."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components import naming
from components.pull_secret.labels import secret_labels
from components.pull_secret.names import (
    CLUSTER_LABEL,
    CLUSTER_SECRET,
    NAMESPACE,
    SECRET,
    Name,
    cluster_id_problems,
    cluster_secret_of,
    job,
    job_problems,
    namespace_of,
    secret_id,
    secret_id_problems,
    template_problem,
)

GOOGLE_LABEL = re.compile(r"[a-z0-9_-]{1,63}")
SIX = {"managed-by", "adapter", "cluster-id", "resource-type", "hyperfleet-version", "cluster-name"}


def causes(cluster_id: str) -> list[str]:
    return [fault.problem for fault in cluster_id_problems(cluster_id, "id")]


def test_a_secret_is_named_after_its_cluster() -> None:
    assert secret_id("cls-456", "") == secret_id("cls-456") == "hyperfleet-cls-456-pull-secret"


def test_an_explicit_name_wins_and_the_labels_still_carry_the_cluster() -> None:
    assert secret_id("cls-123", "custom-secret") == "custom-secret"
    assert secret_labels("cls-123")["cluster-id"] == "cls-123"


@pytest.mark.parametrize(
    ("name", "longest", "made"),
    [
        (SECRET, 232, "hyperfleet-cls-1-pull-secret"),
        (CLUSTER_LABEL, 63, "cls-1"),
        (NAMESPACE, 54, "clusters-cls-1"),
        (CLUSTER_SECRET, 241, "cls-1-pull-secret"),
        (job(7), 47, "pullsecret-cls-1-gen7"),
        (job(10), 46, "pullsecret-cls-1-gen10"),
    ],
    ids=["secret", "label", "namespace", "cluster-secret", "job", "job-of-two-digits"],
)
def test_every_name_leaves_the_id_this_much_room(name: Name, longest: int, made: str) -> None:
    assert (name.longest_id, name.of("cls-1")) == (longest, made)
    assert len(name.of("x" * longest)) == name.limit


@pytest.mark.parametrize(
    ("length", "broken"),
    [
        (1, []),
        (54, []),
        (55, ["namespace"]),
        (63, ["namespace"]),
        (64, ["label", "namespace"]),
        (232, ["label", "namespace"]),
        (233, ["secret", "label", "namespace"]),
        (241, ["secret", "label", "namespace"]),
        (242, ["secret", "label", "namespace", "Secret"]),
    ],
)
def test_an_id_is_told_every_limit_it_breaks(length: int, broken: list[str]) -> None:
    told = causes("x" * length)
    assert len(told) == len(broken)
    assert all(
        f" {word} " in problem or f"'s {word}" in problem for word, problem in zip(broken, told, strict=True)
    )


@pytest.mark.parametrize(
    ("length", "generation", "doubted"), [(47, 1, False), (48, 1, True), (46, 10, False), (47, 10, True)]
)
def test_an_id_too_long_for_hyperfleets_job_is_told(length: int, generation: int, doubted: bool) -> None:
    assert bool([*job_problems("x" * length, generation, "id")]) is doubted


@pytest.mark.parametrize("bad", ["CLS-1", "cls_1", "cls.1", "-cls", "cls-", "cls 1", "clé", "cls-1\n", "²"])
def test_an_id_of_other_letters_is_refused(bad: str) -> None:
    assert causes(bad) == [
        "it becomes a namespace and a label, which take lower-case letters, digits, and - between them"
    ]


def test_an_id_of_other_letters_that_is_too_long_is_told_both() -> None:
    assert len(causes("X" * 60)) == 2


def test_an_empty_id_is_refused() -> None:
    assert causes("") == ["it is empty, so nothing can be named after the cluster"]


@given(st.from_regex(r"\A[a-z0-9-]{1,60}\Z"), st.text())
def test_an_id_without_faults_is_taken_by_every_service(cluster_id: str, cluster_name: str) -> None:
    if causes(cluster_id):
        return
    assert not [*secret_id_problems(secret_id(cluster_id), "secretId")]
    assert naming.is_namespace(NAMESPACE.of(cluster_id))
    assert naming.is_object_name(CLUSTER_SECRET.of(cluster_id))
    assert secret_labels(cluster_id, cluster_name)["cluster-id"] == cluster_id


@pytest.mark.parametrize("explicit", ["a.b", "a/b", "x" * 256, "ü", "a\n"])
def test_an_explicit_name_secret_manager_would_refuse_is_refused(explicit: str) -> None:
    assert [fault.place for fault in secret_id_problems(explicit, "secretId")] == ["secretId"]


def test_an_explicit_name_of_255_characters_is_taken() -> None:
    assert not [*secret_id_problems("aA_-9" * 51, "secretId")]


def test_a_secret_has_the_six_labels_of_hyperfleet() -> None:
    assert secret_labels("cls-123", "east") == {
        "managed-by": "hyperfleet",
        "adapter": "pullsecret",
        "cluster-id": "cls-123",
        "resource-type": "pull-secret",
        "hyperfleet-version": "v1",
        "cluster-name": "east",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [("East 1", "east-1"), ("Zürich.prod", "z-rich-prod"), ("a_b", "a_b"), ("x" * 64, "x" * 63)],
)
def test_a_cluster_name_is_made_a_label_value(name: str, value: str) -> None:
    assert secret_labels("cls-123", name)["cluster-name"] == value


@given(st.text(min_size=1))
def test_all_six_labels_are_ones_google_takes_whatever_the_name(name: str) -> None:
    labels = secret_labels("cls-123", name)
    assert labels.keys() == SIX
    assert all(GOOGLE_LABEL.fullmatch(text) for text in (*labels, *labels.values()))


@pytest.mark.parametrize("bad", ["", "CLS-1", "cls.1", "x" * 64])
def test_an_id_is_never_changed_to_fit_a_label(bad: str) -> None:
    with pytest.raises(ValueError, match="as it stands"):
        secret_labels(bad)


@pytest.mark.parametrize("template", ["clusters-{id}", "{region}-clusters", "clusters", "{region}-{id}"])
def test_a_template_of_a_namespace_is_made_of_id_and_region(template: str) -> None:
    assert template_problem(namespace_of(template), "place") is None


@pytest.mark.parametrize(
    "template", ["{name}-x", "a{id", "a}", "{id}{id}", "{}", "UPPER-{id}", "-{id}", "a.{id}"]
)
def test_a_template_no_namespace_comes_of_is_refused(template: str) -> None:
    fault = template_problem(namespace_of(template), "place")
    assert fault is not None
    assert fault.fix == "write it such as clusters-{id}"


def test_a_secret_may_have_dots_in_its_name() -> None:
    assert template_problem(cluster_secret_of("pull.{id}"), "place") is None


def test_the_region_takes_its_part_of_the_room() -> None:
    name = namespace_of("{region}-{id}")
    assert name.of("cls-1", "europe-west1") == "europe-west1-cls-1"
    assert name.in_region("europe-west1").longest_id == 63 - len("europe-west1-")
    assert (name.is_of_one_cluster, namespace_of("{region}-clusters").is_of_one_cluster) == (True, False)
