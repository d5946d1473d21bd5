"""Which cluster a stack is written to: the sandbox's own or the user's, asked about once, never another."""

from pathlib import Path
from typing import cast

import pytest
from pulumi_sandbox import stack_cluster
from pulumi_sandbox.contact import Contact
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.stack_cluster import StackCluster, choose

MINE = Path("/home/me/.kube/config")


class OwnPlane:
    """The sandbox's own API server, as far as a choice asks it."""

    server = "https://own"

    def kubeconfig(self, user: str) -> Path:
        return Path({"admin": "own"}[user])


@pytest.fixture
def remembered(tmp_path: Path) -> Path:
    return tmp_path / "dev.cluster.json"


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Map the kubeconfigs of the user's clusters, and `own`, to the uid each cluster answers with."""
    uids: dict[str, str | None] = {str(MINE): "uid-mine", "own": "uid-own"}

    def contact(kubeconfig: Path, context: str | None, _: str) -> Contact:
        return Contact(kubeconfig, context or "current", f"https://{kubeconfig.name}", uids[str(kubeconfig)])

    monkeypatch.setattr(stack_cluster, "contact", contact)
    return uids


def chosen(
    remembered: Path, kubeconfig: Path | None = None, *, yes: bool = False
) -> tuple[StackCluster, bool]:
    def confirm(question: str) -> None:
        if not yes:
            raise SandboxError(code="not-confirmed", place="--yes", problem=question, fix="add --yes")

    def start() -> ControlPlane:
        return cast("ControlPlane", OwnPlane())

    return choose(remembered, "dev", kubeconfig, start=start, confirm=confirm, context="ctx")


def test_without_a_cluster_of_the_users_the_sandboxs_own_is_started(
    remembered: Path, clusters: dict[str, str | None]
):
    found, stale = chosen(remembered)
    assert (found.own, found.uid, stale) == (True, "uid-own", False)


def test_a_cluster_of_the_users_is_written_to_only_when_it_is_confirmed(
    remembered: Path, clusters: dict[str, str | None]
):
    with pytest.raises(SandboxError) as told:
        chosen(remembered, MINE)
    assert told.value.code == "not-confirmed"
    assert "context ctx" in told.value.problem
    found, _ = chosen(remembered, MINE, yes=True)
    assert (found.own, found.kubeconfig) == (False, MINE)


def test_a_cluster_that_was_confirmed_is_used_again_without_being_named(
    remembered: Path, clusters: dict[str, str | None]
):
    chosen(remembered, MINE, yes=True)[0].remember(remembered)
    found, stale = chosen(remembered)
    assert (found.own, found.kubeconfig, stale) == (False, MINE, False)


def test_a_stack_that_is_on_one_cluster_is_not_written_to_another(
    remembered: Path, clusters: dict[str, str | None]
):
    chosen(remembered)[0].remember(remembered)
    with pytest.raises(SandboxError) as told:
        chosen(remembered, MINE, yes=True)
    assert told.value.code == "other-cluster"


def test_a_users_cluster_that_was_made_anew_is_another_cluster(
    remembered: Path, clusters: dict[str, str | None]
):
    chosen(remembered, MINE, yes=True)[0].remember(remembered)
    clusters[str(MINE)] = "uid-after"
    with pytest.raises(SandboxError) as told:
        chosen(remembered)
    assert told.value.code == "other-cluster"


def test_the_state_of_an_own_cluster_that_was_made_anew_is_stale(
    remembered: Path, clusters: dict[str, str | None]
):
    chosen(remembered)[0].remember(remembered)
    assert chosen(remembered)[1] is False
    clusters["own"] = "uid-after"
    assert chosen(remembered)[1] is True


def test_naming_the_file_of_the_cluster_a_stack_is_on_already_asks_nothing(
    remembered: Path, clusters: dict[str, str | None]
):
    chosen(remembered)[0].remember(remembered)
    clusters[str(MINE)] = "uid-own"
    found, stale = chosen(remembered, MINE)
    assert (found.own, stale) == (True, False)


def test_clusters_that_hide_their_uid_are_told_apart_by_their_address():
    hidden = StackCluster(MINE, "https://a", None, own=False)
    assert hidden.is_same_cluster(StackCluster(MINE, "https://a", "uid", own=False))
    assert not hidden.is_same_cluster(StackCluster(MINE, "https://b", None, own=False))


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "null", "[" * 5_000, '{"kubeconfig": "k"}', '{"kubeconfig": 1, "server": ""}']
)
def test_a_note_that_was_cut_off_is_refused_with_what_to_do(tmp_path: Path, damage: str):
    note = tmp_path / "dev.cluster.json"
    note.write_text(damage)
    with pytest.raises(SandboxError, match="remove it") as refused:
        StackCluster.recall(note)
    assert refused.value.place == str(note)


def test_a_folder_in_the_place_of_a_note_is_refused_too(tmp_path: Path):
    with pytest.raises(SandboxError, match="IsADirectoryError"):
        StackCluster.recall(tmp_path)
