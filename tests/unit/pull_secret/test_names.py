"""What is named after a cluster, how long its id may be for it, and the labels."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components import naming
from components.pull_secret.names import (
    CLUSTER_LABEL,
    CLUSTER_SECRET,
    NAMESPACE,
    SECRET,
    Name,
    cluster_id_problems,
    job,
    job_problems,
    secret_id_problems,
    secret_labels,
)

GOOGLE_LABEL = re.compile(r"[a-z0-9_-]{1,63}")
SIX = {"managed-by", "adapter", "cluster-id", "resource-type", "hyperfleet-version", "cluster-name"}


def causes(cluster_id: str) -> list[str]:
    return [fault.problem for fault in cluster_id_problems(cluster_id, "id")]


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
    ("length", "generation", "doubted"), [(47, 1, False), (48, 1, True), (46, 10, False), (47, 10, True)]
)
def test_an_id_too_long_for_hyperfleets_job_is_told(length: int, generation: int, doubted: bool) -> None:
    assert bool([*job_problems("x" * length, generation, "id")]) is doubted


@given(st.from_regex(r"\A[a-z0-9-]{1,60}\Z"), st.text())
def test_an_id_without_faults_is_taken_by_every_service(cluster_id: str, cluster_name: str) -> None:
    if causes(cluster_id):
        return
    assert not [*secret_id_problems(SECRET.of(cluster_id), "secretId")]
    assert naming.is_namespace(NAMESPACE.of(cluster_id))
    assert naming.is_object_name(CLUSTER_SECRET.of(cluster_id))
    assert secret_labels(cluster_id, cluster_name)["cluster-id"] == cluster_id


@pytest.mark.parametrize("explicit", ["a.b", "a/b", "x" * 256, "ü", "a\n"])
def test_an_explicit_name_secret_manager_would_refuse_is_refused(explicit: str) -> None:
    assert [fault.place for fault in secret_id_problems(explicit, "secretId")] == ["secretId"]


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
