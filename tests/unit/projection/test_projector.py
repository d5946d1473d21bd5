"""A projection against Secrets in memory: crashes, lost answers, other people's Secrets."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from components.errors import ProjectionError
from components.projection.keys import plan_keys
from components.projection.kubernetes_secrets import KubernetesSecrets
from components.projection.model import PROJECTED_BY, JsonObject, Projection, SecretRef, digest
from components.projection.projector import Projector

SOURCE = SecretRef("pool", "aws-1")
TARGET = SecretRef("tenant-acme", "aws-account")
WANTED = Projection(
    source=SOURCE,
    target=TARGET,
    owner="pulumi/o/p/s/acme/aws",
    plan=plan_keys({}, None),
    source_labels={"tenant-name": "acme"},
)


@dataclass
class MemorySecrets(KubernetesSecrets):
    """Secrets in memory. before_write: runs before each write; lost: writes whose answer gets lost."""

    objects: dict[SecretRef, JsonObject] = field(default_factory=dict[SecretRef, JsonObject])
    before_write: Callable[[], None] = lambda: None
    lost: set[int] = field(default_factory=set[int])
    writes: int = 0
    versions: count[int] = field(default_factory=lambda: count(1))

    def put(self, ref: SecretRef, data: dict[str, str], **metadata: dict[str, str]) -> None:
        body = {"metadata": {"name": ref.name, "namespace": ref.namespace, **metadata}, "data": data}
        self._store(ref, body)

    def get(self, ref: SecretRef) -> JsonObject | None:
        return copy.deepcopy(self.objects.get(ref))

    def create(self, body: JsonObject, *, rehearsed: bool = False) -> JsonObject | None:
        ref = self._begin(body)
        if ref in self.objects or rehearsed:
            return None
        self._store(ref, body)
        return self._answer(ref)

    def replace(self, body: JsonObject) -> JsonObject | None:
        ref = self._begin(body)
        live = self.objects.get(ref)
        if live is None or live["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            return None
        self._store(ref, body)
        return self._answer(ref)

    def delete(self, body: JsonObject) -> bool:
        ref = self._begin(body)
        live = self.objects.get(ref)
        if live is None or live["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            return False
        del self.objects[ref]
        return self.writes not in self.lost

    def _begin(self, body: JsonObject) -> SecretRef:
        self.writes += 1
        self.before_write()
        return SecretRef(body["metadata"]["namespace"], body["metadata"]["name"])

    def _store(self, ref: SecretRef, body: JsonObject) -> None:
        version = str(next(self.versions))
        metadata = {"uid": f"uid-{version}", **body["metadata"], "resourceVersion": version}
        self.objects[ref] = copy.deepcopy({**body, "metadata": metadata})

    def _answer(self, ref: SecretRef) -> JsonObject | None:
        return None if self.writes in self.lost else self.get(ref)


@pytest.fixture
def secrets() -> MemorySecrets:
    secrets = MemorySecrets()
    secrets.put(SOURCE, {"key": "b25l"}, labels={"tenant-name": "acme"})
    return secrets


def content(secrets: MemorySecrets) -> dict[str, str]:
    return secrets.objects[TARGET]["data"]


def test_a_rotation_is_noticed_and_followed_and_keeps_what_others_noted(secrets: MemorySecrets) -> None:
    first = Projector(secrets).write(WANTED)
    secrets.objects[TARGET]["metadata"]["annotations"]["note"] = "theirs"
    secrets.put(SOURCE, {"other": "dHdv"}, labels={"tenant-name": "acme"})
    assert not Projector(secrets).is_current(WANTED, first.digest)
    second = Projector(secrets).write(WANTED)
    assert content(secrets) == {"other": "dHdv"}
    assert secrets.objects[TARGET]["metadata"]["annotations"]["note"] == "theirs"
    assert Projector(secrets).is_current(WANTED, second.digest)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_answer_is_made_good_by_looking(secrets: MemorySecrets, lost: int) -> None:
    secrets.lost = {lost}
    Projector(secrets).write(WANTED)
    secrets.put(SOURCE, {"key": "dHdv"}, labels={"tenant-name": "acme"})
    Projector(secrets).write(WANTED)
    assert content(secrets) == {"key": "dHdv"}


@pytest.mark.parametrize("annotations", [{}, {PROJECTED_BY: "pulumi/o/p/s/globex/aws"}])
def test_somebody_elses_secret_is_neither_overwritten_nor_removed(
    secrets: MemorySecrets, annotations: dict[str, str]
) -> None:
    secrets.put(TARGET, {"theirs": "eA=="}, annotations=annotations)
    projector = Projector(secrets)
    assert projector.taken(WANTED)
    with pytest.raises(ProjectionError, match="this claim did not write it"):
        projector.write(WANTED)
    projector.remove(WANTED)
    assert content(secrets) == {"theirs": "eA=="}
    assert projector.digest(WANTED) is None


@pytest.mark.parametrize("is_equal", [True, False])
def test_copy_of_a_former_name_is_taken_along_and_stays(*, secrets: MemorySecrets, is_equal: bool) -> None:
    former = replace(WANTED, owner=WANTED.owner.rpartition("/")[0] + "/former")
    renamed = replace(WANTED, previously=(former.owner,))
    projector = Projector(secrets)
    projector.write(former)
    if not is_equal:
        secrets.put(SOURCE, {"key": "dHdv"}, labels={"tenant-name": "acme"})
    assert projector.taken(WANTED) is not None
    assert projector.taken(renamed) is None
    written = projector.write(renamed)
    projector.remove(former)
    assert projector.is_current(renamed, written.digest)
    assert projector.digest(former) is None


def test_a_secret_somebody_makes_in_the_last_moment_is_not_overwritten(secrets: MemorySecrets) -> None:
    secrets.before_write = lambda: secrets.put(TARGET, {"theirs": "eA=="})
    with pytest.raises(ProjectionError, match="this claim did not write it"):
        Projector(secrets).write(WANTED)
    assert content(secrets) == {"theirs": "eA=="}


def test_a_change_in_the_last_moment_of_a_removal_is_looked_at_again(secrets: MemorySecrets) -> None:
    Projector(secrets).write(WANTED)

    def taken_over() -> None:
        secrets.before_write = lambda: None
        secrets.put(TARGET, {"theirs": "eA=="})

    secrets.before_write = taken_over
    Projector(secrets).remove(WANTED)
    assert content(secrets) == {"theirs": "eA=="}


@pytest.mark.parametrize("labels", [{}, {"tenant-name": "globex"}])
def test_a_source_that_went_to_somebody_else_is_not_delivered(
    secrets: MemorySecrets, labels: dict[str, str]
) -> None:
    Projector(secrets).write(WANTED)
    secrets.put(SOURCE, {"key": "dHdv"}, labels=labels)
    with pytest.raises(ProjectionError, match="another tenant by now"):
        Projector(secrets).write(WANTED)
    assert content(secrets) == {"key": "b25l"}


def test_endless_changes_by_others_end_in_an_error(secrets: MemorySecrets) -> None:
    Projector(secrets).write(WANTED)
    secrets.put(SOURCE, {"key": "dHdv"}, labels={"tenant-name": "acme"})
    ours = copy.deepcopy(secrets.objects[TARGET])

    def touch() -> None:
        ours["metadata"]["resourceVersion"] = str(next(secrets.versions))
        secrets.objects[TARGET] = copy.deepcopy(ours)

    secrets.before_write = touch
    with pytest.raises(ProjectionError, match="others changed it 5 times"):
        Projector(secrets).write(WANTED)


def test_equal_data_of_two_targets_have_different_digests(secrets: MemorySecrets) -> None:
    other = replace(WANTED, target=SecretRef("tenant-acme", "other"))
    assert Projector(secrets).write(WANTED).digest != Projector(secrets).write(other).digest


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    target = {"metadata": {"uid": "u"}}
    assert digest(target, {"a": "1", "b": "2"}) == digest(target, {"b": "2", "a": "1"})
    assert digest(target, {"a": "1", "b": "2"}) != digest(target, {"a": "2", "b": "1"})
